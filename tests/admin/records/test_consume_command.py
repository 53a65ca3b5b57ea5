"""``kohort consume``: what is printed, from where to where, and what a group has committed then.

Covers: admin/records/group_member.py, admin/records/share_member.py, admin/records/membership.py.
"""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import KafkaProducer

from kohort.admin.records import consume_command, group_member
from kohort.client import Cluster
from kohort.client.connection import Connection
from kohort.client.surroundings import SURROUNDINGS, Surroundings
from kohort.consumer import GroupConsumer, Record
from kohort.consumer.share.member import ShareMembership
from kohort.producer import Producer
from kohort.protocol import KafkaError, TopicPartition
from kohort.statemachine import MemberState
from tests.admin.conftest import Groups, Ran, ran

pytestmark = pytest.mark.kafka

Topics = Callable[..., str]
Command = Callable[..., Ran]
#: Time of the first record that ``produce`` writes; each has a second more.
FIRST_MS = 1_700_000_000_000
PATIENCE_S = 60


@pytest.fixture
def consume(bootstrap: str, capsys: pytest.CaptureFixture[str]) -> Command:
    """``consume(topic, "--count", 3)``: ``kohort consume`` on the tests' cluster."""

    def run(*words: object) -> Ran:
        return ran(capsys, ["consume", "--bootstrap", bootstrap, "--timeout", "20", *map(str, words)])

    return run


def places(found: Ran) -> list[tuple[int, int]]:
    """Partition and offset of each record of ``--json``, sorted."""
    assert found.code == 0, found.err
    rows = map(json.loads, found.out.splitlines())
    return sorted((row["partition"], row["offset"]) for row in rows)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], [(0, 0), (0, 1), (0, 2), (1, 0)]),
        (["--from", "beginning"], [(0, 0), (0, 1), (0, 2), (1, 0)]),
        (["--from", "end"], []),
        (["--from", "1"], [(0, 1), (0, 2)]),
        (["--from", "99"], []),
        (["--from", "-2"], [(0, 1), (0, 2), (1, 0)]),
        (["--from", "-0"], []),
        (["--from", "2023-11-14T22:13:21Z"], [(0, 1), (0, 2)]),
        (["--from", "1h"], []),
        (["--partition", "1"], [(1, 0)]),
        (["--partition", "0", "--count", "2"], [(0, 0), (0, 1)]),
    ],
)
def test_it_prints_from_where_it_is_told_to_the_end(
    new_topic: Topics,
    produce: Callable[..., None],
    consume: Command,
    words: list[str],
    expected: list[tuple[int, int]],
) -> None:
    topic = new_topic("consume", partitions=3)
    produce(topic, {0: 3, 1: 1}, first_ms=FIRST_MS)
    assert places(consume(topic, "--json", *words)) == expected


@pytest.fixture
def _small_limit() -> Iterator[None]:
    """Clients whose responses have a limit take 20 kB; those that take any size do so."""

    def open_connection(address: Any, *, max_frame_bytes: int, **more: Any) -> Any:
        most = max_frame_bytes if max_frame_bytes >= 2**31 - 1 else 20_000
        return Connection.open(address, max_frame_bytes=most, **more)

    token = SURROUNDINGS.set(Surroundings(open_connection=open_connection))
    yield
    SURROUNDINGS.reset(token)


@pytest.mark.usefixtures("_small_limit")
@pytest.mark.parametrize("words", [[], ["--group"]])
def test_a_batch_over_the_limit_that_responses_have_elsewhere_is_read(
    new_topic: Topics, consume: Command, group: Callable[[str], str], bootstrap: str, words: list[str]
) -> None:
    topic = new_topic("consume", partitions=1)
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        producer.send(topic, b"x" * 100_000).get(PATIENCE_S)
    found = consume(topic, *words, *[group("large")] * len(words))
    assert (found.code, found.out) == (0, "x" * 100_000 + "\n"), found.err


def test_several_topics_are_read_and_empty_ones_end_at_once(
    new_topic: Topics, produce: Callable[..., None], consume: Command
) -> None:
    one, other, empty = (new_topic("consume", partitions=1) for _ in range(3))
    produce(one, {0: 1})
    produce(other, {0: 2})
    assert consume(one, other, empty).out == "value\n" * 3


async def test_keys_headers_and_nulls_are_printed(bootstrap: str, new_topic: Topics) -> None:
    topic = new_topic("consume", partitions=1)
    async with Producer(bootstrap=bootstrap) as producer:
        await producer.send_and_wait(topic, b"v", key=b"k", headers=[("a", b"1"), ("b", None)])
        await producer.send_and_wait(topic, None)
    command = [sys.executable, "-m", "kohort", "consume", topic, "--bootstrap", bootstrap]
    words = ["--keys", "--headers", "--separator", "|"]
    done = subprocess.run([*command, *words], capture_output=True, timeout=PATIENCE_S, check=True)  # noqa: ASYNC221
    assert done.stdout == b"a=1,b=null|k|v\n|null|null\n"


