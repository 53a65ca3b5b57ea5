"""What is sent to brokers and when, with a broker that answers as the test says, in virtual time.

Covers: consumer/share/exchange.py, consumer/share/member.py, consumer/share/partition_places.py.
Covers: consumer/share/peers.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest

from kohort.client import BrokerConnectionError, Cluster
from kohort.client.metadata import Address, ClusterMetadata, Node, PartitionMetadata, TopicMetadata
from kohort.client.waiting import Backoff, now_ms
from kohort.consumer.errors import FatalGroupError
from kohort.consumer.events import BrokerUnavailable, Event, PartitionFailed
from kohort.consumer.share.config import share_consumer_config
from kohort.consumer.share.events import LockLost, RenewalUnavailable
from kohort.consumer.share.exchange import ShareExchange
from kohort.consumer.share.fetched import ShareReader
from kohort.consumer.share.locks import NOT_LOCKED, Locks
from kohort.consumer.share.member import ShareMembership
from kohort.consumer.share.peers import BUSY_WAIT_MS
from kohort.consumer.share.records import LockLostError, PartitionId, ShareRecord
from kohort.protocol import (
    AcknowledgeType,
    ErrorCode,
    KafkaError,
    KohortError,
    TopicPartition,
    UnsupportedVersionError,
    api_key_of,
)
from kohort.protocol.messages.share_acknowledge import (
    AcknowledgementBatch,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from kohort.protocol.messages.share_acknowledge import (
    PartitionData as AcknowledgedPartition,
)
from kohort.protocol.messages.share_fetch import (
    AcquiredRecords,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from tests.consumer.batches import batch
from tests.consumer.virtual_time import run_in_virtual_time

NODE, LOCK_MS = 1, 30_000
ORDERS, BILLS = UUID(int=1), UUID(int=2)
NAMES = {ORDERS: "orders", BILLS: "bills"}
Request = ShareFetchRequest | ShareAcknowledgeRequest


@dataclass(frozen=True)
class FakeConnection:
    """A connection to one of the nodes."""

    broker: FakeBroker
    node_id: int

    def version_for(self, api_key: int) -> int:
        return self.broker.version_for(api_key)

    def ask(self, body: Any, *, timeout_ms: float) -> asyncio.Future[Any]:  # noqa: ARG002
        return asyncio.ensure_future(self.broker.request(self.node_id, api_key_of(body), body))


class FakeBroker(Cluster):
    """Leads all partitions. It gives each of ``batches`` once; ``refuse`` may raise or return an error code
    of a partition. ``sent`` has the requests with their times in ms.
    """

    def __init__(self, *batches: tuple[UUID, bytes, int], version: int = 2) -> None:
        super().__init__("localhost:9092")
        self.sent: list[tuple[float, Request]] = []
        self.batches = list(batches)
        self.version = version
        #: Whether partitions are refused that the request does not name, as they are in the session.
        self.topic_named = False
        self.refuse: Callable[[Request, UUID | None], int] = lambda _request, _topic: 0
        partition = {0: PartitionMetadata(0, NODE, 0, (NODE,))}
        self._state = ClusterMetadata(
            nodes={NODE: Node(NODE, Address("localhost", 9092))},
            topics={name: TopicMetadata(name, topic, partition) for topic, name in NAMES.items()},
        )

    async def metadata(self, topics: object, *, create: bool = False) -> ClusterMetadata:  # noqa: ARG002
        return self._state

    async def connect_to(self, node_id: int, channel: object) -> Any:  # noqa: ARG002
        return FakeConnection(self, node_id)

    def version_for(self, api_key: int, max_version: int | None = None) -> int:  # noqa: ARG002
        return self.version

    async def request(self, node_id: object, api_key: object, body: Any, **named: object) -> Any:  # noqa: ARG002
        self.sent.append((now_ms(), body))
        await asyncio.sleep(0.001)
        if isinstance(body, ShareAcknowledgeRequest):
            return ShareAcknowledgeResponse(
                acquisition_lock_timeout_ms=LOCK_MS if body.is_renew_ack else 0,
                responses=[
                    ShareAcknowledgeTopicResponse(
                        topic.topic_id, [AcknowledgedPartition(0, self.refuse(body, topic.topic_id))]
                    )
                    for topic in body.topics
                ],
            )
        return await self._fetch(body)

    async def _fetch(self, body: ShareFetchRequest) -> ShareFetchResponse:
        rows: list[ShareFetchableTopicResponse] = []
        for topic in NAMES:
            named = [each for each in body.topics if each.topic_id == topic]
            code = self.refuse(body, topic)
            if code and (named or self.topic_named):
                rows.append(ShareFetchableTopicResponse(topic, [PartitionData(0, code)]))
        if self.batches and body.max_records:
            topic, data, count = self.batches.pop()
            row = PartitionData(0, records=data, acquired_records=[AcquiredRecords(0, count - 1, 1)])
            rows.append(ShareFetchableTopicResponse(topic, [row]))
        if not rows:
            await asyncio.sleep(body.max_wait_ms / 1_000)
        return ShareFetchResponse(acquisition_lock_timeout_ms=LOCK_MS, responses=rows)

    @property
    def fetches(self) -> list[ShareFetchRequest]:
        return [body for _, body in self.sent if isinstance(body, ShareFetchRequest)]

    @property
    def acknowledgements(self) -> list[ShareAcknowledgeRequest]:
        return [body for _, body in self.sent if isinstance(body, ShareAcknowledgeRequest)]


class Bench:
    """An exchange at a fake broker; what it delivers and tells."""

    def __init__(self, broker: FakeBroker, *topics: UUID, **settings: Any) -> None:
        self.broker = broker
        self.records: list[ShareRecord] = []
        self.buffered = 0
        self.events: list[Event] = []
        config = share_consumer_config(bootstrap="localhost:9092", group="billing", **settings)
        self.locks = Locks(self.events.append, lambda: self.exchange.wake(), config.max_processing_ms)
        assigned = frozenset(PartitionId(topic, 0) for topic in topics or (ORDERS,))
        self.assignment: Callable[[], frozenset[PartitionId]] = lambda: assigned
        self.count_buffered: Callable[[], tuple[int, int]] = lambda: (self.buffered if self.records else 0, 0)
        self.exchange = ShareExchange(
            config,
            broker,
            self.locks,
            ShareReader(self, check_crcs=True, max_batch_bytes=1 << 20),
            "member",
            backoff=Backoff(100, 1_000),
            topics=lambda: frozenset(NAMES.values()),
            assignment=lambda: self.assignment(),
            deliver=lambda records, _size: self.records.extend(records),
            buffered=lambda: self.count_buffered(),
            report=self.events.append,
            named=lambda: None,
        )

    def acknowledge(self, record: ShareRecord, verdict: AcknowledgeType) -> None:
        self.locks.acknowledge(record, verdict, now_ms())

    def renew(self, record: ShareRecord) -> None:
        self.locks.renew(record)

    def run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run ``work`` beside the exchange."""

        async def both() -> None:
            tasks = [asyncio.create_task(t) for t in (self.exchange.run(), self.exchange.watch_topics())]
            try:
                await work()
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

        run_in_virtual_time(both())


