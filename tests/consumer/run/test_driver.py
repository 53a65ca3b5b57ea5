"""The membership's requests, deadlines and topics, as the event loop carries them out."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from kohort.assignors import TopicInfo
from kohort.client.errors import BrokerConnectionError
from kohort.client.metadata import Address, ClusterMetadata, Node, PartitionMetadata, TopicMetadata
from kohort.client.pool import Channel
from kohort.client.waiting import Backoff, Signal, now_ms
from kohort.consumer import Cluster
from kohort.consumer.events import (
    BrokerUnavailable,
    Event,
    PatternMatched,
    PollIntervalExceeded,
    TopicMissing,
)
from kohort.consumer.group.classic import Membership
from kohort.consumer.group.effects import Effect, ForgetCoordinator, NeedTopics, Send, SessionAtRisk
from kohort.consumer.reading.delivery import Delivery
from kohort.consumer.run.driver import Driver
from kohort.consumer.run.watchdogs import PollWatch
from kohort.consumer.topic_selection import Selection
from kohort.protocol import ApiKey, ErrorCode, KafkaError, TopicPartition
from tests.consumer.configs import config
from tests.waiting import until

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


def _topic(name: str, *replicas: tuple[int, ...], internal: bool = False) -> TopicMetadata:
    partitions = {
        number: PartitionMetadata(number, nodes[0], 0, nodes) for number, nodes in enumerate(replicas)
    }
    return TopicMetadata(name, None, partitions, internal)


class _Membership:
    """Writes down what it is told; its effects are the test's."""

    generation = 1
    measuring = None
    topic_ids: frozenset[UUID] = frozenset()

    def __init__(self) -> None:
        self.effects: list[Effect] = []
        self.owned = frozenset({P1, P0})
        self.subscribed: list[frozenset[str]] = []
        self.told: list[tuple[Mapping[str, TopicInfo], frozenset[str]]] = []
        self.outcomes: list[tuple[str, Send, object]] = []
        self.pauses: list[str] = []
        self.advanced = 0

    def take_effects(self) -> list[Effect]:
        effects, self.effects = self.effects, []
        return effects

    def next_deadline(self) -> float | None:
        return None

    def do_due(self, _now: float) -> None:
        self.advanced += 1

    def subscribe(self, topics: Iterable[str], _now: float) -> None:
        self.subscribed.append(frozenset(topics))

    def on_topics(
        self, topics: Mapping[str, TopicInfo], _now: float, gone: frozenset[str], _ids: Mapping[UUID, str]
    ) -> None:
        self.told.append((topics, gone))

    def on_answer(self, request: Send, response: object, _now: float) -> None:
        self.outcomes.append(("answered", request, response))

    def on_failure(self, request: Send, error: Exception, _now: float) -> None:
        self.outcomes.append(("failed", request, error))

    def pause(self, reason: str) -> None:
        self.pauses.append(reason)
        self.generation = -1


class _Cluster:
    """Answers Metadata with ``known``, or raises it, and requests to the coordinator with ``answer``."""

    def __init__(self) -> None:
        self.known: ClusterMetadata | Exception = ClusterMetadata()
        self.answer: object = None
        self.asked: list[tuple[frozenset[str] | None, bool]] = []
        self.asked_by_id: list[frozenset[UUID]] = []
        self.sent: list[tuple[object, ...]] = []
        self.forgotten: list[str] = []
        self.prepared: list[frozenset[str]] = []
        #: The responses to come over the connection to the coordinator; None without one.
        self.under_way: list[asyncio.Future[object]] | None = None

    async def metadata(self, wanted: Iterable[str] | None, *, create: bool) -> ClusterMetadata:
        self.asked.append((None if wanted is None else frozenset(wanted), create))
        if isinstance(self.known, Exception):
            raise self.known
        return self.known

    async def metadata_by_id(self, ids: Iterable[UUID]) -> ClusterMetadata:
        self.asked_by_id.append(frozenset(ids))
        assert isinstance(self.known, ClusterMetadata)
        return self.known

    async def request_coordinator(self, group: str, body: object, **how: object) -> object:
        self.sent.append((group, body, how))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def ask_coordinator(self, group: str, body: object, **how: object) -> asyncio.Future[object] | None:
        if self.under_way is None:
            return None
        self.sent.append((group, body, how))
        self.under_way.append(answer := asyncio.get_running_loop().create_future())
        if isinstance(self.answer, Exception):
            answer.set_exception(self.answer)
        elif self.answer is not None:
            answer.set_result(self.answer)
        return answer

    def forget_coordinator(self, group: str) -> None:
        self.forgotten.append(group)

    async def prepare_fetches(self, topics: frozenset[str]) -> None:
        self.prepared.append(topics)


