"""Requests of a driver about its group and topics: partitions to read, their offsets, and commits."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from ..client import EARLIEST, LATEST, Cluster, CommittedOffset
from ..client.offsets import commit_once
from ..protocol import ErrorCode, KafkaError, KohortError, TopicPartition
from ._client import Client
from ._collector import collect_less
from ._commit_size import split_commits
from ._events import CommitRefused, Event
from ._intent import remove_log
from ._member import ExclusiveMember
from ._offsets import Bounds, Commits, Committed, Logs, Offsets
from ._options import ReadOptions
from ._plan import NoStartError

log = logging.getLogger(__name__)

#: Errors of a commit without a member while the group has members.
REFUSALS = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.STALE_MEMBER_EPOCH,
    }
)

#: Errors of an exclusive driver that the coordinator has removed from the group.
_FENCED = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_INSTANCE_ID})

#: First and longest pause between attempts to commit.
_FIRST_WAIT_SECONDS = 0.05
_LONGEST_WAIT_SECONDS = 1.0
_SECONDS_BETWEEN_WARNINGS = 10.0

#: Topics are looked up at most so often because of batches: one that is made again keeps its name.
_SECONDS_BETWEEN_LOOK_UPS = 1.0


class UnknownTopicError(KohortError):
    """A topic or partition does not exist."""


class CommitRefusedError(KohortError):
    """The coordinator refuses a commit because the group has members. The committed offsets are unchanged."""


@dataclass(frozen=True, slots=True)
class GroupPositions:
    """All commits of the group, and the bounds of the logs that are to be read, at one time. ``topic_ids``:
    those of the topics, where they have ids.
    """

    committed: Commits
    bounds: Logs
    topic_ids: Mapping[str, UUID] = field(default_factory=dict)


@dataclass(slots=True)
class Patience:
    """Retries of a commit: when they began, the next pause, and the time of the last warning, in seconds."""

    began: float = field(default_factory=time.monotonic)
    wait: float = _FIRST_WAIT_SECONDS
    warned: float = float("-inf")


class GroupOffsets:
    """Reads and commits a group's offsets, without being a member (generation -1) or as its only member.

    ``on_event`` is called with a CommitRefused for each refusal. When ``stopping`` is set, a refused commit
    is not retried any more.
    """

    def __init__(
        self,
        client: Client,
        options: ReadOptions,
        *,
        on_event: Callable[[Event], None],
        stopping: threading.Event,
    ) -> None:
        self._client = client
        self._options = options
        self._on_event = on_event
        self._stopping = stopping
        self._metadata_at = float("-inf")
        self._batch_ended = False
        self._exclusive: ExclusiveMember | None = None
        self._takes_logs = True

    def look(self) -> GroupPositions:
        """Request commits and log bounds. Raises UnknownTopicError, BrokerConnectionError and KafkaError.

        In exclusive mode the first call joins the group. It raises GroupTakenError if the group has other
        members.
        """
        with collect_less():
            state = self._client.run(self._ask_state)
        if self._options.group_mode == "exclusive" and self._exclusive is None:
            topics = {partition.topic for partition in state.bounds}
            member = ExclusiveMember(self._client, self._options.group, topics, state.bounds)
            member.take()
            self._exclusive = member
            # another member may have committed before this one joined
            state = self._client.run(self._ask_state)
        return state

    def reads(self, partition: TopicPartition) -> bool:
        """Return whether the options choose this partition, whether it is there or not."""
        options = self._options
        if options.topic_pattern is not None:
            return re.fullmatch(options.topic_pattern, partition.topic) is not None
        if options.topics is not None:
            return partition.topic in options.topics
        return partition.partition in (options.assign or {}).get(partition.topic, ())

    def close(self) -> None:
        """Leave the group, if the driver is its member."""
        if self._exclusive is not None:
            self._exclusive.leave()

    def end_batch(self) -> None:
        """A batch is committed: its topics may have been made again while it was written."""
        self._batch_ended = True

    def try_commit(
        self, number: int, offsets: Commits, patience: Patience, meanwhile: Callable[[], object] | None = None
    ) -> bool:
        """Commit for batch ``number``; ``meanwhile`` is called while the response is awaited.

        If the coordinator refuses because the group has members, it warns, waits and returns False: members
        may have committed meanwhile, so the caller looks again before the next attempt. It raises
        CommitRefusedError with ``fail_on_commit_error``, when ``stopping`` is set, or if this driver has lost
        its membership.
        """
        refusal = self._try_commit(offsets, meanwhile)
        if refusal is None:
            return True
        waited = time.monotonic() - patience.began
        self._on_event(CommitRefused(self._options.group, number, refusal.code.name, waited))
        final = self._options.fail_on_commit_error or self._is_fenced(refusal)
        if final or self._stopping.wait(patience.wait):
            raise self._refusal_of(number, refusal) from refusal
        if waited - patience.warned >= _SECONDS_BETWEEN_WARNINGS:
            log.warning("%s; trying again until they leave", self._refusal_of(number, refusal))
            patience.warned = waited
        patience.wait = min(patience.wait * 2, _LONGEST_WAIT_SECONDS)
        return False

    def commit_once(self, number: int, offsets: Commits) -> None:
        """Commit in one attempt. Raises CommitRefusedError if the group has members."""
        for part in split_commits(self._options.group, offsets):
            refusal = self._try_commit(part)
            if refusal is not None:
                self._on_event(CommitRefused(self._options.group, number, refusal.code.name, 0.0))
                raise self._refusal_of(number, refusal) from refusal

    def commits_of(self, partitions: Iterable[TopicPartition] | None = None) -> Commits:
        """Request the commits of some partitions, or all of the group."""
        wanted = None if partitions is None else list(partitions)
        found = self._client.run(lambda cluster: cluster.committed(self._options.group, wanted))
        return {partition: Committed(at.offset, at.metadata) for partition, at in found.items()}

    def find_remade(
        self, partitions: Collection[TopicPartition], ids: Mapping[str, UUID]
    ) -> set[TopicPartition]:
        """Return the partitions whose topics have other ids now, as they were deleted and made again."""
        if not partitions:
            return set()
        topics = {partition.topic for partition in partitions}
        known = self._client.run(lambda cluster: cluster.metadata(topics))
        now = {topic: known.topic_id(topic) for topic in topics}
        return {p for p in partitions if now[p.topic] not in (None, ids.get(p.topic))}

    def offsets_at(self, times_ms: int | Offsets, bounds: Logs, *, must_be_there: bool = False) -> Offsets:
        """Return the first offset at or after a time (ms since 1970) in each partition.

        ``times_ms``: one time for all partitions of ``bounds``, or a time for some of them. If all records of
        a partition are older, the result is the log's end or, with ``must_be_there``, NoStartError is raised.
        Raises UnknownTopicError for a partition that is not in ``bounds``.
        """
        wanted = dict.fromkeys(bounds, times_ms) if isinstance(times_ms, int) else dict(times_ms)
        if unknown := sorted(wanted.keys() - bounds.keys()):
            raise UnknownTopicError(f"a time is given for {unknown[0]}, which is not among what is read")
        found = self._client.run(lambda cluster: cluster.list_offsets(wanted))
        if must_be_there and (older := sorted(p for p, at in found.items() if at.offset < 0)):
            names = ", ".join(f"{topic}-{partition}" for topic, partition in older)
            raise NoStartError(
                f"no record at or after the time that was given in {names}: give an earlier one, or "
                "startingOffsetsByTimestampStrategy=latest to start at the end of the log there"
            )
        # records that arrived after ``bounds`` were requested do not count
        return {p: _up_to(at.offset, bounds[p].latest) for p, at in found.items()}

    def _try_commit(
        self, offsets: Commits, meanwhile: Callable[[], object] | None = None
    ) -> KafkaError | None:
        """Commit; return the error if the coordinator refuses because the group has members."""
        if not self._takes_logs:
            offsets = {partition: remove_log(commit) for partition, commit in offsets.items()}
        values = {p: CommittedOffset(c.offset, metadata=c.metadata) for p, c in offsets.items()}
        answer = self._client.submit(lambda cluster: self._commit_offsets(cluster, values))
        if meanwhile is not None:
            meanwhile()
        try:
            answer.result()
        except KafkaError as error:
            if error.code == ErrorCode.OFFSET_METADATA_TOO_LARGE and self._takes_logs:
                self._takes_logs = False
                log.warning("no log of batches is kept: offset.metadata.max.bytes of the brokers is too low")
                return self._try_commit(offsets)
            if error.code not in REFUSALS:
                raise
            return error
        return None

    async def _commit_offsets(
        self, cluster: Cluster, values: Mapping[TopicPartition, CommittedOffset]
    ) -> None:
        """Commit; partitions that are no longer there are left out, since no retry would help."""
        member, group = self._exclusive, self._options.group
        generation, member_id = (-1, "") if member is None else (member.generation, member.member_id)
        left = dict(values)

        async def attempt() -> None:
            answers = await commit_once(cluster, group, left, generation, member_id, None) if left else {}
            unknown = {p for p, code in answers.items() if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
            if unknown:
                await cluster.metadata({partition.topic for partition in unknown})
            for partition, code in answers.items():
                if partition in unknown and _is_gone(cluster, partition):
                    log.warning("group %s: %s-%d is gone, and not committed", group, *partition)
                    del left[partition]
                elif code:
                    raise KafkaError(code, f"committing {partition} in group {group!r}")

        await cluster.at_coordinator(group, attempt)

    def _is_fenced(self, error: KafkaError) -> bool:
        return self._exclusive is not None and error.code in _FENCED

    def _refusal_of(self, number: int, error: KafkaError) -> CommitRefusedError:
        if self._is_fenced(error):
            return CommitRefusedError(
                f"commit of batch {number} refused ({error.code.name}): this driver was away longer than its "
                f"session, and has lost its membership of group {self._options.group!r}. Start it again"
            )
        return CommitRefusedError(
            f"commit of batch {number} refused ({error.code.name}): group {self._options.group!r} has live "
            "members. Stop those consumers, or give this job a group of its own"
        )

    async def _ask_state(self, cluster: Cluster) -> GroupPositions:
        committed, bounds = await asyncio.gather(self._fetch_committed(cluster), self._ask_bounds(cluster))
        if beyond := _commits_beyond(committed, bounds):
            # another client has read on and committed since the bounds were read, or the log was recreated
            bounds = await self._ask_bounds(cluster)
        if beyond and self._options.isolation_level == "read_committed":
            # it may have committed behind records of open transactions, as a reset to the end does
            ends = await cluster.list_offsets(dict.fromkeys(_commits_beyond(committed, bounds), LATEST))
            bounds |= {p: replace(bounds[p], log_end=end.offset) for p, end in ends.items()}
        ids = {
            topic: cluster.known_metadata.topic_id(topic)
            for topic in {partition.topic for partition in bounds}
        }
        return GroupPositions(
            {partition: Committed(at.offset, at.metadata) for partition, at in committed.items()},
            bounds,
            {topic: topic_id for topic, topic_id in ids.items() if topic_id is not None},
        )

    async def _fetch_committed(self, cluster: Cluster) -> dict[TopicPartition, CommittedOffset]:
        group = self._options.group
        return await cluster.committed(group) if group else {}

    async def _ask_bounds(self, cluster: Cluster) -> Logs:
        read_committed = self._options.isolation_level == "read_committed"

        async def attempt() -> Logs:
            partitions = await self._partitions_to_read(cluster)
            errors: dict[TopicPartition, KohortError] = {}
            earliest, latest = await asyncio.gather(
                cluster.list_offsets(dict.fromkeys(partitions, EARLIEST), errors=errors),
                cluster.list_offsets(
                    dict.fromkeys(partitions, LATEST), read_committed=read_committed, errors=errors
                ),
            )
            for error in errors.values():
                # the topic may be gone: the next attempt lists the partitions anew
                self._metadata_at = float("-inf")
                raise error
            return {
                p: Bounds(earliest[p].offset, max(earliest[p].offset, latest[p].offset)) for p in partitions
            }

        return await cluster.retrying(attempt)

    async def _partitions_to_read(self, cluster: Cluster) -> list[TopicPartition]:
        """Return the partitions to read. New ones appear after ``metadata_max_age_ms`` at the latest."""
        options = self._options
        age = time.monotonic() - self._metadata_at
        if age * 1000 >= options.metadata_max_age_ms:
            names = (
                None if options.topic_pattern is not None else list(options.topics or options.assign or ())
            )
            await cluster.metadata(names)
            self._metadata_at, self._batch_ended = time.monotonic(), False
        elif self._batch_ended and age >= _SECONDS_BETWEEN_LOOK_UPS:
            await cluster.metadata(options.topics or options.assign or self._matching_topics(cluster))
            self._metadata_at, self._batch_ended = time.monotonic(), False
        if options.topic_pattern is not None:
            return [
                p
                for topic in self._matching_topics(cluster)
                for p in cluster.known_metadata.partitions(topic)
            ]
        if options.topics is not None:
            return [p for topic in options.topics for p in self._of_topic(cluster, topic)]
        assert options.assign is not None
        return [
            p
            for topic, numbers in options.assign.items()
            for p in self._partitions_named(cluster, topic, numbers)
        ]

    def _matching_topics(self, cluster: Cluster) -> list[str]:
        """The known topics that the pattern chooses."""
        wanted = re.compile(self._options.topic_pattern or "")
        topics = cluster.known_metadata.topics.values()
        return [topic.name for topic in topics if wanted.fullmatch(topic.name) and not topic.internal]

    def _of_topic(self, cluster: Cluster, topic: str) -> list[TopicPartition]:
        partitions = cluster.known_metadata.partitions(topic)
        if not partitions:
            self._metadata_at = float("-inf")
            code = cluster.known_metadata.errors.get(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            if code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise KafkaError(code, f"metadata of topic {topic!r}")
            raise UnknownTopicError(
                f"topic {topic!r} does not exist on {self._options.bootstrap}: create it, or check its name"
            )
        return partitions

    def _partitions_named(
        self, cluster: Cluster, topic: str, numbers: tuple[int, ...]
    ) -> list[TopicPartition]:
        there = set(self._of_topic(cluster, topic))
        wanted = [TopicPartition(topic, number) for number in numbers]
        if missing := [partition.partition for partition in wanted if partition not in there]:
            raise UnknownTopicError(f"topic {topic!r} has {len(there)} partitions, not number {missing[0]}")
        return wanted


def _is_gone(cluster: Cluster, partition: TopicPartition) -> bool:
    """Return whether the newest metadata has no such partition."""
    code = cluster.known_metadata.errors.get(partition.topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    known = cluster.known_metadata.partitions(partition.topic)
    return partition not in known and (bool(known) or code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _commits_beyond(
    committed: Mapping[TopicPartition, CommittedOffset], bounds: Logs
) -> list[TopicPartition]:
    return [p for p, at in committed.items() if p in bounds and at.offset > bounds[p].latest]


def _up_to(found: int, latest: int) -> int:
    return min(found, latest) if found >= 0 else latest


async def count_partitions(cluster: Cluster, topic: str) -> int:
    """Return the number of a topic's partitions. Raises UnknownTopicError and KafkaError."""
    await cluster.metadata([topic])
    count = len(cluster.known_metadata.partitions(topic))
    if not count:
        code = cluster.known_metadata.errors.get(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise KafkaError(code, f"metadata of topic {topic!r}")
        raise UnknownTopicError(f"topic {topic!r} does not exist: create it, or check its name")
    return count
