"""Fetch sessions: what is told, what goes on, and which of them go when there are too many."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from kohort.broker.apis import fetch as handler
from kohort.broker.clients import fetch_sessions
from kohort.broker.clients.fetch_sessions import FetchSessions, ServedFetchSession
from kohort.broker.event_loop import time_slices as _turns
from kohort.broker.partitions.partition import Partition
from kohort.broker.replicas.fetcher import ReplicaFetcher
from kohort.protocol import ApiKey, ErrorCode, KafkaError
from kohort.protocol.messages.fetch import FetchPartition, FetchTopic, ForgottenTopic
from kohort.testing import RunningBroker
from tests.broker.clusters import cluster
from tests.broker.metadata.topic_requests import delete_records
from tests.broker.replicas.test_replicas import producer, replica
from tests.broker.wire import Wire, batch, create_topic, fetch_fields, produce, produce_fields
from tests.limits.full_requests import KNOWN
from tests.limits.prepared_broker import prepared_broker
from tests.waiting import wait_until


class Session:
    """A client's fetch session on a topic, whose partitions it names once."""

    def __init__(self, wire: Wire, name: str, *offsets: int, **options: int) -> None:
        self.wire = wire
        self.name = name
        self.id = 0
        self.epoch = 0
        self.first = self._answered(self.send(**fetch_fields(name, *offsets, **options)))

    def send(self, **fields: Any) -> int:
        wanted = {**fetch_fields(self.name), "topics": []} if "topics" not in fields else {}
        told = {"session_id": self.id, "session_epoch": self.epoch}
        self.epoch += 1
        return self.wire.send(ApiKey.FETCH, 12, **{**wanted, **fields, **told})

    def _answered(self, number: int) -> dict[int, Any]:
        answer = self.wire.receive(ApiKey.FETCH, 12, number)
        assert answer.error_code == ErrorCode.NONE
        self.id = answer.session_id
        return {each.partition_index: each for topic in answer.responses for each in topic.partitions}

    def ask(self, **fields: Any) -> dict[int, Any]:
        """What the next answer has, by partition."""
        return self._answered(self.send(**fields))


def places(name: str, offsets: dict[int, int]) -> list[FetchTopic]:
    rows = [
        FetchPartition(partition=p, fetch_offset=o, partition_max_bytes=1 << 20) for p, o in offsets.items()
    ]
    return [FetchTopic(topic=name, partitions=rows)]


def test_an_answer_of_a_session_has_only_partitions_with_news(wire: Wire, name: str) -> None:
    create_topic(wire, name, 3)
    session = Session(wire, name, 0, 0, 0)
    assert sorted(session.first) == [0, 1, 2]
    assert session.id > 0
    assert session.ask() == {}

    produce(wire, name, batch(2), partition=1)
    found = session.ask()
    assert {each: row.high_watermark for each, row in found.items()} == {1: 2}
    # what it has not taken it is given again
    again = session.ask()
    assert again.keys() == {1}
    assert again[1].records == found[1].records
    assert session.ask(topics=places(name, {1: 2})) == {}


def test_partitions_take_turns_where_a_response_has_no_room_for_all(wire: Wire, name: str) -> None:
    create_topic(wire, name, 4)
    for number in range(4):
        produce(wire, name, batch(), partition=number)
    session = Session(wire, name, 0, 0, 0, 0, max_bytes=1)
    little = {**fetch_fields(name, max_bytes=1), "topics": []}
    found = [session.first, *(session.ask(**little) for _ in range(7))]
    turns = [number for rows in found for number, row in rows.items() if row.records]
    assert turns == [0, 1, 2, 3] * 2


