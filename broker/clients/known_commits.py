"""Commits that a client repeats with other offsets: only the offsets are decoded, and the response is
known.

A response frame is an int32 length, the request's correlation id (int32), and the rest, which is the same
each time. Where a body has its offsets is in ``CommitLayout``.
"""

from __future__ import annotations

import struct
from typing import Final, Protocol

from ...coordinator.offsets.commit import CommitRequest
from ...protocol import CommitLayout, MessageCodec, commit_layout
from ...protocol.messages.offset_commit import OffsetCommitRequest

#: Longest body that is remembered: each connection may hold one, and decoding makes it 30 times as large.
_LONGEST: Final = 1_024
#: Most commits between two that are learnt, when learning has not helped.
_LONGEST_PAUSE: Final = 1_024

_HEAD: Final = struct.Struct(">ii")
_LENGTH_BYTES: Final = 4


class CommitResolver(Protocol):
    """The group coordinator, as far as it resolves commits."""

    def resolve(self, version: int, body: OffsetCommitRequest, /) -> CommitRequest:
        """The commit with its topics and partitions looked up."""


class KnownCommit:
    """A commit whose partitions all exist; ``topics`` is the version of the broker's topics at that time."""

    __slots__ = ("_length", "_tail", "answer", "codec", "numbers", "partitions", "request", "topics", "used")

    def __init__(
        self, codec: MessageCodec, layout: CommitLayout, request: CommitRequest, topics: object
    ) -> None:
        self.codec = codec
        self.topics = topics
        self.request = request
        self.partitions = len(request.places)
        #: The response to it, if its sender is accepted.
        self.answer = request.answer
        frame = codec.response_frame(0, self.answer)
        self._tail = bytes(frame[_HEAD.size :])
        self._length = len(frame) - _LENGTH_BYTES
        #: Offset and leader epoch of each partition, of a body that differs only in these; else None.
        self.numbers = layout.numbers
        self.used = False

    def response_frame(self, correlation_id: int) -> bytes:
        """Return the frame that says that every offset was stored."""
        self.used = True
        return _HEAD.pack(self._length, correlation_id) + self._tail


class KnownCommits:
    """The last commit of a client that was learnt. If later ones differ, fewer are learnt."""

    __slots__ = ("_pause", "_wait", "known")

    def __init__(self) -> None:
        self.known: KnownCommit | None = None
        self._pause = self._wait = 1

    def read_commit(
        self, codec: MessageCodec, frame: bytes, at: int, topics: object, coordinator: CommitResolver
    ) -> tuple[OffsetCommitRequest | CommitRequest, KnownCommit | None]:
        """Read the body at this place of a request frame; ``topics`` is the version of the broker's topics.

        If it repeats the known commit, return it resolved, and the known one. Raises ProtocolError.
        """
        known = self.known
        if known is not None and known.codec is codec and known.topics is topics:
            numbers = known.numbers(frame, at)
            if numbers is not None:
                return known.request.again(numbers), known
        body: OffsetCommitRequest = codec.request(frame, at)
        return self._learn(codec, frame[at:], body, topics, coordinator) or body, None

    def _learn(
        self,
        codec: MessageCodec,
        data: bytes,
        body: OffsetCommitRequest,
        topics: object,
        coordinator: CommitResolver,
    ) -> CommitRequest | None:
        """Learn a commit that may be repeated, if it is time to; return it resolved, or None."""
        if self._wait:
            self._wait -= 1
            return None
        # resolving drops a topic without partitions, but its name has to be authorized
        if len(data) > _LONGEST or not all(topic.partitions for topic in body.topics):
            return None
        known, self.known = self.known, None
        self._pause = 1 if known is not None and known.used else min(2 * self._pause, _LONGEST_PAUSE)
        self._wait = self._pause
        request = coordinator.resolve(codec.version, body)
        layout = commit_layout(codec, data, body) if request.repeats else None
        numbers = None if layout is None else layout.numbers(data)
        if layout is None or numbers is None:
            return request
        self.known = KnownCommit(codec, layout, request, topics)
        # a copy: the known one stays as it is
        return request.again(numbers)