def orders(count: int) -> tuple[UUID, bytes, int]:
    return ORDERS, batch([b"x"] * count), count


def test_verdicts_ride_on_the_next_fetch_and_a_fetch_waits_shortly_while_records_are_in_hand() -> None:
    bench = Bench(FakeBroker(orders(4)), fetch_max_wait_ms=500)

    async def work() -> None:
        await asyncio.sleep(0.5)
        for record in bench.records:
            record.accept()
        await asyncio.sleep(1)

    bench.run(work)
    waits = [(body.max_wait_ms, bool(body.topics)) for body in bench.broker.fetches]
    assert waits[0] == (500, True)
    assert waits[1] == (BUSY_WAIT_MS, False)
    assert (BUSY_WAIT_MS, True) in waits[2:]
    assert waits[-1] == (500, False)
    assert bench.broker.acknowledgements == []


def test_what_is_assigned_while_topics_are_asked_for_is_read_at_once() -> None:
    broker = FakeBroker(orders(1))
    bench = Bench(broker)
    assigned = frozenset[PartitionId]()
    bench.assignment = lambda: assigned
    answer = broker.metadata

    async def assign(topics: object, *, create: bool = False) -> ClusterMetadata:
        nonlocal assigned
        assigned = frozenset({PartitionId(ORDERS, 0)})
        bench.exchange.assigned()
        return await answer(topics, create=create)

    broker.metadata = assign  # type: ignore[method-assign]

    async def work() -> None:
        await asyncio.sleep(5)

    bench.run(work)
    assert len(bench.records) == 1


@pytest.mark.parametrize(("count", "first"), [(16, 1), (17, 2)])
def test_few_records_are_handled_before_the_next_fetch_which_carries_what_is_said_of_them(
    count: int, first: int
) -> None:
    bench = Bench(FakeBroker(orders(count)))

    async def work() -> None:
        came = asyncio.Event()

        def deliver(records: list[ShareRecord], _size: int) -> None:
            bench.records.extend(records)
            came.set()

        bench.exchange.deliver = deliver
        await came.wait()
        for record in bench.records:
            record.accept()
        await asyncio.sleep(1)

    bench.run(work)
    said = [at for at, body in enumerate(bench.broker.fetches) if at and body.topics]
    assert said == [first]


class Noting(FakeBroker):
    """Notes how many fetches had been sent when it gave records."""

    def __init__(self, *batches: tuple[UUID, bytes, int]) -> None:
        super().__init__(*batches)
        self.gave: list[int] = []

    async def _fetch(self, body: ShareFetchRequest) -> ShareFetchResponse:
        if self.batches:
            self.gave.append(len(self.fetches))
        return await super()._fetch(body)


@pytest.mark.parametrize(
    ("count", "ahead"), [(16, [0, 0]), (17, [1, 0])], ids=["few", "many, and what is not new"]
)
def test_the_next_fetch_is_sent_before_many_new_records_are_read(count: int, ahead: list[int]) -> None:
    """What is delivered again is read before: of its former delivery something may wait to be said."""
    broker = Noting(orders(count))
    bench = Bench(broker)
    sent: list[int] = []

    def deliver(records: list[ShareRecord], _size: int) -> None:
        sent.append(len(broker.fetches))
        bench.records.extend(records)

    async def work() -> None:
        await asyncio.sleep(0.7)
        for record in bench.records:
            record.release()
        await asyncio.sleep(0.7)
        broker.batches.append(orders(count))
        await asyncio.sleep(0.7)

    bench.exchange.deliver = deliver
    bench.run(work)
    assert [at - given for at, given in zip(sent, broker.gave, strict=True)] == ahead
    assert len(bench.records) == 2 * count
    assert [event for event in bench.events if isinstance(event, LockLost)] == []


def test_what_is_read_behind_the_next_fetch_counts_as_locked() -> None:
    bench = Bench(Endless(100), max_locked_records=150)

    async def work() -> None:
        await asyncio.sleep(0.5)

    bench.run(work)
    assert [body.max_records for body in bench.broker.fetches if body.max_records] == [150, 50]
    assert len(bench.records) == 150