def test_a_log_start_that_moves_is_news(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    produce(wire, name, batch(3))
    session = Session(wire, name, 3)
    assert delete_records(wire, name, 2) == ErrorCode.NONE
    (row,) = session.ask().values()
    assert (row.log_start_offset, row.records or b"") == (2, b"")


def test_an_error_is_told_until_it_has_gone_and_then_the_partition_is(wire: Wire, name: str) -> None:
    create_topic(wire, name, 1)
    session = Session(wire, name, 5)
    assert session.first[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert session.ask()[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert session.ask(topics=places(name, {0: 0}))[0].error_code == ErrorCode.NONE
    assert session.ask() == {}


def test_what_is_forgotten_is_told_no_more_and_a_session_of_nothing_ends(wire: Wire, name: str) -> None:
    create_topic(wire, name, 2)
    session = Session(wire, name, 0, 0)
    assert session.ask(forgotten_topics_data=[ForgottenTopic(topic=name, partitions=[0])]) == {}
    produce(wire, name, batch(), partition=0)
    produce(wire, name, batch(), partition=1)
    assert session.ask().keys() == {1}

    assert session.ask(forgotten_topics_data=[ForgottenTopic(topic=name, partitions=[1])]) == {}
    assert session.id == 0


def test_a_request_that_waits_in_a_session_is_woken_by_an_append(
    broker: RunningBroker, wire: Wire, name: str
) -> None:
    create_topic(wire, name, 20)
    session = Session(wire, name, *[0] * 20)
    number = session.send(**{**fetch_fields(name, max_wait_ms=9_000), "topics": []})
    with Wire(broker.bootstrap) as other:
        produce(other, name, batch(), partition=7)
    assert session._answered(number).keys() == {7}


def test_all_that_grew_at_once_is_in_the_response_that_was_waited_for(
    broker: RunningBroker, wire: Wire, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting, wait = threading.Event(), handler._wait_for_bytes

    async def noted(*given: Any) -> None:
        waiting.set()
        await wait(*given)

    monkeypatch.setattr(handler, "_wait_for_bytes", noted)
    create_topic(wire, name, 3)
    session = Session(wire, name, 0, 0, 0)
    number = session.send(**{**fetch_fields(name, max_wait_ms=9_000), "topics": []})
    assert waiting.wait(60)
    with Wire(broker.bootstrap) as other:
        one, two = (produce_fields(name, batch(), partition=each) for each in (1, 2))
        one["topic_data"][0].partition_data.extend(two["topic_data"][0].partition_data)
        other.call(ApiKey.PRODUCE, 9, **one)
    assert session._answered(number).keys() == {1, 2}


def test_of_a_session_only_what_has_changed_is_looked_at(
    wire: Wire, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    whole = handler._read_partition

    def noted(fetch: Any, place: Any, *args: Any, **options: Any) -> Any:
        seen.append(place.wanted.partition)
        return whole(fetch, place, *args, **options)

    create_topic(wire, name, 20)
    session = Session(wire, name, *[0] * 20)
    monkeypatch.setattr(handler, "_ALL_AGAIN_S", 1_000.0)
    monkeypatch.setattr(handler, "_read_partition", noted)
    produce(wire, name, batch(), partition=3)
    assert session.ask().keys() == {3}
    assert seen == [3]


def test_the_next_request_ends_the_one_that_waits(broker: RunningBroker, wire: Wire, name: str) -> None:
    create_topic(wire, name)
    session = Session(wire, name, 0)
    number = session.send(**{**fetch_fields(name, max_wait_ms=9_000), "topics": []})
    with Wire(broker.bootstrap) as other:
        overtaking = Session.__new__(Session)
        overtaking.wire, overtaking.name, overtaking.id = other, name, session.id
        # the one before may not have arrived yet: then this one is too early
        while True:
            overtaking.epoch = session.epoch
            answer = other.receive(ApiKey.FETCH, 12, overtaking.send())
            if answer.error_code == ErrorCode.NONE:
                break
    assert wire.receive(ApiKey.FETCH, 12, number).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


@pytest.mark.parametrize(
    ("told", "version", "code"),
    [
        ({"session_id": 77}, 12, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        ({"session_id": 0}, 12, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        ({"session_epoch": 2}, 12, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        ({}, 13, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR),
    ],
    ids=["unknown", "none", "epoch", "topics"],
)
def test_what_does_not_go_on_with_its_session_is_refused(
    wire: Wire, name: str, told: dict[str, int], version: int, code: ErrorCode
) -> None:
    create_topic(wire, name)
    session = Session(wire, name, 0)
    fields = {**fetch_fields(name), "topics": [], "session_id": session.id, "session_epoch": 1}
    answer = wire.call(ApiKey.FETCH, version, **{**fields, **told})
    assert (answer.error_code, answer.session_id, list(answer.responses)) == (code, 0, [])
    assert session.ask() == {}


def test_a_session_ends_when_its_client_says_so_and_when_it_begins_another(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    for epoch, kept in ((-1, False), (0, True)):
        session = Session(wire, name, 0)
        first, session.epoch = session.id, epoch
        session.ask(**fetch_fields(name, 0))
        assert (session.id > 0) is kept
        fields = {**fetch_fields(name), "topics": [], "session_id": first, "session_epoch": 1}
        assert wire.call(ApiKey.FETCH, 12, **fields).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_whoever_has_no_session_any_more_is_told_of_nothing(
    broker: RunningBroker, wire: Wire, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topic(wire, name)
    node = broker._broker._require_running().node
    waiters: Any = node.topics.logs.partition(name, 0).waiters
    kept = Session(wire, name, 0)
    assert len(waiters) == 1
    number = kept.send(**{**fetch_fields(name, max_wait_ms=9_000), "topics": []})
    with Wire(broker.bootstrap) as other:
        while node.fetch_sessions._sessions[kept.id].epoch < kept.epoch:
            time.sleep(0.001)
        # it ends while a request of it waits, which says so
        ends = {**fetch_fields(name), "topics": [], "session_id": kept.id, "session_epoch": -1}
        assert other.call(ApiKey.FETCH, 12, **ends).error_code == ErrorCode.NONE
    answer = wire.receive(ApiKey.FETCH, 12, number)
    assert (answer.error_code, answer.session_id, len(waiters)) == (ErrorCode.NONE, 0, 0)

    # there is no room for one
    monkeypatch.setattr(FetchSessions, "keep", lambda *_: None)
    assert Session(wire, name, 0, max_wait_ms=1).id == 0
    assert not waiters
    # its client goes away while its first request waits
    with Wire(broker.bootstrap) as other:
        other.send(ApiKey.FETCH, 12, **{**fetch_fields(name, 0, max_wait_ms=60_000), "session_epoch": 0})
        while not waiters:
            time.sleep(0.001)
    while waiters:
        time.sleep(0.001)


def test_a_client_does_not_go_on_with_a_brokers_session() -> None:
    kept = FetchSessions(1)
    session = session_of(kept, 1, 0.0, by_broker=True)
    with pytest.raises(KafkaError, match="there is no session"):
        kept.find(session.id, 1, by_id=False, by_broker=False, now_s=0.0)
    assert kept.find(session.id, 1, by_id=False, by_broker=True, now_s=0.0) is session


# -- which of them are kept


def session_of(
    kept: FetchSessions, size: int, now_s: float, *, by_broker: bool = False
) -> ServedFetchSession:
    session = kept.find(0, 0, by_id=False, by_broker=by_broker, now_s=now_s)
    session.update([FetchTopic(topic="t", partitions=[FetchPartition(partition=p) for p in range(size)])], ())
    kept.keep(session, now_s)
    return session


def is_kept(kept: FetchSessions, session: ServedFetchSession) -> bool:
    try:
        kept.find(session.id, 99, by_id=False, by_broker=session.by_broker, now_s=0.0)
    except KafkaError as error:
        return error.code is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    return True


def test_a_session_of_a_client_gets_no_place_of_one_that_is_used_and_new() -> None:
    kept = FetchSessions(1)
    first = session_of(kept, 1, 0.0)
    assert session_of(kept, 5, 100.0).id == 0
    assert is_kept(kept, first)


def test_a_session_that_is_not_used_any_more_goes() -> None:
    kept = FetchSessions(2)
    first, second = session_of(kept, 9, 0.0), session_of(kept, 1, 100.0)
    third = session_of(kept, 1, 121.0)
    assert [is_kept(kept, each) for each in (first, second, third)] == [False, True, True]
    assert kept.evicted == 1


def test_a_smaller_session_that_was_there_for_long_goes() -> None:
    kept = FetchSessions(2)
    small, large = session_of(kept, 2, 0.0), session_of(kept, 7, 0.0)
    for each in (small, large):
        kept.find(each.id, 1, by_id=False, by_broker=False, now_s=119.0)
    assert session_of(kept, 1, 121.0).id == 0
    assert session_of(kept, 3, 121.0).id > 0
    assert [is_kept(kept, each) for each in (small, large)] == [False, True]


def test_a_broker_gets_the_place_of_a_client() -> None:
    kept = FetchSessions(1)
    client = session_of(kept, 9, 0.0)
    broker = session_of(kept, 1, 0.0, by_broker=True)
    assert [is_kept(kept, each) for each in (client, broker)] == [False, True]
    assert session_of(kept, 9, 1.0, by_broker=True).id == 0


def test_without_slots_no_session_is_kept() -> None:
    assert session_of(FetchSessions(0), 1, 0.0).id == 0


def test_epochs_begin_at_one_again() -> None:
    kept = FetchSessions(1)
    session = session_of(kept, 1, 0.0)
    session.epoch = 2**31 - 1
    kept.find(session.id, 2**31 - 1, by_id=False, by_broker=False, now_s=0.0)
    assert session.epoch == 1


def test_a_broker_follows_what_its_session_has_as_long_as_it_is_used() -> None:
    kept, topic_id = FetchSessions(2), uuid4()
    for broker in (True, False):
        session = kept.find(0, 0, by_id=True, by_broker=broker, now_s=1.0)
        session.follower = 7
        session.update([FetchTopic(topic_id=topic_id, partitions=[FetchPartition(partition=0)])], ())
        kept.keep(session, 1.0)
    assert kept.followers(topic_id, 0, 1.0) == {7}
    assert kept.followers(topic_id, 0, 1.1) == set()
    assert kept.followers(topic_id, 1, 1.0) == set()


def test_all_sessions_together_have_a_limit_of_partitions() -> None:
    kept = FetchSessions(10, most_partitions=100)
    assert session_of(kept, 101, 0.0).id == 0
    first, second = session_of(kept, 60, 0.0), session_of(kept, 40, 0.0)
    assert first.id
    assert second.id
    assert session_of(kept, 1, 1.0).id == 0, "both are new"
    assert session_of(kept, 1, 1.0, by_broker=True).id > 0
    assert [is_kept(kept, each) for each in (first, second)] == [True, False]
    kept.drop(first.id)
    assert session_of(kept, 99, 1.0).id > 0


def test_a_session_that_grows_beyond_the_limit_ends() -> None:
    kept = FetchSessions(10, most_partitions=100)
    session = session_of(kept, 60, 0.0)
    grown = [FetchTopic(topic="u", partitions=[FetchPartition(partition=p) for p in range(41)])]
    kept.find(session.id, 1, by_id=False, by_broker=False, now_s=1.0).update(grown, ())
    kept.count_growth(session, 1.0)
    assert session.id == 0
    assert len(kept) == 0
    assert session_of(kept, 100, 1.0).id > 0


def test_partitions_that_cannot_be_read_count_as_ten() -> None:
    kept = FetchSessions(10, most_partitions=100)
    session = kept.find(0, 0, by_id=False, by_broker=False, now_s=0.0)
    session.update([FetchTopic(topic="t", partitions=[FetchPartition(partition=p) for p in range(11)])], ())
    for place in session.partitions_due():
        session.looked_at(place, None, has_more=False)
    kept.keep(session, 0.0)
    assert (session.id, session.readable, session.size) == (0, 0, 110)
    session.update((), [ForgottenTopic(topic="t", partitions=[0])])
    kept.keep(session, 0.0)
    assert (session.id > 0, session.size) == (True, 100)
    # one that has come into being meanwhile
    session.looked_at(session.partitions_due()[0], Partition(None, 0, None, on_disk=False), has_more=True)  # type: ignore[arg-type]
    assert (session.readable, session.size) == (1, 91)
    kept.count_growth(session, 1.0)
    assert session_of(kept, 9, 1.0).id > 0
    assert session_of(kept, 1, 1.0).id == 0


def test_a_session_over_the_limit_is_answered_in_full(
    broker: RunningBroker, wire: Wire, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topic(wire, name, 3)
    session = Session(wire, name, 0, 0, 0)
    assert session.id > 0
    node = broker._broker._require_running().node
    monkeypatch.setattr(node.fetch_sessions, "_most_partitions", node.fetch_sessions._size + 9)
    missing = FetchTopic(topic=f"{name}-missing", partitions=[FetchPartition(partition=0)])
    answer = session.ask(topics=[missing])
    assert session.id == 0, "three partitions, and one that counts as ten"
    assert answer[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert Session(wire, name, 0, 0, 0).id > 0


def test_requests_that_wait_name_so_many_partitions_together_and_no_more(
    broker: RunningBroker, wire: Wire, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_sessions, "MOST_WAITING", 12)
    monkeypatch.setattr(fetch_sessions, "FEW_WAITING", 2)
    sessions = broker._broker._require_running().node.fetch_sessions
    create_topic(wire, name, 9)

    def fetch(wire: Wire, partitions: int) -> int:
        # named again they are looked at once, and held with the request all the same
        fields = fetch_fields(name, *[0] * partitions, max_wait_ms=600_000, min_bytes=1)
        return wire.send(ApiKey.FETCH, 12, **{**fields, "topics": fields["topics"] * 2})

    with Wire(broker.bootstrap) as other, Wire(broker.bootstrap) as small:
        numbers = [(wire, fetch(wire, 5)), (small, fetch(small, 1))]
        wait_until(lambda: sessions.waiting == 10)
        assert other.receive(ApiKey.FETCH, 12, fetch(other, 5)).error_code == ErrorCode.NONE
        assert produce(other, name, batch()).error_code == ErrorCode.NONE
        for waiter, number in numbers:
            assert waiter.receive(ApiKey.FETCH, 12, number).responses[0].partitions[0].records
    wait_until(lambda: sessions.waiting == 0)


async def test_what_changes_while_others_are_read_is_news(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A request about very many partitions lets others run in between."""
    async with prepared_broker(tmp_path) as broker:
        reads = 0
        read = handler._read_partition

        def noted(*arguments: Any, **more: Any) -> Any:
            nonlocal reads
            reads += 1
            found = read(*arguments, **more)
            if reads == 2:
                partition = broker.node.logs.led(KNOWN, 0)
                assert partition is not None
                partition.append(batch(), now_ms=1_700_000_000_000)
            return found

        monkeypatch.setattr(_turns, "SLICE_S", -1.0)
        monkeypatch.setattr(handler, "_read_partition", noted)
        end = broker.node.logs.partition(KNOWN, 0).log_end_offset
        fields = fetch_fields(KNOWN, end, 0, 0, max_wait_ms=60_000)
        asked = {**fields, "session_epoch": 0}
        (topic,) = (await broker.call(ApiKey.FETCH, 12, **asked)).responses
        assert [bool(each.records) for each in topic.partitions] == [True, False, False]


# -- followers


def test_a_follower_asks_for_what_is_new_without_another_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Topics come and go: connections and sessions stay."""

    async def run() -> None:
        async with cluster() as nodes:
            await nodes.create("first", 3)
            connects = 0
            for node in nodes.brokers.values():
                assert node.cluster is not None
                whole = node.cluster.connect

                async def counted(node_id: int, whole: Callable[[int], Any] = whole) -> Any:
                    nonlocal connects
                    connects += 1
                    return await whole(node_id)

                monkeypatch.setattr(node.cluster, "connect", counted)
            begun: list[ReplicaFetcher] = []
            anew = ReplicaFetcher._begin_anew

            def noted(fetcher: ReplicaFetcher) -> None:
                begun.append(fetcher)
                anew(fetcher)

            monkeypatch.setattr(ReplicaFetcher, "_begin_anew", noted)
            async with producer(nodes) as sender:
                for number in range(10):
                    name = f"topic-{number}"
                    await nodes.create(name, 3)
                    for partition in range(3):
                        await sender.send_and_wait(name, b"x", partition=partition)
                        ends = [
                            replica(nodes, each, name, partition).log_end_offset for each in nodes.brokers
                        ]
                        assert sorted(ends)[1:] == [1, 1]
            # each of three follows two, over two connections at most; others are AlterPartition's
            assert connects <= 12
            # a busy machine lets requests of two connections pass each other, now and then; each new topic
            # would begin six
            assert len(begun) < 30

    asyncio.run(run())


@pytest.mark.parametrize("slots", [0, 1_000])
def test_followers_copy_with_and_without_sessions(slots: int) -> None:
    async def run() -> None:
        async with (
            cluster(max_incremental_fetch_session_cache_slots=slots) as nodes,
            producer(nodes) as sender,
        ):
            await nodes.create("orders", 6)
            for number in range(60):
                await sender.send_and_wait("orders", b"%d" % number, partition=number % 6)
            for node_id in nodes.brokers:
                assert [replica(nodes, node_id, index=each).log_end_offset for each in range(6)] == [10] * 6

    asyncio.run(run())
