"""The blocking producer: records of several threads, errors in futures, transactions."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest
from kafka import KafkaAdminClient

from kohort.client import BrokerConnectionError
from kohort.producer import (
    BlockingProducer,
    ProducerClosedError,
    ProducerError,
    RecordTooLargeError,
    TransactionAbortableError,
    TransactionStateError,
)
from kohort.protocol import KafkaError
from tests.producer.reading import read_values

pytestmark = pytest.mark.kafka

Topics = Callable[..., str]


def values(bootstrap: str, topic: str) -> list[bytes | None]:
    return asyncio.run(read_values(bootstrap, topic))


def test_records_are_written_in_order_and_futures_say_where(bootstrap: str, new_topic: Topics) -> None:
    topic = new_topic("prod", partitions=1)
    with BlockingProducer(bootstrap_servers=bootstrap) as producer:
        futures = [producer.send(topic, b"%d" % number) for number in range(5_000)]
        producer.flush()
        assert all(future.done() for future in futures)
        assert [future.result().offset for future in futures] == list(range(5_000))
        assert producer.send_and_wait(topic, b"last", b"key", 0).offset == 5_000
        assert producer.partitions_for(topic) == 1
    assert values(bootstrap, topic) == [*(b"%d" % number for number in range(5_000)), b"last"]


def test_threads_share_it(bootstrap: str, new_topic: Topics) -> None:
    topic = new_topic("prod", partitions=4)
    with BlockingProducer(bootstrap_servers=bootstrap) as producer:

        def work(partition: int) -> None:
            for number in range(500):
                producer.send(topic, b"%d" % number, partition=partition)

        threads = [threading.Thread(target=work, args=[partition]) for partition in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert values(bootstrap, topic) == [b"%d" % number for number in range(500)] * 4


def test_errors_are_in_the_futures(bootstrap: str, new_topic: Topics) -> None:
    topic = new_topic("prod")
    with BlockingProducer(bootstrap_servers=bootstrap, max_request_size=1_000) as producer:
        with pytest.raises(RecordTooLargeError):
            producer.send(topic, b"x" * 2_000).result()
        with pytest.raises(TransactionStateError):
            producer.begin_transaction()
        assert producer.send_and_wait(topic, b"x").offset == 0


def test_a_future_that_is_cancelled_takes_nothing_with_it(bootstrap: str, new_topic: Topics) -> None:
    topic = new_topic("prod", partitions=1)
    with BlockingProducer(bootstrap_servers=bootstrap, max_block_ms=500) as producer:
        producer.send_and_wait(topic, b"first")
        refused = producer.send(topic, b"x", partition=7)
        refused.cancel()  # too late: it was handed over
        futures = [producer.send(topic, b"%d" % number) for number in range(10)]
        assert [future.result(30).offset for future in futures] == list(range(1, 11))
        with pytest.raises(KafkaError):
            refused.result()


def test_a_partition_that_does_not_exist_yet_holds_up_no_other_topic(
    bootstrap: str, new_topic: Topics
) -> None:
    topic, small = new_topic("prod", partitions=1), new_topic("small", partitions=1)
    with BlockingProducer(bootstrap_servers=bootstrap) as producer:
        early = [producer.send(small, b"%d" % number, partition=1) for number in range(3)]
        wrong = producer.send(["a list"], b"x")  # type: ignore[arg-type]
        assert producer.send(topic, b"first").result(30).offset == 0
        assert not any(future.done() for future in early)
        with pytest.raises(TypeError):
            wrong.result(30)
        with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
            admin.create_partitions({small: 2})
        producer.flush()  # waits for those too
        assert [future.result(30).offset for future in early] == [0, 1, 2]


def test_records_that_wait_for_what_never_comes_wait_together(bootstrap: str, new_topic: Topics) -> None:
    small = new_topic("small", partitions=1)
    with BlockingProducer(bootstrap_servers=bootstrap, max_block_ms=1_000) as producer:
        # one after the other they would take more than a minute
        wrong = [producer.send(small, b"x", partition=number) for number in (7, *[8] * 60)]
        errors = [future.exception(30) for future in wrong]
        assert "not number 7" in str(errors[0])
        assert all("not number 8" in str(error) for error in errors[1:])
        assert producer.send(small, b"x").result(30).offset == 0


def test_a_close_in_a_hurry_gives_up_what_waits_for_its_topic(bootstrap: str, new_topic: Topics) -> None:
    small = new_topic("small", partitions=1)
    producer = BlockingProducer(bootstrap_servers=bootstrap)
    producer.start()
    late = [producer.send(small, b"x", partition=7) for _ in range(3)]
    producer.close(timeout_ms=200)
    assert [type(future.exception(0)) for future in late] == [ProducerClosedError] * 3


def test_a_callback_may_send_and_is_told_not_to_wait(bootstrap: str, new_topic: Topics) -> None:
    topic = new_topic("prod", partitions=1)
    errors: list[Exception] = []
    with BlockingProducer(bootstrap_servers=bootstrap) as producer:

        def more(_: object) -> None:
            for number in range(5_000):
                producer.send(topic, b"%d" % number)
            for wait in (producer.flush, producer.close):
                try:
                    wait()
                except ProducerError as error:
                    errors.append(error)

        producer.send(topic, b"first").add_done_callback(more)
        while len(errors) < 2:
            producer.flush()
    assert all("cannot wait" in str(error) for error in errors)
    assert len(values(bootstrap, topic)) == 5_001


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_process_that_was_forked_is_told_to_make_its_own(bootstrap: str) -> None:
    with BlockingProducer(bootstrap_servers=bootstrap) as producer:
        child = os.fork()
        if not child:
            signal.alarm(10)
            try:
                producer.send("orders", b"x")
            except ProducerClosedError as error:
                producer.close()  # as the end of the block does
                os._exit(0 if "parent process" in str(error) else 1)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _fail_within(producer: BlockingProducer, topic: str) -> None:
    with producer.transaction():
        producer.send(topic, b"aborted")
        raise ValueError("mine")


def test_transactions(bootstrap: str, new_topic: Topics) -> None:
    topic = new_topic("prod", partitions=1)
    with BlockingProducer(bootstrap_servers=bootstrap, transactional_id=topic) as producer:
        with producer.transaction():
            producer.send(topic, b"committed")
            producer.send_offsets({(topic, 0): 1}, f"group-{topic}")  # type: ignore[dict-item]
        with pytest.raises(ValueError, match="mine"):
            _fail_within(producer, topic)
    assert values(bootstrap, topic) == [b"committed"]


@pytest.mark.parametrize(
    "record",
    [{"partition": 7}, {"value": b"x" * 2_000_000}, {"value": "text"}, {"headers": [(1, b"")]}],
    ids=["no such partition", "too large", "no bytes", "a header without a name"],
)
def test_a_transaction_of_which_a_record_was_refused_is_not_committed(
    bootstrap: str, new_topic: Topics, record: dict[str, object]
) -> None:
    topic = new_topic("prod", partitions=1)
    with BlockingProducer(bootstrap=bootstrap, transactional_id=topic, max_block_ms=300) as producer:
        with pytest.raises(TransactionAbortableError):
            _send_within(producer, {"topic": topic, "value": b"good"}, {"topic": topic, **record})
        _send_within(producer, {"topic": topic, "value": b"the next one"})
    assert values(bootstrap, topic) == [b"the next one"]


def test_a_transaction_of_which_a_record_cannot_be_encoded_is_not_committed(
    bootstrap: str, new_topic: Topics
) -> None:
    topic = new_topic("prod", partitions=1)
    with BlockingProducer(bootstrap=bootstrap, transactional_id=topic, encode=int) as producer:
        with pytest.raises(TransactionAbortableError):
            _send_within(producer, {"topic": topic, "value": 7}, {"topic": topic, "value": "seven"})
        _send_within(producer, {"topic": topic, "value": 8})
    assert values(bootstrap, topic) == [b"8"]


def _send_within(producer: BlockingProducer, *records: dict[str, Any]) -> None:
    with producer.transaction():
        for record in records:
            producer.send(**record)


def test_before_its_start_and_after_its_end_it_takes_nothing(bootstrap: str) -> None:
    producer = BlockingProducer(bootstrap_servers=bootstrap)
    with pytest.raises(ProducerClosedError, match="was not started"):
        producer.send("orders", b"x")
    with producer:
        pass
    with pytest.raises(ProducerClosedError, match="has been closed"):
        producer.send("orders", b"x")
    producer.close()


def test_a_broker_that_is_not_there_is_told() -> None:
    with pytest.raises(BrokerConnectionError):
        BlockingProducer(bootstrap_servers="localhost:1", max_block_ms=100).start()
