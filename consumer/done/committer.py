"""Commits of offsets up to which records are done, at intervals and on request.

An older offset never replaces a newer one, and nothing is committed for partitions that are no longer owned.
One request is pending at a time, and its offsets are looked up when it is sent: a retry does not repeat the
old ones. Failed attempts are followed by growing back-offs, which all commits share. A commit that meets a
rebalance waits for its end, commits what is still owned and names the rest.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import NamedTuple

from ...client.cluster import Cluster
from ...client.errors import BrokerConnectionError, ConsumerClosedError
from ...client.offsets import CommittedOffset, Errors, commit_once
from ...client.waiting import Backoff, Signal, now_ms
from ...protocol import ApiKey, ErrorCode, KafkaError, KohortError, TopicPartition
from ..config import ConsumerConfig
from ..errors import CommitFailedError
from ..events import CommitFailed, CommitSucceeded, Event
from ..group.errors import Reaction, reaction_to
from ..group.member import GroupMember
from . import done_ahead
from .partition_session import PartitionSession
from .tracker import Tracker

Offsets = Mapping[TopicPartition, int | CommittedOffset]

#: Interval at which manually assigned partitions repeat their commits: offsets of a group without members
#: expire offsets.retention.minutes (1 or more) after their commit.
REPEAT_MS = 30_000
#: The same for members: once the last has left, brokers count the age of a consumer group's offsets (KIP-848)
#: from their commit, and a topic may have had no records for days.
MEMBER_REPEAT_MS = 3_600_000

#: A topic may be too new for the coordinator to know. Only the user's own commits wait for it, for this many
#: attempts: revocations and the end of a consumer must not wait for a topic that was deleted.
UNKNOWN_TOPIC_TRIES = 4

#: Final errors, of one partition.
_PARTITION_ERRORS = frozenset(
    {
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_GROUP_ID,
    }
)

#: An unknown topic, by name and by id.
_UNKNOWN_TOPIC = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})

#: Errors of a commit from outside a group that has members: final, too.
_GROUP_IN_USE = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.FENCED_INSTANCE_ID,
    }
)


class _Sent(NamedTuple):
    """A partition's newest commit: its number in the order of calls; ``given``: the user gave its offset."""

    number: int
    offset: int
    given: bool


@dataclass(slots=True)
class _Job:
    """A commit in progress: the partitions that are ``left``, and the outcome for the others.

    ``given`` are the user's offsets; None to commit what is done. ``sessions`` are those at its start.
    """

    left: set[TopicPartition]
    given: dict[TopicPartition, CommittedOffset] | None
    number: int
    sessions: dict[TopicPartition, PartitionSession]
    again: bool = False
    #: What is given up with this commit.
    giving: Collection[TopicPartition] = ()
    unknown_topic_tries: int = 1
    #: These are starts of sessions to come: once another one has begun, by a seek, they are no longer true.
    are_starts: bool = False
    lost: list[TopicPartition] = field(default_factory=list)
    failed: dict[TopicPartition, Exception] = field(default_factory=dict)

    def fail_partitions(self, partitions: Iterable[TopicPartition], error: Exception) -> None:
        self.failed.update(dict.fromkeys(partitions, error))
        self.left.difference_update(self.failed)

    def raise_if_incomplete(self) -> None:
        if not self.lost and not self.failed:
            return
        parts = []
        if self.lost:
            named = ", ".join(f"{t}-{n}" for t, n in sorted(self.lost))
            parts.append(f"no longer owned: {named} (the current owner redoes what was not committed)")
        parts += [f"{t}-{n}: {error}" for (t, n), error in sorted(self.failed.items())]
        raise CommitFailedError("; ".join(parts), lost=tuple(sorted(self.lost)), failed=self.failed)


