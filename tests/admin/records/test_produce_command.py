"""``kohort produce``: lines become records, and a line that cannot is named."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.admin.conftest import Ran, ran

pytestmark = pytest.mark.kafka

Topics = Callable[..., str]
Command = Callable[..., Ran]
PATIENCE_S = 60


@pytest.fixture
def produce_lines(bootstrap: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    """``produce_lines(topic, b"a\\nb\\n", "--json")``: ``kohort produce`` with these bytes as its file."""

    def run(topic: str, data: bytes, *words: object) -> Ran:
        path = tmp_path / "lines"
        path.write_bytes(data)
        command = ["produce", topic, "--bootstrap", bootstrap, "--timeout", "20", "--file", path, *words]
        return ran(capsys, map(str, command))

    return run


@pytest.fixture
def written(bootstrap: str, capsys: pytest.CaptureFixture[str]) -> Callable[[str], list[dict[str, Any]]]:
    """``written(topic)``: the records of a topic, by partition and offset."""

    def read(topic: str) -> list[dict[str, Any]]:
        found = ran(capsys, ["consume", topic, "--bootstrap", bootstrap, "--timeout", "20", "--json"])
        assert found.code == 0, found.err
        rows = [json.loads(line) for line in found.out.splitlines()]
        return sorted(rows, key=lambda row: (row["partition"], row["offset"]))

    return read


@pytest.mark.parametrize("words", [[], ["--compression", "gzip", "--acks", "1"], ["--acks", "0"]])
def test_each_line_is_a_record(
    new_topic: Topics, produce_lines: Command, written: Any, words: list[str]
) -> None:
    topic = new_topic("produce", partitions=1)
    found = produce_lines(topic, b"a\n\nwith spaces \r\nlast", *words)
    assert (found.code, found.out) == (0, "")
    assert f"(4 records written to topic '{topic}')" in found.err
    if words != ["--acks", "0"]:
        assert [row["value"] for row in written(topic)] == ["a", "", "with spaces ", "last"]


def test_the_first_separator_ends_the_key(new_topic: Topics, produce_lines: Command, written: Any) -> None:
    topic = new_topic("produce", partitions=1)
    assert produce_lines(topic, b"a:1\n:2:3\n", "--key-separator", ":").code == 0
    assert [(row["key"], row["value"]) for row in written(topic)] == [("a", "1"), ("", "2:3")]


def test_a_json_line_says_everything_of_a_record(
    new_topic: Topics, produce_lines: Command, written: Any
) -> None:
    topic = new_topic("produce", partitions=2)
    rows: list[dict[str, Any]] = [
        {"value": "v", "key": "k", "headers": {"a": "b"}, "partition": 1, "timestamp": 1_700_000_000_000},
        {"value": None, "headers": [["n", None], ["n", {"base64": "/w=="}]], "partition": 1},
        {"value": {"id": 1}, "partition": 1, "topic": "else", "offset": 7},
    ]
    found = produce_lines(topic, "\n\n".join(map(json.dumps, rows)).encode(), "--json")
    assert found.code == 0, found.err
    first, second, third = written(topic)
    assert first == {
        "topic": topic,
        "partition": 1,
        "offset": 0,
        "timestamp": 1_700_000_000_000,
        "key": "k",
        "value": "v",
        "headers": [["a", "b"]],
    }
    assert (second["value"], second["headers"]) == (None, [["n", None], ["n", {"base64": "/w=="}]])
    assert third["value"] == '{"id":1}'


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "it is no JSON"),
        ("[1]", "it is no JSON object"),
        ("[" * 100_000, "it is no JSON"),
        ('{"value": [NaN]}', "not JSON compliant"),
        ('{"key": "a"}', "it has no value: write null"),
        ('{"value": "a", "vlaue": 1}', "'vlaue' is no field of a record"),
        ('{"value": {"base64": "?"}}', "'?' is no base64"),
        ('{"value": 1, "partition": true}', "partition True: give a whole number"),
        ('{"value": 1, "partition": 2}', "the topic has 2 partitions, not number 2"),
        ('{"value": 1, "headers": [["a"]]}', "header ['a'] is no pair"),
        ('{"value": 1, "headers": "a"}', "headers are an object"),
    ],
)
def test_a_wrong_line_is_named_and_those_before_it_are_written(
    new_topic: Topics, produce_lines: Command, written: Any, line: str, said: str
) -> None:
    topic = new_topic("produce", partitions=2)
    found = produce_lines(topic, f'{{"value": "first"}}\n{line}\n{{"value": "last"}}\n'.encode(), "--json")
    assert found.code == 1
    assert "(1 record written" in found.err
    assert "kohort produce: line 2: " in found.err
    assert said in found.err
    assert [row["value"] for row in written(topic)] == ["first"]


def test_a_line_without_the_separator_is_named(new_topic: Topics, produce_lines: Command) -> None:
    found = produce_lines(new_topic("produce"), b"a:1\nb\n", "--key-separator", ":")
    assert found.code == 1
    assert "line 2: it has no ':' between key and value" in found.err


def test_a_record_that_the_broker_refuses_is_named(new_topic: Topics, produce_lines: Command) -> None:
    topic = new_topic("produce", partitions=1, max_message_bytes="2000")
    found = produce_lines(topic, b"a\n" + b"x" * 5_000 + b"\nb\n")
    assert found.code == 1
    assert "kohort produce: line 2: MESSAGE_TOO_LARGE" in found.err


def test_a_line_without_an_end_is_not_read_for_ever(new_topic: Topics, produce_lines: Command) -> None:
    found = produce_lines(new_topic("produce"), b"a\n" + bytes(3_000_000))
    assert found.code == 1
    assert "line 2: it is longer than 1,048,576 bytes" in found.err


def test_a_topic_or_a_file_that_is_not_there_is_told(
    bootstrap: str, capsys: pytest.CaptureFixture[str], produce_lines: Command
) -> None:
    found = produce_lines("nowhere-at-all", b"a\n")
    assert found.code == 1
    assert "topic 'nowhere-at-all' does not exist" in found.err
    found = ran(capsys, ["produce", "t", "--bootstrap", bootstrap, "--file", "/no/such/file"])
    assert (found.code, found.err) == (2, "kohort produce: /no/such/file: No such file or directory\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ended_by_a_signal_it_says_how_many_were_written(
    bootstrap: str, new_topic: Topics, written: Any, number: signal.Signals
) -> None:
    topic = new_topic("produce", partitions=1)
    command = [sys.executable, "-m", "kohort", "produce", topic, "--bootstrap", bootstrap]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"a\nb\nc\n")
        process.stdin.flush()
        while len(written(topic)) < 3:
            assert process.poll() is None
        process.send_signal(number)
        assert process.wait(PATIENCE_S) == 130
        said = process.stderr.read().decode()
    assert said == f"(3 records written to topic '{topic}')\n"
