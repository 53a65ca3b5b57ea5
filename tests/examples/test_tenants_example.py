"""The assignor of the examples, as a user would go about it: package, test, score, roll out."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic

from kohort.assignors import available_assignors
from kohort.consumer import AsyncGroupConsumer
from kohort.consumer.events import RebalanceCompleted
from tests.broker_process import BrokerProcess
from tests.consumer.conftest import member  # noqa: F401 - a fixture
from tests.consumer.members import Maker, Worker
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "tenants"
PAGE = ROOT / "docs" / "assignors.md"

Name = Callable[[str], str]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the example's package is installed in, as built from its own pyproject.toml."""
    source, site = tmp_path_factory.mktemp("source") / "tenants", tmp_path_factory.mktemp("site")
    shutil.copytree(EXAMPLE, source)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    offline = ["--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*pip, *offline, "--target", str(site), str(source)], check=True, timeout=250)
    return site


def run(site: Path, *words: str) -> str:
    """What a Python that has the package printed."""
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); import runpy; sys.argv.pop(0)\n"
    code += "runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
    done = subprocess.run(
        [sys.executable, "-c", code, str(site), *words],
        capture_output=True,
        text=True,
        timeout=250,
        cwd=EXAMPLE,
        env={**os.environ, "COLUMNS": "200"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_page_shows_the_examples_code() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (shown,) = (block for block in blocks if "(Assignor)" in block)
    code = (EXAMPLE / "kohort_tenants.py").read_text()
    assert shown.strip() in code
    body = shown[shown.index("class ") : shown.index("\n\n\ndef serves")].splitlines()
    assert len([line for line in body if line]) <= 20


@pytest.mark.slow(2)
def test_installed_it_is_found_by_its_name(installed: Path) -> None:
    printed = run(installed, "kohort", "assignors", "list")
    assert re.search(r"^tenants +kohort-tenants 1\.0 +1 +eager +Assigns a tenant", printed, re.MULTILINE)


@pytest.mark.slow(3)
def test_it_passes_the_suite(installed: Path) -> None:
    printed = run(
        installed, "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(EXAMPLE), str(EXAMPLE)
    )
    assert re.search(r"^\d\d passed in", printed, re.MULTILINE)


@pytest.mark.slow(2)
def test_it_is_scored_beside_others(installed: Path) -> None:
    words = ("kohort", "assignors", "compare", "tenants", "sticky", "--file", "billing.yaml", "--json")
    tenants, sticky = json.loads(run(installed, *words))["trials"]
    assert (tenants["moved"], tenants["after"]["most"]) == (7, 5)
    assert (sticky["after"]["least"], sticky["after"]["most"]) == (3, 3)
    assert run(installed, "kohort", "assignors", "try", "--assignor", "tenants", "--file", "billing.yaml")


def _protocols(consumers: Sequence[AsyncGroupConsumer]) -> set[str]:
    """What each member's last generation ran under."""
    rounds = [[e for e in one.events.recent if isinstance(e, RebalanceCompleted)] for one in consumers]
    return {done[-1].protocol if done else "" for done in rounds}


@pytest.mark.kafka
async def test_it_is_rolled_out_member_by_member(
    installed: Path,
    monkeypatch: pytest.MonkeyPatch,
    member: Maker,  # noqa: F811
    topic: Name,
    bootstrap: str,
    group: Name,
    produce: Callable[..., None],
) -> None:
    """range, then both, then tenants alone; records come all the time, and each is read."""
    from kafka import KafkaAdminClient

    monkeypatch.syspath_prepend(installed)
    importlib.invalidate_caches()
    assert "tenants" in available_assignors()
    # a tenant is what stands before the dot
    acme, zeta = topic("acme").replace("acme-", "acme."), topic("zeta").replace("zeta-", "zeta.")
    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        row = {"num_partitions": 3, "replication_factor": 1, "configs": {}}
        admin.create_topics({acme: row, zeta: row}, wait_for_metadata=True)
    name, tenants = group("billing"), ("acme", "zeta", "acme+zeta")
    running: list[Worker] = []
    ended: list[Worker] = []
    sent = 0

    async def start(assignor: object) -> Worker:
        return Worker(await member(acme, zeta, group=name, assignor=assignor))

    def send() -> None:
        nonlocal sent
        for wanted in (acme, zeta):
            produce(wanted, range(sent, sent + 12), partitions=3)
        sent += 12

    async def replace_all(assignors: Sequence[object]) -> None:
        for assignor in assignors:
            leaving = running.pop(0)
            await leaving.stop()
            ended.append(leaving)
            running.append(await start(assignor))
            await settled()
            send()

    async def settled() -> None:
        def shared_out() -> bool:
            held = [partition for worker in running for partition in worker.consumer.assignment()]
            return len(held) == len(set(held)) == 6 and len(_protocols(consumers())) == 1

        await until(shared_out)

    def consumers() -> list[AsyncGroupConsumer]:
        return [worker.consumer for worker in running]

    running += [await start("range") for _ in tenants]
    await settled()
    send()
    await replace_all([[f"tenants?serves={served}", "range"] for served in tenants])
    await until(lambda: _protocols(consumers()) == {"tenants"})
    await replace_all([f"tenants?serves={served}" for served in tenants])
    await settled()

    assert _protocols(consumers()) == {"tenants"}
    readers = {
        name: {p.topic for p in w.consumer.assignment()} for name, w in zip(tenants, running, strict=True)
    }
    assert readers["acme"] <= {acme}
    assert readers["zeta"] <= {zeta}

    def every() -> list[int]:
        return sorted(number for worker in [*ended, *running] for number in worker.seen)

    await until(lambda: set(every()) == set(range(sent)) and len(every()) >= 2 * sent)
    for worker in running:
        await worker.stop()


@pytest.mark.clients
def test_in_the_coordinator_members_get_the_topics_of_their_tenants(installed: Path, tmp_path: Path) -> None:
    code = f"import sys; sys.path.insert(0, {str(installed)!r}); from kohort.cli import main; main()"
    broker = BrokerProcess(
        tmp_path,
        data=tmp_path / "data",
        program=("-c", code),
        settings={
            "group.consumer.assignors": "uniform,tenants",
            "group.consumer.min.heartbeat.interval.ms": "100",
            "group.consumer.heartbeat.interval.ms": "100",
            "group.consumer.assignment.interval.ms": "0",
        },
    )
    broker.start()
    try:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        topics = ["acme.orders", "zeta.orders"]
        for made in admin.create_topics([NewTopic(topic, 3, 1) for topic in topics]).values():
            made.result()
        members = {}
        for tenant in ("acme", "zeta"):
            members[tenant] = Consumer(
                {
                    "bootstrap.servers": broker.bootstrap,
                    "group.id": "billing",
                    "client.id": tenant,
                    "group.protocol": "consumer",
                    "group.remote.assignor": "tenants",
                }
            )
            members[tenant].subscribe(topics)
        wanted = {tenant: {(f"{tenant}.orders", number) for number in range(3)} for tenant in members}
        end = time.monotonic() + 60
        has: dict[str, set[tuple[str, int]]] = {}
        while has != wanted:
            assert time.monotonic() < end, (has, broker.log)
            for consumer in members.values():
                consumer.poll(0.1)
            has = {name: {(p.topic, p.partition) for p in m.assignment()} for name, m in members.items()}
        for consumer in members.values():
            consumer.close()
    finally:
        broker.stop()