class Endless(FakeBroker):
    """Gives as many records as are asked for, up to ``most``, ``pause_ms`` after the last ones."""

    def __init__(self, most: int, pause_ms: float = 0.0) -> None:
        super().__init__()
        self.most, self.pause_ms, self.offset, self.given_at = most, pause_ms, 0, 0.0

    async def _fetch(self, body: ShareFetchRequest) -> ShareFetchResponse:
        left_ms = self.given_at + self.pause_ms - now_ms()
        await asyncio.sleep(max(0.0, min(left_ms, body.max_wait_ms)) / 1_000)
        if left_ms > body.max_wait_ms or not (count := min(body.max_records, self.most)):
            return ShareFetchResponse(acquisition_lock_timeout_ms=LOCK_MS)
        first, self.offset, self.given_at = self.offset, self.offset + count, now_ms()
        acquired = [AcquiredRecords(first, first + count - 1, 1)]
        row = PartitionData(0, records=batch([b"x"] * count, first), acquired_records=acquired)
        return ShareFetchResponse(
            acquisition_lock_timeout_ms=LOCK_MS, responses=[ShareFetchableTopicResponse(ORDERS, [row])]
        )


def acknowledged(body: Request) -> int:
    """How many records a request acknowledges."""
    batches = [each for topic in body.topics for each in topic.partitions[0].acknowledgement_batches]
    return sum(each.last_offset - each.first_offset + 1 for each in batches)


def accept_after(bench: Bench, wait_s: float, work_s: float, peak: list[int]) -> None:
    """Run, for ``work_s``, with all that is delivered accepted so much later; ``peak`` is what was held."""

    async def work() -> None:
        loop = asyncio.get_running_loop()

        def accept(records: list[ShareRecord]) -> None:
            bench.locks.acknowledge_all(records, AcknowledgeType.ACCEPT, now_ms())

        def deliver(records: list[ShareRecord], _size: int) -> None:
            peak.append(bench.locks.count(bench.locks.held))
            loop.call_later(wait_s, accept, records)

        bench.exchange.deliver = deliver
        await asyncio.sleep(work_s)

    bench.run(work)


@pytest.mark.parametrize(
    ("wait_s", "settings", "first", "most"),
    [
        (0.002, {}, 500, 2_000),
        (0.06, {}, 500, 500),
        (0.06, {"max_locked_records": 5_000}, 5_000, 5_000),
        (0.002, {"max_locked_records": 30}, 30, 30),
    ],
)
def test_more_than_usual_is_locked_where_that_is_set_or_while_so_much_is_done_in_a_short_time(
    wait_s: float, settings: dict[str, Any], first: int, most: int
) -> None:
    bench, held = Bench(Endless(10_000), **settings), list[int]()
    accept_after(bench, wait_s, 10 * wait_s, held)
    assert bench.broker.fetches[0].max_records == first
    assert max(held) == most


def test_few_verdicts_ride_together_on_a_fetch_a_little_later_and_many_at_once() -> None:
    bench = Bench(Endless(1, pause_ms=2))
    accept_after(bench, 0, 0.5, [])
    told = [(at, acknowledged(body)) for at, body in bench.broker.sent if acknowledged(body)]
    assert told[0][1] == 1
    assert all(9 <= later - sooner <= 14 for (sooner, _), (later, _) in pairwise(told))
    assert max(count for _, count in told) <= 6
    many = Bench(Endless(101, pause_ms=2))
    accept_after(many, 0, 0.1, [])
    assert [acknowledged(body) for body in many.broker.fetches].count(0) <= 2


def test_a_fetch_that_carries_what_a_flush_waits_for_waits_for_no_records() -> None:
    bench = Bench(FakeBroker(orders(2)))

    async def work() -> None:
        await asyncio.sleep(0.05)
        for record in bench.records:
            record.accept()
        flush = bench.locks.begin_flush(lambda: None)
        await asyncio.sleep(0.12)
        assert not flush.left

    bench.run(work)
    (carrying,) = [
        body
        for body in bench.broker.fetches
        if any(t.partitions[0].acknowledgement_batches for t in body.topics)
    ]
    assert carrying.max_wait_ms == 0


def test_locks_end_when_another_broker_leads_and_records_are_asked_for_there() -> None:
    bench = Bench(FakeBroker(orders(1)))
    asked: list[object] = []
    send = bench.broker.request

    async def note(node_id: object, api_key: object, body: Any, **named: object) -> Any:
        asked.append(node_id)
        return await send(node_id, api_key, body, **named)

    bench.broker.request = note  # type: ignore[method-assign]

    async def work() -> None:
        await asyncio.sleep(1)
        other = NODE + 1
        partition = {0: PartitionMetadata(0, other, 1, (NODE, other))}
        nodes = {number: Node(number, Address("localhost", number)) for number in (NODE, other)}
        bench.broker._state = ClusterMetadata(
            nodes=nodes, topics={"orders": TopicMetadata("orders", ORDERS, partition)}
        )
        bench.exchange.assigned()
        await asyncio.sleep(1)
        assert asked[-1] == other
        (record,) = bench.records
        assert record.lost

    bench.run(work)
    (event,) = [event for event in bench.events if isinstance(event, LockLost)]
    assert event.reason == "its partition has another leader"


def test_while_records_wait_for_the_user_verdicts_go_in_a_request_of_their_own() -> None:
    bench = Bench(FakeBroker(orders(4)), max_locked_records=4)
    bench.buffered = 3

    async def work() -> None:
        await asyncio.sleep(0.1)
        bench.records[0].accept()
        await asyncio.sleep(1)

    bench.run(work)
    assert [body.max_records for body in bench.broker.fetches][:1] == [4]
    (sent,) = bench.broker.acknowledgements
    assert sent.topics[0].partitions[0].acknowledgement_batches == [(0, 0, [1])]


def test_a_partition_that_is_refused_is_asked_for_less_often_and_holds_up_no_other() -> None:
    bench = Bench(FakeBroker(orders(1)), ORDERS, BILLS)
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    bench.broker.refuse = lambda _, topic: denied if topic == BILLS else 0

    async def work() -> None:
        await asyncio.sleep(10)

    bench.run(work)
    assert [record.topic for record in bench.records] == ["orders"]
    asked = [at for at, body in bench.broker.sent if any(topic.topic_id == BILLS for topic in body.topics)]
    assert 5 < len(asked) < 25
    (event,) = [event for event in bench.events if isinstance(event, PartitionFailed)]
    assert event.partition == TopicPartition("bills", 0)


