"""Codecs by hand for the requests that a coordinator gets most of: Heartbeat, OffsetCommit, and the two that
come from every member at once, JoinGroup and SyncGroup.

kafka-python's classes are the reference: what is read here equals what they read, and what cannot be read
straight away (a tagged field, a null where none may be, bytes that end early) is left to them, so that there
is one judge of what is wrong with a message.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from ._apis import APIS, ApiKey
from ._hot_answers import Writer, commit_writer, heartbeat_writer, join_writer, sync_writer
from ._hot_requests import Reader, commit_reader, heartbeat_reader, join_reader, sync_reader

_PREFIX = struct.Struct(">hh")
_HEADER = struct.Struct(">ih")
_BODY_AT: Final = 10

#: Larger frames are left to the reference, which counts their elements.
MAX_HOT_BYTES: Final = 1_048_576


class HotCodec(NamedTuple):
    """One version of an API: ``decode`` reads a request's body from a frame and where it starts, ``encode``
    writes a whole response frame. ``parks`` if the answer may have to wait for other members.
    """

    api_key: ApiKey
    version: int
    flexible: bool
    parks: bool
    decode: Reader
    encode: Writer


def hot_codec(frame: bytes) -> HotCodec | None:
    """The codec for a request frame, by its API number and version; None if it has none."""
    return _CODECS.get(frame[:4]) if len(frame) <= MAX_HOT_BYTES else None


def hot_header(frame: bytes, codec: HotCodec) -> tuple[int, int]:
    """Correlation id, and where the body starts. Raises one of UNREADABLE."""
    correlation_id, size = _HEADER.unpack_from(frame, 4)
    at = _BODY_AT + (size if size > 0 else 0)
    if codec.flexible:
        if frame[at]:
            raise IndexError("tagged fields in the header")
        at += 1
    return correlation_id, at


def _codecs() -> dict[bytes, HotCodec]:
    found = {}
    for key, parks, reader, writer in (
        (ApiKey.HEARTBEAT, False, heartbeat_reader, heartbeat_writer),
        (ApiKey.OFFSET_COMMIT, False, commit_reader, commit_writer),
        (ApiKey.JOIN_GROUP, True, join_reader, join_writer),
        (ApiKey.SYNC_GROUP, True, sync_reader, sync_writer),
    ):
        api = APIS[key]
        for version in range(api.min_version, api.max_version + 1):
            flexible = api.flexible(version)
            found[_PREFIX.pack(key, version)] = HotCodec(
                key, version, flexible, parks, reader(version, flexible), writer(version, flexible)
            )
    return found


_CODECS: Final = _codecs()
