"""Requests of ZooKeeper 3.6 and later that kazoo does not have: many reads at once, and a watch of all nodes.

They have what kazoo asks of a request: ``type``, ``serialize`` and ``deserialize``. Numbers are big-endian, a
text is its length as int32 and UTF-8.

MultiRead (22), a request for each path, and a response in the same order; both end with a header of type -1:

======  =======================  =================================================================
offset  type                     meaning
======  =======================  =================================================================
0       int32                    4 getData, 8 getChildren; in a response -1: an error
4       bool                     whether this is the end
5       int32                    -1; in a response the error
9       text, int8               request: path, 0 for no watch
        int32                    response with an error: ZooKeeper's number of it
        int32, bytes, stat       response of getData: length (-1: null), data, stat
        int32, texts             response of getChildren: count, names
======  =======================  =================================================================

The stat:

======  =====  ===========================================================================
offset  type   meaning
======  =====  ===========================================================================
0       int64  czxid: the transaction that created the node
8       int64  mzxid: the one that changed it last
16      int64  ctime
24      int64  mtime
32      int32  version of its data
36      int32  cversion, of its children
40      int32  aversion, of its rights
44      int64  ephemeralOwner: the session whose end removes it, 0 for none
52      int32  length of its data
56      int32  number of its children
60      int64  pzxid: the transaction that changed its children last
======  =====  ===========================================================================

AddWatch (106) is a path and an int32, the mode. An event is two int32, its kind and the session's state, and
a path.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from ..protocol.named_tuples import NamedTuple

_INT: Final = struct.Struct(">i")
_HEADER: Final = struct.Struct(">i?i")
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
