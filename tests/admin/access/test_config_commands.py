"""``kohort configs``: configs of topics, groups and brokers, on kohort's broker and on Apache Kafka.

Covers: admin/access/configs.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.admin.access.conftest import Command

pytestmark = pytest.mark.kafka

Names = Callable[[str], str]


def configs(operator: Command, *words: object) -> list[tuple[str, str, str, str | None]]:
    """Kind and name of each resource, name and value of each config that is set on it."""
    found = operator("configs", "list", *words, "--json").document["configs"]
    return [
        (row["resource"], row["resource_name"], row["name"], row["value"])
        for row in found
        # which a new Apache Kafka sets for all brokers
        if (row["resource_name"], row["name"]) != ("", "min.insync.replicas")
    ]


@pytest.fixture
def name(operator: Command, topic: Names) -> str:
    """A topic."""
    made = topic("orders")
    operator("topics", "create", made)
    return made


@pytest.fixture
def broker(operator: Command) -> Iterator[str]:
    """The node id of a broker, which has no config of its own afterwards."""
    node = str(operator("cluster", "status", "--json").document["brokers"][0]["node_id"])
    yield node
    for where in (["--broker", node], ["--all-brokers"]):
        for _, _, key, _ in configs(operator, *where):
            operator("configs", "delete", *where, key)


def test_configs_of_a_topic_are_set_shown_and_deleted(operator: Command, name: str) -> None:
    done = operator("configs", "set", "--topic", name, "retention.ms=3600000", "cleanup.policy=compact")
    assert done.code == 0, done.err
    assert done.rows()[1:] == [
        ["topic", name, "retention.ms", "set"],
        ["topic", name, "cleanup.policy", "set"],
    ]
    assert configs(operator, "--topic", name) == [
        ("topic", name, "cleanup.policy", "compact"),
        ("topic", name, "retention.ms", "3600000"),
    ]
    assert ["topic", name, "retention.ms", "3600000", "topic"] in operator("configs", "list").rows()
    assert operator("configs", "delete", "--topic", name, "retention.ms").code == 0
    assert configs(operator, "--topic", name) == [("topic", name, "cleanup.policy", "compact")]
    every = operator("configs", "list", "--topic", name, "--all").rows()
    assert ["topic", name, "cleanup.policy", "compact", "topic"] in every
    assert "default" in {row[-1] for row in every}


def test_configs_of_a_group(operator: Command, group: Names) -> None:
    its = group("odd ü,=group")
    assert operator("configs", "set", "--group", its, "consumer.session.timeout.ms=50000").code == 0
    assert configs(operator, "--group", its) == [("group", its, "consumer.session.timeout.ms", "50000")]
    assert ("group", its, "consumer.session.timeout.ms", "50000") in configs(operator)
    assert operator("configs", "delete", "--group", its, "consumer.session.timeout.ms").code == 0
    assert configs(operator, "--group", its) == []


def test_a_broker_and_the_default_of_all(operator: Command, broker: str) -> None:
    assert operator("configs", "set", "--broker", broker, "log.retention.ms=1000000").code == 0
    assert operator("configs", "set", "--all-brokers", "log.retention.ms=2000000").code == 0
    assert configs(operator, "--broker", broker) == [("broker", broker, "log.retention.ms", "1000000")]
    assert configs(operator, "--all-brokers") == [("broker", "", "log.retention.ms", "2000000")]
    shown = operator("configs", "list").rows()
    assert ["all", "brokers", "log.retention.ms", "2000000", "cluster,", "dynamic"] in shown
    assert ["broker", broker, "log.retention.ms", "1000000", "broker,", "dynamic"] in shown


def test_what_is_secret_is_hidden_and_comes_from_a_file(
    operator: Command, broker: str, tmp_path: Path, name: str
) -> None:
    every = operator("configs", "list", "--broker", broker, "--all", "--json").document["configs"]
    secret = [row for row in every if row["sensitive"]]
    assert secret
    assert {row["value"] for row in secret} == {None}
    assert "(hidden)" in operator("configs", "list", "--broker", broker, "--all").out
    file = tmp_path / "value"
    file.write_text("7200000\n")
    assert operator("configs", "set", "--topic", name, "--from-file", f"retention.ms={file}").code == 0
    assert configs(operator, "--topic", name) == [("topic", name, "retention.ms", "7200000")]


@pytest.mark.parametrize(
    ("where", "config", "said"),
    [
        ("--topic", "retention.msec=1", "did you mean retention.ms?"),
        ("--topic", "retention.ms=soon", "INVALID_CONFIG"),
        ("--group", "consumer.session.timeout=1", "did you mean consumer.session.timeout.ms?"),
        ("--broker", "log.retention.mss=1", "did you mean log.retention.ms?"),
        ("--all-brokers", "log.retention.mss=1", "did you mean log.retention.ms?"),
    ],
)
def test_a_wrong_name_or_value_is_told_and_nothing_is_set(
    operator: Command, name: str, broker: str, where: str, config: str, said: str
) -> None:
    words = {"--topic": [name], "--group": [name], "--broker": [broker], "--all-brokers": []}[where]
    found = operator("configs", "set", where, *words, config)
    assert found.code == 1
    assert said in found.out
    assert configs(operator, where, *words) == []


def test_each_resource_is_changed_for_itself(operator: Command, name: str, topic: Names) -> None:
    words = ("--topic", topic("missing"), "--topic", name, "retention.ms=5000")
    found = operator("configs", "set", *words, "--json")
    assert found.code == 1
    assert [row["result"] for row in found.document["configs"]] == ["failed", "set"]
    assert found.document["configs"][0]["error_code"] == 3
    assert configs(operator, "--topic", name) == [("topic", name, "retention.ms", "5000")]


def test_a_dry_run_changes_nothing(operator: Command, name: str) -> None:
    found = operator("configs", "set", "--topic", name, "retention.ms=5000", "--dry-run")
    assert (found.code, found.rows()[1][3:]) == (0, ["would", "be", "set"])
    assert configs(operator, "--topic", name) == []
    wrong = operator("configs", "set", "--topic", name, "retention.ms=soon", "--dry-run")
    assert wrong.code == 1


def test_metrics_of_clients_where_the_broker_has_them(operator: Command, topic: Names) -> None:
    its = topic("subscription")
    done = operator("configs", "set", "--client-metrics", its, "interval.ms=30000")
    if done.code == 0:
        assert configs(operator, "--client-metrics", its) == [("client-metrics", its, "interval.ms", "30000")]
        assert operator("configs", "delete", "--client-metrics", its, "interval.ms").code == 0
    else:
        assert "INVALID_REQUEST" in done.out


def test_nobody_without_the_right_sees_or_sets_configs(
    operator: Command, as_user: Command, name: str
) -> None:
    seen = as_user("bob", "configs", "list", "--topic", name)
    assert (seen.code, seen.out) == (1, "")
    assert "TOPIC_AUTHORIZATION_FAILED" in seen.err
    refused = as_user("bob", "configs", "set", "--topic", name, "retention.ms=1")
    assert refused.code == 1
    assert "TOPIC_AUTHORIZATION_FAILED" in refused.out
    assert configs(operator, "--topic", name) == []


def test_a_broker_that_is_not_there_is_told_at_once(operator: Command) -> None:
    found = operator("configs", "list", "--broker", 4711)
    assert found.code == 1
    assert "there is no broker 4711" in found.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["set", "retention.ms=1"], "of what? give --topic"),
        (["set", "--topic", "t"], "nothing to set"),
        (["set", "--topic", "t", "retention.ms"], "is no config: give KEY=VALUE"),
        (["set", "--topic", "t", "a=1", "a=2"], "given twice"),
        (["set", "--topic", "", "a=1"], "a name is not empty"),
        (["set", "--broker", "one", "a=1"], "'one' is no node id"),
        (["set", "--topic", "t", "--from-file", "a=/nowhere/at/all"], "/nowhere/at/all: No such file"),
        (["delete", "--topic", "t"], "the following arguments are required: KEY"),
    ],
)
def test_wrong_use_is_told_before_a_broker_is_asked(operator: Command, words: list[Any], said: str) -> None:
    found = operator("configs", *words, to="127.0.0.1:1")
    assert found.code == 2
    assert said in found.err
