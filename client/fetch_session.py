"""Fetch sessions (KIP-227): a broker remembers what is read, and is told only what changed. No I/O.

A broker that answers session 0 keeps none (kohort's own, or one whose cache is full); it is asked again each
time, which costs nothing, and gets the whole list meanwhile.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ..protocol import ErrorCode, TopicPartition

_NO_SESSION = 0
_FIRST_EPOCH = 0
_LAST_EPOCH = 2_147_483_647

#: The session is gone or out of step: begin another with the whole list.
SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)


class FetchFrom(NamedTuple):
    """Where to read on. The epochs (KIP-320) are -1 when unknown, which skips the check."""

    offset: int
    leader_epoch: int = -1
    last_fetched_epoch: int = -1


class Plan(NamedTuple):
    """What one request says: ``named`` are the partitions it names, ``forgotten`` those it takes back."""

    session_id: int
    epoch: int
    named: Mapping[TopicPartition, FetchFrom]
    forgotten: tuple[TopicPartition, ...] = ()


@dataclass(slots=True)
class FetchSession:
    """One for each broker; one request under way at a time."""

    session_id: int = _NO_SESSION
    epoch: int = _FIRST_EPOCH
    _known: dict[TopicPartition, FetchFrom] = field(default_factory=dict)
    _ids: dict[str, uuid.UUID] = field(default_factory=dict)

    def plan(self, wanted: Mapping[TopicPartition, FetchFrom], ids: Mapping[str, uuid.UUID]) -> Plan:
        """The next request, for these partitions; ``ids`` are the topics' where they go by id.

        Afterwards call ``answered``, or ``lost`` when there was no answer.
        """
        if ids != {topic: known for topic, known in self._ids.items() if topic in ids}:
            # a topic was made anew (or is no longer asked for by id): nothing known of it holds
            self._ids |= ids
            self.epoch = _FIRST_EPOCH
        if self.epoch == _FIRST_EPOCH:
            self._known.clear()
            return Plan(self.session_id, _FIRST_EPOCH, self._learn(wanted))
        gone = tuple(partition for partition in self._known if partition not in wanted)
        for partition in gone:
            del self._known[partition]
        known = self._known.get
        return Plan(
            self.session_id,
            self.epoch,
            self._learn({p: where for p, where in wanted.items() if known(p) != where}),
            gone,
        )

    def answered(self, error: ErrorCode, session_id: int) -> None:
        """The broker's answer to the last plan."""
        if error is not ErrorCode.NONE or session_id == _NO_SESSION:
            self.session_id, self.epoch = _NO_SESSION, _FIRST_EPOCH
            return
        self.epoch = 1 if session_id != self.session_id or self.epoch == _LAST_EPOCH else self.epoch + 1
        self.session_id = session_id

    def lost(self) -> None:
        """No answer: whether the broker took the request in is not known, so the session is begun anew."""
        self.epoch = _FIRST_EPOCH

    def _learn(self, named: Mapping[TopicPartition, FetchFrom]) -> Mapping[TopicPartition, FetchFrom]:
        self._known.update(named)
        return named
