"""Clients over their quotas are told to wait, and their connections wait; others notice nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from kohort.protocol import ApiKey, ErrorCode, build_batch, encode_request
from kohort.testing import RunningBroker, running_broker
from tests.broker.apis.test_client_quotas import alter, describe
from tests.broker.wire import Wire, create_topic, part
from tests.messages import request_of

pytestmark = pytest.mark.slow(2)

PRODUCE, FETCH, HEARTBEAT = ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.HEARTBEAT

#: The client id that ``Wire`` gives.
WIRE: list[tuple[str, str | None]] = [("client-id", "wire")]


@pytest.fixture
def own() -> Iterator[RunningBroker]:
    with running_broker() as broker:
        yield broker


@pytest.fixture
def wire(own: RunningBroker) -> Iterator[Wire]:
    with Wire(own.bootstrap) as connection:
        create_topic(connection, "t")
        yield connection


def produced(size: int, acks: int = 1) -> dict[str, Any]:
    batch = bytes(build_batch([(None, b"x" * size, ())], timestamp_ms=1))
    data = part(PRODUCE, 9, "TopicProduceData", "PartitionProduceData", index=0, records=batch)
    topic = part(PRODUCE, 9, "TopicProduceData", name="t", partition_data=[data])
    return {"transactional_id": None, "acks": acks, "timeout_ms": 1_000, "topic_data": [topic]}


def fetched(offset: int = 0, max_bytes: int = 1 << 20, **fields: Any) -> dict[str, Any]:
    wanted = part(
        FETCH,
        11,
        "FetchTopic",
        "FetchPartition",
        partition=0,
        current_leader_epoch=-1,
        fetch_offset=offset,
        log_start_offset=-1,
        partition_max_bytes=1 << 20,
    )
    return {
        "replica_id": -1,
        "max_wait_ms": 0,
        "min_bytes": 0,
        "max_bytes": max_bytes,
        "isolation_level": 0,
        "session_id": 0,
        "session_epoch": -1,
        "topics": [part(FETCH, 11, "FetchTopic", topic="t", partitions=[wanted])],
        "forgotten_topics_data": [],
        "rack_id": "",
        **fields,
    }


def beat() -> dict[str, Any]:
    return {"group_id": "g", "generation_id": 3, "member_id": "nobody", "group_instance_id": None}


def test_what_is_produced_over_the_quota_is_kept_and_the_connection_waits(wire: Wire) -> None:
    alter(wire, (WIRE, {"producer_byte_rate": 1_000.0}))
    before = time.monotonic()
    answer = wire.call(PRODUCE, 9, **produced(2_000))
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    assert 900 <= answer.throttle_time_ms <= 1_500
    assert time.monotonic() - before < answer.throttle_time_ms / 1_000, "the answer itself waits for nothing"
    second = wire.call(PRODUCE, 9, **produced(10))
    assert time.monotonic() - before >= answer.throttle_time_ms / 1_000
    assert second.responses[0].partition_responses[0].base_offset == 1


def test_answers_that_cannot_tell_a_delay_come_under_quotas_too(wire: Wire) -> None:
    """Those of logins, and of what brokers send to each other."""
    alter(wire, (WIRE, {"producer_byte_rate": 1_000.0}))
    assert wire.call(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN").error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert wire.call(ApiKey.WRITE_TXN_MARKERS, 1, markers=[]).markers == []


def test_others_do_not_wait(wire: Wire, own: RunningBroker) -> None:
    alter(wire, (WIRE, {"producer_byte_rate": 100.0}))
    assert wire.call(PRODUCE, 9, **produced(5_000)).throttle_time_ms > 10_000
    with Wire(own.bootstrap) as other:
        body = request_of(PRODUCE)(version=9, **produced(5_000))
        other.socket.sendall(encode_request(9, 1, "another", body))
        answer = other.receive(PRODUCE, 9, 1)
    assert answer.throttle_time_ms == 0


def test_a_producer_that_wants_no_answer_waits_too(wire: Wire) -> None:
    alter(wire, (WIRE, {"producer_byte_rate": 2_000.0}))
    before = time.monotonic()
    wire.send(PRODUCE, 9, **produced(4_000, acks=0))
    assert describe(wire)
    assert time.monotonic() - before >= 0.9


def test_a_fetch_over_the_quota_is_empty_and_the_records_come_later(wire: Wire) -> None:
    for _ in range(4):
        wire.call(PRODUCE, 9, **produced(1_000))
    alter(wire, (WIRE, {"consumer_byte_rate": 2_000.0}))
    throttled = wire.call(FETCH, 11, **fetched())
    assert throttled.error_code == ErrorCode.NONE
    assert throttled.responses == []
    assert throttled.throttle_time_ms >= 900
    before = time.monotonic()
    answer = wire.call(FETCH, 11, **fetched())
    assert time.monotonic() - before >= 0.8
    assert answer.throttle_time_ms == 0
    assert len(answer.responses[0].partitions[0].records) >= 4_000


def test_a_fetch_asks_for_no_more_than_the_quota_can_ever_give(wire: Wire) -> None:
    for _ in range(4):
        wire.call(PRODUCE, 9, **produced(1_000))
    alter(wire, (WIRE, {"consumer_byte_rate": 200.0}))
    sizes: list[int] = []
    while not sizes:
        answer = wire.call(FETCH, 11, **fetched(min_bytes=1 << 20, max_wait_ms=10_000))
        if answer.responses:
            sizes.append(len(answer.responses[0].partitions[0].records))
    assert sizes[0] < 2_200


def test_a_flood_of_heartbeats_is_told_to_wait_and_every_one_is_answered_in_order(wire: Wire) -> None:
    alter(wire, (WIRE, {"request_percentage": 0.1}))
    waits: list[int] = []
    began = time.monotonic()
    while not waits:
        # a quick machine answers many before they are a thousandth of its time
        assert time.monotonic() - began < 60
        last = wire.send_together(HEARTBEAT, 4, [beat()] * 100)
        before = time.monotonic()
        answers = [wire.receive(HEARTBEAT, 4, number) for number in range(last - 99, last + 1)]
        assert {answer.error_code for answer in answers} == {ErrorCode.UNKNOWN_MEMBER_ID}
        waits = [answer.throttle_time_ms for answer in answers if answer.throttle_time_ms]
    assert max(waits) <= 1_000
    assert time.monotonic() - before >= sum(waits[:-1]) / 1_000 * 0.9


WHO = {"transactional_id": "pay", "producer_id": 7, "producer_epoch": 0}
#: Requests of a producer that the coordinator does not know: they cost time as those of any other.
OF_TRANSACTIONS: dict[ApiKey, tuple[int, dict[str, Any]]] = {
    ApiKey.INIT_PRODUCER_ID: (4, {"transactional_id": "pay", "transaction_timeout_ms": 60_000}),
    ApiKey.ADD_PARTITIONS_TO_TXN: (
        3,
        {f"v3_and_below_{name}": value for name, value in WHO.items()}
        | {"v3_and_below_topics": [("t", [0])]},
    ),
    ApiKey.ADD_OFFSETS_TO_TXN: (3, WHO | {"group_id": "g"}),
    ApiKey.TXN_OFFSET_COMMIT: (4, WHO | {"group_id": "g", "topics": []}),
    ApiKey.END_TXN: (5, WHO | {"committed": True}),
    ApiKey.DESCRIBE_TRANSACTIONS: (0, {"transactional_ids": ["pay"]}),
    ApiKey.LIST_TRANSACTIONS: (0, {"state_filters": [], "producer_id_filters": []}),
    ApiKey.DESCRIBE_PRODUCERS: (0, {"topics": [("t", [0])]}),
}


def test_requests_of_transactions_are_told_to_wait_as_others(wire: Wire) -> None:
    for key, (version, fields) in OF_TRANSACTIONS.items():
        assert wire.call(key, version, **fields).throttle_time_ms == 0
    alter(wire, (WIRE, {"request_percentage": 0.01}))
    for key, (version, fields) in OF_TRANSACTIONS.items():
        # the first few are within the credit of a new client
        assert any(wire.call(key, version, **fields).throttle_time_ms > 0 for _ in range(50)), key


def test_without_a_quota_nobody_waits(wire: Wire) -> None:
    last = wire.send_together(HEARTBEAT, 4, [beat()] * 500)
    answers = [wire.receive(HEARTBEAT, 4, number) for number in range(last - 499, last + 1)]
    assert {answer.throttle_time_ms for answer in answers} == {0}


def test_a_quota_that_is_taken_away_delays_no_more(wire: Wire) -> None:
    alter(wire, (WIRE, {"producer_byte_rate": 100_000.0}))
    assert wire.call(PRODUCE, 9, **produced(150_000)).throttle_time_ms > 0
    alter(wire, (WIRE, {"producer_byte_rate": None}))
    assert wire.call(PRODUCE, 9, **produced(900_000)).throttle_time_ms == 0


def test_a_client_that_waits_may_still_leave(wire: Wire, own: RunningBroker) -> None:
    alter(wire, (WIRE, {"producer_byte_rate": 10.0}))
    with Wire(own.bootstrap) as leaving:
        assert leaving.call(PRODUCE, 9, **produced(5_000)).throttle_time_ms > 100_000
    # the broker's stop, in the fixture, would hang on a connection that waits for minutes


@pytest.mark.parametrize(("version", "strict"), [(5, False), (6, True)])
def test_topics_beyond_the_rate_are_refused_or_for_old_clients_delayed(
    own: RunningBroker, version: int, strict: bool
) -> None:
    with Wire(own.bootstrap) as wire:
        alter(wire, (WIRE, {"controller_mutation_rate": 2.0}))
        first = _created(wire, version, "a", 24)
        assert first.topics[0].error_code == ErrorCode.NONE
        if not strict:
            assert first.throttle_time_ms == pytest.approx(1_000, abs=100)
            return
        assert first.throttle_time_ms == 0
        second = _created(wire, version, "b", 1)
        assert second.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert 0 < second.throttle_time_ms <= 1_000
        assert _created(wire, version, "b", 1).topics[0].error_code == ErrorCode.NONE


def _created(wire: Wire, version: int, name: str, partitions: int) -> Any:
    topic = part(
        ApiKey.CREATE_TOPICS,
        version,
        "CreatableTopic",
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        assignments=[],
        configs=[],
    )
    return wire.call(ApiKey.CREATE_TOPICS, version, topics=[topic], timeout_ms=1_000, validate_only=False)


def test_ten_times_the_quota_ends_near_it_while_others_go_on(wire: Wire, own: RunningBroker) -> None:
    """The short form of the benchmark: one client at full speed, another untouched."""
    rate = 200_000.0
    alter(wire, (WIRE, {"producer_byte_rate": rate}))
    served, stop = [0], threading.Event()

    def flood() -> None:
        with Wire(own.bootstrap, timeout_s=60.0) as flooding:
            while not stop.is_set():
                flooding.call(PRODUCE, 9, **produced(20_000))
                served[0] += 20_000

    thread = threading.Thread(target=flood)
    begin = time.monotonic()
    thread.start()
    try:
        with Wire(own.bootstrap) as calm:
            while time.monotonic() - begin < 3.0:
                body = request_of(HEARTBEAT)(version=4, **beat())
                calm.socket.sendall(encode_request(4, 7, "calm", body))
                assert calm.receive(HEARTBEAT, 4, 7).throttle_time_ms == 0
                time.sleep(0.05)
    finally:
        stop.set()
        thread.join()
    elapsed = time.monotonic() - begin
    # one window is a new client's credit, the last answers were given before their delay
    assert served[0] <= rate * (elapsed + 1.0) + 3 * 20_000
    assert served[0] >= rate * 1.0
