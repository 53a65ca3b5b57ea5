"""Positions of partitions: finding the start offset, the next offset to fetch, pauses. No I/O.

A partition starts in *seeking*: its committed offset is looked up. Without one, or if it is out of range, it
is *resetting*: ``auto_offset_reset``, or the topic's own policy, says which offset to ask the log for.
"latest" says where a group begins: a partition that is newer than that begins at its first record. With a
committed offset it is *validating*: the leader is asked whether the log was truncated before it, and again
whenever the leader changes. Then it is *reading*, or *failed* if the policy is to fail.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from ...client.offsets import EARLIEST, LATEST, CommittedOffset
from ...protocol import TopicPartition
from ..errors import NoOffsetError

#: As ``auto_offset_reset``: earliest, latest, fail, or a time in milliseconds.
ResetPolicy = str | int


class Phase(Enum):
    """The phases of a partition, see above."""

    SEEKING = "seeking"
    RESETTING = "resetting"
    VALIDATING = "validating"
    READING = "reading"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Reset:
    """A reset in progress: ``asked`` cannot be read because of ``reason``; None if none was committed.

    ``keep``: what it finds has to be committed before records are read. Asked again, the policy may say
    another offset: after a reader that was killed before its first commit, others would skip what it had.
    """

    asked: int | None
    reason: str
    keep: bool = False


@dataclass(slots=True, eq=False)
class Position:
    """The position in one partition. ``fetch_offset`` is the next to fetch, ahead of what is delivered.

    ``held``: about to be revoked (``leaving``), or not announced to the user yet. ``changed`` counts jumps:
    responses to requests from before one are stale. Records fetched from now on get ``generation``.
    ``leader_epoch`` is that of the record before ``fetch_offset``; ``checked_epoch`` the leader's when the
    log was last known to be unchanged, ``unasked`` if only because the epochs are the same. ``committed`` is
    what a partition begins with; it is known while seeking if the coordinator has ``told`` it.
    """

    partition: TopicPartition
    generation: int
    phase: Phase = Phase.SEEKING
    fetch_offset: int = -1
    leader_epoch: int = -1
    checked_epoch: int = -1
    unasked: bool = False
    committed: CommittedOffset | None = None
    told: bool = False
    changed: int = 0
    paused: bool = False
    held: bool = False
    leaving: bool = False
    retry_at: float = 0.0
    failures: int = 0
    #: How often in a row its bytes could not be decoded; whether the last fetch ended in such bytes, so that
    #: the offset after them is unknown.
    unreadable: int = 0
    damaged: bool = False
    #: The error that polls raise. In phases other than FAILED the request is retried.
    error: Exception | None = None
    #: Id of the topic that it was read in; None if topics have no ids.
    topic_id: uuid.UUID | None = None
    reset: Reset | None = None
    reset_to: int = LATEST
    high_watermark: int = -1
    log_start_offset: int = -1
    read_replica: int = -1
    replica_until: float = 0.0

    @property
    def readable(self) -> bool:
        """Return whether its records may be fetched and delivered."""
        return self.phase is Phase.READING and not self.paused and not self.held


class Positions:
    """The positions of a consumer. ``reset_policy`` is its ``auto_offset_reset``."""

    def __init__(self, reset_policy: ResetPolicy) -> None:
        #: Called before anything that may change a position, or make it unreadable.
        self.disturbed: Callable[[], None] = lambda: None
        self._policy = reset_policy
        #: Topics that have a policy of their own.
        self.policies: Mapping[str, ResetPolicy] = MappingProxyType({})
        self._all: dict[TopicPartition, Position] = {}

    def __repr__(self) -> str:
        reading = sum(position.phase is Phase.READING for position in self._all.values())
        return f"Positions({reading} of {len(self._all)} reading)"

    def __iter__(self) -> Iterator[Position]:
        return iter(list(self._all.values()))

    def get(self, partition: TopicPartition) -> Position | None:
        """The position of a partition; None if this consumer does not have it."""
        return self._all.get(partition)

    def partitions(self) -> frozenset[TopicPartition]:
        """All partitions, those about to be revoked included."""
        return frozenset(self._all)

    def topic_id(self, partition: TopicPartition) -> uuid.UUID | None:
        """Id of the topic that it is read in; None if it is not read yet, or topics have no ids."""
        position = self._all.get(partition)
        return None if position is None else position.topic_id

    def in_phase(self, phase: Phase, now: float) -> list[Position]:
        """Partitions of a phase whose back-off after an error is over."""
        return [p for p in self._all.values() if p.phase is phase and now >= p.retry_at]

    def to_reset(self, now: float) -> list[Position]:
        """Partitions whose reset is due. Where the group begins is the user's to say first, by a seek."""
        resetting = self.in_phase(Phase.RESETTING, now)
        return [p for p in resetting if not (p.held and p.reset is not None and p.reset.keep)]

    # life

    def add(
        self,
        partitions: Iterable[TopicPartition],
        generation: int,
        starts: Mapping[TopicPartition, CommittedOffset | None] = MappingProxyType({}),
    ) -> None:
        """Add partitions, held; their committed offsets are looked up first, but for those in ``starts``."""
        for partition in partitions:
            self._all[partition] = Position(
                partition,
                generation,
                held=True,
                committed=starts.get(partition),
                told=partition in starts,
            )

    def keep(self, partitions: Iterable[TopicPartition], generation: int) -> None:
        """Partitions that this member keeps go on in a new generation, undisturbed."""
        for partition in partitions:
            if (position := self._all.get(partition)) is not None:
                position.generation = generation

    def hold_partitions(self, partitions: Iterable[TopicPartition], held: bool = True) -> None:
        """Fetch and deliver nothing of them, or go on."""
        self.disturbed()
        for partition in partitions:
            if (position := self._all.get(partition)) is not None:
                position.held = held

    def give_up(self, partitions: Iterable[TopicPartition]) -> None:
        """Fetch and deliver nothing of them any more, until they are removed."""
        self.hold_partitions(partitions)
        for partition in partitions:
            if (position := self._all.get(partition)) is not None:
                position.leaving = True

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget partitions that were revoked or lost."""
        self.disturbed()
        for partition in partitions:
            self._all.pop(partition, None)

    # start

    def found_committed(
        self,
        partition: TopicPartition,
        committed: CommittedOffset | None,
        leader_epoch: int = -1,
        *,
        newer: bool = False,
    ) -> None:
        """The committed offset was looked up; None if there is none. Ignored when no longer needed.

        ``newer``: the partition was made after this member had begun to watch its topic.

        If its leader epoch is still the known leader's, the log was not truncated: a Fetch with another epoch
        would be refused. So the leader is not asked, unless the log does not have the offset.
        """
        position = self._all.get(partition)
        if position is None or position.phase is not Phase.SEEKING:
            return
        if committed is None:
            self._start_reset(position, None, "nothing is committed", newer=newer)
        else:
            self._read_from(position, committed.offset)
            position.committed = committed
            position.leader_epoch = committed.leader_epoch
            if committed.leader_epoch >= 0:
                if committed.leader_epoch == leader_epoch:
                    position.checked_epoch, position.unasked = leader_epoch, True
                else:
                    position.phase = Phase.VALIDATING

    def out_of_range(self, position: Position, reason: str) -> None:
        """The offset to fetch next is not in the log."""
        if position.phase is Phase.READING and position.unasked:
            self.validate(position)
        elif position.phase is Phase.READING:
            self._start_reset(position, position.fetch_offset, reason)

    def reset_found(self, position: Position, offset: int, *, kept: bool = False) -> Reset | None:
        """A reset has found its offset, which is committed if ``kept``.

        Returns the reset to report, None if it is no longer needed.
        """
        reset = position.reset
        if position.phase is not Phase.RESETTING or reset is None:
            return None
        self._read_from(position, offset)
        position.committed = CommittedOffset(offset) if kept else None
        return reset

    def is_of(self, partition: TopicPartition, topic_id: uuid.UUID) -> None:
        """Tie its offset to this topic, and to no other of the name. KeyError if it is not assigned."""
        self._all[partition].topic_id = topic_id

    def seek(self, partition: TopicPartition, offset: int, leader_epoch: int = -1) -> None:
        """Read on at an offset, or at EARLIEST or LATEST. KeyError if the partition is not assigned.

        An offset with a leader epoch is validated first.
        """
        position = self._all[partition]
        if offset in (EARLIEST, LATEST):
            position.reset_to = offset
            self._to_reset(position, Reset(None, "asked for by seek"))
        else:
            self._read_from(position, offset)
            position.leader_epoch = leader_epoch
            if leader_epoch >= 0:
                self.validate(position)

    def seek_to_time(self, partition: TopicPartition, timestamp_ms: int) -> None:
        """Read on at the first record that is not older. KeyError if the partition is not assigned."""
        position = self._all[partition]
        position.reset_to = timestamp_ms
        self._to_reset(position, Reset(None, "asked for by seek"))

    # truncated logs

    def fails_without_offset(self, position: Position) -> bool:
        """Return whether the policy is to fail rather than to reset."""
        return self._policy_of(position) == "fail"

    def validate(self, position: Position) -> None:
        """Ask the leader, before reading on, whether the log is unchanged."""
        position.phase = Phase.VALIDATING
        position.unasked = False
        self._disturb_fetch(position)

    def on_valid(self, position: Position) -> None:
        """The log is unchanged."""
        position.phase = Phase.READING
        position.failures = 0
        position.error = None

    def cut_at(self, position: Position, offset: int) -> None:
        """The log was truncated at, or just after, this offset."""
        checked = position.checked_epoch
        self._read_from(position, offset)
        position.checked_epoch = checked

    def cut_somewhere(self, position: Position, reason: str) -> None:
        """The log was truncated, and nothing that was read is left."""
        self._start_reset(position, position.fetch_offset, reason)

    def made_anew(self, position: Position) -> None:
        """Its topic was deleted and recreated: all records of the new one were written since."""
        self._start_reset(position, position.fetch_offset, "the topic was deleted and recreated", newer=True)

    def fail_position(self, position: Position, error: Exception) -> None:
        """The partition cannot be read; polls raise the error until a seek or a revocation."""
        position.error = error
        position.phase = Phase.FAILED
        self._disturb_fetch(position)

    def refuse_position(self, position: Position, error: Exception) -> bool:
        """The partition may not be read; polls raise the error until it may. Returns whether that is new."""
        news = position.error is None
        position.error = error
        return news

    def first_error(self) -> Exception | None:
        """The error of a partition that failed or is refused, and is neither paused nor held."""
        errors = (p.error for p in self._all.values() if p.error is not None and not (p.paused or p.held))
        return next(errors, None)

    def had_its_turn(self, position: Position) -> None:
        """Note that data of the partition came: the next fetches name the others first."""
        if self._all.get(position.partition) is position:
            self._all[position.partition] = self._all.pop(position.partition)

    def _policy_of(self, position: Position) -> ResetPolicy:
        return self.policies.get(position.partition.topic, self._policy)

    def _start_reset(
        self, position: Position, asked: int | None, reason: str, *, newer: bool = False
    ) -> None:
        policy = self._policy_of(position)
        if policy == "fail":
            why = "nothing is committed" if asked is None else f"offset {asked}: {reason}"
            text = f"{why}, and auto_offset_reset is 'fail': seek, or allow a reset"
            self.fail_position(position, NoOffsetError(position.partition, text))
            return
        keep = policy != "earliest"  # which says the same again
        if newer and policy == "latest":
            policy = "earliest"
        ends = {"earliest": EARLIEST, "latest": LATEST}
        position.reset_to = ends[policy] if isinstance(policy, str) else policy
        self._to_reset(position, Reset(asked, reason, keep))

    def _to_reset(self, position: Position, reset: Reset) -> None:
        position.reset = reset
        position.phase = Phase.RESETTING
        position.error = None
        position.damaged = False
        self._disturb_fetch(position)

    def _read_from(self, position: Position, offset: int) -> None:
        position.fetch_offset = offset
        # after a jump reading does not start from the commit, even at the same offset
        position.committed = None
        position.leader_epoch = -1
        position.unasked = False
        position.read_replica = -1
        position.phase = Phase.READING
        position.reset = None
        position.error = None
        position.failures = position.unreadable = 0
        position.damaged = False
        position.retry_at = 0.0
        self._disturb_fetch(position)

    def _disturb_fetch(self, position: Position) -> None:
        position.changed += 1
        self.disturbed()

    # pause

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Deliver nothing of them until ``resume``."""
        self.disturbed()
        for partition in partitions:
            self._all[partition].paused = True

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Deliver them again."""
        for partition in partitions:
            self._all[partition].paused = False

    def paused(self) -> frozenset[TopicPartition]:
        """The partitions that ``pause`` holds back."""
        return frozenset(p.partition for p in self._all.values() if p.paused)
