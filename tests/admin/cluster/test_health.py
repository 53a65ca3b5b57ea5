"""``kohort cluster status --wait``: it ends when the next broker may be stopped, and says what it waits for.

Covers: admin/cluster/health.py.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Iterator
from typing import Any

import pytest

from kohort.admin.cluster import health
from kohort.client import Cluster
from kohort.testing import RunningCluster, running_cluster
from tests.admin.conftest import Ran, ran
from tests.ports import free_port

Wait = Callable[..., Ran]


@pytest.fixture(scope="module")
def cluster() -> Iterator[RunningCluster]:
    with running_cluster(3, replica_lag_time_max_ms=1_000) as running:
        running.create_topic("orders", 6)
        yield running


@pytest.fixture
def wait(cluster: RunningCluster, capsys: pytest.CaptureFixture[str]) -> Wait:
    """``wait(20)``: the command with this time limit."""

    def run(seconds: float, *words: object) -> Ran:
        options = ("status", "--wait", "--bootstrap", cluster.bootstrap, "--timeout", seconds, *words)
        return ran(capsys, ["cluster", *map(str, options)])

    return run


def lacking(bootstrap: str, wanted: Collection[int] = (), **options: Any) -> list[str]:
    """What one look finds."""

    async def look() -> list[str]:
        client = Cluster(bootstrap)
        try:
            return await health.find_lacks(client, wanted, **options)
        finally:
            await client.close()

    return asyncio.run(look())


def meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> threading.Thread:
    """Act in a thread as soon as the command has said what it waits for; the thread, which is joined then."""
    told = threading.Event()
    real = health.wait_until_whole

    async def telling(cluster: Any, timeout_s: float, tell: Callable[[list[str]], None], **more: Any) -> Any:
        def tell_and_go_on(lacking: list[str]) -> None:
            tell(lacking)
            told.set()

        return await real(cluster, timeout_s, tell_and_go_on, **more)

    monkeypatch.setattr(health, "wait_until_whole", telling)

    def run() -> None:
        assert told.wait(20)
        act()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def other_than_controller(cluster: RunningCluster) -> int:
    return next(number for number in cluster.brokers if number != cluster.controller)


def test_a_whole_cluster_is_shown_at_once(wait: Wait) -> None:
    assert len(wait(30, "--json").document["brokers"]) == 3
    shown = wait(30)
    assert (shown.code, "0 offline" in shown.out) == (0, True)


def test_it_waits_for_a_broker_that_is_away_and_ends_when_its_replicas_are_in_sync(
    cluster: RunningCluster, wait: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = other_than_controller(cluster)
    cluster.kill(gone)
    why = f"not in sync at broker {gone}, which is not registered: 6 partitions (orders-0,"
    ended = wait(2, "--json")
    assert ended.code == 1
    assert f"after 2 s still: {why}" in ended.err
    assert ended.document["lacking"][0].startswith(why)
    thread = meanwhile(monkeypatch, lambda: cluster.restart(gone))
    shown = wait(60)
    thread.join()
    assert shown.code == 0, shown.err
    assert f"(waits: {why}" in shown.err
    assert "lack replicas" not in shown.out


def test_it_waits_for_a_broker_that_counts_as_there_and_does_not_answer(cluster: RunningCluster) -> None:
    stands = other_than_controller(cluster)
    cluster.pause(stands)
    try:
        found = lacking(cluster.bootstrap, timeout_ms=1_000)
    finally:
        cluster.resume(stands)
    assert f"broker {stands} does not answer" in "; ".join(found)


def test_it_waits_until_all_brokers_know_the_same(
    cluster: RunningCluster, wait: Wait, capsys: pytest.CaptureFixture[str]
) -> None:
    assert wait(60).code == 0
    behind = other_than_controller(cluster)
    # its session lives on, and it hears of nothing
    cluster.cut_off(behind)
    try:
        to_controller = ("--bootstrap", cluster.brokers[cluster.controller].bootstrap)
        assert ran(capsys, ["topics", "create", "later", "--partitions", "1", *to_controller]).code == 0
        found = lacking(cluster.bootstrap)
    finally:
        cluster.heal()
    assert "know different states of 1 partition (later-0)" in "; ".join(found)
    assert wait(60).code == 0


def test_a_broker_that_was_never_there_is_missed_where_it_is_named(
    cluster: RunningCluster, wait: Wait
) -> None:
    assert wait(60, "--brokers", "1,2,3").code == 0
    assert lacking(cluster.bootstrap, [1, 2, 9]) == ["broker 9 is not registered"]


def test_the_first_replicas_must_lead_where_that_is_asked_for(
    cluster: RunningCluster, wait: Wait, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = other_than_controller(cluster)
    cluster.kill(gone)
    cluster.restart(gone)
    assert wait(60).code == 0
    (found,) = lacking(cluster.bootstrap, preferred=True)
    assert found.startswith("not led by their first replica: ")
    assert ran(capsys, ["cluster", "elect", "--bootstrap", cluster.bootstrap]).code == 0
    assert wait(60, "--preferred").code == 0


async def test_a_last_look_without_time_to_answer_accuses_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[list[str]] = []

    async def lacks(*_: object, timeout_ms: float, **__: object) -> list[str]:
        if not told:
            return ["broker 9 is not registered"]
        await asyncio.sleep(timeout_ms / 1_000 + 0.001)
        return ["broker 1 does not answer"]

    monkeypatch.setattr(health, "find_lacks", lacks)
    client: Any = None
    assert await health.wait_until_whole(client, 0.8, told.append) == ["broker 9 is not registered"]


@pytest.mark.parametrize("option", [("--brokers", "1"), ("--preferred",)])
def test_what_to_wait_for_needs_the_wait(
    cluster: RunningCluster, capsys: pytest.CaptureFixture[str], option: tuple[str, ...]
) -> None:
    refused = ran(capsys, ["cluster", "status", "--bootstrap", cluster.bootstrap, *option])
    assert (refused.code, "need --wait" in refused.err) == (2, True)


def test_brokers_that_do_not_answer_yet_are_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("status", "--wait", "--bootstrap", f"127.0.0.1:{free_port()}", "--timeout", "0.5")
    ended = ran(capsys, ["cluster", *words])
    assert (ended.code, "still: no broker answers (" in ended.err) == (1, True)


@pytest.mark.kafka
def test_a_broker_that_is_whole_ends_the_wait(bootstrap: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = ran(capsys, ["cluster", "status", "--wait", "--bootstrap", bootstrap, "--timeout", "20"])
    assert (shown.code, "0 offline" in shown.out) == (0, True)
