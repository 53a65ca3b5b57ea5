"""``kohort problems``: what is wrong with brokers, partitions, disks and certificates, of any make.

Covers: admin/cluster/problem_commands.py.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme

from kohort.admin.cluster.problems import find_problems
from kohort.admin.transactions import open_transactions
from kohort.broker.metrics._exposer import exposition
from kohort.broker.partitions.hang_watch import HangWatch
from kohort.client import Cluster
from kohort.consumer import AsyncGroupConsumer, Record
from kohort.problems import find_in_metrics, read_samples
from kohort.producer import Producer
from kohort.service.letters.deadletter import error_headers
from kohort.testing import RunningCluster, running_broker, running_cluster
from tests.admin.conftest import Ran, ran
from tests.broker.apis.share_members import RELEASE, ShareMember
from tests.broker.share_requests import join_share_group
from tests.broker.wire import Wire, batch, create_topic
from tests.broker.wire import produce as write
from tests.metrics_process import metrics_process

Command = Callable[..., Ran]


@pytest.fixture(scope="module")
def cluster() -> Iterator[RunningCluster]:
    with running_cluster(3) as running:
        yield running


@pytest.fixture
def metrics() -> Iterator[list[str]]:
    with metrics_process() as texts:
        yield texts


@pytest.fixture
def command(cluster: RunningCluster, capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*words: object) -> Ran:
        options = ["--bootstrap", cluster.bootstrap, "--timeout", "20"]
        return ran(capsys, ["problems", *options, *map(str, words)])

    return run


def test_a_whole_cluster_has_none(command: Command) -> None:
    found = command()
    assert (found.code, found.out) == (0, "")
    assert "nothing is wrong" in found.err
    assert command("--json").document == []


def test_what_a_broker_that_is_gone_leaves_is_told_until_it_is_back(
    cluster: RunningCluster, command: Command
) -> None:
    cluster.create_topic("ledger", 2, min_insync_replicas="3")
    gone = next(number for number in cluster.brokers if number != cluster.controller)
    cluster.kill(gone)
    found = command("--json")
    assert found.code == 1
    starved, lacking = found.document
    assert (starved["problem"], starved["severity"]) == ("PartitionsUnderMinIsr", "page")
    assert starved["text"].startswith(
        "2 partitions (ledger-0, ledger-1) have fewer replicas in sync than min."
    )
    assert (lacking["problem"], lacking["about"]) == ("PartitionsUnderReplicated", f"broker {gone}")
    assert lacking["runbook"] == "docs/runbook.md#partitionsunderreplicated"
    shown = command()
    assert [row[:2] for row in shown.rows()[1:3]] == [
        ["page", starved["problem"]],
        ["warn", lacking["problem"]],
    ]
    assert "docs/runbook.md" in shown.out
    assert [each["problem"] for each in command("--json", "--page").document] == ["PartitionsUnderMinIsr"]
    cluster.restart(gone)
    cluster.wait_in_sync("ledger")
    assert command("--json").document == []


def test_a_disk_that_takes_no_writes_and_a_broker_that_does_not_answer_are_told(
    cluster: RunningCluster, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster.brokers[2]._broker.topics.logs.disk, "failing", True)
    (full,) = command("--json").document
    assert (full["problem"], full["about"]) == ("DiskRefusesWrites", "broker 2")
    with monkeypatch.context() as hanging:
        hanging.setattr(HangWatch, "hanging_s", 12.5)
        found = command("--json").document
    assert [(each["problem"], each["about"]) for each in found] == [
        ("DiskRefusesWrites", "broker 2"),
        ("DiskHangs", "broker 1"),
        ("DiskHangs", "broker 3"),
    ]

    async def ask(_: Cluster, node_id: int, __: float) -> TimeoutError:
        return TimeoutError(f"{node_id} is silent")

    monkeypatch.setattr("kohort.admin.cluster.problems.ask_view", ask)
    found = command("--json").document
    assert [(each["problem"], each["about"]) for each in found] == [
        ("BrokerDown", f"broker {number}") for number in (1, 2, 3)
    ]
    assert found[1]["text"] == "it is registered and does not answer: 2 is silent"


def test_metrics_are_looked_at_too_and_what_has_grown_between_two_looks(
    command: Command, metrics: list[str]
) -> None:
    address = metrics.pop()
    letters = 'kohort_handler_dead_letters_total{group="billing",handler="bill"} %d\n'
    metrics += [letters % 1, letters % 3 + 'kohort_service_live{group="billing"} 0\n']
    found = command("--json", "--metrics", address, "--over", "0.01")
    assert found.code == 1
    assert [(each["problem"], each["about"]) for each in found.document] == [
        ("ServiceStandsStill", f"{address} group billing"),
        ("DeadLetters", address),
    ]
    (still,) = command("--json", "--metrics", f"http://{address}/metrics").document
    assert still["problem"] == "ServiceStandsStill"


@pytest.mark.parametrize("is_of_cluster", [True, False])
def test_what_a_broker_and_its_metrics_tell_is_one_problem(
    cluster: RunningCluster,
    command: Command,
    metrics: list[str],
    monkeypatch: pytest.MonkeyPatch,
    is_of_cluster: bool,
) -> None:
    broker = cluster.brokers[2]
    address = metrics.pop()
    monkeypatch.setattr(broker._broker.topics.logs.disk, "failing", True)
    text = exposition(broker._broker.metrics())[0].decode()
    metrics.append(text if is_of_cluster else text.replace('cluster_id="', 'cluster_id="other-'))
    found = command("--json", "--metrics", address).document
    seen = [(each["problem"], each["about"]) for each in found]
    told = [("DiskRefusesWrites", name) for name in (address, "broker 2")]
    assert [each for each in seen if each[0] == "DiskRefusesWrites"] == told[1 if is_of_cluster else 0 :]


def test_metrics_that_cannot_be_had_are_remarked_and_an_exit_code(
    command: Command, metrics: list[str]
) -> None:
    address = metrics.pop()
    metrics.append("<html>")
    found = command("--metrics", address, "--metrics", "127.0.0.1:1")
    assert found.code == 3
    assert f"no metrics at {address}: this is no line of metrics: '<html>'" in found.err
    assert "no metrics at 127.0.0.1:1: [Errno" in found.err
    wrong = command("--over", "-1")
    assert (wrong.code, "'-1': give seconds, at most 3600" in wrong.err) == (2, True)


def test_the_certificate_that_a_broker_shows_is_looked_at(tmp_path: Path) -> None:
    authority = trustme.CA()
    ends = datetime.now(UTC) + timedelta(days=3)
    issued = authority.issue_cert("127.0.0.1", "localhost", not_after=ends)
    keystore = tmp_path / "server.pem"
    keystore.write_bytes(issued.private_key_and_cert_chain_pem.bytes())
    trust = ssl.create_default_context()
    authority.configure_trust(trust)

    async def look(bootstrap: str, context: ssl.SSLContext) -> list[str]:
        async with Cluster(bootstrap, ssl_context=context) as client:
            return [f"{each.kind}: {each.text}" for each in (await find_problems(client)).found]

    unchecked = ssl.create_default_context()
    unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
    with running_broker(listeners="SSL://127.0.0.1:0", ssl_keystore_location=str(keystore)) as broker:
        found = asyncio.run(look(broker.bootstrap, trust))
        assert asyncio.run(look(broker.bootstrap, unchecked)) == []
    assert found == ["CertificateEnds: a certificate ends in 3.0 days"]


@pytest.mark.kafka
async def test_brokers_of_any_make_are_asked_and_groups_that_are_behind_are_told(
    bootstrap: str,
    new_topic: Callable[..., str],
    group: Callable[[str], str],
    produce: Callable[..., None],
    member: Callable[..., Awaitable[AsyncGroupConsumer]],
) -> None:
    topic, name = new_topic("jobs", partitions=1), group("slow")
    produce(topic, {0: 3})

    async def told() -> list[str]:
        async with Cluster(bootstrap) as client:
            found = (await find_problems(client)).found
        # other tests' groups and transactions may have problems, too
        assert {each.kind for each in found} <= {
            *("DiskFills", "GroupBehind", "TransactionHangs", "SharePartitionStalls", "LastDeliveries"),
            "DeadLetters",
        }
        return [each.text for each in found if each.about == f"group {name}"]

    consumer = await member(topic, group=name, enable_auto_commit=False)
    records = await consumer.getmany(max_records=3, timeout_ms=30_000)
    consumer.done(records[0])
    await consumer.commit()
    (behind,) = await told()
    assert behind.startswith("2 records are unread, the oldest for ")
    consumer.done_all(records[1:])
    await consumer.commit()
    assert await told() == []


@pytest.mark.kafka
async def test_letters_that_came_lately_are_told_of_topics_with_such_names(
    bootstrap: str, new_topic: Callable[..., str]
) -> None:
    topics = [new_topic(name, partitions=2) for name in ("jobs.DLT", "dead-letters", "jobs")]
    record = Record("jobs", 0, 17, 1_700_000_000_000, b"k", b"v")
    headers = error_headers(record, ValueError("odd"), 3, "billing")
    async with Producer(bootstrap=bootstrap) as producer, Cluster(bootstrap) as client:
        for topic in topics:
            for _ in range(2):
                await producer.send_and_wait(topic, b"v", headers=headers, partition=1)
        # no letter, though its topic is called so
        await producer.send_and_wait(other := new_topic("not-dlt", partitions=1), b"v")
        found = (await find_problems(client)).found
    told = {each.about: each.text for each in found if each.kind == "DeadLetters"}
    ours = {
        about: text for about, text in told.items() if about in {f"topic {each}" for each in (*topics, other)}
    }
    assert sorted(ours) == sorted(f"topic {topic}" for topic in topics[:2])
    assert all(text.startswith("2 records are set aside, the newest for ") for text in ours.values())


@pytest.mark.kafka
async def test_a_transaction_that_no_coordinator_knows_is_told_once_it_is_older_than_any_may_be(
    bootstrap: str, new_topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = new_topic("bills", partitions=1)

    async def told() -> list[tuple[str, str]]:
        async with Cluster(bootstrap) as client:
            found = (await find_problems(client)).found
        return [(each.kind, each.text) for each in found if each.about == f"topic {topic}"]

    async def forgotten(*_: object) -> list[object]:
        return []

    hour_ago_ms = time.time_ns() // 1_000_000 - 3_600_000
    async with Producer(bootstrap_servers=bootstrap, transactional_id=topic, linger_ms=0) as producer:
        producer.begin_transaction()
        await producer.send_and_wait(topic, b"1", timestamp_ms=hour_ago_ms)
        assert await told() == [], "its coordinator will end it"
        with monkeypatch.context() as lost:
            lost.setattr(open_transactions, "list_transactions", forgotten)
            lost.setattr("kohort.admin.cluster.problems._longest_transaction_ms", longest_of(7_200_000))
            assert await told() == [], "it may be open for so long"
            lost.undo()
            lost.setattr(open_transactions, "list_transactions", forgotten)
            ((kind, text),) = await told()
        await producer.abort_transaction()
    assert kind == "TransactionHangs"
    assert text.startswith(f"1 partition ({topic}-0) has a transaction open that no coordinator knows")
    assert ": 1 offsets are held back from readers of committed records until" in text
    assert f"`kohort transactions abort --topic {topic} --execute`" in text


def longest_of(limit_ms: int) -> Callable[[Cluster], Awaitable[int]]:
    async def longest(_: Cluster) -> int:
        return limit_ms

    return longest


async def test_a_share_partition_that_stands_still_and_last_deliveries_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kohort.broker.share.share_watch._STALLED_LOCKS", 0)
    with running_broker(group_share_delivery_count_limit=2) as broker, Wire(broker.bootstrap) as wire:
        place = create_topic(wire, "jobs").topic_id
        join_share_group(wire, "queue", "m1", "jobs")
        with ShareMember(broker.bootstrap, "queue", "m1") as one:
            one.fetch(place, 0, max_records=2, share_acquire_mode=1)  # it begins at the end
            write(wire, "jobs", batch(3))
            one.fetch(max_records=2, share_acquire_mode=1)
            one.acknowledge(place, (0, 1, [RELEASE]))
            one.fetch(max_records=1, share_acquire_mode=1)
            async with Cluster(broker.bootstrap) as client:
                await find_problems(client)  # the first look at it finds where it stands
                found = [each for each in (await find_problems(client)).found if each.about == "group queue"]
            assert [each.kind for each in found] == ["GroupBehind", "SharePartitionStalls", "LastDeliveries"]
            del found[0]  # the records have old times
            assert "1 partition (jobs-0) has records in flight and no progress for " in found[0].text
            assert found[1].text.startswith("1 partition (jobs-0) has 1 records on their last delivery")
            samples = read_samples(exposition(broker._broker.metrics())[0].decode())
            assert samples["kohort_share_group_last_deliveries_total"] == [({"group": "queue"}, 1.0)]
            assert [(each.kind, each.about) for each in find_in_metrics(samples, "", 0.0)] == [
                ("SharePartitionStalls", "group queue")
            ]