@pytest.mark.parametrize("where", ["orders", TopicPartition("orders", 0)])
def test_what_is_paused_is_not_fetched_until_it_is_resumed(where: str | TopicPartition) -> None:
    bench = Bench(FakeBroker(), ORDERS, BILLS)
    bench.exchange.paused.add(where)

    async def work() -> None:
        await asyncio.sleep(1)
        bench.exchange.paused.remove(where)
        bench.exchange.wake()
        await asyncio.sleep(1)

    bench.run(work)
    asked = [at for at, body in bench.broker.sent for topic in body.topics if topic.topic_id == ORDERS]
    assert 1_000 <= min(asked) < 2_000
    assert any(topic.topic_id == BILLS for topic in bench.broker.fetches[0].topics)


@pytest.mark.parametrize(
    ("code", "lost"),
    [(ErrorCode.TOPIC_AUTHORIZATION_FAILED, False), (ErrorCode.NOT_LEADER_OR_FOLLOWER, True)],
    ids=["a right that was taken away", "another leader"],
)
def test_locks_outlast_a_fetch_that_is_refused_unless_the_broker_has_them_no_more(
    code: ErrorCode, lost: bool
) -> None:
    bench = Bench(FakeBroker(orders(1)))
    denied: list[float] = []

    def refuse(body: Request, topic: UUID | None) -> int:
        if (
            not bench.broker.topic_named
            or denied
            or topic != ORDERS
            or isinstance(body, ShareAcknowledgeRequest)
        ):
            return 0
        denied.append(now_ms())
        return code

    bench.broker.refuse = refuse

    async def work() -> None:
        await asyncio.sleep(0.2)
        bench.broker.topic_named = True
        await asyncio.sleep(2)
        (record,) = bench.records
        assert denied
        assert record.lost == lost

    bench.run(work)


def test_the_parts_of_what_was_refused_do_not_wait_for_each_other() -> None:
    class Refusing(FakeBroker):
        async def _fetch(self, body: ShareFetchRequest) -> ShareFetchResponse:
            said = [each for topic in body.topics for each in topic.partitions[0].acknowledgement_batches]
            if not any(each.first_offset <= 3 <= each.last_offset for each in said):
                return await super()._fetch(body)
            row = PartitionData(0)._replace(acknowledge_error_code=ErrorCode.INVALID_RECORD_STATE)
            return ShareFetchResponse(
                acquisition_lock_timeout_ms=LOCK_MS, responses=[ShareFetchableTopicResponse(ORDERS, [row])]
            )

    bench = Bench(Refusing(orders(8)))

    async def work() -> None:
        await asyncio.sleep(0.5)
        for record in bench.records:
            record.accept()
        await asyncio.sleep(2)

    bench.run(work)
    (lost,) = [event.record.offset for event in bench.events if isinstance(event, LockLost)]
    assert lost == 3
    sent = [
        at
        for at, body in bench.broker.sent
        if any(topic.partitions[0].acknowledgement_batches for topic in body.topics)
    ]
    assert len(sent) > 4
    assert sent[-1] - sent[0] < BUSY_WAIT_MS


def test_locks_are_renewed_while_their_records_are_in_hand() -> None:
    bench = Bench(FakeBroker(orders(2)), max_locked_records=2)

    async def work() -> None:
        await asyncio.sleep(45)
        for record in bench.records:
            record.accept()
        await asyncio.sleep(1)

    bench.run(work)
    renewals = [(at, body) for at, body in bench.broker.sent if getattr(body, "is_renew_ack", False)]
    assert [round(at / 1_000) for at, _ in renewals] == [20, 40]
    assert renewals[0][1].topics[0].partitions[0].acknowledgement_batches == [(0, 1, [4])]
    assert bench.events == []


def test_a_broker_that_cannot_renew_is_told_of_before_the_first_lock_ends() -> None:
    bench = Bench(FakeBroker(orders(1), version=1))

    async def work() -> None:
        await asyncio.sleep(25)

    bench.run(work)
    (event,) = bench.events
    assert isinstance(event, RenewalUnavailable)
    assert event.lock_ms == LOCK_MS
    assert not any(body.is_renew_ack for body in bench.broker.acknowledgements)


@pytest.mark.parametrize(
    ("error", "lost"),
    [
        (BrokerConnectionError("localhost:9092", "gone"), True),
        (KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND), True),
        (KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH), False),
        (KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR), False),
    ],
    ids=["broken connection", "no such session", "wrong epoch", "a topic that is gone"],
)
def test_locks_end_with_their_connection_or_session_and_not_with_a_session_that_is_opened_anew(
    error: Exception, lost: bool
) -> None:
    bench = Bench(FakeBroker(orders(1)))
    refusals = [error]

    def refuse(_body: Request, _topic: UUID | None) -> int:
        if bench.records and refusals:
            raise refusals.pop()
        return 0

    bench.broker.refuse = refuse

    async def work() -> None:
        await asyncio.sleep(3)
        (record,) = bench.records
        assert record.lost == lost
        if not lost:
            record.accept()
            await asyncio.sleep(1)

    bench.run(work)
    assert any(isinstance(event, LockLost) for event in bench.events) == lost
    epochs = [body.share_session_epoch for body in bench.broker.fetches]
    assert epochs.count(0) == 2, "another session is opened"
    said = [
        list(part.acknowledge_types)
        for body in bench.broker.fetches
        for topic in body.topics
        for part in topic.partitions[0].acknowledgement_batches
    ]
    # a broker that is slower to notice than the next connection has the record locked still
    assert said == ([[AcknowledgeType.RELEASE]] if lost else [[AcknowledgeType.ACCEPT]])


def renewals(broker: FakeBroker) -> list[float]:
    return [at for at, body in broker.sent if getattr(body, "is_renew_ack", False)]


