"""Requests of ZooKeeper 3.6 and later that kazoo does not have: many reads at once, and a watch of all nodes.

They have what kazoo asks of a request: ``type``, ``serialize`` and ``deserialize``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

_INT: Final = struct.Struct(">i")
_HEADER: Final = struct.Struct(">i?i")
#: czxid, mzxid, ctime, mtime, version, cversion, aversion, ephemeralOwner, dataLength, numChildren, pzxid.
_STAT: Final = struct.Struct(">qqqqiiiqiiq")

_GET_DATA: Final = 4
_GET_CHILDREN: Final = 8
_ERROR: Final = -1

#: A watch of a node and all below it, which stays.
_PERSISTENT_RECURSIVE: Final = 1

#: Kinds of events about a node: it was created, removed or changed.
_NODE_EVENTS: Final = (1, 2, 3)


class ZooKeeperNode(NamedTuple):
    """A node: its data, the transactions that created it and changed it last, its version, the session whose
    end removes it (0: none), and the number of its children.
    """

    data: bytes
    created: int
    modified: int
    version: int
    owner: int
    children: int


#: What was read, or the number of ZooKeeper's error.
Read: TypeAlias = ZooKeeperNode | list[str] | int


class ReadMany:
    """The data of nodes, or the names of their children, in one request (MultiRead)."""

    type: Final = 22

    def __init__(self, paths: Sequence[str], *, children: bool = False) -> None:
        self._paths = paths
        self._kind = _GET_CHILDREN if children else _GET_DATA

    def __repr__(self) -> str:
        return f"ReadMany({len(self._paths)} nodes)"

    def serialize(self) -> bytes:
        """Return the paths as a request of ZooKeeper's MultiRead (opcode 22)."""
        made = bytearray()
        for path in self._paths:
            made += _HEADER.pack(self._kind, False, -1)
            made += _encode_text(path)
            made.append(0)  # no watch
        return bytes(made + _HEADER.pack(_ERROR, True, -1))

    def deserialize(self, buffer: bytes, offset: int) -> list[Read]:
        """Return what each path has; a missing entry is its error code."""
        found: list[Read] = []
        while True:
            kind, is_end, _ = _HEADER.unpack_from(buffer, offset)
            offset += _HEADER.size
            if is_end:
                return found
            (size,) = _INT.unpack_from(buffer, offset)
            offset += _INT.size
            if kind == _ERROR:
                found.append(size)
            elif kind == _GET_CHILDREN:
                names: list[str] = []
                for _ in range(size):
                    (length,) = _INT.unpack_from(buffer, offset)
                    offset += _INT.size + length
                    names.append(buffer[offset - length : offset].decode())
                found.append(names)
            else:
                data = buffer[offset : offset + max(size, 0)]
                offset += max(size, 0)
                stat = _STAT.unpack_from(buffer, offset)
                offset += _STAT.size
                found.append(ZooKeeperNode(data, stat[0], stat[1], stat[4], stat[7], stat[9]))


class WatchAll:
    """A watch of a node and all below it, which lasts as long as the connection (AddWatch)."""

    type: Final = 106

    def __init__(self, path: str) -> None:
        self._path = path

    def __repr__(self) -> str:
        return f"WatchAll({self._path})"

    def serialize(self) -> bytes:
        """Return the request for a persistent recursive watch (opcode 106)."""
        return _encode_text(self._path) + _INT.pack(_PERSISTENT_RECURSIVE)

    def deserialize(self, buffer: bytes, offset: int) -> None:
        """Its response says nothing but that it is done."""


def read_event(buffer: bytes, offset: int, changed: Callable[[str], None]) -> None:
    """Call ``changed`` with the path of an event about a node."""
    (kind,) = _INT.unpack_from(buffer, offset)
    offset += 2 * _INT.size
    (length,) = _INT.unpack_from(buffer, offset)
    offset += _INT.size
    if kind in _NODE_EVENTS:
        changed(buffer[offset : offset + length].decode())


def _encode_text(text: str) -> bytes:
    data = text.encode()
    return _INT.pack(len(data)) + data
