"""Packets that a network card loses at random.

A kernel may lack the queues and filters that lose packets (netem, iptables). Every one that brokers are run
on lets a card have a program that looks at what it receives (XDP, Linux 5.9), here five instructions: draw a
number, drop or pass. It goes with its descriptor.
"""

from __future__ import annotations

import ctypes
import os
import platform
import socket
import struct

#: The number of the system call bpf().
_BPF = {"x86_64": 321, "aarch64": 280}
_PROG_LOAD, _LINK_CREATE = 5, 28
_XDP_PROGRAM, _XDP_CARD = 6, 37
#: The card's driver need not know of it.
_ANY_DRIVER = 2
_DROP, _PASS = 1, 2
_HIGHEST = 0x7FFF_FFFF


def lose_received(card: str, share: float) -> int:
    """Lose this share (0..1) of what a card receives until the descriptor that this returns is closed.

    Raises OSError where that cannot be done.
    """
    program = _load(
        [
            _instruction(0x85, value=7),  # call bpf_get_prandom_u32
            _instruction(0x57, value=_HIGHEST),  # r0 &= ...
            _instruction(0x25, skipped=2, value=int(share * _HIGHEST)),  # if r0 > ... skip
            _instruction(0xB7, value=_DROP),
            _instruction(0x95),  # return r0
            _instruction(0xB7, value=_PASS),
            _instruction(0x95),
        ]
    )
    try:
        link = struct.pack("<IIII", program, socket.if_nametoindex(card), _XDP_CARD, _ANY_DRIVER)
        return _call(_LINK_CREATE, link)
    finally:
        os.close(program)


def loss_problem() -> str | None:
    """Why packets cannot be lost here; None if they can."""
    try:
        os.close(_load([_instruction(0xB7, value=_PASS), _instruction(0x95)]))
    except OSError as error:
        return f"packets are lost by programs of the kernel (XDP), which it does not take: {error}"
    return None


def _instruction(code: int, *, skipped: int = 0, value: int = 0) -> bytes:
    return struct.pack("<BBhi", code, 0, skipped, value)


def _load(instructions: list[bytes]) -> int:
    text = ctypes.create_string_buffer(b"".join(instructions))
    license_text = ctypes.create_string_buffer(b"GPL")
    addresses = ctypes.addressof(text), ctypes.addressof(license_text)
    return _call(_PROG_LOAD, struct.pack("<IIQQ", _XDP_PROGRAM, len(instructions), *addresses))


def _call(command: int, fields: bytes) -> int:
    number = _BPF.get(platform.machine())
    if number is None:
        raise OSError(f"the system call's number on {platform.machine()} is not known here")
    attributes = ctypes.create_string_buffer(fields, 128)
    descriptor = int(ctypes.CDLL(None, use_errno=True).syscall(number, command, attributes, 128))
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return descriptor
