"""``kohort topics``: topics are made, listed, described, changed and deleted, and refusals are told."""

from __future__ import annotations

import io
import sys
import uuid
from collections.abc import Callable

import pytest

from kohort.testing import running_broker
from tests.admin.conftest import Ran, ran

pytestmark = pytest.mark.kafka

Command = Callable[..., Ran]


@pytest.fixture
def topics(bootstrap: str, capsys: pytest.CaptureFixture[str]) -> Command:
    """``topics("list")``: ``kohort topics`` on the tests' cluster."""

    def run(*words: object, to: str = bootstrap) -> Ran:
        return ran(capsys, ["topics", "--bootstrap", to, "--timeout", "20", *map(str, words)])

    return run


@pytest.fixture
def name() -> str:
    return f"topics-{uuid.uuid4().hex[:8]}"


def configs(topics: Command, name: str) -> dict[str, str]:
    (found,) = topics("describe", name, "--json").document["topics"]
    return {one["name"]: one["value"] for one in found["configs"]}


def count(topics: Command, name: str) -> int:
    (found,) = topics("describe", name, "--json").document["topics"]
    return len(found["partitions"])


def test_a_topic_is_made_with_partitions_and_configs_and_shown(
    topics: Command, name: str, produce: Callable[..., None]
) -> None:
    made = topics("create", name, "--partitions", 3, "--config", "retention.ms=3600000")
    assert (made.code, made.rows()[1]) == (0, [name, "created"])
    produce(name, {1: 4})

    (row,) = [row for row in topics("list", "--json").document["topics"] if row["topic"] == name]
    assert (row["partitions"], row["replication_factor"], row["internal"]) == (3, 1, False)
    assert [name, "3", "1"] in [words[:3] for words in topics("list").rows()]

    (found,) = topics("describe", name, "--json").document["topics"]
    assert (found["topic"], found["topic_id"]) == (name, row["topic_id"])
    assert [(c["name"], c["value"], c["source"]) for c in found["configs"]] == [
        ("retention.ms", "3600000", "topic")
    ]
    assert [(p["partition"], p["start_offset"], p["end_offset"]) for p in found["partitions"]] == [
        (0, 0, 0),
        (1, 0, 4),
        (2, 0, 0),
    ]
    assert all(p["leader"] is not None and p["replicas"] == p["in_sync"] for p in found["partitions"])
    shown = topics("describe", name).rows()
    assert ["offsets", "in", "the", "log", "4"] in shown
    assert ["retention.ms", "3600000", "topic"] in shown
    (all_of_them,) = topics("describe", name, "--all-configs", "--json").document["topics"]
    assert "default" in {c["source"] for c in all_of_them["configs"]}


def test_a_topic_that_exists_is_an_error_unless_it_may(topics: Command, name: str) -> None:
    assert topics("create", name).code == 0
    again = topics("create", name, f"{name}-b")
    assert again.code == 1
    assert "TOPIC_ALREADY_EXISTS" in again.out
    assert [f"{name}-b", "created"] in again.rows(), "the others are made all the same"
    may = topics("create", name, f"{name}-c", "--if-not-exists", "--json")
    assert may.code == 0
    assert [row["result"] for row in may.document["topics"]] == ["exists", "created"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--replication-factor", "7"], "INVALID_REPLICATION_FACTOR"),
        (["--config", "retention.ms=soon"], "INVALID_CONFIG"),
        (["--config", "nope=1"], "INVALID_CONFIG"),
    ],
)
def test_what_the_broker_refuses_to_make_is_told(
    topics: Command, name: str, words: list[str], said: str
) -> None:
    found = topics("create", name, *words)
    assert found.code == 1
    assert said in found.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["create", "t", "--config", "retention.ms"], "'retention.ms' is no config: give KEY=VALUE"),
        (["create", "t", "--partitions", "0"], "give a whole number from 1 on"),
        (["alter", "t"], "nothing to change"),
    ],
)
def test_wrong_use_is_told_before_a_broker_is_asked(topics: Command, words: list[str], said: str) -> None:
    found = topics(*words, to="127.0.0.1:1")
    assert found.code == 2
    assert said in found.err


def test_a_topic_gets_partitions_and_configs_and_gives_them_back(topics: Command, name: str) -> None:
    topics("create", name, "--partitions", 1, "--config", "retention.ms=5000")
    words = ["--config", "cleanup.policy=compact", "--delete-config", "retention.ms"]
    asked = topics("alter", name, "--partitions", 4, *words, "--dry-run")
    assert asked.code == 0
    assert (configs(topics, name), count(topics, name)) == ({"retention.ms": "5000"}, 1)
    done = topics("alter", name, "--partitions", 4, *words)
    assert (done.code, done.out) == (0, "")
    assert "is changed" in done.err
    assert (configs(topics, name), count(topics, name)) == ({"cleanup.policy": "compact"}, 4)


def test_one_refused_change_leaves_everything_as_it_was(topics: Command, name: str) -> None:
    topics("create", name, "--partitions", 3)
    fewer = topics("alter", name, "--partitions", 2, "--config", "retention.ms=5000")
    assert fewer.code == 1
    assert "INVALID_PARTITIONS" in fewer.err
    wrong = topics("alter", name, "--partitions", 5, "--config", "retention.ms=soon")
    assert wrong.code == 1
    assert "INVALID_CONFIG" in wrong.err
    assert (configs(topics, name), count(topics, name)) == ({}, 3)


@pytest.mark.parametrize("words", [["describe"], ["alter", "--partitions", "3"]])
def test_a_topic_that_is_not_there_is_told(topics: Command, name: str, words: list[str]) -> None:
    found = topics(*words, name)
    assert (found.code, found.out) == (1, "")
    assert f"topic '{name}' does not exist; `kohort topics list` shows" in found.err


def test_topics_are_deleted_and_missing_ones_told(topics: Command, name: str) -> None:
    topics("create", name, f"{name}-b")
    found = topics("delete", name, f"{name}-x")
    assert found.code == 1
    assert [name, "deleted"] in found.rows()
    assert f"topic '{name}-x' does not exist" in found.out
    found = topics("delete", f"{name}-b", f"{name}-x", "--if-exists", "--json")
    assert found.code == 0
    assert [row["result"] for row in found.document["topics"]] == ["deleted", "does not exist"]
    assert not [row for row in topics("list").rows() if row[0].startswith(name)]


@pytest.mark.parametrize(("answer", "code", "left"), [("\n", 1, 1), ("y\n", 0, 0)])
def test_on_a_terminal_deletion_is_agreed_to_first(
    topics: Command, name: str, monkeypatch: pytest.MonkeyPatch, answer: str, code: int, left: int
) -> None:
    topics("create", name)

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdin", Terminal(answer))
        patched.setattr(sys.stderr, "isatty", lambda: True)
        found = topics("delete", name)
    assert found.code == code
    assert f"Delete '{name}' with all records? [y/N]" in found.err
    assert len([row for row in topics("list").rows() if row[0] == name]) == left


def test_nobody_is_asked_with_yes(topics: Command, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    topics("create", name)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    assert topics("delete", name, "--yes").code == 0


def test_a_topic_that_may_not_be_seen_is_not_said_to_be_missing(topics: Command) -> None:
    rules = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    with running_broker(authorizer_class_name=rules) as broker:
        found = topics("delete", "hidden", to=broker.bootstrap)
    assert found.code == 1
    assert "TOPIC_AUTHORIZATION_FAILED" in found.out
    assert "does not exist" not in found.out
