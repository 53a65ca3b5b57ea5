"""A bound on the varints of kafka-python's generated decoders.

They read on for as long as the bytes say "more follows", shifting an ever larger number: a frame of 0xff
takes time by the square of its length, a minute for one megabyte. Five bytes hold any number that may stand
there.
"""

from __future__ import annotations

from typing import Any

_MAX_SHIFT = 28


def bound_varints() -> None:
    """Let decoders that are generated from now on refuse a varint of more than five bytes (ValueError)."""
    from kafka.protocol.schemas.fields.codecs import UnsignedVarInt32

    UnsignedVarInt32.emit_decode_from = staticmethod(_emit_decode_from)


def _emit_decode_from(ctx: Any, var_name: str, indent: str) -> None:
    """Code that reads an unsigned varint at ``pos`` into ``var_name``, for kafka-python's generator."""
    byte, shift = ctx.next_var("b"), ctx.next_var("sh")
    for line in (
        f"{var_name} = data[pos]",
        "pos += 1",
        f"if {var_name} > 0x7f:",
        f"    {var_name} &= 0x7f",
        f"    {shift} = 7",
        "    while True:",
        f"        {byte} = data[pos]",
        "        pos += 1",
        f"        {var_name} |= ({byte} & 0x7f) << {shift}",
        f"        if not ({byte} & 0x80): break",
        f"        {shift} += 7",
        f'        if {shift} > {_MAX_SHIFT}: raise ValueError("a varint of more than five bytes")',
    ):
        ctx.emit(indent, line)
