"""Commits that are refused: what is sent again, when, and what never is."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from kohort.client.waiting import Backoff
from kohort.consumer import BrokerConnectionError, CommitFailedError, CommittedOffset
from kohort.consumer.done.committer import MEMBER_REPEAT_MS, REPEAT_MS, UNKNOWN_TOPIC_TRIES
from kohort.consumer.events import CommitFailed, CommitSucceeded, Event
from kohort.protocol import ErrorCode, KafkaError
from tests.consumer.commits import NEW, OLD, A, B, Bench, Step
from tests.consumer.virtual_time import run_in_virtual_time

LOADING: Step = {0: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 1: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
UNKNOWN: Step = {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


# older and newer


async def test_a_try_that_was_refused_is_not_repeated_as_it_was_but_says_what_is_done_now() -> None:
    bench = Bench(LOADING)
    bench.done(A, 0)
    bench.coordinator.meanwhile = lambda: bench.done(A, 1)
    await bench.commit()
    assert bench.coordinator.sent == [(3, {0: 1}), (3, {0: 2})]


async def test_an_older_commit_never_lands_over_a_newer_one_that_returned() -> None:
    bench = Bench(LOADING)
    bench.done(A, 0)
    older = asyncio.create_task(bench.committer.commit_done(None, 2_000))
    await asyncio.sleep(0)
    bench.done(A, 1, 2)
    await bench.commit()
    assert bench.coordinator.committed == {0: 3}
    assert await older
    assert bench.coordinator.committed == {0: 3}
    assert [offsets for _, offsets in bench.coordinator.sent if offsets == {0: 1}] == [{0: 1}]


@pytest.mark.parametrize("step", [LOADING, BrokerConnectionError("b:1", "gone")], ids=["refused", "broken"])
async def test_given_offsets_that_were_refused_do_not_land_over_those_given_later(step: Step) -> None:
    bench = Bench(step)
    older = asyncio.create_task(bench.committer.commit({A: 1}, 2_000))
    await asyncio.sleep(0)
    await bench.committer.commit({A: 3}, 2_000)
    await older
    assert bench.coordinator.committed == {0: 3}


async def test_given_offsets_that_were_refused_do_not_land_over_what_was_done_and_committed_since() -> None:
    bench = Bench(LOADING)
    older = asyncio.create_task(bench.committer.commit({A: 1}, 2_000))
    await asyncio.sleep(0)
    bench.done(A, 0, 1, 2)
    await bench.commit()
    await older
    assert bench.coordinator.committed == {0: 3}


async def test_offsets_given_later_may_go_back() -> None:
    bench = Bench()
    await bench.committer.commit({A: 3}, 2_000)
    await bench.committer.commit({A: 1}, 2_000)
    assert bench.coordinator.committed == {0: 1}


async def test_offsets_given_ahead_are_not_taken_back_by_what_is_done() -> None:
    bench = Bench()
    await bench.committer.commit({A: 50}, 2_000)
    await bench.committer.commit_done(None, 2_000)
    assert bench.coordinator.sent == [(3, {0: 50})]


async def test_an_answer_from_before_a_seek_says_nothing_of_what_is_read_since() -> None:
    bench = Bench()
    bench.done(A, 0, 1, 2)
    bench.coordinator.meanwhile = lambda: bench.begin(A, 1)
    await bench.commit()
    assert bench.tracker.committable([A]) == {A: CommittedOffset(1)}, "the seek is worth committing"


async def test_what_was_committed_as_it_was_given_up_is_not_reported_as_lost() -> None:
    bench = Bench()
    bench.coordinator.answers_after_s = 0.01
    bench.done(A, 0)

    def given_up(event: Event) -> None:
        bench.events.append(event)
        bench.tracker.end_session(A)

    bench.committer.report = given_up
    releasing = asyncio.create_task(bench.committer.commit_done([A], 2_000))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(bench.committer.commit_done(None, 2_000))
    assert await releasing
    assert await waiting
    assert [type(event) for event in bench.events] == [CommitSucceeded]


# pauses


def test_tries_have_growing_pauses_whatever_membership_does() -> None:
    async def tries() -> list[float]:
        bench = Bench(*[LOADING] * 1_000, backoff=Backoff(100, 1_000, jitter=0))
        loop = asyncio.get_running_loop()
        times: list[float] = []
        bench.coordinator.meanwhile = lambda: times.append(loop.time())
        bench.done(A, 0)
        # each refusal is told to membership, and fires ``settled``
        with pytest.raises(CommitFailedError, match="within 5000 ms"):
            await bench.commit(5_000)
        return [round(b - a, 1) for a, b in pairwise(times)]

    assert run_in_virtual_time(tries()) == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0]


def test_commits_that_wait_together_share_their_tries_and_the_pause_ends_with_the_first_success() -> None:
    async def requests() -> tuple[int, float]:
        bench = Bench(*[LOADING] * 6, backoff=Backoff(100, 1_000, jitter=0))
        loop = asyncio.get_running_loop()
        began = loop.time()
        bench.done(A, 0)
        bench.done(B, 0)
        await asyncio.gather(*(bench.commit(60_000) for _ in range(50)))
        return len(bench.coordinator.sent), loop.time() - began

    sent, took_s = run_in_virtual_time(requests())
    assert sent == 7
    assert took_s == pytest.approx(0.1 + 0.2 + 0.4 + 0.8 + 1 + 1, abs=0.2)


def test_pauses_have_jitter_and_begin_anew_after_a_success() -> None:
    async def pauses() -> list[float]:
        bench = Bench(LOADING, {}, LOADING, backoff=Backoff(100, 1_000, jitter=0.2))
        loop = asyncio.get_running_loop()
        found = []
        for offset in (0, 1):
            began = loop.time()
            bench.done(A, offset)
            await bench.commit()
            found.append(loop.time() - began)
        return found

    first, second = run_in_virtual_time(pauses())
    assert 0.08 <= first <= 0.13
    assert 0.08 <= second <= 0.13
    assert first != second


# topics that are gone


async def test_what_is_given_up_does_not_wait_for_a_deleted_topic_and_the_others_are_committed() -> None:
    bench = Bench(*[UNKNOWN] * 100, backoff=Backoff(10_000, 10_000))
    bench.done(A, 0)
    bench.done(B, 0, 1)
    assert not await bench.committer.commit_done(None, 60_000)
    assert bench.coordinator.sent == [(3, {0: 1, 1: 2})]
    assert bench.coordinator.committed == {1: 2}
    (event,) = [event for event in bench.events if isinstance(event, CommitFailed)]
    assert event.partitions == (A,)


def test_the_users_commit_waits_a_moment_for_a_topic_that_may_be_new() -> None:
    async def took() -> float:
        bench = Bench(*[UNKNOWN] * 100, backoff=Backoff(100, 1_000))
        bench.done(A, 0)
        began = asyncio.get_running_loop().time()
        with pytest.raises(CommitFailedError, match="orders-0") as caught:
            await bench.commit(60_000)
        error = caught.value.failed[A]
        assert isinstance(error, KafkaError)
        assert error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert len(bench.coordinator.sent) == UNKNOWN_TOPIC_TRIES
        return asyncio.get_running_loop().time() - began

    assert run_in_virtual_time(took()) < 2


async def test_what_is_done_of_a_topic_that_is_gone_is_not_committed_to_another_of_its_name() -> None:
    bench = Bench({0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 1: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
    bench.done(A, 0)
    bench.done(B, 0, 1)
    assert not await bench.committer.commit_done(None, 60_000)
    bench.made_anew = {A}
    assert not await bench.committer.commit_done(None, 60_000)
    assert bench.coordinator.asked_about == {"orders"}
    assert bench.coordinator.committed == {1: 2}
    # once it is read as what it is now, it is committed as any other
    bench.made_anew = set()
    bench.begin(A, 0)
    await bench.commit()
    assert bench.coordinator.committed == {0: 0, 1: 2}


async def test_a_commit_is_for_the_topic_that_was_read_not_for_its_name() -> None:
    bench = Bench({1: ErrorCode.UNKNOWN_TOPIC_ID})
    bench.made_anew = {B}
    bench.done(A, 0)
    bench.done(B, 0, 1)
    assert not await bench.committer.commit_done(None, 60_000)
    assert (bench.coordinator.topic_ids, bench.coordinator.max_versions) == ([NEW, OLD], [None])
    assert bench.coordinator.committed == {0: 1}
    # the coordinator knows of no such topic, and nor does the metadata: it is not asked again
    assert not await bench.committer.commit_done(None, 60_000)
    assert bench.coordinator.topic_ids == [NEW, OLD]


async def test_where_topics_have_no_ids_a_commit_goes_by_the_name() -> None:
    bench = Bench()
    bench.coordinator.known_metadata.topic_id = lambda _: None
    bench.committer.read_in = lambda _: None
    bench.done(A, 0)
    await bench.commit()
    assert (bench.coordinator.topic_ids, bench.coordinator.max_versions) == ([None], [9])


# commits at intervals


async def _for_a_while(bench: Bench, interval_ms: float, seconds: float) -> None:
    committing = asyncio.create_task(bench.committer.run(interval_ms))
    await asyncio.sleep(seconds)
    committing.cancel()
    await asyncio.gather(committing, return_exceptions=True)


def test_answers_may_take_longer_than_the_interval_between_commits() -> None:
    bench = Bench()
    bench.coordinator.answers_after_s = 0.15
    bench.done(A, 0)
    run_in_virtual_time(_for_a_while(bench, 100, 3))
    assert bench.coordinator.committed == {0: 1}
    assert [type(event) for event in bench.events] == [CommitSucceeded]


def test_who_is_no_member_commits_again_so_that_its_offsets_do_not_expire() -> None:
    bench = Bench(manual=True)
    bench.tracker.begin_session(B, 7, committed=CommittedOffset(7, 2, "mine"))
    bench.done(A, 0)
    run_in_virtual_time(_for_a_while(bench, 200, 2.5 * REPEAT_MS / 1000))
    assert [offsets for _, offsets in bench.coordinator.sent] == [{0: 1}, {0: 1, 1: 7}, {0: 1, 1: 7}]
    assert bench.coordinator.metadata_sent[2] == "mine"


def test_a_member_seldom_repeats_what_is_committed() -> None:
    bench = Bench()
    bench.done(A, 0)
    run_in_virtual_time(_for_a_while(bench, 60_000, 0.9 * MEMBER_REPEAT_MS / 1000))
    assert bench.coordinator.sent == [(3, {0: 1})]
    run_in_virtual_time(_for_a_while(bench, 60_000, 2.5 * MEMBER_REPEAT_MS / 1000))
    assert bench.coordinator.sent == [(3, {0: 1}), (3, {0: 1, 1: 0}), (3, {0: 1, 1: 0})]


# given offsets


async def test_given_offsets_carry_the_leader_epoch_under_which_they_were_read() -> None:
    bench = Bench()
    session = bench.tracker.get(A)
    assert session is not None
    session.read_under(7)
    await bench.committer.commit({A: 2}, 2_000)
    await bench.committer.commit({A: 50}, 2_000)
    await bench.committer.commit({A: CommittedOffset(2, 5)}, 2_000)
    assert bench.coordinator.leader_epochs == [7, -1, 5]


async def test_offsets_given_before_reading_begins_are_committed_though_it_begins_meanwhile() -> None:
    bench = Bench(LOADING)
    bench.tracker.end_session(A)
    bench.coordinator.meanwhile = lambda: bench.begin(A, 0)
    await bench.committer.commit({A: 1}, 2_000)
    assert bench.coordinator.committed == {0: 1}


async def test_offsets_given_before_a_seek_are_committed() -> None:
    bench = Bench(LOADING)
    bench.coordinator.meanwhile = lambda: bench.begin(A, 0)
    await bench.committer.commit({A: 1}, 2_000)
    assert bench.coordinator.committed == {0: 1}