def test_a_renewal_that_the_user_asks_for_is_sent_though_the_consumer_renews_nothing_by_itself() -> None:
    bench = Bench(FakeBroker(orders(2)), max_locked_records=2, renew_locks=False)

    async def work() -> None:
        await asyncio.sleep(25)
        bench.records[1].renew()
        await asyncio.sleep(8)

    bench.run(work)
    assert [round(at / 1_000) for at in renewals(bench.broker)] == [25]
    assert [event.record for event in bench.events if isinstance(event, LockLost)] == []
    assert bench.records[1].deadline == pytest.approx(55, abs=1)


def test_a_lock_whose_renewal_comes_due_while_others_are_renewed_is_renewed_next() -> None:
    class Slow(FakeBroker):
        async def request(self, node_id: object, api_key: object, body: Any, **named: object) -> Any:
            if getattr(body, "is_renew_ack", False):
                await asyncio.sleep(2)
            return await super().request(node_id, api_key, body, **named)

    bench = Bench(Slow(orders(1)), ORDERS, BILLS)

    async def work() -> None:
        await asyncio.sleep(1)
        bench.broker.batches.append((BILLS, batch([b"x"]), 1))
        await asyncio.sleep(31)

    bench.run(work)
    assert [record.topic for record in bench.records] == ["orders", "bills"]
    named = [
        (round(at / 1_000), [NAMES[topic.topic_id] for topic in body.topics if topic.topic_id])
        for at, body in bench.broker.sent
        if getattr(body, "is_renew_ack", False)
    ]
    assert named == [(22, ["orders"]), (24, ["bills"])]


def test_a_renewal_whose_session_the_broker_refuses_is_sent_in_the_next_session() -> None:
    bench = Bench(FakeBroker(orders(1)), max_locked_records=1)
    refusals = [KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)]

    def refuse(body: Request, _topic: UUID | None) -> int:
        if isinstance(body, ShareAcknowledgeRequest) and refusals:
            raise refusals.pop()
        return 0

    bench.broker.refuse = refuse

    async def work() -> None:
        await asyncio.sleep(35)

    bench.run(work)
    assert [round(at / 1_000) for at in renewals(bench.broker)] == [20, 20]
    assert not any(isinstance(event, LockLost) for event in bench.events)


def test_a_handler_that_hangs_longer_than_it_may_loses_its_record_and_its_room_is_used_again() -> None:
    bench = Bench(FakeBroker(orders(1), orders(1)), max_locked_records=1, max_processing_ms=40_000)

    async def work() -> None:
        await asyncio.sleep(54)
        assert [record.lost for record in bench.records] == [False]
        await asyncio.sleep(2)
        assert [record.lost for record in bench.records] == [True, False]

    bench.run(work)
    (event,) = [event for event in bench.events if isinstance(event, LockLost)]
    assert event.reason == "its time was up"


def test_an_answer_that_makes_no_sense_begins_another_session_and_an_error_of_the_program_ends_it() -> None:
    vast = (ORDERS, batch([b"x"]), 2**40)
    bench = Bench(FakeBroker(orders(1), vast))

    async def work() -> None:
        await asyncio.sleep(2)

    bench.run(work)
    assert len(bench.records) == 1
    assert [body.share_session_epoch for body in bench.broker.fetches].count(0) == 2
    broken = Bench(FakeBroker(orders(1)))
    broken.exchange.deliver = lambda records, _size: broken.records.remove(records[0])

    async def end() -> None:
        with pytest.raises(ValueError, match="not in list"):
            await broken.exchange.run()

    broken.run(end)


def test_a_group_that_may_not_be_read_any_more_is_told_in_words() -> None:
    bench = Bench(FakeBroker())

    def refuse(*_: object) -> int:
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)

    bench.broker.refuse = refuse

    async def end() -> None:
        with pytest.raises(FatalGroupError, match="give its principal the operation Read on the group"):
            await bench.exchange.run()
        assert not bench.exchange.runs

    bench.run(end)


def test_nothing_is_fetched_while_large_records_wait_for_the_user() -> None:
    bench = Bench(FakeBroker(orders(1), orders(1)), fetch_max_bytes=1_000)
    waiting = [1_000]
    bench.count_buffered = lambda: (len(bench.records), waiting[0] if bench.records else 0)

    async def work() -> None:
        await asyncio.sleep(1)
        assert len(bench.records) == 1
        waiting[0] = 999
        bench.exchange.wake()
        await asyncio.sleep(1)

    bench.run(work)
    assert len(bench.records) == 2


def bench_of(brokers: int) -> tuple[Bench, list[PartitionId]]:
    """An exchange that may lock one record, and the partitions, of which each broker leads one."""
    bench = Bench(FakeBroker(), ORDERS, max_locked_records=1)
    places = [PartitionId(ORDERS, number) for number in range(brokers)]
    partitions = {number: PartitionMetadata(number, number, 0, (number,)) for number in range(brokers)}
    bench.broker._state = ClusterMetadata(
        nodes={number: Node(number, Address("localhost", number)) for number in range(brokers)},
        topics={"orders": TopicMetadata("orders", ORDERS, partitions)},
    )
    bench.assignment = lambda: frozenset(places)
    return bench, places


def one_of(partition: int, offset: int) -> ShareFetchResponse:
    row = PartitionData(
        partition, records=batch([b"x"], offset), acquired_records=[AcquiredRecords(offset, offset, 1)]
    )
    return ShareFetchResponse(
        acquisition_lock_timeout_ms=LOCK_MS, responses=[ShareFetchableTopicResponse(ORDERS, [row])]
    )


