"""The operator's commands on three brokers: asked at one that is not the controller, known to all of them."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from kohort.testing import RunningCluster, running_cluster
from tests.admin.conftest import Ran, ran
from tests.waiting import wait_until

RULES = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
At = Callable[..., Ran]


@pytest.fixture(scope="module")
def cluster() -> Iterator[RunningCluster]:
    with running_cluster(3, authorizer_class_name=RULES, super_users="User:ANONYMOUS") as running:
        yield running


@pytest.fixture
def at(cluster: RunningCluster, capsys: pytest.CaptureFixture[str]) -> At:
    """``at(2, "acls", "list")``: a command that begins with this broker."""

    def run(number: int, *words: object) -> Ran:
        to = cluster.brokers[number].bootstrap
        return ran(capsys, [*map(str, words), "--bootstrap", to, "--timeout", "20"])

    return run


def test_a_change_at_any_broker_is_known_to_all(
    cluster: RunningCluster, at: At, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = next(number for number in cluster.brokers if number != cluster.controller)
    monkeypatch.setattr("sys.stdin", io.StringIO("secret\n"))
    for change, shown, told in (
        (
            ["acls", "add", "--allow", "billing", "--operation", "Read", "--topic", "orders"],
            ["acls", "list"],
            "User:billing",
        ),
        (["users", "add", "alice"], ["users", "list"], "alice"),
        (["quotas", "set", "--user", "alice", "producer_byte_rate=5"], ["quotas", "list"], "user alice"),
        (
            ["configs", "set", "--group", "billing", "consumer.session.timeout.ms=50000"],
            ["configs", "list"],
            "group billing",
        ),
        (["configs", "set", "--all-brokers", "log.retention.ms=7"], ["configs", "list"], "all brokers"),
        (["cluster", "features", "share.version=0", "--execute"], ["cluster", "features"], "share.version 0"),
    ):
        done = at(one, *change)
        assert done.code == 0, done
        for number in cluster.brokers:
            wait_until(partial(_tells, at, number, shown, told), f"broker {number}: {told}")


def _tells(at: At, number: int, words: list[str], told: str) -> bool:
    return any(" ".join(row).startswith(told) for row in at(number, *words).rows())


def test_a_setting_of_one_broker_is_asked_and_changed_there(at: At) -> None:
    assert at(1, "configs", "set", "--broker", 2, "--broker", 3, "log.segment.bytes=2000000").code == 0
    each = ("--broker", 1, "--broker", 2, "--broker", 3)
    found = at(3, "configs", "list", *each, "--json").document["configs"]
    assert [(row["resource_name"], row["value"]) for row in found] == [("2", "2000000"), ("3", "2000000")]


def test_records_are_deleted_at_the_leaders_of_their_partitions(cluster: RunningCluster, at: At) -> None:
    cluster.create_topic("goes", 3)
    assert {cluster.leader_of("goes", number) for number in range(3)} == {1, 2, 3}
    from kafka import KafkaProducer

    with KafkaProducer(bootstrap_servers=cluster.bootstrap.split(",")) as producer:
        for number in range(9):
            producer.send("goes", b"value", partition=number % 3)
    done = at(1, "topics", "delete-records", "goes", "--before-offset", 2, "--execute", "--json").document
    assert [(row["partition"], row["new_start_offset"], row["error"]) for row in done["partitions"]] == [
        (number, 2, None) for number in range(3)
    ]
    found = at(2, "topics", "describe", "goes", "--json").document["topics"][0]["partitions"]
    assert [row["start_offset"] for row in found] == [2, 2, 2]
