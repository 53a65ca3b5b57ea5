"""Commits: what is sent, what is tried again, what is reported as lost."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kohort.consumer import BrokerConnectionError, CommitFailedError, CommittedOffset, ConsumerClosedError
from kohort.consumer.events import CommitFailed
from kohort.protocol import ErrorCode, KafkaError, KohortError, TopicPartition
from kohort.statemachine import MemberState
from tests.consumer.commits import A, B, Bench, Step, nothing


async def test_only_partitions_with_news_are_sent() -> None:
    bench = Bench()
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
    bench = Bench(step, step)
    bench.done(A, 0)
    await bench.commit()
    assert bench.coordinator.sent == [(3, {0: 1})] * 3


async def test_a_coordinator_that_moved_is_forgotten() -> None:
    bench = Bench({0: ErrorCode.NOT_COORDINATOR})
    bench.done(A, 0)
    await bench.commit()
    assert bench.coordinator.forgotten == 1


async def test_only_what_failed_is_sent_again() -> None:
    bench = Bench({1: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})
    bench.done(A, 0)
    bench.done(B, 0, 1)
    await bench.commit()
    assert bench.coordinator.sent == [(3, {0: 1, 1: 2}), (3, {1: 2})]


async def test_a_broker_that_takes_no_metadata_gets_the_offset_alone_from_then_on() -> None:
    bench = Bench({0: ErrorCode.OFFSET_METADATA_TOO_LARGE})
    bench.done(A, 0, 2)
    await bench.commit()
    bench.done(B, 0, 2)
    await bench.commit()
    assert bench.coordinator.sent == [(3, {0: 1}), (3, {0: 1}), (3, {1: 1})]
    assert [bool(text) for text in bench.coordinator.metadata_sent] == [True, False, False]


async def test_a_partition_that_can_never_be_committed_is_named_and_the_others_are_committed() -> None:
    bench = Bench({0: ErrorCode.OFFSET_METADATA_TOO_LARGE})
    with pytest.raises(CommitFailedError, match="orders-0") as caught:
        await bench.committer.commit({A: CommittedOffset(1, metadata="x"), B: 2}, 2_000)
    assert list(caught.value.failed) == [A]
    assert isinstance(caught.value.failed[A], KafkaError)
    assert caught.value.lost == ()
    assert bench.tracker.committable([B]) == {}


async def test_a_rebalance_is_waited_out_and_what_is_left_is_committed_in_the_new_generation() -> None:
    bench = Bench({0: ErrorCode.REBALANCE_IN_PROGRESS, 1: ErrorCode.REBALANCE_IN_PROGRESS})
    bench.done(A, 0)
    bench.done(B, 0)

    def rebalance() -> None:
        bench.coordinator.meanwhile = nothing
        bench.membership.state = MemberState.COMPLETING

    bench.coordinator.meanwhile = rebalance
    committing = asyncio.create_task(bench.commit())
    await asyncio.sleep(0.02)
    assert len(bench.coordinator.sent) == 1
    bench.membership.generation, bench.membership.state = 4, MemberState.STABLE
    bench.tracker.end_session(B)
    bench.settled.fire()
    with pytest.raises(CommitFailedError, match="no longer owned: orders-1") as caught:
        await committing
    assert caught.value.lost == (B,)
    assert bench.coordinator.sent[1:] == [(4, {0: 1})]


async def test_a_generation_that_is_refused_is_told_to_membership_and_the_partitions_are_lost() -> None:
    bench = Bench({0: ErrorCode.ILLEGAL_GENERATION})
    bench.done(A, 0)
    committing = asyncio.create_task(bench.commit())
    await asyncio.sleep(0.02)
    assert bench.membership.generation == -1
    bench.tracker.end_session(A)
    bench.settled.fire()
    with pytest.raises(CommitFailedError) as caught:
        await committing
    assert caught.value.lost == (A,)


async def test_a_partition_that_came_back_meanwhile_is_another_assignment() -> None:
    bench = Bench(BrokerConnectionError("b:1", "gone"))
    bench.done(A, 0)

    def comes_back() -> None:
        bench.tracker.end_session(A)
        bench.tracker.begin_session(A, 0)

    bench.coordinator.meanwhile = comes_back
    with pytest.raises(CommitFailedError) as caught:
        await bench.commit()
    assert caught.value.lost == (A,)
    assert len(bench.coordinator.sent) == 1


async def test_partitions_of_others_are_refused_without_a_request() -> None:
    bench = Bench()
    with pytest.raises(CommitFailedError) as caught:
        await bench.committer.commit({TopicPartition("foreign", 0): 1}, 2_000)
    assert caught.value.lost == (TopicPartition("foreign", 0),)
    assert bench.coordinator.sent == []


async def test_explicit_offsets_mark_what_is_before_them_done() -> None:
    bench = Bench()
    await bench.committer.commit({A: 2}, 2_000)
    assert bench.tracker.undone([A]) == 1
    assert bench.tracker.committable() == {}


async def test_a_commit_that_is_out_of_time_says_what_is_left() -> None:
    bench = Bench()
    bench.membership.state = MemberState.COMPLETING
    bench.done(A, 0)
    with pytest.raises(CommitFailedError, match="within 50 ms") as caught:
        await bench.commit(timeout_ms=50)
    assert list(caught.value.failed) == [A]


async def test_in_the_background_failures_are_reported_and_not_raised() -> None:
    bench = Bench({0: ErrorCode.INVALID_COMMIT_OFFSET_SIZE})
    bench.done(A, 0)
    assert not await bench.committer.commit_done(None, 2_000)
    (event,) = [e for e in bench.events if isinstance(e, CommitFailed)]
    assert event.partitions == (A,)


async def test_commits_go_one_at_a_time() -> None:
    bench = Bench()
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


@pytest.mark.parametrize(("given", "sent"), [(-1, 5), (0, 0), (3, 3)])
async def test_an_offset_goes_with_the_epoch_that_it_was_given_or_read_in(given: int, sent: int) -> None:
    bench = Bench()
    bench.tracker.begin_session(A, 0, leader_epoch=5).delivered_all([0, 1, 2])
    await bench.committer.commit({A: CommittedOffset(2, leader_epoch=given)}, 2_000)
    assert bench.coordinator.leader_epochs == [sent]


async def test_an_offset_of_the_users_own_waits_for_a_topic_that_is_new_as_all_commits_do() -> None:
    bench = Bench(*[{0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}] * 3)
    await bench.committer.commit({A: 2}, 2_000)
    assert bench.coordinator.sent == [(3, {0: 2})] * 4
    bench = Bench(*[{0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}] * 4)
    with pytest.raises(CommitFailedError) as caught:
        await bench.committer.commit({A: 2}, 2_000)
    assert list(caught.value.failed) == [A]
    assert len(bench.coordinator.sent) == 4


@pytest.mark.parametrize(
    ("lost", "failed", "text"),
    [
        (True, False, "no longer owned: orders-0 (the current owner redoes what was not committed)"),
        (False, True, "orders-1: [Error 28] "),
    ],
)
async def test_what_became_of_a_commit_is_told_by_partition(lost: bool, failed: bool, text: str) -> None:
    bench = Bench({1: ErrorCode.INVALID_COMMIT_OFFSET_SIZE} if failed else {})
    bench.done(A, 0)
    bench.done(B, 0)
    if lost:
        bench.coordinator.meanwhile = nothing
        bench.membership.owned = frozenset({B})
        bench.tracker.end_session(A)
        offsets = {A: CommittedOffset(1), B: CommittedOffset(1)}
    else:
        offsets = {B: CommittedOffset(1)}
    with pytest.raises(CommitFailedError) as caught:
        await bench.committer.commit(offsets, 2_000)
    assert str(caught.value).startswith(text[: text.index("[")] if "[" in text else text)
    assert caught.value.lost == ((A,) if lost else ())
    assert list(caught.value.failed) == ([B] if failed else [])


async def test_in_the_background_only_the_partitions_that_are_named_are_committed() -> None:
    bench = Bench()
    bench.done(A, 0)
    bench.done(B, 0)
    assert await bench.committer.commit_done([B], 2_000)
    assert bench.coordinator.sent == [(3, {1: 1})]


async def test_a_failure_in_the_background_is_reported_with_its_error() -> None:
    bench = Bench({0: ErrorCode.INVALID_COMMIT_OFFSET_SIZE})
    bench.done(A, 0)
    await bench.committer.commit_done(None, 2_000)
    (event,) = [e for e in bench.events if isinstance(e, CommitFailed)]
    assert isinstance(event.error, CommitFailedError)
    assert list(event.error.failed) == [A]


async def test_the_end_of_the_consumer_is_no_failure_and_no_success() -> None:
    bench = Bench(ConsumerClosedError("closed"))
    bench.done(A, 0)
    assert not await bench.committer.commit_done(None, 2_000)
    assert bench.events == []


async def test_at_intervals_what_is_done_is_committed_but_for_rebalances() -> None:
    bench = Bench()
    bench.done(A, 0)
    bench.membership.state = MemberState.COMPLETING
    running = asyncio.create_task(bench.committer.run(5))
    await asyncio.sleep(0.05)
    assert bench.coordinator.sent == []
    committed = asyncio.Event()
    bench.coordinator.meanwhile = committed.set
    bench.membership.state = MemberState.STABLE
    await committed.wait()
    committed.clear()
    bench.done(A, 1)
    await committed.wait()
    running.cancel()
    assert bench.coordinator.sent == [(3, {0: 1}), (3, {0: 2})]


async def test_a_commit_is_that_of_the_member() -> None:
    bench = Bench()
    bench.membership.member_id = "c-1"
    bench.done(A, 0)
    await bench.commit()
    assert bench.coordinator.members == {"c-1"}


async def test_an_error_of_the_whole_request_is_that_of_every_partition_in_it() -> None:
    error = KafkaError(ErrorCode.UNSUPPORTED_VERSION, "no OffsetCommit")
    bench = Bench(error)
    with pytest.raises(CommitFailedError) as caught:
        await bench.committer.commit({A: 1, B: 2}, 2_000)
    assert caught.value.failed == {A: error, B: error}
    assert len(bench.coordinator.sent) == 1


async def test_a_partition_that_is_refused_is_named_in_the_error() -> None:
    bench = Bench({0: ErrorCode.INVALID_COMMIT_OFFSET_SIZE, 1: ErrorCode.TOPIC_AUTHORIZATION_FAILED})
    with pytest.raises(CommitFailedError) as caught:
        await bench.committer.commit({A: 1, B: 2}, 2_000)
    assert [
        "committing orders-0" in str(caught.value.failed[A]),
        "orders-1" in str(caught.value.failed[B]),
    ] == [
        True,
        True,
    ]


async def test_a_users_own_offset_goes_without_the_ranges_where_the_broker_takes_no_metadata() -> None:
    """What a commit of ours said is given by who commits it again."""
    bench = Bench({0: ErrorCode.OFFSET_METADATA_TOO_LARGE})
    bench.done(A, 0, 2)
    ours = bench.tracker.committable([A])[A]
    assert ours.metadata
    await bench.committer.commit({A: ours, B: 1}, 2_000)
    assert bench.coordinator.sent == [(3, {0: 1, 1: 1}), (3, {0: 1})]
    assert bench.coordinator.metadata_sent == [ours.metadata, "", ""]
    assert bench.tracker.with_metadata is False


async def test_answers_about_partitions_that_nobody_asked_for_are_passed_over() -> None:
    bench = Bench()
    bench.done(A, 0)
    bench.done(B, 0)
    real = bench.coordinator.request_coordinator

    async def more(*args: Any, **kwargs: Any) -> Any:
        answer = await real(*args, **kwargs)
        rows = answer.topics[0].partitions
        rows.insert(0, type(rows[0])(partition_index=9, error_code=0))
        return answer

    bench.coordinator.request_coordinator = more  # type: ignore[method-assign]
    await bench.commit()
    assert bench.tracker.committable([A, B]) == {}
    assert len(bench.coordinator.sent) == 1


async def test_each_attempt_tells_the_membership_what_is_given_up_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench({0: ErrorCode.OFFSET_METADATA_TOO_LARGE})
    told: list[Any] = []
    monkeypatch.setattr(bench.membership, "gives_up", lambda *said: told.append(said[:2]))
    bench.done(A, 0, 2)
    assert await bench.committer.commit_done((A, B), 2_000, giving=(A, B))
    assert [(given, offsets.keys(), offsets[A].offset) for given, offsets in told] == [((A, B), {A}, 1)] * 2
    assert [bool(offsets[A].metadata) for _, offsets in told] == [True, False]
    bench.done(A, 1)
    assert await bench.committer.commit_done((A, B), 2_000)
    assert len(told) == 2


@pytest.mark.parametrize("giving", [(A,), ()])
async def test_nothing_more_is_committed_of_what_the_coordinator_has_given_to_others(
    giving: tuple[TopicPartition, ...],
) -> None:
    """The answer to its commit is lost: a second one might overwrite the next owner's."""
    bench = Bench(BrokerConnectionError("b:1", "gone"))
    bench.done(A, 0)

    def heard() -> None:
        bench.membership.given_up = frozenset({A})
        bench.membership.generation = 4

    bench.coordinator.meanwhile = heard
    assert await bench.committer.commit_done((A,) if giving else None, 2_000, giving=giving)
    assert bench.coordinator.sent == [(3, {0: 1})]
    with pytest.raises(CommitFailedError) as caught:
        await bench.committer.commit({A: 3}, 2_000)
    assert caught.value.lost == (A,)


