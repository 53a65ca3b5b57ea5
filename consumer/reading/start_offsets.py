"""Finds start offsets: committed offsets, resets to an end or a time, truncated logs (KIP-320)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TypeVar

from ...client.cluster import Cluster
from ...client.errors import ConsumerClosedError
from ...client.offsets import EARLIEST, LATEST, CommittedOffset, EpochEnd, Errors
from ...client.waiting import Backoff, now_ms
from ...protocol import ErrorCode, KafkaError, KohortError, TopicPartition, UnsupportedVersionError
from ..done import done_ahead
from ..errors import LogTruncatedError
from ..events import BrokerUnavailable, Event, LogTruncated, OffsetReset, PartitionFailed
from .delivery import Delivery
from .first_seen import FirstSeen
from .positions import Phase, Position, Positions

T = TypeVar("T")


async def _keep_nothing(_starts: Mapping[TopicPartition, int], _errors: Errors) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class ReadingContext:
    """The objects that fetcher and start offsets share.

    ``polled`` is called when a waiting poll may have something to raise; ``member`` returns the member id and
    epoch that ask for committed offsets. ``keep`` commits where the group begins, collects errors, and
    returns whether this consumer commits anything by itself.
    """

    cluster: Cluster
    positions: Positions
    delivery: Delivery
    backoff: Backoff
    report: Callable[[Event], None]
    polled: Callable[[], None]
    member: Callable[[], tuple[str | None, int]] = lambda: (None, -1)
    #: The offsets that are stored elsewhere than in the group.
    stored: Callable[[list[TopicPartition]], dict[TopicPartition, CommittedOffset]] = lambda _: {}
    first_seen: FirstSeen = field(default_factory=FirstSeen)
    keep: Callable[[Mapping[TopicPartition, int], Errors], Awaitable[bool]] = _keep_nothing


#: The member's epoch is another by now, or its partitions are lost: its heartbeats tell.
_MEMBER_MOVED = (ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)

_POLICIES = {EARLIEST: "earliest", LATEST: "latest"}

#: Refusals after which requests are retried: the right may be granted.
REFUSALS = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "this client needs the right to read the topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "this client needs the right to read the group",
}


@dataclass(slots=True, eq=False)
class StartOffsets:
    """Finds start offsets. ``group``: "" for none. ``stale`` is called when the metadata may be stale."""

    reading: ReadingContext
    group: str
    read_committed: bool
    _: KW_ONLY
    stale: Callable[[], None] = lambda: None

    # committed offsets

    async def find_committed(self, seeking: list[Position]) -> None:
        """Ask where the group has got to; what has no commit is reset."""
        errors: Errors = {}
        found = await self._guard_call(
            seeking, "asking for committed offsets", errors, lambda: self._fetch_committed(seeking, errors)
        )
        if found is None:
            return
        for position in seeking:
            if position.partition in errors:
                continue
            if self.reading.positions.get(position.partition) is position and position.phase is Phase.SEEKING:
                self.on_committed(position, found.get(position.partition))

    def on_committed(self, position: Position, committed: CommittedOffset | None) -> None:
        """The committed offset of a partition is known; None if there is none."""
        partition, known = position.partition, self.reading.cluster.known_metadata
        newer = self.reading.first_seen.is_newer(partition, known.topic_id(partition.topic))
        self.reading.positions.found_committed(
            partition, _certain_commit(committed), known.leader_epoch(partition), newer=newer
        )
        self.on_moved(position)

    async def _fetch_committed(
        self, seeking: list[Position], errors: Errors
    ) -> dict[TopicPartition, CommittedOffset]:
        if not self.group:
            return {}
        partitions = [p.partition for p in seeking]
        stored = self.reading.stored(partitions)
        partitions = [partition for partition in partitions if partition not in stored]
        ask, member = self.reading.cluster.committed, self.reading.member()
        try:
            return stored | await ask(self.group, partitions, errors=errors, member=member)
        except KafkaError as error:
            if error.code is not ErrorCode.STALE_MEMBER_EPOCH or self.reading.member() == member:
                raise
            # a heartbeat has changed the epoch meanwhile
            return stored | await ask(self.group, partitions, errors=errors, member=self.reading.member())

    # resets

    async def reset_positions(self, resetting: list[Position]) -> None:
        """Ask the leaders for the offsets of these resets."""
        errors: Errors = {}
        at = {p.partition: p.reset_to for p in resetting}
        before = [(p, p.changed) for p in resetting]
        missed = [p.partition for p in resetting if p.reset is not None and p.reset.asked is not None]

        async def ask() -> tuple[
            dict[TopicPartition, int], dict[TopicPartition, str], Mapping[TopicPartition, int]
        ]:
            found, ranges = await self._offsets_at(at, errors), await self._log_ranges(missed)
            current = self.reading.positions.get
            starts = {
                p.partition: found[p.partition]
                for p in resetting
                if p.partition in found and current(p.partition) is p and self.begins_with_commit(p)
            }
            return found, ranges, starts if await self.reading.keep(starts, errors) else {}

        answer = await self._guard_call(resetting, "resetting offsets", errors, ask)
        if answer is None:
            return
        found, ranges, kept = answer
        for position in self._still_there(before, errors):
            partition = position.partition
            reset = self.reading.positions.reset_found(position, found[partition], kept=partition in kept)
            if reset is not None:
                reason = reset.reason + ranges.get(partition, "")
                policy = _POLICIES.get(at[partition], f"timestamp {at[partition]}")
                self.reading.report(OffsetReset(partition, reset.asked, reason, policy, found[partition]))
            self.on_moved(position, moved_by_reset=True)

    def begins_with_commit(self, position: Position) -> bool:
        """Return whether what its reset finds has to be committed before records are read."""
        if position.reset is None or not position.reset.keep or position.leaving:
            return False
        # a commit says that what is before it is done
        session = self.reading.delivery.session(position.partition)
        return session is None or not session.undone

    async def _log_ranges(self, partitions: list[TopicPartition]) -> dict[TopicPartition, str]:
        """The offset ranges of the logs, as texts for the reason of a reset."""
        unknown: Errors = {}
        starts = await self.reading.cluster.list_offsets(dict.fromkeys(partitions, EARLIEST), errors=unknown)
        ends = await self.reading.cluster.list_offsets(dict.fromkeys(starts, LATEST), errors=unknown)
        return {p: f": it starts at {starts[p].offset} and ends at {ends[p].offset}" for p in ends}

    async def _offsets_at(self, at: dict[TopicPartition, int], errors: Errors) -> dict[TopicPartition, int]:
        """Offsets by time; the end of the log if no record is that late."""
        committed, listed = self.read_committed, self.reading.cluster.list_offsets
        found = await listed(at, read_committed=committed, errors=errors)
        none = {partition: LATEST for partition, row in found.items() if row.offset < 0}
        ends = await listed(none, read_committed=committed, errors=errors)
        return {p: ends.get(p, row).offset for p, row in found.items() if p not in errors}

    # truncated logs

    async def validate_positions(self, validating: list[Position]) -> None:
        """Ask the leaders whether their logs were truncated before these positions (KIP-320)."""
        epochs = {p.partition: max(p.leader_epoch, self._read_under(p)) for p in validating}
        before = [(p, p.changed) for p in validating]
        known = {p: self.reading.cluster.known_metadata.leader_epoch(p) for p in epochs}
        errors: Errors = {}
        ends = await self._guard_call(
            validating, "asking where leader epochs end", errors, lambda: self._epoch_ends(epochs, errors)
        )
        if ends is None:
            return
        for position in self._still_there(before, errors):
            partition = position.partition
            position.checked_epoch = known[partition]
            end = ends.get(partition)
            if end is not None and end.offset < position.fetch_offset:
                self._on_truncation(position, epochs[partition], end)
            else:
                self.reading.positions.on_valid(position)
            self.on_moved(position, goes_on=True)
            # what is done beyond the commit may be in the truncated part, even if the commit is not
            self.reading.delivery.known_to(partition, position.fetch_offset if end is None else end.offset)

    def _read_under(self, position: Position) -> int:
        """The highest leader epoch under which the partition was read."""
        session = self.reading.delivery.session(position.partition)
        return -1 if session is None else session.leader_epoch

    async def _epoch_ends(
        self, epochs: dict[TopicPartition, int], errors: Errors
    ) -> dict[TopicPartition, EpochEnd]:
        try:
            found = await self.reading.cluster.epoch_ends(epochs, errors=errors)
        except UnsupportedVersionError:
            # brokers before Kafka 2.1 do not have this request
            return {}
        for partition, error in list(errors.items()):
            if isinstance(error, UnsupportedVersionError):
                del errors[partition]
        return found

    def _on_truncation(self, position: Position, epoch: int, end: EpochEnd) -> None:
        """The log was truncated: continue at the truncation, or as the reset policy says."""
        partition, asked = position.partition, position.fetch_offset
        if self.reading.positions.fails_without_offset(position):
            self.reading.positions.fail_position(
                position, LogTruncatedError(partition, asked, epoch, end.offset)
            )
            return
        if end.offset < 0:
            self.reading.positions.cut_somewhere(position, f"leader epoch {epoch}, which it is from, is gone")
            self.reading.delivery.drop([partition])
            return
        # undelivered data may be gone as well; delivered records are at their offsets, or gone
        delivered = self.reading.delivery.delivered_to(partition)
        offset = end.offset if delivered is None else min(end.offset, delivered)
        session = self.reading.delivery.session(partition)
        # a session with records from after the cut is over: what it has not done before the cut is read again
        again = offset if session is None or delivered == offset else min(offset, session.committable)
        self.reading.positions.cut_at(position, again)
        position.leader_epoch = end.leader_epoch
        self.reading.delivery.cut(position)
        self.reading.report(LogTruncated(partition, asked, epoch, offset))

    def made_anew(self, position: Position) -> None:
        """Handle a topic that was created again: the records read so far are from another log."""
        self.reading.delivery.end(position.partition)
        self.reading.positions.made_anew(position)
        # its leader epochs start again as well
        position.checked_epoch = -1
        self.on_moved(position)

    # what they share

    def _still_there(self, before: list[tuple[Position, int]], errors: Errors) -> Iterator[Position]:
        """The positions that have not jumped since, and have no error."""
        for position, changed in before:
            current = self.reading.positions.get(position.partition) is position
            if current and position.changed == changed and position.partition not in errors:
                yield position

    def on_moved(self, position: Position, *, moved_by_reset: bool = False, goes_on: bool = False) -> None:
        """Called when a position has changed its phase: start delivery, or report why there is none."""
        there = goes_on and self.reading.delivery.session(position.partition) is not None
        # a partition about to be revoked delivers nothing more; its session ends when its records are done
        if position.phase is Phase.READING and not (there or position.leaving):
            self.reading.delivery.start(position, moved_by_reset=moved_by_reset)
        if position.phase is Phase.FAILED and position.error is not None:
            self.reading.report(PartitionFailed(position.partition, position.error))
        self.reading.polled()

    async def _guard_call(
        self,
        positions: list[Position],
        doing: str,
        errors: Errors,
        call: Callable[[], Awaitable[T]],
    ) -> T | None:
        """The call's result, None after an error; partitions in ``errors`` are reported and retried later."""
        answer = None
        try:
            answer = await call()
        except ConsumerClosedError:
            return None
        except KohortError as error:
            errors.update({position.partition: error for position in positions})
        told: set[str] = set()
        for position in positions:
            wrong = errors.get(position.partition)
            if wrong is None or self.reading.positions.get(position.partition) is not position:
                continue
            if isinstance(wrong, KafkaError) and not (wrong.retriable or wrong.code in _MEMBER_MOVED):
                self.on_refused(position, wrong)
                continue
            self.delay_position(position)
            if str(wrong) not in told:
                told.add(str(wrong))
                self.reading.report(BrokerUnavailable(doing, wrong))
        if errors:
            self.stale()
        return answer

    def on_refused(self, position: Position, error: KafkaError) -> None:
        """A final error, or a missing right that may be granted."""
        if error.code not in REFUSALS:
            self.reading.positions.fail_position(position, error)
            self.on_moved(position)
            return
        self.delay_position(position)
        error = KafkaError(error.code, f"{error.message}: {REFUSALS[error.code]}")
        if self.reading.positions.refuse_position(position, error):
            self.reading.report(PartitionFailed(position.partition, error))
        self.reading.polled()

    def delay_position(self, position: Position) -> None:
        """Try a partition again only after a growing back-off."""
        position.retry_at = now_ms() + self.reading.backoff.delay_ms(position.failures)
        position.failures += 1


def _certain_commit(committed: CommittedOffset | None) -> CommittedOffset | None:
    """The commit without its metadata if no leader epoch allows to check that the log is unchanged."""
    if committed is None or committed.leader_epoch >= 0 or not done_ahead.is_ours(committed.metadata):
        return committed
    return replace(committed, metadata="")
