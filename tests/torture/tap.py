"""Reads along between clients and broker: every OffsetCommit as the broker was asked and as it answered, and
every offset that it told.

What a client's library makes of its commits (it may give one up, and send it later all the same) does not
matter then: who was told what, and when, is known from the wire.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kohort.protocol import ApiKey, decode_request, decode_request_header, decode_response
from tests.torture.history import FetchedOffset, History, WireCommit

_LENGTH_BYTES = 4
#: Version of OffsetFetch from which it names many groups.
_MANY_GROUPS_FROM = 8


class Tap:
    """All connections of a run to a broker; what is found goes into the history."""

    def __init__(self, history: History, broker: int = 1) -> None:
        self._history = history
        self._broker = broker

    def connection(self) -> ConnectionTap:
        return ConnectionTap(self._history, self._broker)

    def broker_died(self) -> None:
        """The broker's process is gone: nothing that it was asked before can be carried out any more."""
        self._history.deaths[self._broker].append(self._history.tick())


class ConnectionTap:
    """One connection, in pieces as they come."""

    def __init__(self, history: History, broker: int) -> None:
        self._history = history
        self._broker = broker
        self._asked, self._answered = bytearray(), bytearray()
        self._waiting: dict[int, tuple[int, list[WireCommit]]] = {}
        # OffsetFetch on its way: version, tick, group
        self._looking: dict[int, tuple[int, int, str]] = {}

    def asked(self, data: bytes) -> None:
        """The broker is about to be sent this."""
        for frame in _frames(self._asked, data):
            header = decode_request_header(frame)
            if header.api_key == ApiKey.OFFSET_FETCH:
                one = decode_request(frame, header).group_id if header.api_version < _MANY_GROUPS_FROM else ""
                self._looking[header.correlation_id] = header.api_version, self._history.tick(), one
            if header.api_key != ApiKey.OFFSET_COMMIT:
                continue
            body, tick = decode_request(frame, header), self._history.tick()
            commits = [
                WireCommit(
                    tick,
                    row.partition_index,
                    row.committed_offset,
                    body.generation_id_or_member_epoch,
                    body.member_id,
                    broker=self._broker,
                )
                for topic in body.topics
                for row in topic.partitions
            ]
            self._history.group(body.group_id).wire += commits
            self._waiting[header.correlation_id] = header.api_version, commits

    def answered(self, data: bytes) -> None:
        """The broker has sent this."""
        for frame in _frames(self._answered, data):
            number = int.from_bytes(frame[:4], signed=True)
            if (looking := self._looking.pop(number, None)) is not None:
                self._note_fetched(frame, *looking)
            waiting = self._waiting.pop(number, None)
            if waiting is None:
                continue
            version, commits = waiting
            _, body = decode_response(ApiKey.OFFSET_COMMIT, version, frame)
            errors = {row.partition_index: row.error_code for t in body.topics for row in t.partitions}
            tick = self._history.tick()
            for commit in commits:
                commit.answered, commit.error = tick, errors[commit.partition]

    def _note_fetched(self, frame: bytes, version: int, asked: int, group: str) -> None:
        _, body = decode_response(ApiKey.OFFSET_FETCH, version, frame)
        groups: list[tuple[str, Any]] = [(group, body)]
        if version >= _MANY_GROUPS_FROM:
            groups = [(each.group_id, each) for each in body.groups]
        self._history.fetched += [
            FetchedOffset(
                asked,
                self._history.tick(),
                name,
                topic.name,
                row.partition_index,
                row.committed_offset,
                row.error_code,
            )
            for name, found in groups
            for topic in found.topics
            for row in topic.partitions
        ]


def _frames(buffer: bytearray, data: bytes) -> Iterator[bytes]:
    buffer += data
    while len(buffer) >= _LENGTH_BYTES:
        end = _LENGTH_BYTES + int.from_bytes(buffer[:_LENGTH_BYTES])
        if len(buffer) < end:
            return
        frame = bytes(buffer[_LENGTH_BYTES:end])
        del buffer[:end]
        yield frame
