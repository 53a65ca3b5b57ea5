"""Transactions in both of their protocols: on kohort, and with ``--bootstrap`` on an Apache Kafka.

Covers: client/transactions.py.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from itertools import groupby
from typing import Any

import pytest

from kohort.client import Cluster, CommittedOffset
from kohort.client.errors import BrokerConnectionError
from kohort.client.requests import GROUP, TRANSACTION
from kohort.client.transactions import END_VERSION, end_transaction
from kohort.client.transactions import add_partitions as add_now
from kohort.producer import (
    ApplicationRecoverableError,
    GroupMetadata,
    Producer,
    ProducerFencedError,
    TransactionAbortableError,
    TransactionAbortedError,
    TransactionStateError,
)
from kohort.producer import transactions as transactions_module
from kohort.protocol import ApiKey, ErrorCode, KafkaError, TopicPartition
from tests.broker_process import BrokerProcess
from tests.producer.reading import read_values

pytestmark = pytest.mark.kafka

Topics = Callable[..., str]
Make = Callable[..., Producer]


@pytest.fixture
def topic(new_topic: Topics) -> str:
    return new_topic("one", partitions=1)


@pytest.fixture(params=["implicit", "announced"])
def protocol(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """KIP-890's transactions, and those before it: the broker takes both."""
    if request.param == "announced":
        monkeypatch.setattr(transactions_module, "_IMPLICIT_FROM", 99)
    return str(request.param)


@pytest.fixture
def make(bootstrap: str, protocol: str) -> Make:  # noqa: ARG001 - set before a producer is made
    def producer(name: str, **settings: Any) -> Producer:
        return Producer(
            **{"bootstrap_servers": bootstrap, "transactional_id": f"tx-{name}", "linger_ms": 0, **settings}
        )

    return producer


async def write(
    producer: Producer,
    topic: str,
    *values: bytes,
    offset: int | None = None,
    member: GroupMetadata | str = "",
    error: Exception | None = None,
) -> None:
    """One transaction, with an offset of the topic's partition 0, in which an error may be raised."""
    async with producer.transaction():
        for value in values:
            await producer.send(topic, value)
        if offset is not None:
            await producer.send_offsets({TopicPartition(topic, 0): offset}, member)
        if error is not None:
            await producer.flush()
            raise error


async def test_what_is_committed_is_read_and_what_is_aborted_is_not(
    bootstrap: str, new_topic: Topics, make: Make
) -> None:
    topic = new_topic("prod", partitions=3)
    async with make(topic) as producer:
        for number in range(9):
            producer.begin_transaction()
            for partition in range(3):
                await producer.send(topic, b"%d" % number, partition=partition)
            if number % 3 == 2:
                await producer.abort_transaction()
            else:
                await producer.commit_transaction()
    assert await read_values(bootstrap, topic) == [b"%d" % number for number in (0, 1, 3, 4, 6, 7)] * 3


async def test_an_exception_aborts_and_passes_on(bootstrap: str, topic: str, make: Make) -> None:
    async with make(topic) as producer:
        with pytest.raises(ValueError, match="mine"):
            await write(producer, topic, b"aborted", error=ValueError("mine"))
        async with producer.transaction():
            await producer.send(topic, b"committed")
    assert await read_values(bootstrap, topic) == [b"committed"]
    assert await read_values(bootstrap, topic, committed=False) == [b"aborted", b"committed"]


async def test_an_abort_drops_what_was_not_sent(bootstrap: str, topic: str, make: Make) -> None:
    async with make(topic, linger_ms=60_000) as producer:
        producer.begin_transaction()
        future = await producer.send(topic, b"x")
        await producer.abort_transaction()
        with pytest.raises(TransactionAbortedError):
            await future
    assert await read_values(bootstrap, topic, committed=False) == []


async def test_a_transaction_with_nothing_in_it(bootstrap: str, topic: str, make: Make) -> None:
    async with make(topic) as producer:
        for _ in range(3):
            async with producer.transaction():
                pass
        producer.begin_transaction()
        await producer.abort_transaction()
        async with producer.transaction():
            await producer.send(topic, b"x")
    assert await read_values(bootstrap, topic) == [b"x"]