async def test_where_a_group_begins_is_committed_and_what_fails_is_for_later() -> None:
    bench = Bench({1: ErrorCode.TOPIC_AUTHORIZATION_FAILED})
    errors: dict[TopicPartition, KohortError] = {}
    assert not await bench.committer.keep_starts({A: 7, B: 9}, errors)
    assert bench.coordinator.sent == [], "of a consumer that commits nothing by itself"
    bench.committer.keeps_starts = True
    assert await bench.committer.keep_starts({}, errors)
    assert await bench.committer.keep_starts({A: 7, B: 9}, errors)
    assert bench.coordinator.sent == [(3, {0: 7, 1: 9})]
    assert list(errors) == [B]
    assert isinstance(errors[B], KafkaError), "polls have to raise what is refused for want of a right"


async def test_where_a_group_begins_is_not_committed_over_a_seek_that_came_meanwhile() -> None:
    """It would be ahead of what is done from there on, which then would not be committed."""
    bench = Bench(BrokerConnectionError("b:1", "gone"))
    bench.committer.keeps_starts = True
    for partition in (A, B):
        bench.tracker.end_session(partition)
    bench.coordinator.meanwhile = lambda: bench.begin(A, 0)
    errors: dict[TopicPartition, KohortError] = {}
    assert await bench.committer.keep_starts({A: 7, B: 9}, errors)
    assert bench.coordinator.sent == [(3, {0: 7, 1: 9}), (3, {1: 9})]
    assert errors == {}
