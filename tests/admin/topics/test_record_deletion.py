"""``kohort topics delete-records``: the plan says what goes, and what is deleted is that."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.admin.conftest import Ran, ran
from tests.secured import PASSWORD, Secured

pytestmark = pytest.mark.kafka

Command = Callable[..., Ran]
FIRST_MS = 1_700_000_000_000


@pytest.fixture
def delete(bootstrap: str, capsys: pytest.CaptureFixture[str]) -> Command:
    """``delete("orders", "--all")``: ``kohort topics delete-records`` on the tests' cluster."""

    def run(*words: object, to: str = bootstrap) -> Ran:
        given = ["topics", "delete-records", "--bootstrap", to, "--timeout", "20", *map(str, words)]
        return ran(capsys, given)

    return run


@pytest.fixture
def orders(new_topic: Callable[..., str], produce: Callable[..., None]) -> str:
    """A topic with 10 and 4 records, one each second of time."""
    name = new_topic("orders", partitions=3)
    produce(name, {0: 10, 1: 4}, first_ms=FIRST_MS)
    return name


def starts(bootstrap: str, capsys: pytest.CaptureFixture[str], name: str) -> list[int]:
    found = ran(capsys, ["topics", "describe", name, "--bootstrap", bootstrap, "--json"])
    return [each["start_offset"] for each in found.document["topics"][0]["partitions"]]


def test_records_below_an_offset_are_planned_and_deleted(
    delete: Command, orders: str, bootstrap: str, capsys: pytest.CaptureFixture[str]
) -> None:
    planned = delete(orders, "--before-offset", 6)
    assert planned.code == 0
    assert [row[1:6] for row in planned.rows()[1:]] == [
        ["0", "0", "6", "10", "6"],
        ["1", "0", "4", "4", "4"],
        ["2", "0", "0", "0", "0"],
    ]
    assert "the log ends before that offset" in planned.out
    assert "--execute deletes them, for good" in planned.err
    assert starts(bootstrap, capsys, orders) == [0, 0, 0]

    done = delete(orders, "--before-offset", 6, "--execute", "--json").document
    assert done["executed"]
    assert [(row["partition"], row["new_start_offset"], row["error_code"]) for row in done["partitions"]] == [
        (0, 6, 0),
        (1, 4, 0),
    ]
    assert starts(bootstrap, capsys, orders) == [6, 4, 0]
    again = delete(orders, "--before-offset", 3, "--execute")
    assert (again.code, "nothing to delete" in again.err) == (0, True)
    assert "the log begins behind that offset" in again.out


def test_by_time_of_one_partition_and_all(
    delete: Command, orders: str, bootstrap: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert delete(f"{orders}:0", "--before", "2023-11-14T22:13:27Z", "--execute").code == 0
    assert starts(bootstrap, capsys, orders) == [7, 0, 0]
    assert delete(f"{orders}:0", "--older-than", "1d", "--execute").code == 0
    assert starts(bootstrap, capsys, orders) == [10, 0, 0]
    assert delete(orders, "--all", "--execute").code == 0
    assert starts(bootstrap, capsys, orders) == [10, 4, 0]


@pytest.mark.parametrize(("answer", "code", "left"), [("n\n", 1, 0), ("y\n", 0, 10)])
def test_on_a_terminal_the_plan_is_shown_and_agreed_to(
    delete: Command,
    orders: str,
    bootstrap: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    code: int,
    left: int,
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdin", Terminal(answer))
        patched.setattr(sys.stderr, "isatty", lambda: True)
        done = delete(f"{orders}:0", "--all", "--execute")
    assert done.code == code
    assert f"Delete 10 offsets of '{orders}' for good? [y/N]" in done.err
    assert [row[1:6] for row in done.rows()[1:2]] == [["0", "0", "10", "10", "10"]]
    assert starts(bootstrap, capsys, orders)[0] == left


def test_nobody_without_the_right_deletes(
    secured: Secured, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name = "records-of-others"
    assert ran(capsys, ["topics", "create", name, "--if-not-exists", "--bootstrap", secured.plain]).code == 0
    allow = ["acls", "add", "--allow", "bob", "--operation", "Describe,Read", "--topic", name]
    assert ran(capsys, [*allow, "--bootstrap", secured.plain]).code == 0
    lines = tmp_path / "lines"
    lines.write_text("one\ntwo\n")
    assert ran(capsys, ["produce", name, "--file", str(lines), "--bootstrap", secured.plain]).code == 0
    monkeypatch.setenv("KOHORT_SASL_PASSWORD", PASSWORD)
    login = ["--security-protocol", "SASL_PLAINTEXT", "--sasl-mechanism", "SCRAM-SHA-256"]
    words = ["topics", "delete-records", name, "--all", "--execute", "--bootstrap", secured.sasl, *login]
    done = ran(capsys, [*words, "--sasl-username", "bob"])
    assert done.code == 1
    assert "TOPIC_AUTHORIZATION_FAILED" in done.out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["orders"], 2, "one of the arguments --before-offset --before --older-than --all is required"),
        (["orders", "--all", "--before-offset", "1"], 2, "not allowed with"),
        (["orders:x", "--all"], 2, "is no topic: write orders, or orders:0,3"),
        (["orders", "--before", "yesterday"], 2, "is no time"),
        (["orders", "--before-offset", "-1"], 2, "give a whole number from 0 on"),
        (["no-such-topic", "--all"], 1, "topic 'no-such-topic' does not exist"),
    ],
)
def test_wrong_use_and_topics_that_are_not_there_are_told(
    delete: Command, words: list[str], code: int, said: str
) -> None:
    found = delete(*words)
    assert found.code == code
    assert said in found.err


def test_a_partition_that_is_not_there_is_told(delete: Command, orders: str) -> None:
    found = delete(f"{orders}:0,7", "--all")
    assert found.code == 1
    assert f"topic '{orders}' has no partition 7" in found.err