async def test_offsets_are_committed_with_the_records(
    bootstrap: str, new_topic: Topics, make: Make, group: Callable[[str], str]
) -> None:
    topic, name = new_topic("prod"), group("billing")
    place = TopicPartition(topic, 0)
    async with make(topic) as producer, Cluster(bootstrap) as cluster:
        async with producer.transaction():
            await producer.send(topic, b"x")
            await producer.send_offsets({place: CommittedOffset(5, metadata="mine")}, name)
            assert await cluster.committed(name, require_stable=False) == {}
        assert await cluster.committed(name, [place]) == {place: CommittedOffset(5, metadata="mine")}
        with pytest.raises(ValueError, match="mine"):
            await write(producer, topic, offset=9, member=name, error=ValueError("mine"))
        assert (await cluster.committed(name, [place]))[place].offset == 5


async def test_offsets_of_a_former_member_can_only_be_aborted(
    bootstrap: str, new_topic: Topics, make: Make, group: Callable[[str], str]
) -> None:
    topic, name = new_topic("prod"), group("billing")
    async with make(topic) as producer:
        with pytest.raises(TransactionAbortableError, match=r"UNKNOWN_MEMBER_ID|ILLEGAL_GENERATION"):
            await write(producer, topic, b"lost", offset=1, member=GroupMetadata(name, 3, "gone"))
        async with producer.transaction():
            await producer.send(topic, b"kept")
    assert await read_values(bootstrap, topic) == [b"kept"]


async def test_a_newer_producer_fences_the_older_one(bootstrap: str, topic: str, make: Make) -> None:
    async with make(topic) as older:
        older.begin_transaction()
        await older.send_and_wait(topic, b"lost")
        async with make(topic) as newer:
            async with newer.transaction():
                await newer.send(topic, b"kept")
            with pytest.raises(KafkaError, match="INVALID_PRODUCER_EPOCH"):
                await older.send_and_wait(topic, b"late")
            with pytest.raises(TransactionAbortableError):
                await older.commit_transaction()
            with pytest.raises(ApplicationRecoverableError, match="make a new producer"):
                await older.abort_transaction()
            with pytest.raises(ProducerFencedError):
                older.begin_transaction()
    assert await read_values(bootstrap, topic) == [b"kept"]


async def test_a_record_that_is_refused_fails_the_transaction(
    bootstrap: str, new_topic: Topics, make: Make
) -> None:
    topic = new_topic("prod", partitions=1, max_message_bytes="2000")
    async with make(topic) as producer:
        with pytest.raises(TransactionAbortableError, match="MESSAGE_TOO_LARGE"):
            await write(producer, topic, b"small", b"x" * 5_000)
        async with producer.transaction():
            await producer.send(topic, b"kept")
    assert await read_values(bootstrap, topic) == [b"kept"]


@pytest.mark.parametrize("batch_size", [1_000, 16_384])
async def test_what_waits_behind_a_record_that_is_refused_is_dropped(
    bootstrap: str, new_topic: Topics, make: Make, batch_size: int
) -> None:
    topic = new_topic("prod", partitions=1, max_message_bytes="2000")
    async with make(topic, batch_size=batch_size) as producer:
        with pytest.raises(TransactionAbortableError, match="MESSAGE_TOO_LARGE"):
            await write(producer, topic, *[b"x" * 5_000] * 20)
    assert await read_values(bootstrap, topic) == []


async def test_after_a_failure_no_record_is_accepted_before_the_abort(new_topic: Topics, make: Make) -> None:
    topic = new_topic("prod", partitions=1, max_message_bytes="2000")
    async with make(topic) as producer:
        producer.begin_transaction()
        with pytest.raises(KafkaError):
            await producer.send_and_wait(topic, b"x" * 5_000)
        with pytest.raises(TransactionAbortableError, match="can only be aborted"):
            await producer.send(topic, b"y")
        await producer.abort_transaction()


async def test_calls_out_of_order_are_told(new_topic: Topics, make: Make) -> None:
    topic = new_topic("prod")
    async with make(topic) as producer:
        with pytest.raises(TransactionStateError, match="no transaction is open"):
            await producer.send(topic, b"x")
        with pytest.raises(TransactionStateError, match="no transaction is open"):
            await producer.commit_transaction()
        producer.begin_transaction()
        with pytest.raises(TransactionStateError, match="a transaction is open"):
            producer.begin_transaction()


async def test_close_aborts_what_is_open(bootstrap: str, topic: str, make: Make) -> None:
    async with make(topic) as producer:
        producer.begin_transaction()
        await producer.send_and_wait(topic, b"x")
    # it would not end with a transaction that is open
    assert await read_values(bootstrap, topic) == []


