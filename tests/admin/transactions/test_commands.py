"""``kohort transactions``: what is open, what it holds back, and the end of what hangs.

Covers: admin/transactions/open_transactions.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from kohort.admin.transactions import open_transactions
from kohort.admin.transactions.open_transactions import find_hanging
from kohort.client import Cluster
from kohort.client.errors import BrokerConnectionError
from kohort.producer import Producer
from kohort.protocol import ApiKey, ErrorCode, KafkaError
from tests.admin.conftest import Ran, ran
from tests.producer.reading import read_values

pytestmark = pytest.mark.kafka

Topics = Callable[..., str]
Command = Callable[..., Ran]


@pytest.fixture
def transactions(bootstrap: str, capsys: pytest.CaptureFixture[str]) -> Command:
    """``transactions("list")``: ``kohort transactions`` on the tests' cluster."""

    def run(*words: Any, to: str = bootstrap) -> Ran:
        return ran(capsys, ["transactions", "--bootstrap", to, "--timeout", "20", *map(str, words)])

    return run


async def test_an_open_transaction_is_listed_and_described(
    bootstrap: str, new_topic: Topics, transactions: Command
) -> None:
    topic = new_topic("txn", partitions=2)
    name = f"open-{topic}"
    async with Producer(bootstrap_servers=bootstrap, transactional_id=name, linger_ms=0) as producer:
        async with producer.transaction():
            await producer.send(topic, b"0", partition=0)
        producer.begin_transaction()
        for _ in range(3):
            await producer.send_and_wait(topic, b"1", partition=0)
        await producer.send_and_wait(topic, b"1", partition=1)

        listed = await asyncio.to_thread(transactions, "--json", "list", "--open")
        (row,) = [row for row in listed.document if row["transactional_id"] == name]
        assert row["state"] == "Ongoing"
        closed = await asyncio.to_thread(transactions, "--json", "list", "--state", "completecommit")
        assert name not in [row["transactional_id"] for row in closed.document]

        found = (await asyncio.to_thread(transactions, "--json", "describe", name)).document
        assert (found["state"], found["partitions"]) == ("Ongoing", [f"{topic}-0", f"{topic}-1"])
        assert found["open_ms"] >= 0
        assert [(p["partition"], p["start_offset"], p["held_back"]) for p in found["holds_back"]] == [
            (0, 2, 3),
            (1, 0, 1),
        ]
        shown = await asyncio.to_thread(transactions, "describe", name)
        assert ["state", "Ongoing"] in shown.rows()
        assert [topic, "0", "2", "3"] in shown.rows()
        assert ["TRANSACTIONAL", "ID", "STATE", "PRODUCER", "COORDINATOR"] in (
            await asyncio.to_thread(transactions, "list")
        ).rows()
        async with Cluster(bootstrap) as cluster:
            assert await find_hanging(cluster, [topic]) == [], "its coordinator knows of it"


async def test_a_transaction_with_a_deleted_topic_is_described(
    bootstrap: str, new_topic: Topics, transactions: Command
) -> None:
    topic, gone = new_topic("kept", partitions=1), new_topic("gone", partitions=1)
    name = f"open-{topic}"
    async with Producer(bootstrap_servers=bootstrap, transactional_id=name, linger_ms=0) as producer:
        producer.begin_transaction()
        for each in (topic, gone):
            await producer.send_and_wait(each, b"1")
        admin = AdminClient({"bootstrap.servers": bootstrap})
        await asyncio.to_thread(admin.delete_topics([gone])[gone].result, 20)
        found = (await asyncio.to_thread(transactions, "--json", "describe", name)).document
    assert found["partitions"] == [f"{gone}-0", f"{topic}-0"]
    assert [row["topic"] for row in found["holds_back"]] == [topic]


async def test_a_topic_that_is_not_there_is_told(transactions: Command) -> None:
    found = await asyncio.to_thread(transactions, "abort", "--topic", "not-there")
    assert found.code == 1
    assert "topic 'not-there'" in found.err


async def test_a_transactional_id_that_nobody_has_is_told(transactions: Command) -> None:
    found = await asyncio.to_thread(transactions, "describe", "nobody")
    assert (found.code, found.out) == (1, "")
    assert "TRANSACTIONAL_ID_NOT_FOUND" in found.err


def test_a_state_that_is_none_is_told(transactions: Command) -> None:
    found = transactions("list", "--state", "asleep")
    assert found.code == 2
    assert "'asleep' is no state of a transaction: give Empty, Ongoing" in found.err


async def test_nothing_hangs(new_topic: Topics, transactions: Command) -> None:
    topic = new_topic("txn")
    found = await asyncio.to_thread(transactions, "abort", "--topic", topic, "--older-than", "0")
    assert (found.code, found.out) == (0, "")
    assert "no transaction hangs" in found.err