@pytest.mark.parametrize("handling_ms", [0, 1])
@pytest.mark.parametrize("brokers", [2, 3, 4, 5])
def test_brokers_take_turns_when_fewer_records_may_be_locked_than_there_are_brokers(
    brokers: int, handling_ms: int
) -> None:
    """A broker that has failed meanwhile gets its turn again, however often the others are woken."""
    bench, places = bench_of(brokers)
    given = dict.fromkeys(range(brokers), 0)
    asked = 0

    async def answer(node_id: Any, api_key: object, body: Any, **named: object) -> Any:  # noqa: ARG001
        nonlocal asked
        await asyncio.sleep(0.001)
        if isinstance(body, ShareAcknowledgeRequest):
            return ShareAcknowledgeResponse()
        if not body.max_records:
            return ShareFetchResponse()
        asked += 1
        if asked == 20:
            raise BrokerConnectionError(f"localhost:{node_id}", "broken")
        at = given[node_id]
        given[node_id] += 1
        return one_of(node_id, at)

    bench.broker.request = answer  # type: ignore[method-assign]
    delivered, most = asyncio.Event(), 0

    def deliver(records: list[ShareRecord], _size: int) -> None:
        bench.records.extend(records)
        delivered.set()

    bench.exchange.deliver = deliver

    async def work() -> None:
        nonlocal most
        ends = now_ms() + 200 * brokers
        while now_ms() < ends:
            done = len(bench.records)
            bench.exchange.wake()  # as a reader does that has read all
            await delivered.wait()
            delivered.clear()
            await asyncio.sleep(handling_ms / 1_000)
            most = max(most, bench.locks.count(places))
            for record in bench.records[done:]:
                bench.exchange.wake()
                record.accept()

    bench.run(work)
    assert most == 1
    assert min(given.values()) > 25


def test_a_broker_without_records_does_not_keep_the_room_for_one_of_another_broker() -> None:
    bench, _ = bench_of(3)
    left, given, asked = 100, 0, [0, 0, 0]

    async def answer(node_id: Any, api_key: object, body: Any, **named: object) -> Any:  # noqa: ARG001
        nonlocal given
        await asyncio.sleep(0.001)
        if isinstance(body, ShareAcknowledgeRequest):
            return ShareAcknowledgeResponse()
        asked[node_id] += 1
        if node_id == 1 and given < left and body.max_records:
            given += 1
            return one_of(node_id, given)
        await asyncio.sleep(body.max_wait_ms / 1_000)
        return ShareFetchResponse()

    bench.broker.request = answer  # type: ignore[method-assign]

    async def work() -> None:
        for _ in range(2_000):
            await asyncio.sleep(0.001)
            while bench.records:
                bench.records.pop().accept()

    bench.run(work)
    assert given == left
    # nor are they asked without pause
    assert all(1 < asked[node_id] < 40 for node_id in (0, 2))


def test_a_close_while_a_renewal_is_under_way_goes_on_with_the_session_as_it_is_behind_it() -> None:
    class Slow(FakeBroker):
        async def request(self, node_id: object, api_key: object, body: Any, **named: object) -> Any:
            answer = await super().request(node_id, api_key, body, **named)
            if getattr(body, "is_renew_ack", False):
                await asyncio.sleep(2)
            return answer

    bench = Bench(Slow(orders(2)), max_locked_records=2)

    async def work() -> None:
        await asyncio.sleep(1)
        bench.records[0].renew()
        await asyncio.sleep(0.5)

    bench.run(work)
    bench.locks.release_held([PartitionId(ORDERS, 0)])
    run_in_virtual_time(bench.exchange.close())
    renewal, released, closing = bench.broker.acknowledgements
    assert renewal.is_renew_ack
    assert released.share_session_epoch == renewal.share_session_epoch + 1
    assert closing.share_session_epoch == -1


def test_a_close_whose_time_is_over_leaves_no_request_behind() -> None:
    class Silent(FakeBroker):
        async def request(self, node_id: object, api_key: object, body: Any, **named: object) -> Any:
            if bench.records and bench.records[0].verdict is not None:
                await asyncio.sleep(3_600)
            return await super().request(node_id, api_key, body, **named)

    bench = Bench(Silent(orders(1)))

    async def close() -> None:
        watching, exchange = (
            asyncio.create_task(job) for job in (bench.exchange.watch_topics(), bench.exchange.run())
        )
        await asyncio.sleep(0.5)
        bench.records[0].accept()
        await asyncio.sleep(1)
        for _ in ("it is to end, and waits for the answer", "the time is over"):
            exchange.cancel()
            await asyncio.sleep(0.1)
        assert not [task for task in asyncio.all_tasks() if "share session" in task.get_name()]
        watching.cancel()

    run_in_virtual_time(close())


def membership(cluster: Cluster) -> ShareMembership:
    return ShareMembership(
        cluster,
        "billing",
        frozenset({"orders"}),
        "member",
        rack="",
        backoff=Backoff(),
        report=lambda _: None,
        assigned=lambda: None,
    )


async def join(cluster: Cluster) -> None:
    async with asyncio.timeout(60):
        await membership(cluster).run()


def test_a_topic_that_may_not_be_seen_is_told_in_words() -> None:
    class Strict(FakeBroker):
        async def request_coordinator(self, *_: object, **__: object) -> Any:
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)

    with pytest.raises(FatalGroupError, match="operations Describe and Read on the topics"):
        run_in_virtual_time(join(Strict()))


@pytest.mark.parametrize(
    ("error", "sent"),
    [(None, [0, -1]), (KafkaError(15), [0]), (BrokerConnectionError("localhost", "lost"), [0, -1])],
    ids=["not answered yet", "a refusal", "the answer was lost"],
)
def test_a_member_leaves_that_may_have_joined(error: KohortError | None, sent: list[int]) -> None:
    epochs: list[int] = []

    class Slow(FakeBroker):
        async def request_coordinator(self, *asked: Any, **_: object) -> Any:
            epochs.append(asked[1].member_epoch)
            if epochs[-1] == 0:
                await asyncio.sleep(0.01)
                if error is not None:
                    raise error
                await asyncio.sleep(10)

    async def close() -> None:
        member = membership(Slow())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(member.run(), 0.05)
        await member.leave()

    run_in_virtual_time(close())
    assert epochs == sent