async def test_many_short_transactions_of_many_records(bootstrap: str, new_topic: Topics, make: Make) -> None:
    topic = new_topic("prod", partitions=4)
    wanted: list[bytes] = []
    async with make(topic, batch_size=300) as producer:
        for number in range(30):
            async with producer.transaction():
                for more in range(number * 3):
                    wanted.append(b"%d-%d" % (number, more))
                    await producer.send(topic, wanted[-1], b"%d" % (more % 7))
    found = await read_values(bootstrap, topic)
    assert sorted(map(bytes, filter(None, found))) == sorted(wanted)


async def test_a_transaction_left_open_is_ended_by_somebody_else(
    bootstrap: str, topic: str, make: Make
) -> None:
    async with make(topic) as producer:
        producer.begin_transaction()
        await producer.send(topic, b"x")
        transaction = await producer.detach_transaction()
        assert transaction is not None
    async with Cluster(bootstrap) as cluster:
        for _ in range(2):
            await cluster.retrying(
                lambda: end_transaction(cluster, transaction, commit=True, max_version=END_VERSION)
            )
    assert await read_values(bootstrap, topic) == [b"x"]


_KILLED = """
import asyncio, sys
from kohort.producer import Producer

async def main(bootstrap, topic):
    async with Producer(bootstrap_servers=bootstrap, transactional_id="tx-" + topic, linger_ms=0) as producer:
        for number in range(3):
            async with producer.transaction():
                await producer.send(topic, b"%d" % number)
        producer.begin_transaction()
        await producer.send_and_wait(topic, b"open")
        print("open", flush=True)
        await asyncio.sleep(600)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.slow(2)
async def test_a_producer_killed_within_a_transaction_leaves_nothing(
    bootstrap: str, topic: str, make: Make
) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _KILLED, bootstrap, topic, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"open\n"
    process.kill()
    await process.wait()
    async with make(topic) as producer, producer.transaction():
        await producer.send(topic, b"next")
    assert await read_values(bootstrap, topic) == [b"0", b"1", b"2", b"next"]


@pytest.mark.slow(5)
@pytest.mark.usefixtures("protocol")
async def test_a_broker_killed_under_transactions_commits_each_once_or_not_at_all(
    broker_process: BrokerProcess,
) -> None:
    async with Cluster(broker_process.bootstrap) as cluster:
        await cluster.create_topics({"orders": 2})
    done: list[bytes] = []

    async def work() -> None:
        async with Producer(
            bootstrap_servers=broker_process.bootstrap,
            transactional_id="tx",
            linger_ms=0,
            request_timeout_ms=5_000,
        ) as producer:
            for number in range(300):
                values = [b"%d-%d" % (number, more) for more in range(4)]
                while True:
                    try:
                        async with producer.transaction():
                            for value in values:
                                await producer.send("orders", value, value)
                    except TransactionAbortableError:
                        continue
                    break
                done.extend(values)

    working = asyncio.create_task(work())
    for _ in range(3):
        await asyncio.sleep(0.3)
        broker_process.kill()
        await asyncio.to_thread(broker_process.start)
    await working
    found = await read_values(broker_process.bootstrap, "orders")
    assert sorted(map(bytes, filter(None, found))) == sorted(done)


async def test_after_a_cancelled_commit_of_offsets_the_transaction_can_only_be_aborted(
    topic: str, make: Make
) -> None:
    async with make(topic) as producer:
        producer.begin_transaction()
        offsets = {TopicPartition(topic, 0): 1}
        sending = asyncio.create_task(producer.send_offsets(offsets, f"group-{topic}"))
        await asyncio.sleep(0)
        sending.cancel()
        await asyncio.wait([sending])
        with pytest.raises(TransactionAbortableError, match="cancelled"):
            await producer.commit_transaction()
        await producer.abort_transaction()


async def test_a_transaction_after_one_that_was_aborted_at_any_time_is_whole(
    bootstrap: str, topic: str, make: Make
) -> None:
    async with make(topic) as producer:
        for steps in range(12):
            producer.begin_transaction()
            await producer.send(topic, b"aborted")
            for _ in range(steps):  # its partition is being added, say
                await asyncio.sleep(0)
            await producer.abort_transaction()
            async with producer.transaction():
                await producer.send_and_wait(topic, b"%d" % steps)
    assert await read_values(bootstrap, topic) == [b"%d" % steps for steps in range(12)]


async def test_an_abort_waits_for_partitions_that_are_being_added(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Added late they would be of the next transaction, with an epoch that is over."""
    monkeypatch.setattr(transactions_module, "_IMPLICIT_FROM", 99)
    asked, may = asyncio.Event(), asyncio.Event()

    async def add_partitions(*arguments: Any) -> None:
        asked.set()
        await may.wait()
        await add_now(*arguments)

    async with Producer(bootstrap_servers=bootstrap, transactional_id=topic, linger_ms=0) as producer:
        with monkeypatch.context() as patch:
            patch.setattr(transactions_module, "add_partitions", add_partitions)
            producer.begin_transaction()
            await producer.send(topic, b"aborted")
            await asked.wait()
            aborting = asyncio.create_task(producer.abort_transaction())
            await asyncio.wait([aborting], timeout=0.3)
            assert not aborting.done()
            may.set()
            await aborting
        async with producer.transaction():
            await producer.send(topic, b"kept")
    assert await read_values(bootstrap, topic) == [b"kept"]