class _Bench:
    def __init__(self, *, with_racks: bool = False, max_interval_ms: float = 1e9) -> None:
        self.cluster, self.membership = _Cluster(), _Membership()
        self.watch = PollWatch(max_interval_ms)
        self.events: list[Event] = []
        self.failures: list[Exception] = []
        self.halts: list[bool] = []
        self.settled = Signal()
        self.polled = 0
        self.driver = Driver(
            config(
                metadata_max_age_ms=3_600_000,
                client_rack="r1" if with_racks else "",
                allow_auto_create_topics=True,
            ),
            cast(Cluster, self.cluster),
            cast(Membership, self.membership),
            cast(Delivery, SimpleNamespace(halt=self.halts.append)),
            self.watch,
            backoff=Backoff(1, 1),
            settled=self.settled,
            report=self.events.append,
            failed=self.failures.append,
            polled=self._polled,
        )

    def _polled(self) -> None:
        self.polled += 1

    @asynccontextmanager
    async def running(self, work: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
        task = asyncio.create_task(work())
        yield
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def topics_told(self, count: int = 1) -> tuple[Mapping[str, TopicInfo], frozenset[str]]:
        """What the membership was told last, of so many times."""
        async with self.running(self.driver.watch_topics):
            await until(lambda: len(self.membership.told) >= count, timeout_s=20)
        return self.membership.told[count - 1]


async def test_who_does_not_poll_in_time_leaves_and_says_what_it_owned_and_did_meanwhile() -> None:
    bench = _Bench(max_interval_ms=20)
    poller = asyncio.create_task(asyncio.sleep(0))
    await poller
    bench.watch.poller = poller
    bench.watch.note_poll(now_ms())
    async with bench.running(bench.driver.run):
        await until(lambda: bool(bench.membership.pauses), timeout_s=20)
    (exceeded,) = bench.events
    assert isinstance(exceeded, PollIntervalExceeded)
    assert (exceeded.partitions, exceeded.busy_with) == ((P0, P1), "nothing: its task has ended")
    assert exceeded.age_ms >= 20
    assert bench.membership.pauses == [f"no poll for {exceeded.age_ms:.0f} ms, max_poll_interval_ms is over"]


async def test_who_is_not_in_the_group_need_not_poll() -> None:
    bench = _Bench(max_interval_ms=1)
    bench.membership.generation = -1
    bench.watch.note_poll(now_ms() - 1_000)
    async with bench.running(bench.driver.run):
        for _ in range(3):
            bench.driver.carry_out()
            await asyncio.sleep(0)
        await until(lambda: bench.membership.advanced > 0, timeout_s=20)
    assert (bench.events, bench.membership.pauses) == ([], [])


@pytest.mark.parametrize("connected", [True, False])
@pytest.mark.parametrize("answer", ["an answer", KafkaError(ErrorCode.NOT_COORDINATOR)])
async def test_a_request_goes_to_the_groups_coordinator_and_its_outcome_to_the_membership(
    answer: object, connected: bool
) -> None:
    bench = _Bench()
    bench.cluster.answer = answer
    bench.cluster.under_way = [] if connected else None
    send = Send(ApiKey.HEARTBEAT, "the body", Channel.CONTROL, 250.0)
    bench.membership.effects = [ForgetCoordinator(), send, SessionAtRisk(True), SessionAtRisk(False)]
    bench.driver.carry_out()
    await until(lambda: bool(bench.membership.outcomes), timeout_s=20)
    assert bench.cluster.forgotten == ["billing"]
    how = {"channel": Channel.CONTROL, "timeout_ms": 250.0}
    assert bench.cluster.sent == [("billing", "the body", how)]
    outcome = "failed" if isinstance(answer, Exception) else "answered"
    assert bench.membership.outcomes == [(outcome, send, answer)]
    assert bench.halts == [True, False]


async def test_what_goes_out_at_once_does_so_before_anything_else_runs_and_others_in_the_next_turn() -> None:
    bench = _Bench()
    bench.cluster.under_way = []
    bench.membership.effects = [
        Send(ApiKey.HEARTBEAT, "later", Channel.HEARTBEAT, 250.0),
        Send(ApiKey.HEARTBEAT, "at once", Channel.CONTROL, 250.0, at_once=True),
    ]
    bench.driver.carry_out()
    assert [body for _, body, _ in bench.cluster.sent] == ["at once"]
    await asyncio.sleep(0)
    assert [body for _, body, _ in bench.cluster.sent] == ["at once", "later"]


async def test_a_connection_that_breaks_has_the_coordinator_looked_up_again() -> None:
    bench = _Bench()
    bench.cluster.under_way, bench.cluster.answer = [], BrokerConnectionError("b:1", "gone")
    bench.membership.effects = [Send(ApiKey.HEARTBEAT, "the body", Channel.CONTROL, 250.0)]
    bench.driver.carry_out()
    await until(lambda: bool(bench.membership.outcomes), timeout_s=20)
    assert bench.cluster.forgotten == ["billing"]


async def test_no_request_goes_out_and_no_answer_comes_in_when_the_driver_has_ended() -> None:
    bench = _Bench()
    bench.cluster.under_way = []
    sends: list[Effect] = [Send(ApiKey.HEARTBEAT, number, Channel.CONTROL, 250.0) for number in range(2)]
    async with bench.running(bench.driver.run):
        bench.membership.effects = sends[:1]
        bench.driver.carry_out()
        await until(lambda: bool(bench.cluster.under_way), timeout_s=20)
        bench.membership.effects = sends[1:]
    assert bench.cluster.under_way[0].cancelled()
    bench.driver.carry_out()
    await asyncio.sleep(0)
    assert [body for _, body, _ in bench.cluster.sent] == [0]
    assert not bench.membership.outcomes


@pytest.mark.parametrize("connected", [True, False])
async def test_an_unexpected_error_of_a_request_ends_the_consumer(connected: bool) -> None:
    bench = _Bench()
    bench.cluster.under_way = [] if connected else None
    bench.cluster.answer = TypeError("a bug")
    bench.membership.effects = [Send(ApiKey.HEARTBEAT, "the body", Channel.CONTROL, 250.0)]
    bench.driver.carry_out()
    await until(lambda: bool(bench.failures), timeout_s=20)
    assert bench.failures == [bench.cluster.answer]


@pytest.mark.parametrize(
    ("with_racks", "racks"),
    [(False, ()), (True, (frozenset({"east", "west"}), frozenset({"west"})))],
)
async def test_the_racks_of_replicas_are_told_where_they_are_wanted(
    with_racks: bool, racks: tuple[frozenset[str], ...]
) -> None:
    bench = _Bench(with_racks=with_racks)
    at = Address("broker", 9092)
    # node 3 has no rack, node 4 is not known
    nodes = {1: Node(1, at, "east"), 2: Node(2, at, "west"), 3: Node(3, at)}
    topics = [_topic("orders", (1, 2, 3), (4, 2)), _topic("plain", (3,), (3,), (4,))]
    bench.cluster.known = ClusterMetadata(nodes=nodes, topics={topic.name: topic for topic in topics})
    bench.driver.select(Selection(topics=frozenset({"orders", "plain"})))
    assert await bench.topics_told() == ({"orders": TopicInfo(2, racks), "plain": TopicInfo(3)}, frozenset())
    assert bench.membership.subscribed == [{"orders", "plain"}]
    assert bench.cluster.asked[0] == (frozenset({"orders", "plain"}), True)
    assert bench.cluster.prepared == [{"orders", "plain"}]


async def test_a_leader_asks_for_the_topics_of_the_other_members_too() -> None:
    bench = _Bench()
    bench.driver.select(Selection(topics=frozenset({"orders"})))
    bench.membership.effects = [NeedTopics(frozenset({"payments"}))]
    bench.driver.carry_out()
    await bench.topics_told()
    assert bench.cluster.asked[0] == (frozenset({"orders", "payments"}), True)


async def test_a_pattern_asks_for_all_topics_and_subscribes_to_those_that_match() -> None:
    bench = _Bench()
    names = ["orders-a", "orders-b", "payments"]
    topics = {name: _topic(name, (1,)) for name in names} | {
        "orders-x": _topic("orders-x", (1,), internal=True)
    }
    bench.cluster.known = ClusterMetadata(topics=topics)
    bench.driver.select(Selection(pattern=re.compile("orders-.*")))
    assert bench.membership.subscribed == []
    await bench.topics_told()
    assert bench.cluster.asked[0] == (None, True)
    assert bench.membership.subscribed == [{"orders-a", "orders-b"}]
    assert bench.events == [PatternMatched(("orders-a", "orders-b"))]


async def test_topics_that_the_broker_has_found_are_asked_for_by_id_each_time_for_they_may_grow() -> None:
    bench = _Bench()
    bench.cluster.known = ClusterMetadata(topics={"orders": _topic("orders", (1,))})
    bench.membership.topic_ids = frozenset({UUID(int=7)})
    for count in (1, 2):
        told, _ = await bench.topics_told(count)
        assert bench.cluster.asked == [(frozenset(), True)] * count
        assert bench.cluster.asked_by_id == [{UUID(int=7)}] * count
    assert told.keys() == {"orders"}


async def test_a_topic_counts_as_gone_when_two_answers_in_a_row_do_not_know_it() -> None:
    bench = _Bench()
    bench.cluster.known = ClusterMetadata(errors={"orders": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
    bench.driver.select(Selection(topics=frozenset({"orders"})))
    assert await bench.topics_told(2) == ({}, frozenset({"orders"}))
    assert [gone for _, gone in bench.membership.told] == [frozenset(), {"orders"}]
    (missing,) = bench.events
    assert isinstance(missing, TopicMissing)
    assert (missing.topic, bench.driver.topic_error) == ("orders", None)


async def test_a_topic_that_may_not_be_read_is_an_error_of_polls_until_it_may() -> None:
    bench = _Bench()
    bench.cluster.known = ClusterMetadata(errors={"orders": ErrorCode.TOPIC_AUTHORIZATION_FAILED})
    bench.driver.select(Selection(topics=frozenset({"orders"})))
    await bench.topics_told()
    error = bench.driver.topic_error
    assert error is not None
    assert (error.code, bench.polled) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, 1)
    assert "'orders'" in str(error)
    bench.cluster.known = ClusterMetadata(topics={"orders": _topic("orders", (1,))})
    await bench.topics_told(2)
    assert (bench.driver.topic_error, bench.polled) == (None, 2)


async def test_topics_that_cannot_be_asked_for_are_asked_for_again() -> None:
    bench = _Bench()
    bench.cluster.known = KafkaError(ErrorCode.REQUEST_TIMED_OUT)
    bench.driver.select(Selection(topics=frozenset({"orders"})))
    async with bench.running(bench.driver.watch_topics):
        await until(lambda: len(bench.events) >= 2, timeout_s=20)
        bench.cluster.known = ClusterMetadata(topics={"orders": _topic("orders", (1,))})
        await until(lambda: bool(bench.membership.told), timeout_s=20)
    assert {(type(event), getattr(event, "doing", "")) for event in bench.events} == {
        (BrokerUnavailable, "asking for topics")
    }
