"""Commits: what is sent, what is tried again, what is reported as lost."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any, cast

import pytest

from kohort.assignors import CooperativeStickyAssignor
from kohort.consumer import BrokerConnectionError, Cluster, CommitFailedError, CommittedOffset, Record
from kohort.consumer.backoff import Backoff
from kohort.consumer.committer import Committer
from kohort.consumer.events import CommitFailed, Event
from kohort.consumer.group_messages import MembershipSettings
from kohort.consumer.membership import Membership
from kohort.consumer.signal import Signal
from kohort.consumer.tracker import Tracker
from kohort.protocol import ApiKey, ErrorCode, KafkaError, TopicPartition, response_class
from kohort.statemachine import MemberState

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)

#: What a script gives for one request: codes by partition number, or an error to raise.
Step = dict[int, ErrorCode] | Exception


def _nothing() -> None:
    """Nothing happens meanwhile."""


class _Coordinator:
    """Answers OffsetCommit by a script; afterwards everything succeeds."""

    def __init__(self, *script: Step) -> None:
        self.script = list(script)
        self.sent: list[tuple[int, dict[int, int]]] = []
        self.metadata: list[str] = []
        self.forgotten = 0
        self.meanwhile: Callable[[], None] = _nothing

    def forget_coordinator(self, _group: str) -> None:
        self.forgotten += 1

    async def request_coordinator(self, _group: str, body: Any, **_: Any) -> Any:
        rows = [row for topic in body.topics for row in topic.partitions]
        offsets = {row.partition_index: row.committed_offset for row in rows}
        self.sent.append((body.generation_id_or_member_epoch, offsets))
        self.metadata += [row.committed_metadata for row in rows]
        await asyncio.sleep(0)
        self.meanwhile()
        step = self.script.pop(0) if self.script else {}
        if isinstance(step, Exception):
            raise step
        make = response_class(ApiKey.OFFSET_COMMIT)
        topic = make.OffsetCommitResponseTopic
        partition = topic.OffsetCommitResponsePartition
        answers = [partition(partition_index=p, error_code=step.get(p, 0)) for p in offsets]
        return make(throttle_time_ms=0, topics=[topic(name="orders", partitions=answers)])


class _Bench:
    def __init__(self, *script: Step) -> None:
        self.coordinator = _Coordinator(*script)
        self.membership = Membership(
            MembershipSettings("billing"), [CooperativeStickyAssignor()], random.Random(1)
        )
        self.membership.state = MemberState.STABLE
        self.membership.generation = 3
        self.membership.owned = frozenset({A, B})
        self.tracker = Tracker()
        self.events: list[Event] = []
        self.settled = Signal()
        self.committer = Committer(
            cast(Cluster, self.coordinator),
            "billing",
            None,
            self.membership,
            self.tracker,
            backoff=Backoff(1, 1),
            settled=self.settled,
            carry_out=self._carry_out,
            report=self.events.append,
        )
        for partition in (A, B):
            self.tracker.begin(partition, 0, committed=CommittedOffset(0)).delivered_all([0, 1, 2])

    def _carry_out(self) -> None:
        self.membership.take_effects()
        self.settled.fire()

    def done(self, partition: TopicPartition, *offsets: int) -> None:
        stay = self.tracker.get(partition)
        assert stay is not None
        for offset in offsets:
            self.tracker.done(Record(*partition, offset, 0, None, None, session_id=stay.session_id))

    async def commit(self, timeout_ms: float = 2_000) -> None:
        await self.committer.commit(None, timeout_ms)


async def test_only_partitions_with_news_are_sent() -> None:
    bench = _Bench()
    bench.done(A, 0, 2)
    await bench.commit()
    await bench.commit()
    assert bench.coordinator.sent == [(3, {0: 1})]


@pytest.mark.parametrize(
    "step",
    [
        BrokerConnectionError("b:1", "gone"),
        {0: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS},
        {0: ErrorCode.NOT_COORDINATOR},
        {0: ErrorCode.REQUEST_TIMED_OUT},
        {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
    ],
    ids=lambda step: repr(step),
)
async def test_what_may_pass_is_tried_again(step: Step) -> None:
    bench = _Bench(step, step)
    bench.done(A, 0)
    await bench.commit()
    assert bench.coordinator.sent == [(3, {0: 1})] * 3


async def test_a_coordinator_that_moved_is_forgotten() -> None:
    bench = _Bench({0: ErrorCode.NOT_COORDINATOR})
    bench.done(A, 0)
    await bench.commit()
    assert bench.coordinator.forgotten == 1


async def test_only_what_failed_is_sent_again() -> None:
    bench = _Bench({1: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})
    bench.done(A, 0)
    bench.done(B, 0, 1)
    await bench.commit()
    assert bench.coordinator.sent == [(3, {0: 1, 1: 2}), (3, {1: 2})]


async def test_a_broker_that_takes_no_metadata_gets_the_offset_alone_from_then_on() -> None:
    bench = _Bench({0: ErrorCode.OFFSET_METADATA_TOO_LARGE})
    bench.done(A, 0, 2)
    await bench.commit()
    bench.done(B, 0, 2)
    await bench.commit()
    assert bench.coordinator.sent == [(3, {0: 1}), (3, {0: 1}), (3, {1: 1})]
    assert [bool(text) for text in bench.coordinator.metadata] == [True, False, False]


async def test_a_partition_that_can_never_be_committed_is_named_and_the_others_are_committed() -> None:
    bench = _Bench({0: ErrorCode.OFFSET_METADATA_TOO_LARGE})
    with pytest.raises(CommitFailedError, match="orders-0") as caught:
        await bench.committer.commit({A: CommittedOffset(1, metadata="x"), B: 2}, 2_000)
    assert list(caught.value.failed) == [A]
    assert isinstance(caught.value.failed[A], KafkaError)
    assert caught.value.lost == ()
    assert bench.tracker.committable([B]) == {}


async def test_a_rebalance_is_waited_out_and_what_is_left_is_committed_in_the_new_generation() -> None:
    bench = _Bench({0: ErrorCode.REBALANCE_IN_PROGRESS, 1: ErrorCode.REBALANCE_IN_PROGRESS})
    bench.done(A, 0)
    bench.done(B, 0)

    def rebalance() -> None:
        bench.coordinator.meanwhile = _nothing
        bench.membership.state = MemberState.COMPLETING

    bench.coordinator.meanwhile = rebalance
    committing = asyncio.create_task(bench.commit())
    await asyncio.sleep(0.02)
    assert len(bench.coordinator.sent) == 1
    bench.membership.generation, bench.membership.state = 4, MemberState.STABLE
    bench.tracker.end(B)
    bench.settled.fire()
    with pytest.raises(CommitFailedError, match="no longer owned: orders-1") as caught:
        await committing
    assert caught.value.lost == (B,)
    assert bench.coordinator.sent[1:] == [(4, {0: 1})]


async def test_a_generation_that_is_refused_is_told_to_membership_and_the_partitions_are_lost() -> None:
    bench = _Bench({0: ErrorCode.ILLEGAL_GENERATION})
    bench.done(A, 0)
    committing = asyncio.create_task(bench.commit())
    await asyncio.sleep(0.02)
    assert bench.membership.generation == -1
    bench.tracker.end(A)
    bench.settled.fire()
    with pytest.raises(CommitFailedError) as caught:
        await committing
    assert caught.value.lost == (A,)


async def test_a_partition_that_came_back_meanwhile_is_another_assignment() -> None:
    bench = _Bench(BrokerConnectionError("b:1", "gone"))
    bench.done(A, 0)

    def comes_back() -> None:
        bench.tracker.end(A)
        bench.tracker.begin(A, 0)

    bench.coordinator.meanwhile = comes_back
    with pytest.raises(CommitFailedError) as caught:
        await bench.commit()
    assert caught.value.lost == (A,)
    assert len(bench.coordinator.sent) == 1


async def test_partitions_of_others_are_refused_without_a_request() -> None:
    bench = _Bench()
    with pytest.raises(CommitFailedError) as caught:
        await bench.committer.commit({TopicPartition("foreign", 0): 1}, 2_000)
    assert caught.value.lost == (TopicPartition("foreign", 0),)
    assert bench.coordinator.sent == []


async def test_explicit_offsets_mark_what_is_before_them_done() -> None:
    bench = _Bench()
    await bench.committer.commit({A: 2}, 2_000)
    assert bench.tracker.undone([A]) == 1
    assert bench.tracker.committable() == {}


async def test_a_commit_that_is_out_of_time_says_what_is_left() -> None:
    bench = _Bench()
    bench.membership.state = MemberState.COMPLETING
    bench.done(A, 0)
    with pytest.raises(CommitFailedError, match="within 50 ms") as caught:
        await bench.commit(timeout_ms=50)
    assert list(caught.value.failed) == [A]


async def test_in_the_background_failures_are_reported_and_not_raised() -> None:
    bench = _Bench({0: ErrorCode.INVALID_COMMIT_OFFSET_SIZE})
    bench.done(A, 0)
    assert not await bench.committer.commit_done(None, 2_000)
    (event,) = [e for e in bench.events if isinstance(e, CommitFailed)]
    assert event.partitions == (A,)


async def test_commits_go_one_at_a_time() -> None:
    bench = _Bench()
    bench.done(A, 0)
    under_way, most = 0, 0
    real = bench.coordinator.request_coordinator

    async def counted(*args: Any, **kwargs: Any) -> Any:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.005)
        under_way -= 1
        return await real(*args, **kwargs)

    bench.coordinator.request_coordinator = counted  # type: ignore[method-assign]
    await asyncio.gather(bench.commit(), bench.committer.commit({B: 1}, 2_000), bench.commit())
    assert most == 1