async def test_what_no_coordinator_knows_of_is_found_and_ended(
    bootstrap: str, new_topic: Topics, transactions: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def forgotten(*_: object) -> list[object]:
        return []

    monkeypatch.setattr(open_transactions, "list_transactions", forgotten)
    topic = new_topic("txn", partitions=2)
    abort = ["--json", "abort", "--topic", topic]
    async with Producer(bootstrap_servers=bootstrap, transactional_id=topic, linger_ms=0) as producer:
        producer.begin_transaction()
        await producer.send_and_wait(topic, b"1", partition=0)
        await producer.send_and_wait(topic, b"2", partition=1)

        young = await asyncio.to_thread(transactions, *abort)
        assert (young.code, young.document) == (0, [])
        found = await asyncio.to_thread(transactions, *abort, "--older-than", "0")
        assert found.code == 1
        assert [(row["where"]["partition"], row["aborted"]) for row in found.document] == [
            (0, False),
            (1, False),
        ]
        shown = await asyncio.to_thread(transactions, *abort[1:], "--older-than", "0", "--partition", "1")
        assert [row[:4] for row in shown.rows()[1:]] == [[topic, "1", "0", "1"]]
        assert "nothing was changed" in shown.err

        producer_id = found.document[0]["where"]["producer_id"]
        which = ["--older-than", "0", "--producer-id", producer_id, "--execute"]
        ended = await asyncio.to_thread(transactions, *abort, *which)
        assert ended.code == 0
        assert [row["aborted"] for row in ended.document] == [True, True]
        assert await read_values(bootstrap, topic) == [], "readers are past them"
        none = await asyncio.to_thread(transactions, *abort, "--older-than", "0")
        assert none.document == []


@pytest.mark.parametrize("arrives", [False, True])
async def test_a_marker_is_written_once_though_the_connection_is_cut(
    bootstrap: str,
    new_topic: Topics,
    transactions: Command,
    monkeypatch: pytest.MonkeyPatch,
    *,
    arrives: bool,
) -> None:
    async def forgotten(*_: object) -> list[object]:
        return []

    asked: list[ApiKey] = []
    request = Cluster.request

    async def cut(self: Cluster, node: int | None, key: ApiKey, body: Any, **options: Any) -> Any:
        asked.append(key)
        if asked.count(ApiKey.WRITE_TXN_MARKERS) != 1 or key is not ApiKey.WRITE_TXN_MARKERS:
            return await request(self, node, key, body, **options)
        if arrives:
            await request(self, node, key, body, **options)
        raise BrokerConnectionError(bootstrap, "connection reset by peer")

    monkeypatch.setattr(open_transactions, "list_transactions", forgotten)
    topic = new_topic("txn")
    async with Producer(bootstrap_servers=bootstrap, transactional_id=topic, linger_ms=0) as producer:
        producer.begin_transaction()
        await producer.send_and_wait(topic, b"1", partition=0)
        monkeypatch.setattr(Cluster, "request", cut)
        words = ["--json", "abort", "--topic", topic, "--older-than", "0", "--execute"]
        ended = await asyncio.to_thread(transactions, *words)
    assert (ended.code, [row["aborted"] for row in ended.document]) == (0, [True])
    assert asked.count(ApiKey.WRITE_TXN_MARKERS) == (1 if arrives else 2)
    assert await read_values(bootstrap, topic) == []


async def test_what_was_ended_is_shown_though_the_next_cannot_be(
    bootstrap: str, new_topic: Topics, transactions: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def forgotten(*_: object) -> list[object]:
        return []

    end = open_transactions.abort_hanging

    async def refused(cluster: Cluster, where: Any) -> None:
        if where.partition == 1:
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "ending it")
        await end(cluster, where)

    monkeypatch.setattr(open_transactions, "list_transactions", forgotten)
    monkeypatch.setattr(open_transactions, "abort_hanging", refused)
    topic = new_topic("txn", partitions=2)
    async with Producer(bootstrap_servers=bootstrap, transactional_id=topic, linger_ms=0) as producer:
        producer.begin_transaction()
        for number in range(2):
            await producer.send_and_wait(topic, b"1", partition=number)
        words = ["abort", "--topic", topic, "--older-than", "0", "--execute"]
        found = await asyncio.to_thread(transactions, *words)
    assert found.code != 0
    assert "CLUSTER_AUTHORIZATION_FAILED" in found.err
    assert [(row[1], row[-1]) for row in found.rows()[1:]] == [("0", "ended"), ("1", "hangs")]
