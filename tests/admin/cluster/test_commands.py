"""``kohort cluster``: brokers and missing replicas are shown, replicas moved, leaders elected."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kohort.broker.partitions.hang_watch import HangWatch
from kohort.testing import RunningCluster, running_cluster
from tests.admin.conftest import Ran, ran

Command = Callable[..., Ran]


@pytest.fixture(scope="module")
def cluster() -> Iterator[RunningCluster]:
    with running_cluster(3, racks=["a", "b"], replica_lag_time_max_ms=1_000) as running:
        yield running


@pytest.fixture
def command(cluster: RunningCluster, capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*words: object) -> Ran:
        options = ["--bootstrap", cluster.bootstrap, "--timeout", "20"]
        return ran(capsys, ["cluster", *options, *map(str, words)])

    return run


def test_brokers_and_missing_replicas_are_shown(cluster: RunningCluster, command: Command) -> None:
    cluster.create_topic("shown", 6)
    found = command("status", "--json").document
    assert (found["partitions"], found["offline"], found["under_replicated"]) == (6, 0, [])
    assert [(b["node_id"], b["rack"], b["leads"], b["replicas"]) for b in found["brokers"]] == [
        (1, "a", 2, 6),
        (2, "b", 2, 6),
        (3, "a", 2, 6),
    ]
    assert all(0 < b["disk"]["free_bytes"] < b["disk"]["total_bytes"] for b in found["brokers"])
    controller = cluster.controller
    assert [b["node_id"] for b in found["brokers"] if b["controller"]] == [controller]
    gone = next(number for number in cluster.brokers if number != controller)
    cluster.kill(gone)
    found = command("status", "--json").document
    assert len(found["under_replicated"]) == 6
    assert all(gone not in each["in_sync"] and each["leader"] for each in found["under_replicated"])
    shown = command("status")
    assert shown.code == 0
    assert "6 partitions, 0 offline" in shown.out
    assert "partitions that lack replicas:" in shown.out
    cluster.restart(gone)
    cluster.wait_in_sync("shown")
    assert "lack replicas" not in command("status").out


def test_a_broker_whose_disk_refuses_writes_is_shown(
    cluster: RunningCluster, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = cluster.brokers[2]._broker.topics.logs.disk
    monkeypatch.setattr(disk, "failing", True)
    found = command("status", "--json").document
    assert {each["node_id"] for each in found["brokers"] if each["disk"]["failing"]} == {2}
    assert command("status").out.count("refuses writes") == 1


def test_a_broker_whose_disk_hangs_is_shown(
    cluster: RunningCluster, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HangWatch, "hanging_s", 12.5)
    monkeypatch.setattr(cluster.brokers[1]._broker.topics.logs.disk, "failing", True)
    found = command("status", "--json").document
    assert {each["node_id"] for each in found["brokers"] if each["disk"]["hanging"]} == {2, 3}
    assert command("status").out.count("hangs") == 2


def test_replicas_are_moved_as_planned_and_first_ones_lead(cluster: RunningCluster, command: Command) -> None:
    cluster.create_topic("moved", 3)
    planned = command("reassign", "moved", "--brokers", "3,1", "--replication-factor", 2)
    assert [(row[1], len(row[2]), row[3]) for row in planned.rows()[1:]] == [
        ("0", 5, "3,1"),
        ("1", 5, "1,3"),
        ("2", 5, "3,1"),
    ]
    assert len(cluster.state("moved", 0).replicas) == 3
    words = ("reassign", "moved", "--brokers", "3,1", "--replication-factor", 2, "--execute")
    begun = command(*words, "--partition", 0)
    assert (begun.code, begun.rows()[1:]) == (0, [["moved", "0", "begun"]])
    cluster._eventually(lambda: cluster.state("moved", 0).replicas == (3, 1) or None)
    assert command("elect", "moved").rows()[1:] == [["moved", "0", "elected"]]
    assert cluster.leader_of("moved", 0) == 3
    assert command("elect").code == 0
    planned = command("reassign", "moved", "--brokers", "3,9", "--replication-factor", 2)
    assert (planned.code, "no broker 9 is registered" in planned.err) == (0, True)
    refused = command("reassign", "moved", "--brokers", "3,9", "--replication-factor", 2, "--execute")
    assert refused.code == 1
    assert "INVALID_REPLICA_ASSIGNMENT" in refused.out


def test_a_reassignment_that_waits_is_shown_and_cancelled(cluster: RunningCluster, command: Command) -> None:
    leader, waits = (number for number in cluster.brokers if number != cluster.controller)
    cluster.create_topic("waits", 1)
    command("reassign", "waits", "--brokers", leader, "--replication-factor", 1, "--execute")
    cluster._eventually(lambda: cluster.state("waits", 0).replicas == (leader,) or None)
    cluster.cut(leader, waits)
    command("reassign", "waits", "--brokers", waits, "--execute")
    [moving] = command("status", "--json").document["reassignments"]
    assert (moving["adding"], moving["removing"], moving["missing"]) == ([waits], [leader], [waits])
    assert "reassignments:" in command("status").out
    assert command("reassign", "waits", "--cancel").rows()[1:] == [["waits", "0", "cancelled"]]
    assert command("reassign", "waits", "--cancel").code == 0
    cluster.heal()


def test_a_throttle_lasts_until_nothing_moves(cluster: RunningCluster, command: Command) -> None:
    one, other, third = cluster.brokers
    cluster.create_topic("slow", 2)
    first = ("reassign", "slow", "--brokers", one, "--replication-factor", 1, "--execute")
    assert command(*first).code == 0
    cluster._eventually(lambda: all(cluster.state("slow", n).replicas == (one,) for n in (0, 1)) or None)
    cluster.produce("slow", [b"x" * 100_000 for _ in range(20)], partition=0)
    words = ("reassign", "slow", "--brokers", f"{other},{third}", "--execute")
    assert command(*words, "--throttle", 1000, "--partition", 0).code == 0

    def throttles() -> list[object]:
        found = cluster._image(cluster.controller).topic("slow")
        assert found is not None
        rates = [cluster._part(n).follower_throttle._rate() for n in (1, 2, 3)]
        sides = ("leader", "follower")
        return [*(found.configs.get(f"{side}_replication_throttled_replicas") for side in sides), *rates]

    unlimited = 2**63 - 1
    rates = [1000 if n in (one, other) else unlimited for n in (1, 2, 3)]
    cluster._eventually(lambda: throttles() == [f"0:{one}", f"0:{other}", *rates] or None)
    shown = command("reassign", "slow", "--verify")
    assert (shown.code, shown.rows()[1:]) == (1, [["slow", "0", "moving"], ["slow", "1", "done"]])
    assert throttles()[0] == f"0:{one}"
    # what moves already counts with what is added
    assert command(*words, "--throttle", 10**9, "--partition", 1).code == 0
    cluster._eventually(lambda: throttles()[:2] == [f"0:{one},1:{one}", f"0:{other},1:{third}"] or None)
    cluster._eventually(
        lambda: [cluster.state("slow", n).replicas for n in (0, 1)] == [(other,), (third,)] or None
    )
    shown = command("reassign", "slow", "--verify")
    assert (shown.code, [row[2] for row in shown.rows()[1:]]) == (0, ["done", "done"])
    assert "throttles of slow are removed" in shown.err + shown.out
    cluster._eventually(lambda: throttles() == [None, None, *[unlimited] * 3] or None)
    assert command("reassign", "slow", "--verify", "--json").document["partitions"][0]["result"] == "done"


def settled(cluster: RunningCluster, topic: str, brokers: set[int]) -> None:
    """Wait until both partitions of a topic are on these brokers."""
    cluster._eventually(lambda: all(set(cluster.state(topic, n).replicas) == brokers for n in (0, 1)) or None)


def test_all_replicas_of_a_broker_move_to_others_and_it_has_none(
    cluster: RunningCluster, command: Command
) -> None:
    one, other, third = cluster.brokers
    for topic in ("first", "second"):
        cluster.create_topic(topic, 2)
        two = f"{one},{other}"
        assert command("reassign", topic, "--brokers", two, "--replication-factor", 2, "--execute").code == 0
        settled(cluster, topic, {one, other})
    planned = command("reassign", "first", "--from", one, "--json").document["plan"]
    assert [(each["replicas"], each["then"]) for each in planned] == [
        ([one, other], [third, other]),
        ([other, one], [other, third]),
    ]
    begun = command("reassign", "first", "--from", one, "--execute", "--throttle", 10**9)
    assert (begun.code, [row[2] for row in begun.rows()[1:]]) == (0, ["begun", "begun"])
    settled(cluster, "first", {other, third})
    ended = command("reassign", "first", "--from", one, "--verify")
    assert ended.code == 0
    assert f"broker {one} has no replicas" in ended.err
    assert "throttles of first are removed" in ended.err
    not_begun = command("reassign", "--from", one, "--verify")
    assert not_begun.code == 1
    assert ["second", "0", "not", "begun"] in not_begun.rows()
    assert command("reassign", "first", "--from", one).code == 0
    fewer = command("reassign", "second", "--from", one, "--replication-factor", 1, "--json").document["plan"]
    assert [each["then"] for each in fewer] == [[other], [other]]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("reassign", "moved"), "give --brokers, or --verify, or --cancel"),
        (("reassign", "--execute"), "name a topic, or the broker"),
        (("reassign", "--from", "1", "--verify", "--cancel"), "give --verify or --cancel"),
        (("reassign", "--from", "1", "--partition", "0"), "name the topic"),
        (("reassign", "moved", "--from", "1"), "no other broker for that of 1"),
        (("reassign", "moved", "--brokers", "1", "--cancel"), "give --brokers, or --verify, or --cancel"),
        (("reassign", "moved", "--brokers", "1", "--throttle", "9"), "--throttle needs --execute"),
        (("reassign", "moved", "--brokers", "1,1"), "no list of brokers"),
        (("reassign", "moved", "--brokers", "1", "--replication-factor", "2"), "2 replicas need 2 brokers"),
        (("reassign", "missing", "--brokers", "1"), "does not exist"),
        (("reassign", "moved", "--brokers", "1", "--partition", "9"), "has no partition 9"),
        (("elect", "--partition", "1"), "name the topic"),
    ],
)
def test_what_cannot_be_done_is_told(
    cluster: RunningCluster, command: Command, words: tuple[str, ...], why: str
) -> None:
    if "moved" in words and "moved" not in {topic.name for topic in cluster._image(1).topics()}:
        cluster.create_topic("moved", 3)
    refused = command(*words)
    assert refused.code in (1, 2)
    assert why in refused.err