async def full(producer: Producer, topic: str, patch: pytest.MonkeyPatch) -> asyncio.Task[Any]:
    """Fill the producer's memory, in a transaction; a call of ``send`` that waits for room."""
    await producer.partitions_for(topic)
    producer.begin_transaction()
    patch.setattr(producer._cluster, "leader", lambda _: None)
    for _ in range(2):
        await producer.send(topic, b"x" * 1_000)
    late = asyncio.create_task(producer.send(topic, b"late" * 250))
    await asyncio.sleep(0)
    assert producer._in_line == 1
    return late


@pytest.mark.parametrize("another", [False, True])
async def test_a_call_that_waits_for_room_ends_with_its_transaction(
    bootstrap: str, topic: str, make: Make, monkeypatch: pytest.MonkeyPatch, *, another: bool
) -> None:
    async with make(topic, buffer_memory=3_000) as producer:
        with monkeypatch.context() as patch:
            late = await full(producer, topic, patch)
            await producer.abort_transaction()
            if another:
                producer.begin_transaction()
        with pytest.raises(TransactionStateError, match="ended before the record was accepted"):
            await late
        if not another:
            producer.begin_transaction()
        await producer.send(topic, b"kept")
        await producer.commit_transaction()
    assert await read_values(bootstrap, topic) == [b"kept"]


async def test_a_commit_takes_no_record_that_waits_for_room(
    topic: str, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with make(topic, buffer_memory=3_000) as producer:
        with monkeypatch.context() as patch:
            late = await full(producer, topic, patch)
            committing = asyncio.create_task(producer.commit_transaction())
            await asyncio.sleep(0)
        producer._sender.wake()  # type: ignore[union-attr]
        with pytest.raises(TransactionStateError, match="ended before the record was accepted"):
            await late
        await committing


async def test_a_call_that_waits_for_its_topic_ends_with_its_transaction(
    bootstrap: str, topic: str, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    may, original = asyncio.Event(), Cluster.metadata

    async def metadata(*arguments: Any, **named: Any) -> Any:
        await may.wait()
        return await original(*arguments, **named)

    async with make(topic) as producer:
        monkeypatch.setattr(Cluster, "metadata", metadata)
        producer.begin_transaction()
        late = asyncio.create_task(producer.send(topic, b"late"))
        await asyncio.sleep(0)
        await producer.abort_transaction()
        producer.begin_transaction()
        may.set()
        with pytest.raises(TransactionStateError, match="ended before the record was accepted"):
            await late
        await producer.send(topic, b"kept")
        await producer.commit_transaction()
    assert await read_values(bootstrap, topic) == [b"kept"]


async def test_a_group_is_added_once_and_only_in_the_older_protocol(
    new_topic: Topics, make: Make, group: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    asked: list[tuple[ApiKey, int | None]] = []
    original = Cluster.request_coordinator

    async def request(cluster: Cluster, key: str, body: Any, **settings: Any) -> Any:
        asked.append((ApiKey(body.API_KEY), settings.get("max_version")))
        return await original(cluster, key, body, **settings)

    topic, name = new_topic("prod", partitions=1), group("billing")
    offsets = {TopicPartition(topic, 0): 1}
    async with make(topic) as producer:
        monkeypatch.setattr(Cluster, "request_coordinator", request)
        for _ in range(2):
            async with producer.transaction():
                await producer.send_offsets(offsets, name)
                await producer.send_offsets(offsets, name)
    added, bound = ([], None) if protocol == "implicit" else ([(ApiKey.ADD_OFFSETS_TO_TXN, None)], 4)
    wanted = [*added, (ApiKey.TXN_OFFSET_COMMIT, bound), (ApiKey.END_TXN, bound)]
    # the same is asked again while the end of the transaction before is being written
    assert [one for one, _ in groupby(asked)] == wanted * 2


@pytest.mark.parametrize("call", ["add_partitions", "add_offsets", "commit_offsets", "end_transaction"])
async def test_a_coordinator_that_has_moved_is_looked_for(
    bootstrap: str,
    new_topic: Topics,
    group: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
    call: str,
) -> None:
    monkeypatch.setattr(transactions_module, "_IMPLICIT_FROM", 99)
    topic, name = new_topic("prod", partitions=1), group("billing")
    original = getattr(transactions_module, call)
    refused, forgotten = False, []

    async def moved_once(*arguments: Any, **settings: Any) -> Any:
        nonlocal refused
        if not refused:
            refused = True
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return await original(*arguments, **settings)

    def forget(_: Cluster, key: str, key_type: int = 0) -> None:
        forgotten.append((key, key_type))

    monkeypatch.setattr(transactions_module, call, moved_once)
    monkeypatch.setattr(Cluster, "forget_coordinator", forget)
    async with Producer(bootstrap_servers=bootstrap, transactional_id=topic, linger_ms=0) as producer:
        await write(producer, topic, b"x", offset=1, member=name)
    assert forgotten == [(name, GROUP) if call == "commit_offsets" else (topic, TRANSACTION)]
    assert await read_values(bootstrap, topic) == [b"x"]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.PRODUCER_FENCED, ProducerFencedError),
        (ErrorCode.INVALID_PRODUCER_EPOCH, ProducerFencedError),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, ApplicationRecoverableError),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, KafkaError),
    ],
)
async def test_which_error_a_producer_ends_with(
    topic: str, make: Make, monkeypatch: pytest.MonkeyPatch, code: ErrorCode, kind: type[Exception]
) -> None:
    async def refused(*_: Any, **__: Any) -> None:
        raise KafkaError(code, "ending it")

    async with make(topic) as producer:
        producer.begin_transaction()
        await producer.send_and_wait(topic, b"x")
        monkeypatch.setattr(transactions_module, "end_transaction", refused)
        with pytest.raises(kind, match=f"{code.name}.*ending it") as caught:
            await producer.commit_transaction()
        assert type(caught.value) is kind
        cause = caught.value if kind is KafkaError else caught.value.__cause__
        assert isinstance(cause, KafkaError)
        assert cause.code is code
        with pytest.raises(kind):
            producer.begin_transaction()