def test_a_cluster_without_share_groups_is_refused_in_words() -> None:
    class Old(FakeBroker):
        async def request_coordinator(self, *_: object, **__: object) -> Any:
            raise UnsupportedVersionError("localhost:9092 does not offer ShareGroupHeartbeat")

    with pytest.raises(FatalGroupError, match="the cluster has no share groups: raise its feature"):
        run_in_virtual_time(join(Old()))


def test_a_close_releases_what_is_held_of_a_partition_that_the_session_has_forgotten() -> None:
    bench = Bench(FakeBroker(orders(2)))
    assigned = [PartitionId(ORDERS, 0)]
    bench.assignment = lambda: frozenset(assigned)

    async def work() -> None:
        await asyncio.sleep(1)
        assigned.clear()
        bench.exchange.assigned()
        await asyncio.sleep(1)

    bench.run(work)
    run_in_virtual_time(bench.exchange.close())
    assert bench.broker.fetches[-1].forgotten_topics_data
    released, closing = bench.broker.acknowledgements
    ((part,),) = [each.partitions for each in released.topics]
    assert part.acknowledgement_batches == [AcknowledgementBatch(0, 1, [AcknowledgeType.RELEASE])]
    assert (closing.share_session_epoch, closing.topics) == (-1, [])
    assert all(record.lost for record in bench.records)


class TwoLeaders(FakeBroker):
    """The leadership of the topic's partition can be moved to another node. What is said to the first one is
    answered when ``held_back`` is set, with ``last``.
    """

    def __init__(self, *batches: tuple[UUID, bytes, int]) -> None:
        super().__init__(*batches)
        self.held_back = asyncio.Event()
        self.last = ShareFetchResponse()
        self.asked: list[tuple[object, Request]] = []

    def move(self, *batches: tuple[UUID, bytes, int]) -> None:
        self.batches += batches
        nodes = {number: Node(number, Address("localhost", number)) for number in (NODE, NODE + 1)}
        partition = {0: PartitionMetadata(0, NODE + 1, 1, (NODE, NODE + 1))}
        self._state = ClusterMetadata(
            nodes=nodes, topics={"orders": TopicMetadata("orders", ORDERS, partition)}
        )

    async def request(self, node_id: object, api_key: object, body: Any, **named: object) -> Any:
        self.asked.append((node_id, body))
        if node_id == NODE and self.said_of(body):
            await self.held_back.wait()
            return self.last
        return await super().request(node_id, api_key, body, **named)

    @staticmethod
    def said_of(body: Request) -> list[object]:
        return [each for topic in body.topics for each in topic.partitions[0].acknowledgement_batches]


def answer(**row: object) -> ShareFetchResponse:
    topic = ShareFetchableTopicResponse(ORDERS, [PartitionData(0)._replace(**row)])  # type: ignore[arg-type]
    return ShareFetchResponse(acquisition_lock_timeout_ms=LOCK_MS, responses=[topic])


@pytest.mark.parametrize(
    "last",
    [
        answer(acknowledge_error_code=ErrorCode.INVALID_RECORD_STATE),
        answer(acknowledge_error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER),
        answer(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER),
        answer(records=batch([b"x"] * 3), acquired_records=[AcquiredRecords(0, 2, 2)]),
        ShareFetchResponse(error_code=ErrorCode.INVALID_SHARE_SESSION_EPOCH),
    ],
    ids=[
        "not locked there any more",
        "not the leader",
        "not the leader of what is fetched",
        "records, which it may not give any more",
        "another epoch of the session",
    ],
)
def test_what_a_former_leader_answers_changes_nothing_of_what_the_next_one_has_given(
    last: ShareFetchResponse,
) -> None:
    bench = Bench(TwoLeaders(orders(3)))
    broker = bench.broker
    assert isinstance(broker, TwoLeaders)
    broker.last = last

    async def work() -> None:
        await asyncio.sleep(0.5)
        for record in bench.records:
            record.release()
        await asyncio.sleep(0.2)
        broker.move(orders(3))
        bench.exchange.assigned()
        await asyncio.sleep(0.5)
        assert len(bench.records) == 6
        broker.held_back.set()
        await asyncio.sleep(0.5)
        assert bench.locks.unanswered == 0
        assert [record.lost for record in bench.records[3:]] == [False] * 3

    bench.run(work)
    assert [
        broker.said_of(body) for node, body in broker.asked if node != NODE and broker.said_of(body)
    ] == []


class Refusing(FakeBroker):
    """Refuses what is said of records, in a fetch and elsewhere, ``times`` times with ``code``."""

    def __init__(self, code: ErrorCode, times: float, *, whole: bool = False) -> None:
        super().__init__(orders(3))
        self.code = code
        self.times = times
        #: Whether the whole request is refused.
        self.whole = whole
        self.said_at: list[float] = []

    async def request(self, node_id: object, api_key: object, body: Any, **named: object) -> Any:
        if not TwoLeaders.said_of(body):
            return await super().request(node_id, api_key, body, **named)
        await asyncio.sleep(0.001)
        self.said_at.append(now_ms())
        self.times -= 1
        code = self.code if self.times >= 0 else ErrorCode.NONE
        if self.whole and code:
            raise KafkaError(code)
        if isinstance(body, ShareFetchRequest):
            return answer(acknowledge_error_code=code)
        row = AcknowledgedPartition(0, code)
        return ShareAcknowledgeResponse(
            acquisition_lock_timeout_ms=LOCK_MS, responses=[ShareAcknowledgeTopicResponse(ORDERS, [row])]
        )


def accept_all(
    broker: Refusing, for_s: float, **settings: Any
) -> tuple[Bench, dict[Any, KohortError | None]]:
    """Accept what a broker has given; return the answers that came within a time."""
    bench = Bench(broker, **settings)
    bench.buffered = settings.get("max_locked_records", 0)
    answers = {}

    async def work() -> None:
        await asyncio.sleep(0.5)
        for record in bench.records:
            record.accept()
        flush = bench.locks.begin_flush(lambda: None)
        await asyncio.sleep(for_s)
        answers.update(flush.answers)

    bench.run(work)
    return bench, answers