async def test_the_end_of_a_topic_with_transactions_is_found(bootstrap: str, new_topic: Topics) -> None:
    topic = new_topic("consume", partitions=1)
    async with Producer(bootstrap=bootstrap, transactional_id=topic) as producer:
        for last in (b"1", b"2"):
            async with producer.transaction():
                await producer.send(topic, last)
        producer.begin_transaction()
        await producer.send_and_wait(topic, b"aborted")
        await producer.abort_transaction()
    command = [sys.executable, "-m", "kohort", "consume", topic, "--bootstrap", bootstrap, "--read-committed"]
    done = subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=True)  # noqa: ASYNC221
    assert done.stdout == b"1\n2\n"


def test_a_group_commits_what_was_printed_and_goes_on_there(
    new_topic: Topics,
    produce: Callable[..., None],
    consume: Command,
    groups: Groups,
    group: Callable[[str], str],
) -> None:
    topic, name = new_topic("consume", partitions=1), group("consume")
    produce(topic, {0: 5})
    words = [topic, "--group", name, "--json"]
    assert places(consume(*words, "--count", 2)) == [(0, 0), (0, 1)]
    (row,) = groups("describe", name, "--json").document["partitions"]
    assert row["committed_offset"] == 2
    assert places(consume(*words)) == [(0, 2), (0, 3), (0, 4)]
    assert places(consume(*words)) == []


