"""``kohort groups`` as it is typed: what it prints, how it ends.

Covers: admin/commands.py, admin/groups/actions.py, admin/screen.py, admin/errors.py, admin/groups/results.py.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kohort.admin import GroupAdmin
from kohort.admin.groups.commands import _STATES, _TYPES
from kohort.consumer import Cluster
from kohort.coordinator.groups.kinds import KINDS
from kohort.protocol import TopicPartition
from tests.admin.conftest import Groups, Ran, ran, stable
from tests.consumer.members import Maker

pytestmark = pytest.mark.kafka

Name = Callable[[str], str]
NewTopic = Callable[..., str]
Produce = Callable[..., None]


@pytest.fixture
def orders(bootstrap: str, new_topic: NewTopic, group: Name, produce: Produce) -> tuple[str, str]:
    """A topic with 20 and 10 records in partitions 0 and 1, and a group that has read 5 and 10 of them."""
    topic, name = new_topic("orders", partitions=2, retention_ms="-1"), group("billing")
    produce(topic, {0: 20, 1: 10})

    async def commit() -> None:
        async with Cluster(bootstrap) as cluster:
            await cluster.commit(name, {TopicPartition(topic, 0): 5, TopicPartition(topic, 1): 10})

    asyncio.run(commit())
    return topic, name


def one_line(done: Ran, code: int) -> str:
    """The error of a command that says nothing else."""
    assert (done.code, done.out) == (code, ""), done
    [line] = done.err.splitlines()
    assert line.startswith("kohort groups")
    return line


def test_groups_of_every_type_and_state_can_be_listed() -> None:
    types = [kind.group_type for kind in KINDS]
    assert {each.name for each in types} <= set(_TYPES)
    assert {state.value for each in types for state in each.states} <= set(_STATES)


def test_list(groups: Groups, orders: tuple[str, str]) -> None:
    _, name = orders
    done = groups("list", "--state", "empty,stable")
    assert (done.code, done.err) == (0, "")
    heading, *rows = done.rows()
    assert heading == ["GROUP", "STATE", "PROTOCOL", "TYPE", "TYPE", "COORDINATOR"]
    assert [name, "Empty", "-", "classic", "node"] in [row[:5] for row in rows]
    found = {row["group"]: row for row in groups("list", "--json").document["groups"]}
    assert found[name].keys() == {"group", "protocol_type", "state", "group_type", "coordinator"}
    assert found[name]["state"] == "Empty"
    assert name not in groups("list", "--state", "Dead").out


def test_describe(groups: Groups, orders: tuple[str, str]) -> None:
    topic, name = orders
    done = groups("describe", name)
    assert (done.code, done.err) == (0, "")
    assert ["total", "lag", "15"] in done.rows()
    assert [topic, "0", "5", "20", "15", "-"] in done.rows()
    assert [topic, "1", "10", "10", "0", "-"] in done.rows()
    found = groups("describe", name, "--json").document
    assert (found["group"], found["state"], found["total_lag"], found["members"]) == (name, "Empty", 15, [])
    assert found["partitions"][0] == {
        "topic": topic,
        "partition": 0,
        "committed_offset": 5,
        "end_offset": 20,
        "lag": 15,
        "member_id": None,
        "metadata": "",
    }


@pytest.mark.parametrize(
    ("words", "new"),
    [
        (["--to-earliest"], {0: 0, 1: 0}),
        (["--to-latest"], {0: 20, 1: 10}),
        (["--to-current"], {0: 5, 1: 10}),
        (["--to-offset", "15"], {0: 15, 1: 10}),
        (["--shift-by", "-7"], {0: 0, 1: 3}),
        (["--shift-by", "12"], {0: 17, 1: 10}),
        (["--to-timestamp", "1700000006500"], {0: 7, 1: 7}),
        (["--to-datetime", "2023-11-14T22:13:26.500"], {0: 7, 1: 7}),
        (["--to-datetime", "2023-11-14T23:13:26.500+01:00"], {0: 7, 1: 7}),
        (["--by-duration", "1h"], {0: 20, 1: 10}),
        (["--by-duration", "P36500D"], {0: 0, 1: 0}),
    ],
    ids=lambda value: "" if isinstance(value, dict) else " ".join(value),
)
def test_a_reset_is_shown_and_with_execute_done(
    groups: Groups, orders: tuple[str, str], words: list[str], new: dict[int, int]
) -> None:
    topic, name = orders
    dry = groups("reset-offsets", name, *words, "--topic", topic)
    assert dry.code == 0
    assert {int(row[1]): int(row[3]) for row in dry.rows()[1:]} == new
    assert "add --execute" in dry.err
    assert committed(groups, name) == {0: 5, 1: 10}
    done = groups("reset-offsets", name, *words, "--all-topics", "--execute", "--json")
    assert (done.code, done.err, done.document["executed"]) == (0, "", True)
    assert {row["partition"]: row["new_offset"] for row in done.document["changes"]} == new
    assert committed(groups, name) == new


def committed(groups: Groups, name: str) -> dict[int, int]:
    rows = groups("describe", name, "--json").document["partitions"]
    return {row["partition"]: row["committed_offset"] for row in rows}


def test_a_reset_by_a_file_gives_each_partition_its_own_offset(
    groups: Groups, orders: tuple[str, str], tmp_path: Path
) -> None:
    topic, name = orders
    file = tmp_path / "offsets.csv"
    # as a program for tables writes it
    file.write_text(f"\ufeff{topic},1,3\r\n\r\n{topic},0,17\r\n", "utf-8", newline="")
    dry = groups("reset-offsets", name, "--from-file", file)
    assert dry.code == 0
    assert {int(row[1]): int(row[3]) for row in dry.rows()[1:]} == {0: 17, 1: 3}
    assert committed(groups, name) == {0: 5, 1: 10}
    assert groups("reset-offsets", name, "--from-file", file, "--execute").code == 0
    assert committed(groups, name) == {0: 17, 1: 3}


@pytest.mark.parametrize(
    ("text", "more", "said"),
    [
        ("orders,0", (), "line 1: 'orders,0' is not TOPIC,PARTITION,OFFSET"),
        ("orders,0,5\norders,-1,5", (), "line 2: 'orders,-1,5' is not TOPIC,PARTITION,OFFSET"),
        ("orders,0,5\norders,0,6", (), "line 2: partition 0 of topic 'orders' is there twice"),
        ("\n", (), "the file has no offsets"),
        (f"orders,0,{'9' * 5_000}", (), "is not TOPIC,PARTITION,OFFSET"),
        (f"{'x' * 200_000},0,5", (), "the file is no CSV: field larger than field limit"),
        ("orders\udcff,0,5", (), "is no text in UTF-8"),
        (None, (), "No such file or directory"),
        (
            "orders,0,5",
            ("--all-topics",),
            "the file names the partitions: leave out --topic and --all-topics",
        ),
    ],
)
def test_a_file_of_offsets_that_is_wrong_changes_nothing(
    groups: Groups, tmp_path: Path, text: str | None, more: tuple[str, ...], said: str
) -> None:
    file = tmp_path / "offsets.csv"
    if text is not None:
        file.write_text(text, "utf-8", "surrogateescape")
    wrong = groups("reset-offsets", "billing", "--from-file", file, *more, "--execute")
    assert (wrong.code, wrong.out) == (2, "")
    assert said in wrong.err


def test_a_reset_of_one_partition_notes_what_it_changed_about_the_wish(
    groups: Groups, orders: tuple[str, str]
) -> None:
    topic, name = orders
    done = groups("reset-offsets", name, "--to-offset", "99", "--topic", f"{topic}:1", "--execute")
    assert done.code == 0
    assert f"committed 1 of 1 offsets of group '{name}'" in done.err
    assert done.rows()[1:] == [[topic, "1", "10", "10", *["99", "is", "after", "the", "end:", "10", "taken"]]]
    assert committed(groups, name) == {0: 5, 1: 10}


async def test_a_reset_is_refused_while_members_live(
    groups: Groups, orders: tuple[str, str], member: Maker, admin: GroupAdmin
) -> None:
    topic, name = orders
    await member(topic, group=name, client_id="app-7")
    await stable(admin, name, 1)
    words = ("reset-offsets", name, "--to-latest", "--topic", topic)
    for more in ([], ["--execute"]):
        done = await asyncio.to_thread(groups, *words, *more)
        assert done.code == 1
        [line] = done.err.splitlines()
        assert "NON_EMPTY_GROUP (68)" in line
        assert "client 'app-7' at /127.0.0.1" in line
        assert "stop its members first" in line


def test_deletions_say_what_became_of_each(groups: Groups, orders: tuple[str, str], group: Name) -> None:
    topic, name = orders
    done = groups("delete-offsets", name, "--topic", f"{topic}:0")
    assert (done.code, done.rows()[1:]) == (0, [[topic, "0", "deleted"]])
    assert committed(groups, name) == {1: 10}
    missing = group("missing")
    both = groups("delete", name, missing, "--json")
    assert both.code == 1
    assert [(row["group"], row["error_code"]) for row in both.document["groups"]] == [
        (name, 0),
        (missing, 69),
    ]
    assert "does not exist" in one_line(groups("describe", name), 1)


@pytest.mark.parametrize("action", ["describe", "timeline", "watch"])
def test_a_group_that_does_not_exist_is_said_in_one_line(groups: Groups, group: Name, action: str) -> None:
    assert "GROUP_ID_NOT_FOUND (69)" in one_line(groups(action, group("missing")), 1)


def test_a_topic_that_does_not_exist_is_said_in_one_line(groups: Groups, topic: Name, group: Name) -> None:
    done = groups("reset-offsets", group("any"), "--to-latest", "--topic", topic("missing"))
    assert "check the name of the topic" in one_line(done, 1)


def test_nobody_there_is_exit_code_3(groups: Groups) -> None:
    assert "cannot reach the cluster" in one_line(groups("list", to="127.0.0.1:1"), 3)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "ACTION"),
        (["frobnicate"], "frobnicate"),
        (["describe"], "GROUP"),
        (["list", "--timeout", "0"], "give seconds, more than 0"),
        (["list", "--bootstrap", "host:port"], "is no port number"),
        (["reset-offsets", "g", "--topic", "t"], "--to-earliest"),
        (["reset-offsets", "g", "--to-latest"], "--topic"),
        (["reset-offsets", "g", "--to-latest", "--to-earliest", "--topic", "t"], "not allowed with"),
        (["reset-offsets", "g", "--to-latest", "--topic", "t", "--all-topics"], "not allowed with"),
        (["reset-offsets", "g", "--to-latest", "--topic", "t:x"], "write orders, or orders:0,3"),
        (["reset-offsets", "g", "--to-offset", "-1", "--topic", "t"], "give a whole number from 0 on"),
        (["reset-offsets", "g", "--by-duration", "soon", "--topic", "t"], "write 90s, 2h"),
        (["reset-offsets", "g", "--to-datetime", "noon", "--topic", "t"], "write ISO 8601"),
        (["delete"], "GROUP"),
        (["delete-offsets", "g"], "--topic"),
    ],
)
def test_wrong_use_is_said_in_one_line(
    capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert said in one_line(ran(capsys, ["groups", *words]), 2)


def process(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "kohort", "groups", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.usefixtures("orders")
def test_a_reader_that_goes_away_is_no_error(bootstrap: str) -> None:
    with process("list", "--bootstrap", bootstrap) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert running.stderr.read() == ""
        assert running.wait(20) == 0


def test_a_disk_that_is_full_is_said_in_one_line(groups: Groups, orders: tuple[str, str]) -> None:
    done = groups("timeline", orders[1], "--html", "/dev/full")
    assert (done.code, done.err) == (2, "kohort groups: /dev/full: No space left on device\n")


@pytest.mark.usefixtures("orders")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("where", [">&-", "> /dev/full"])
def test_output_that_cannot_be_written_is_said_in_one_line(
    bootstrap: str, where: str, unbuffered: str
) -> None:
    command = f"{shlex.quote(sys.executable)} -m kohort groups list --bootstrap {bootstrap} {where}"
    around = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False, env=around
    )
    assert done.returncode == 2
    assert re.fullmatch(r"kohort groups: standard output.*\n", done.stderr)


@pytest.mark.parametrize(
    ("words", "encoding", "says"),
    [
        (["consume", b"\xff"], "utf-8", "an argument or a variable is no text in UTF-8: check the names"),
        (["groups", "list"], "ascii", "standard output takes only ascii: use --json, or set PYTHONUTF8=1"),
    ],
)
def test_what_cannot_be_encoded_is_said_in_one_line(
    bootstrap: str, orders: tuple[str, str], words: list[str | bytes], encoding: str, says: str
) -> None:
    async def commit() -> None:
        async with Cluster(bootstrap) as cluster:
            await cluster.commit("gruppe-ü", {TopicPartition(orders[0], 0): 5})

    asyncio.run(commit())
    command = [sys.executable, "-m", "kohort", *words, "--bootstrap", bootstrap]
    around = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=around)
    assert (done.returncode, done.stderr) == (2, f"kohort {words[0]!s}: {says}\n")


@pytest.mark.usefixtures("orders")
def test_tables_are_readable_in_a_tiny_terminal(groups: Groups, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1")
    assert "GROUP" in groups("list").out


def test_watch_tells_what_changes_and_ctrl_c_ends_it(bootstrap: str, orders: tuple[str, str]) -> None:
    _, name = orders
    with process("watch", name, "--bootstrap", bootstrap, "--interval", "0.05") as running:
        assert running.stdout is not None
        line = running.stdout.readline()
        while "lag" not in line:
            line = running.stdout.readline()
        assert line.rstrip().endswith("Empty, members 0, lag 15")
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=20)
    assert (running.returncode, errors) == (0, "")


async def test_watch_gives_a_document_a_look(groups: Groups, orders: tuple[str, str], member: Maker) -> None:
    topic, name = orders
    watching = asyncio.create_task(
        asyncio.to_thread(groups, "watch", name, "--json", "--interval", "0.1", "--count", "30")
    )
    await asyncio.sleep(0.5)
    await member(topic, group=name, client_id="app-7")
    done = await watching
    looks = [json.loads(line) for line in done.out.splitlines()]
    assert (done.code, len(looks)) == (0, 30)
    assert (looks[0]["state"], looks[0]["total_lag"], looks[0]["members"]) == ("Empty", 15, [])
    assert [row["client_id"] for row in looks[-1]["members"]] == ["app-7"]
    news = [event["text"] for look in looks for event in look["events"]]
    assert any("app-7 at /127.0.0.1" in text for text in news), news


async def test_timeline_shows_each_generation(
    groups: Groups, new_topic: NewTopic, group: Name, member: Maker, admin: GroupAdmin
) -> None:
    topic, name = new_topic("orders", partitions=4), group("billing")
    first = await member(topic, group=name, client_id="app-1", assignor="range")
    await stable(admin, name, 1)
    await member(topic, group=name, client_id="app-2", assignor="range")
    await stable(admin, name, 2)
    await first.close()
    await stable(admin, name, 1)
    shown = await asyncio.to_thread(groups, "timeline", name, "--json")
    assert shown.code == 0
    one, two, three = shown.document["generations"][-3:]
    assert [row["members"] for row in (one, two, three)] == [1, 2, 1]
    assert [row["generation"] for row in (two, three)] == [one["generation"] + 1, one["generation"] + 2]
    assert [row["partitions_moved"] for row in (two, three)] == [2, 2]
    assert one["timestamp_ms"] <= two["timestamp_ms"] <= three["timestamp_ms"]
    assert len({move["to_owner"] for move in three["moves"]}) == 1
    assert shown.document["now"]["state"] == "Stable"
    told_by = shown.document["source"]
    assert all((row["cause"] is None) == (told_by == "offsets topic") for row in (one, two, three))
    table = await asyncio.to_thread(groups, "timeline", name, "--limit", "2")
    assert table.code == 0
    assert "3 to 2" not in table.out
    assert [row[2] for row in table.rows()[1:3]] == [str(row["generation"]) for row in (two, three)]
    assert ("cannot be known" in table.err) == (told_by == "offsets topic")