#: With these a broker says that it has no locks of the partition.
WITHOUT_LOCKS = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.FENCED_STATE_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
}
FOR_NOW = [code for code in ErrorCode if code.retriable and code not in WITHOUT_LOCKS]
FOR_GOOD = [
    code for code in ErrorCode if code and not code.retriable and code not in NOT_LOCKED | WITHOUT_LOCKS
]
OWN_REQUEST = {"max_locked_records": 3}


@pytest.mark.parametrize("settings", [{}, OWN_REQUEST], ids=["with a fetch", "in a request of its own"])
@pytest.mark.parametrize("code", FOR_NOW, ids=lambda code: code.name)
def test_what_a_broker_refuses_for_now_is_said_again(code: ErrorCode, settings: dict[str, Any]) -> None:
    broker = Refusing(code, 4)
    bench, answers = accept_all(broker, 4, **settings)
    assert list(answers.values()) == [None] * 3
    pauses = [later - earlier for earlier, later in pairwise(broker.said_at)]
    assert len(pauses) == 4
    assert pauses[0] >= 80
    assert pauses[3] > 2 * pauses[0], "less and less often"
    (told,) = bench.events
    assert isinstance(told, BrokerUnavailable)
    assert told.doing == "acknowledging records of orders-0"


@pytest.mark.parametrize("code", [code for code in ErrorCode if code.retriable], ids=lambda code: code.name)
def test_of_a_request_that_a_broker_refuses_for_now_what_was_said_is_said_again(code: ErrorCode) -> None:
    bench, answers = accept_all(Refusing(code, 1, whole=True), 1)
    assert list(answers.values()) == [None] * 3
    assert not [event for event in bench.events if isinstance(event, LockLost)]


def test_what_is_refused_until_its_lock_ends_is_lost() -> None:
    broker = Refusing(ErrorCode.KAFKA_STORAGE_ERROR, 1_000)
    bench, answers = accept_all(broker, 40)
    lost = [event for event in bench.events if isinstance(event, LockLost)]
    assert len(lost) == 3
    assert all(isinstance(answer, LockLostError) for answer in answers.values())
    assert broker.said_at[-1] >= LOCK_MS - 2_000
    assert len(broker.said_at) < 50


@pytest.mark.parametrize("code", [*WITHOUT_LOCKS, *FOR_GOOD], ids=lambda code: code.name)
def test_what_a_broker_refuses_for_good_does_not_count(code: ErrorCode) -> None:
    broker = Refusing(code, 1_000)
    bench, answers = accept_all(broker, 4)
    assert len(broker.said_at) == 1
    assert [type(answer) for answer in answers.values()] == [LockLostError] * 3
    assert len([event for event in bench.events if isinstance(event, LockLost)]) == 3


@pytest.mark.parametrize("code", [*FOR_NOW, *FOR_GOOD], ids=lambda code: code.name)
def test_a_renewal_that_a_broker_refuses_is_asked_for_again(code: ErrorCode) -> None:
    bench = Bench(FakeBroker(orders(1)), max_locked_records=1)
    bench.broker.refuse = lambda body, _: (
        code if isinstance(body, ShareAcknowledgeRequest) and len(renewals(bench.broker)) < 3 else 0
    )

    async def work() -> None:
        await asyncio.sleep(35)

    bench.run(work)
    asked = renewals(bench.broker)
    assert [round(at / 1_000) for at in asked] == [20, 20, 20]
    assert asked[2] - asked[0] >= 200
    assert not bench.records[0].lost
    assert bench.records[0].deadline == pytest.approx(50, abs=1)


def test_a_close_says_again_what_a_broker_refuses_for_now() -> None:
    broker = Refusing(ErrorCode.KAFKA_STORAGE_ERROR, 3)
    bench = Bench(broker)

    async def work() -> None:
        await asyncio.sleep(0.5)
        bench.exchange.reads = False

    async def close() -> None:
        for record in bench.records:
            record.accept()
        flush = bench.locks.begin_flush(lambda: None)
        await bench.exchange.close()
        assert list(flush.answers.values()) == [None] * 3

    bench.run(work)
    run_in_virtual_time(close())
    assert len(broker.said_at) == 4
    assert broker.acknowledgements[-1].share_session_epoch == -1


class Late(FakeBroker):
    """Its responses with records, and those to renewals, are read so many seconds after they were due."""

    def __init__(self, late_s: float) -> None:
        super().__init__(orders(1))
        self.late_s = late_s

    async def request(self, node_id: object, api_key: object, body: Any, **named: object) -> Any:
        response = await super().request(node_id, api_key, body, **named)
        if getattr(body, "is_renew_ack", False) or any(
            row.acquired_records
            for topic in response.responses
            for row in topic.partitions
            if isinstance(row, PartitionData)
        ):
            await asyncio.sleep(self.late_s)
        return response


def test_a_lock_begins_when_the_response_was_due_though_it_is_read_late() -> None:
    bench = Bench(Late(5), fetch_max_wait_ms=500, max_locked_records=1)

    async def work() -> None:
        await asyncio.sleep(6)
        (record,) = bench.records
        assert record.deadline == pytest.approx(0.5 + 30, abs=0.1)
        await asyncio.sleep(30)
        assert [round(at / 1_000, 1) for at in renewals(bench.broker)] == [20.5]
        assert record.deadline == pytest.approx(20.5 + 30, abs=0.1)

    bench.run(work)
    assert bench.events == []


def test_records_whose_lock_ended_while_the_process_stood_still_are_not_taken_for_locked() -> None:
    bench = Bench(Late(33), fetch_max_wait_ms=500)

    async def work() -> None:
        await asyncio.sleep(34)
        (record,) = bench.records
        assert record.deadline is not None
        assert record.deadline < asyncio.get_running_loop().time()

    bench.run(work)
