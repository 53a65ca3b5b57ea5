"""Commits: what is done, at intervals and when asked; never older over newer, never for what is not ours.

A commit that meets a rebalance waits it out and then commits what is still owned; what is not is named.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from ..protocol import ApiKey, ErrorCode, KafkaError, KohortError, TopicPartition
from .backoff import Backoff
from .cluster import Cluster
from .done_ahead import PREFIX
from .errors import BrokerConnectionError, CommitFailedError, ConsumerClosedError
from .events import CommitFailed, CommitSucceeded, Event
from .membership import Membership
from .offset_requests import CommittedOffset, commit_once
from .refusals import Reaction, reaction
from .signal import Signal
from .tracker import Tracker

Offsets = Mapping[TopicPartition, int | CommittedOffset]

#: Not for the group but for one partition: trying again cannot help.
_PARTITION_ERRORS = frozenset(
    {
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_GROUP_ID,
    }
)

#: What somebody who is no member is told while a group has members: it would not change.
_GROUP_IN_USE = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.FENCED_INSTANCE_ID,
    }
)


@dataclass(slots=True)
class _Job:
    """A commit on its way: what is left, and what became of the rest."""

    left: dict[TopicPartition, CommittedOffset]
    epochs: dict[TopicPartition, int]
    lost: list[TopicPartition] = field(default_factory=list)
    failed: dict[TopicPartition, Exception] = field(default_factory=dict)
    attempts: int = 0

    def without_our_metadata(self, partition: TopicPartition) -> bool:
        """Whether there was some, which the offset is now to be committed without."""
        offset = self.left[partition]
        if not offset.metadata.startswith(PREFIX):
            return False
        self.left[partition] = CommittedOffset(offset.offset, offset.leader_epoch)
        return True

    def raise_if_incomplete(self) -> None:
        if not self.lost and not self.failed:
            return
        parts = []
        if self.lost:
            named = ", ".join(f"{t}-{n}" for t, n in sorted(self.lost))
            parts.append(f"no longer owned: {named} (whoever has them now redoes what was not committed)")
        parts += [f"{t}-{n}: {error}" for (t, n), error in sorted(self.failed.items())]
        raise CommitFailedError("; ".join(parts), lost=tuple(sorted(self.lost)), failed=self.failed)


class Committer:
    """``settled`` fires whenever membership may have moved; ``carry_out`` runs membership's effects."""

    def __init__(
        self,
        cluster: Cluster,
        group: str,
        instance_id: str | None,
        membership: Membership,
        tracker: Tracker,
        *,
        backoff: Backoff,
        settled: Signal,
        carry_out: Callable[[], None],
        report: Callable[[Event], None],
        by_hand: bool = False,
    ) -> None:
        self._cluster = cluster
        self._group = group
        self._instance_id = instance_id
        self._membership = membership
        self._tracker = tracker
        self._backoff = backoff
        self._settled = settled
        self._carry_out = carry_out
        self._report = report
        self._final = _PARTITION_ERRORS | (_GROUP_IN_USE if by_hand else frozenset())
        self._one_at_a_time = asyncio.Lock()

    async def commit(self, offsets: Offsets | None, timeout_ms: float) -> None:
        """Commit these offsets, or all that is done. Raises CommitFailedError."""
        if offsets is None:
            await self._commit(self._tracker.committable(), timeout_ms)
            return
        wanted = {p: v if isinstance(v, CommittedOffset) else CommittedOffset(v) for p, v in offsets.items()}
        for partition, value in wanted.items():
            if (stay := self._tracker.get(partition)) is not None:
                stay.done_before(value.offset)
        await self._commit(wanted, timeout_ms)

    async def commit_done(self, partitions: Iterable[TopicPartition] | None, timeout_ms: float) -> bool:
        """Commit what is done of these partitions (None: all); failures are reported, not raised."""
        offsets = self._tracker.committable(partitions)
        try:
            await self._commit(offsets, timeout_ms)
        except CommitFailedError as error:
            self._report(CommitFailed((*error.lost, *error.failed), error))
            return False
        except ConsumerClosedError:
            return False
        return True

    async def run(self, interval_ms: float) -> None:
        """Commit what is done at intervals, until cancelled. A rebalance is left to commit by itself."""
        while True:
            await asyncio.sleep(interval_ms / 1000)
            if self._membership.can_commit():
                await self.commit_done(None, interval_ms)

    async def _commit(self, offsets: Mapping[TopicPartition, CommittedOffset], timeout_ms: float) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() * 1000 + timeout_ms
        stays = {p: stay for p in offsets if (stay := self._tracker.get(p)) is not None}
        job = _Job(dict(offsets), {partition: stay.epoch for partition, stay in stays.items()})
        while True:
            self._set_aside_lost(job)
            if not job.left:
                break
            left_ms = deadline - loop.time() * 1000
            if left_ms <= 0:
                error = TimeoutError(f"not committed within {timeout_ms:.0f} ms; it may be tried again")
                job.failed.update(dict.fromkeys(job.left, error))
                break
            if not self._membership.can_commit():
                await self._settled.wait(left_ms)
                continue
            try:
                async with asyncio.timeout(left_ms / 1000):
                    progress = await self._attempt(job)
            except TimeoutError:
                continue  # a coordinator that cannot be found is looked for longer than this call may take
            if not progress:
                await self._settled.wait(min(left_ms, self._backoff.delay_ms(job.attempts)))
                job.attempts += 1
        job.raise_if_incomplete()

    def _set_aside_lost(self, job: _Job) -> None:
        for partition in list(job.left):
            stay = self._tracker.get(partition)
            began = job.epochs.get(partition)
            still_ours = partition in self._membership.owned if stay is None else stay.epoch == began
            if not still_ours or (began is not None and stay is None):
                del job.left[partition]
                job.lost.append(partition)

    async def _attempt(self, job: _Job) -> bool:
        """One request for what is left; whether there was progress (else it is worth a pause)."""
        generation = self._membership.generation
        async with self._one_at_a_time:
            try:
                answers = await commit_once(
                    self._cluster,
                    self._group,
                    job.left,
                    generation,
                    self._membership.member_id,
                    self._instance_id,
                )
            except ConsumerClosedError:
                raise
            except BrokerConnectionError:
                return False
            except KohortError as error:
                job.failed.update(dict.fromkeys(job.left, error))
                job.left.clear()
                return True
            self._sort_answers(job, answers, generation)
        return not job.left

    def _sort_answers(self, job: _Job, answers: Mapping[TopicPartition, int], generation: int) -> None:
        committed = {}
        refused: ErrorCode | None = None
        for partition, number in answers.items():
            if partition not in job.left:
                continue
            if not number:
                committed[partition] = job.left.pop(partition)
                continue
            error = KafkaError(number, f"committing {partition.topic}-{partition.partition}")
            if error.code is ErrorCode.OFFSET_METADATA_TOO_LARGE and job.without_our_metadata(partition):
                # a broker with a lower offset.metadata.max.bytes: the offset alone, from now on
                self._tracker.with_metadata = False
            elif error.code in self._final:
                del job.left[partition]
                job.failed[partition] = error
            else:
                refused = error.code
        if committed:
            self._tracker.committed(committed)
            self._report(CommitSucceeded({partition: value.offset for partition, value in committed.items()}))
        if refused is not None:
            self._refused(refused, generation)

    def _refused(self, code: ErrorCode, generation: int) -> None:
        if reaction(ApiKey.OFFSET_COMMIT, code) is Reaction.FIND_COORDINATOR:
            self._cluster.forget_coordinator(self._group)
        self._membership.commit_refused(code, generation, asyncio.get_running_loop().time() * 1000)
        self._carry_out()