@dataclass(slots=True, eq=False, repr=False)
class Committer:
    """``settled`` fires when the membership may have changed; ``carry_out`` carries out its effects.

    A commit at intervals is tried for ``request_timeout_ms``, however short the interval is. ``read_in`` is
    the id of the topic that a partition was read in, if that is known. Nothing is committed for another topic
    of that name, if the coordinator takes ids (OffsetCommit v10) or metadata shows the difference.
    """

    config: ConsumerConfig
    cluster: Cluster
    membership: GroupMember
    tracker: Tracker
    _: KW_ONLY
    backoff: Backoff
    settled: Signal
    carry_out: Callable[[], None]
    report: Callable[[Event], None]
    manual: bool = False
    #: Stores offsets elsewhere, for owned partitions: returns their error codes.
    store: (
        Callable[[Mapping[TopicPartition, CommittedOffset]], Awaitable[Mapping[TopicPartition, int]]] | None
    ) = None
    read_in: Callable[[TopicPartition], uuid.UUID | None] = lambda _: None
    #: Whether to commit where the group begins; a service does so also where transactions commit the rest.
    keeps_starts: bool = False
    #: Topics that the coordinator did not know. Later they may be recreated topics of the same name.
    _unknown: set[str] = field(default_factory=set)
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)
    #: Fires when an attempt has succeeded, which ends the others' back-off.
    _succeeded: Signal = field(default_factory=Signal)
    _failures: int = 0
    _retry_at: float = 0.0
    _numbers: int = 0
    _newest: dict[TopicPartition, _Sent] = field(default_factory=dict)

    async def commit(self, offsets: Offsets | None, timeout_ms: float) -> None:
        """Commit these offsets, or all that is done. Raises CommitFailedError."""
        job = self._make_job(offsets, UNKNOWN_TOPIC_TRIES)
        if offsets is not None:
            job.given = {partition: self._to_offset(partition, value) for partition, value in offsets.items()}
        await self._commit_job(job, timeout_ms)

    def _to_offset(self, partition: TopicPartition, value: int | CommittedOffset) -> CommittedOffset:
        """An offset of the user, up to which everything is done now."""
        offset = value if isinstance(value, CommittedOffset) else CommittedOffset(value)
        if (session := self.tracker.get(partition)) is not None:
            session.done_before(offset.offset)
            if offset.leader_epoch < 0:
                return replace(offset, leader_epoch=session.epoch_at(offset.offset))
        return offset

    async def commit_done(
        self,
        partitions: Iterable[TopicPartition] | None,
        timeout_ms: float,
        *,
        again: bool = False,
        giving: Collection[TopicPartition] = (),
    ) -> bool:
        """Commit what is done of these partitions (None: all); failures are reported, not raised.

        With ``again``, also offsets that are committed already. ``giving``: the partitions that are given up
        with it. Returns whether everything was committed.
        """
        job = self._make_job(self.tracker.committable(partitions, again=again), 1)
        job.again, job.giving = again, giving
        try:
            await self._commit_job(job, timeout_ms)
        except CommitFailedError as error:
            self.report(CommitFailed((*error.lost, *error.failed), error))
            return False
        except ConsumerClosedError:
            return False
        return True

    async def keep_starts(self, starts: Mapping[TopicPartition, int], errors: Errors) -> bool:
        """Commit where the group begins in these partitions; ``errors`` has those that are to be tried again.

        Returns whether starts are kept: False if this consumer commits nothing by itself.
        """
        if not self.keeps_starts:
            return False
        if not starts:
            return True
        try:
            job = self._make_job(starts, UNKNOWN_TOPIC_TRIES)
            job.given = {
                partition: self._to_offset(partition, offset) for partition, offset in starts.items()
            }
            job.are_starts = True
            await self._commit_job(job, self.config.request_timeout_ms)
        except CommitFailedError as error:
            errors.update(dict.fromkeys((*error.failed, *error.lost), error))
            # of a missing right polls have to hear
            errors.update({p: why for p, why in error.failed.items() if isinstance(why, KafkaError)})
        return True

    async def run(self, interval_ms: float) -> None:
        """Commit what is done at intervals, until cancelled; revocations commit by themselves."""
        repeat_ms = REPEAT_MS if self.manual else MEMBER_REPEAT_MS
        repeat_at = now_ms() + repeat_ms
        while True:
            await asyncio.sleep(interval_ms / 1000)
            if not self.membership.can_commit():
                continue
            again = now_ms() >= repeat_at
            if again:
                repeat_at = now_ms() + repeat_ms
            await self.commit_done(None, self.config.request_timeout_ms, again=again)

    def _make_job(self, partitions: Iterable[TopicPartition] | None, unknown_topic_tries: int) -> _Job:
        left = set(self.tracker.committable() if partitions is None else partitions)
        sessions = {p: session for p in left if (session := self.tracker.get(p)) is not None}
        self._numbers += 1
        return _Job(left, None, self._numbers, sessions, unknown_topic_tries=unknown_topic_tries)

    async def _commit_job(self, job: _Job, timeout_ms: float) -> None:
        deadline = now_ms() + timeout_ms
        while True:
            self._set_aside_lost(job)
            if not job.left:
                break
            left_ms = deadline - now_ms()
            if left_ms <= 0:
                error = TimeoutError(f"not committed within {timeout_ms:.0f} ms; it may be tried again")
                job.fail_partitions(job.left.copy(), error)
                break
            if not self.membership.can_commit():
                await self.settled.wait(left_ms)
            elif (pause_ms := self._retry_at - now_ms()) > 0:
                await self._succeeded.wait(min(pause_ms, left_ms))
            else:
                # finding the coordinator may take longer than this call has
                with suppress(TimeoutError):
                    async with asyncio.timeout(left_ms / 1000), self._one_at_a_time:
                        await self._attempt_job(job)
        job.raise_if_incomplete()

    def _set_aside_lost(self, job: _Job) -> None:
        for partition in list(job.left):
            began, session = job.sessions.get(partition), self.tracker.get(partition)
            if job.are_starts and session is not began:
                job.left.discard(partition)
                continue
            if partition in self.membership.given_up:
                # the coordinator has what was done, and maybe another member's commit since
                lost = job.given is not None
                job.left.discard(partition)
            elif began is None:
                lost = partition not in self.membership.owned
            elif session is not None and session.assignment == began.assignment:
                continue
            else:
                # it was revoked; what is done may have been committed with that
                lost = job.given is not None or self.tracker.news(began) is not None
                job.left.discard(partition)
            if lost:
                job.left.discard(partition)
                job.lost.append(partition)

    async def _attempt_job(self, job: _Job) -> None:
        """Send one request for what is left, unless that changed while this call waited for its turn."""
        await self._leave_out_others(job)
        self._set_aside_lost(job)
        offsets = self._to_send(job)
        if not offsets or now_ms() < self._retry_at or not self.membership.can_commit():
            return
        sessions = {partition: self.tracker.get(partition) for partition in offsets}
        generation = self.membership.generation
        self._numbers += 1
        number = self._numbers if job.given is None else job.number
        try:
            answers = await self._send_offsets(offsets, generation, job.giving)
        except ConsumerClosedError:
            raise
        except BrokerConnectionError:
            self._start_backoff()
            return
        except KohortError as error:
            job.fail_partitions(offsets, error)
            return
        committed, refused = self._sort_answers(job, offsets, answers)
        if committed:
            self._newest.update(
                {p: _Sent(number, value.offset, job.given is not None) for p, value in committed.items()}
            )
            self.tracker.note_committed(
                {p: v for p, v in committed.items() if self.tracker.get(p) is sessions[p]}
            )
            self.report(CommitSucceeded({partition: value.offset for partition, value in committed.items()}))
        if refused is not None:
            self._on_refusal(refused, generation)
        elif committed:
            self._failures, self._retry_at = 0, 0.0
            self._succeeded.fire()

    async def _send_offsets(
        self,
        offsets: Mapping[TopicPartition, CommittedOffset],
        generation: int,
        giving: Collection[TopicPartition],
    ) -> Mapping[TopicPartition, int]:
        if self.store is not None:
            return await self.store(offsets)

        def sent() -> None:
            if giving:
                self.membership.gives_up(giving, offsets, now_ms())
                self.carry_out()

        return await commit_once(
            self.cluster,
            self.config.group,
            offsets,
            generation,
            self.membership.member_id,
            self.config.group_instance_id,
            self._topic_id,
            sent,
        )

    async def _leave_out_others(self, job: _Job) -> None:
        """Fail the partitions of deleted topics, so that nothing is committed for recreated ones."""
        doubted = self._unknown.intersection(p.topic for p in job.left)
        if job.given is None and doubted:
            with suppress(KohortError):
                await self.cluster.metadata(doubted)
            others = [p for p in job.left if p.topic in doubted and self._is_another(p)]
            job.fail_partitions(
                others, KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the topic that was read is gone")
            )

    def _is_another(self, partition: TopicPartition) -> bool:
        """Return whether the topic is not the one that was read, or there is none."""
        read_in = self.read_in(partition)
        return read_in is not None and read_in != self.cluster.known_metadata.topic_id(partition.topic)

    def _topic_id(self, partition: TopicPartition) -> uuid.UUID | None:
        return self.read_in(partition) or self.cluster.known_metadata.topic_id(partition.topic)

    def _to_send(self, job: _Job) -> dict[TopicPartition, CommittedOffset]:
        """The offsets to commit now, of the partitions left."""
        if job.given is None:
            offsets = self.tracker.committable(job.left, again=job.again)
        else:
            offsets = {
                p: job.given[p] for p in job.left if not self._is_outdated(p, job.given[p], job.number)
            }
        job.left.intersection_update(offsets)
        return offsets

    def _is_outdated(self, partition: TopicPartition, offset: CommittedOffset, number: int) -> bool:
        """Return whether a newer commit was faster: with an offset of the user's, or a higher one."""
        newest = self._newest.get(partition)
        return (
            newest is not None and newest.number > number and (newest.given or newest.offset >= offset.offset)
        )

    def _sort_answers(
        self,
        job: _Job,
        offsets: Mapping[TopicPartition, CommittedOffset],
        answers: Mapping[TopicPartition, int],
    ) -> tuple[dict[TopicPartition, CommittedOffset], ErrorCode | None]:
        """The offsets committed, and an error of those to be tried again."""
        committed = {}
        refused: ErrorCode | None = None
        unknown = []
        for partition, number in answers.items():
            if partition not in offsets:
                continue
            if not number:
                committed[partition] = offsets[partition]
                job.left.discard(partition)
                self._unknown.discard(partition.topic)
                continue
            error = KafkaError(number, f"committing {partition.topic}-{partition.partition}")
            metadata = offsets[partition].metadata
            too_large = error.code is ErrorCode.OFFSET_METADATA_TOO_LARGE
            # a registry says by this that another member has gone on from the partition
            fenced = self.store is not None and error.code is ErrorCode.ILLEGAL_GENERATION
            if too_large and metadata and done_ahead.is_ours(metadata):
                # a broker with a lower offset.metadata.max.bytes: the offset alone, from now on
                self.tracker.with_metadata = False
                if job.given is not None:
                    job.given[partition] = replace(offsets[partition], metadata="")
            elif error.code in _PARTITION_ERRORS or (
                self.manual and error.code in _GROUP_IN_USE and not fenced
            ):
                job.fail_partitions([partition], error)
            elif error.code in _UNKNOWN_TOPIC:
                unknown.append((partition, error))
                self._unknown.add(partition.topic)
            else:
                refused = error.code
        if unknown:
            job.unknown_topic_tries -= 1
            if job.unknown_topic_tries <= 0:
                for partition, error in unknown:
                    job.fail_partitions([partition], error)
            else:
                refused = refused or unknown[0][1].code
        return committed, refused

    def _on_refusal(self, code: ErrorCode, generation: int) -> None:
        if reaction_to(ApiKey.OFFSET_COMMIT, code) is Reaction.FIND_COORDINATOR:
            self.cluster.forget_coordinator(self.config.group)
        self.membership.commit_refused(code, generation, now_ms())
        self.carry_out()
        if self.membership.can_commit():
            self._start_backoff()

    def _start_backoff(self) -> None:
        """Start the back-off after a failed attempt."""
        self._retry_at = now_ms() + self.backoff.delay_ms(self._failures)
        self._failures += 1