def test_what_reaches_nobody_is_not_committed(
    bootstrap: str,
    new_topic: Topics,
    produce: Callable[..., None],
    consume: Command,
    group: Callable[[str], str],
) -> None:
    topic, name = new_topic("consume", partitions=1), group("consume")
    produce(topic, {0: 5})
    command = [sys.executable, "-m", "kohort", "consume", topic, "--bootstrap", bootstrap, "--group", name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.wait(PATIENCE_S) == 0
        assert process.stderr.read() == b"", "a broken pipe ends it quietly"
    assert len(places(consume(topic, "--group", name, "--json"))) == 5


def test_what_a_reader_leaves_in_the_pipe_is_not_committed(
    bootstrap: str,
    new_topic: Topics,
    produce: Callable[..., None],
    consume: Command,
    group: Callable[[str], str],
) -> None:
    topic, name = new_topic("consume", partitions=1), group("consume")
    produce(topic, {0: 1_200})
    command = [sys.executable, "-m", "kohort", "consume", topic, "--bootstrap", bootstrap, "--group", name]
    with subprocess.Popen([*command, "--json"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        # as "head -1" does
        first = os.read(process.stdout.fileno(), 1_000).splitlines()[0]
        process.stdout.close()
        assert process.wait(PATIENCE_S) == 0
    assert json.loads(first)["offset"] == 0
    # what was in the same block comes again
    assert places(consume(topic, "--group", name, "--json"))[-1_199:] == [(0, n) for n in range(1, 1_200)]


def test_what_a_reader_of_a_share_group_leaves_in_the_pipe_is_given_again(
    bootstrap: str, jobs: str, queue: str, consume: Command
) -> None:
    command = [sys.executable, "-m", "kohort", "consume", jobs, "--bootstrap", bootstrap, "--group", queue]
    with subprocess.Popen([*command, "--share"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        os.read(process.stdout.fileno(), 1)
        process.stdout.close()
        assert process.wait(PATIENCE_S) == 0
    assert len(places(consume(jobs, "--group", queue, "--share", "--json"))) == 30


def test_a_share_group_accepts_what_was_printed_and_gets_the_rest_again(
    jobs: str, queue: str, consume: Command, groups: Groups
) -> None:
    words = [jobs, "--group", queue, "--share", "--json"]
    first = places(consume(*words, "--count", 5))
    assert len(first) == 5
    rest = consume(*words)
    assert sorted([*first, *places(rest)]) == [(0, n) for n in range(20)] + [(1, n) for n in range(10)]
    assert {json.loads(line)["delivery_count"] for line in rest.out.splitlines()} <= {1, 2}
    assert places(consume(*words)) == []
    assert groups("describe", queue, "--json").document["total_lag"] == 0


def test_what_of_a_share_group_reaches_nobody_is_given_again(
    bootstrap: str, jobs: str, queue: str, consume: Command
) -> None:
    command = [sys.executable, "-m", "kohort", "consume", jobs, "--bootstrap", bootstrap, "--group", queue]
    with subprocess.Popen([*command, "--share"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(PATIENCE_S) == 0
    assert len(places(consume(jobs, "--group", queue, "--share", "--json"))) == 30


def test_a_reader_of_the_output_that_takes_its_time_holds_up_no_heartbeat(
    jobs: str, queue: str, consume: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As locks are renewed where heartbeats are sent."""
    beat, kept = threading.Event(), list[bool]()
    write, on_heartbeat = consume_command._write_records, ShareMembership._on_heartbeat

    def write_slowly(*given: Any) -> int:
        beat.clear()
        kept.append(beat.wait(PATIENCE_S))
        return write(*given)

    def note(member: ShareMembership, response: Any) -> None:
        on_heartbeat(member, response)
        beat.set()

    monkeypatch.setattr(consume_command, "_write_records", write_slowly)
    monkeypatch.setattr(ShareMembership, "_on_heartbeat", note)
    assert len(places(consume(jobs, "--group", queue, "--share", "--json", "--count", 30))) == 30
    assert set(kept) == {True}


def test_output_that_takes_a_part_at_a_time_gets_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a pipe does for an unbuffered Python (PYTHONUNBUFFERED)."""
    got = bytearray()

    class Narrow(io.RawIOBase):
        def write(self, data: Any) -> int:
            got.extend(data[:7])
            return min(7, len(data))

    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=Narrow()))
    consume_command._write_records(
        lambda record: record.value or b"", [Record("t", 0, 0, 0, None, b"0123456789")] * 3
    )
    assert got == b"0123456789" * 3


def test_a_reader_that_does_not_read_holds_up_no_other_member(
    bootstrap: str, new_topic: Topics, produce: Callable[..., None], group: Callable[[str], str]
) -> None:
    topic, name = new_topic("consume", partitions=2), group("consume")
    produce(topic, {0: 5, 1: 5})
    command = [sys.executable, "-m", "kohort", "consume", topic, "--bootstrap", bootstrap, "--group", name]
    with subprocess.Popen([*command, "--follow"], stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdout is not None
        assert process.stdout.read(1) == b"v"
        with GroupConsumer(topic, bootstrap=bootstrap, group=name, auto_offset_reset="earliest") as other:
            # what was printed of it and not read comes again
            again = other.getmany(timeout_ms=PATIENCE_S * 1_000)
            assert len(again) == 5
            other.done_all(again)
        lines = [process.stdout.readline() for _ in range(10)]
        produce(topic, {0: 1, 1: 1})
        lines += [process.stdout.readline() for _ in range(2)]
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0
    assert lines == [b"alue\n", *[b"value\n"] * 11]


def test_it_follows_until_ctrl_c(bootstrap: str, new_topic: Topics, produce: Callable[..., None]) -> None:
    topic = new_topic("consume", partitions=1)
    produce(topic, {0: 1})
    command = [sys.executable, "-m", "kohort", "consume", topic, "--bootstrap", bootstrap, "--follow"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"value\n"
        produce(topic, {0: 1})
        assert process.stdout.readline() == b"value\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0
        assert process.stderr.read() == b""


async def test_a_member_says_that_its_topic_is_gone(
    bootstrap: str, new_topic: Topics, produce: Callable[..., None], group: Callable[[str], str]
) -> None:
    topic = new_topic("consume", partitions=1)
    produce(topic, {0: 1})
    command = [sys.executable, "-m", "kohort", "consume", topic, "--bootstrap", bootstrap, "--follow"]
    with subprocess.Popen(  # noqa: ASYNC220
        [*command, "--group", group("consume")], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"value\n"
        async with Cluster(bootstrap) as cluster:
            await cluster.delete_topics([topic])
        said = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0
    assert b"UNKNOWN_TOPIC" in said
    assert said.endswith(b": trying again)\n")


def test_a_member_does_not_wait_for_ever_for_what_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    place = TopicPartition("t", 0)
    state = SimpleNamespace(state=MemberState.STABLE)
    member: Any = SimpleNamespace(state=state, assignment=lambda: {place}, position=lambda _: 3)
    now = [0.0]
    monkeypatch.setattr("kohort.admin.records.group_member.time.monotonic", lambda: now[0])
    patience = group_member._Patience(5)
    patience.require_progress(member)
    now[0], state.state = 6, MemberState.PREPARING
    patience.require_progress(member)
    now[0], state.state = 10, MemberState.STABLE
    patience.require_progress(member)
    now[0] = 12
    with pytest.raises(KafkaError, match="nothing more could be read for 5 s"):
        patience.require_progress(member)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["nowhere-at-all"], 1, "topic 'nowhere-at-all' does not exist"),
        (["t", "--from", "soon"], 2, "'soon' is no place to begin: give beginning, end, an offset"),
        (["t", "--group", "g", "--partition", "0"], 2, "leave one out"),
        (["t", "--group", "g", "--from", "5"], 2, "kohort groups reset-offsets"),
        (["t", "--partition", "x"], 2, "give numbers of partitions"),
        (["t", "--share"], 2, "name the share group with --group"),
        (["t", "--group", "g", "--share", "--from", "end"], 2, "share.auto.offset.reset"),
        (["t", "--group", "g", "--share", "--read-committed"], 2, "share.isolation.level"),
    ],
)
def test_wrong_use_is_told(consume: Command, words: list[str], code: int, said: str) -> None:
    found = consume(*words)
    assert (found.code, found.out) == (code, "")
    assert said in found.err


def test_a_partition_that_is_not_there_is_told(new_topic: Topics, consume: Command) -> None:
    topic = new_topic("consume", partitions=2)
    found: Any = consume(topic, "--partition", "0,2")
    assert found.code == 1
    assert f"topic '{topic}' has partitions 0 to 1, not 2" in found.err
