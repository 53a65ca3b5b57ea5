"""Commits that a client repeats with other offsets: only the offsets are decoded, and the response is
known.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

from ...coordinator.offsets.commit import CommitRequest
from ...protocol import CommitLayout, MessageCodec, commit_layout

#: Longest body that is remembered: each connection may hold one, and decoding makes it 30 times as large.
_LONGEST: Final = 1_024
#: Most commits between two that are learnt, when learning has not helped.
_LONGEST_PAUSE: Final = 1_024

_HEAD: Final = struct.Struct(">ii")
_LENGTH_BYTES: Final = 4


class KnownCommit:
    """A commit whose partitions all exist; ``topics`` is the version of the broker's topics at that time."""

    __slots__ = ("_layout", "_length", "_tail", "answer", "codec", "partitions", "request", "topics", "used")

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
        self._layout = layout
        self.used = False

    def again(self, data: bytes) -> CommitRequest | None:
        """The request with this body, if it differs only in its offsets; else None."""
        numbers = self._layout.numbers(data)
        return None if numbers is None else self.request.again(numbers)

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

    def learn(
        self,
        codec: MessageCodec,
        data: bytes,
        body: Any,
        topics: object,
        resolve: Callable[[int, object], CommitRequest],
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
        request = resolve(codec.version, body)
        layout = commit_layout(codec, data, body) if request.repeats else None
        if layout is None:
            return request
        self.known = KnownCommit(codec, layout, request, topics)
        return self.known.again(data)
