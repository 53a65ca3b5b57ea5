"""``kohort problems``: what is wrong with brokers, partitions, disks and certificates, of any make.

Covers: admin/cluster/problem_commands.py.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme

from kohort.admin.cluster.problems import find_problems
from kohort.client import Cluster
from kohort.consumer import AsyncGroupConsumer
from kohort.testing import RunningCluster, running_broker, running_cluster
from tests.admin.conftest import Ran, ran
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
            return [f"{each.kind}: {each.text}" for each in await find_problems(client)]

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
            found = await find_problems(client)
        assert {each.kind for each in found} <= {"DiskFills", "GroupBehind"}
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