@pytest.mark.parametrize("commit", [True, False])
async def test_an_end_whose_outcome_is_not_known_can_be_asked_for_again_and_no_other(
    bootstrap: str, topic: str, make: Make, monkeypatch: pytest.MonkeyPatch, *, commit: bool
) -> None:
    async def lost(*_: Any, **__: Any) -> None:
        raise BrokerConnectionError(bootstrap, "connection reset by peer")

    async with make(topic, max_block_ms=300) as producer:
        producer.begin_transaction()
        await producer.send_and_wait(topic, b"x")
        ends = [producer.abort_transaction, producer.commit_transaction]
        with monkeypatch.context() as patch:
            patch.setattr(transactions_module, "end_transaction", lost)
            with pytest.raises(BrokerConnectionError):
                await ends[commit]()
        asked, other = ("commit", "abort") if commit else ("abort", "commit")
        with pytest.raises(TransactionStateError, match=f"repeat the {asked}, nothing else") as refused:
            await ends[not commit]()
        assert other not in str(refused.value)
        await ends[commit]()
        async with producer.transaction():
            await producer.send(topic, b"y")
    assert await read_values(bootstrap, topic) == [b"x", b"y"][not commit :]


async def test_a_batch_of_a_producer_that_was_replaced_ends_it(topic: str, make: Make) -> None:
    async with make(topic) as producer:
        producer.begin_transaction()
        await producer.send_and_wait(topic, b"x")
        assert producer._transactions is not None
        producer._transactions.on_failed(KafkaError(ErrorCode.PRODUCER_FENCED, "a batch"))
        for _ in range(2):
            with pytest.raises(ProducerFencedError, match=r"PRODUCER_FENCED.*a batch"):
                await producer.send(topic, b"y")


async def test_a_producer_whose_transaction_was_left_to_somebody_is_at_its_end(
    topic: str, make: Make
) -> None:
    async with make(topic) as producer:
        producer.begin_transaction()
        assert await producer.detach_transaction() is None
        with pytest.raises(TransactionStateError, match="detached, to be ended elsewhere"):
            producer.begin_transaction()


async def test_an_abort_gives_the_next_epoch(topic: str, make: Make) -> None:
    async with make(topic) as producer:
        assert producer._transactions is not None
        producer.begin_transaction()
        await producer.send_and_wait(topic, b"x")
        before = producer._transactions.current.producer
        await producer.abort_transaction()
        assert producer._transactions.current.producer > before
