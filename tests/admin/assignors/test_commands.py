"""``kohort assignors`` as it is typed: on files, and on live groups of any client.

Covers: admin/assignors/actions.py, admin/assignors/report.py, admin/pages/assignor_page.py.
Covers: admin/assignors/group_snapshot.py.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kohort.admin import GroupAdmin
from kohort.cli import main
from kohort.consumer import Cluster
from kohort.protocol import TopicPartition
from tests.admin.conftest import Ran, ran, stable
from tests.admin.pages.test_lanes_page import words
from tests.clients.drivers import DRIVERS, Choice
from tests.clients.members import Member, wait_until
from tests.consumer.members import Maker

Name = Callable[[str], str]
NewTopic = Callable[..., str]
Assignors = Callable[..., Ran]

BILLING = {
    "group": "billing",
    "protocol": "range",
    "topics": {"orders": 12, "clicks": 4},
    "members": {
        "m1": {"topics": ["orders", "clicks"], "owned": {"orders": list(range(8)), "clicks": [0, 1]}},
        "m2": {"topics": ["orders"], "owned": {"orders": [8, 9, 10, 11]}},
        "m3": {"topics": ["clicks"], "owned": {"clicks": [2, 3]}},
    },
}
BROKEN = """
from kohort.assignors import RangeAssignor

class Broken(RangeAssignor):
    name = "broken"

    def assign(self, topics, members):
        raise ZeroDivisionError("a bug")
"""


@pytest.fixture
def assignors(capsys: pytest.CaptureFixture[str]) -> Assignors:
    """``assignors("try", ...)``: ``kohort assignors`` in this process."""

    def run(*words: Any) -> Ran:
        return ran(capsys, ["assignors", *map(str, words)])

    return run


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The group in a file, in the current folder, which also has an assignor that is broken."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "scored_here.py").write_text(BROKEN)
    path = tmp_path / "billing.json"
    path.write_text(json.dumps(BILLING))
    return path


def test_list(assignors: Assignors) -> None:
    done = assignors("list")
    assert (done.code, done.err) == (0, "")
    assert [row[0] for row in done.rows()[1:]] == [
        "balanced-by-weight",
        "cooperative-sticky",
        "range",
        "roundrobin",
        "sticky",
    ]
    rows = assignors("list", "--json").document["assignors"]
    assert rows[2].keys() == {"name", "origin", "version", "protocols", "description", "error"}
    assert rows[1]["protocols"] == ["cooperative", "eager"]


def test_try_shows_loads_and_moves(assignors: Assignors, file: Path) -> None:
    done = assignors("try", "--assignor", "cooperative-sticky", "--file", file)
    assert (done.code, done.err) == (0, "")
    rows = done.rows()
    assert rows[1][:7] == ["now:", "range", "3", "2", "10", "5.3", "3.40"]
    assert rows[2][:9] == ["cooperative-sticky", "3", "4", "6", "5.3", "0.94", "4", "0", "2"]
    assert rows[4][:3] == ["m1", "10", "6"]
    assert re.search(r"^m1 +m3 +clicks 0-1$", done.out, re.MULTILINE)
    every = assignors("try", "--assignor", "sticky", "--file", file, "--moves")
    assert [row for row in every.rows() if row[0] == "clicks"] == [
        ["clicks", "0", "m1", "m3"],
        ["clicks", "1", "m1", "m3"],
    ]


def test_try_what_if(assignors: Assignors, file: Path) -> None:
    changes = ("--leave", "m3", "--join", "2:orders,clicks", "--topic", "orders=64", "--topic", "more=3")
    done = assignors("try", "--assignor", "sticky", "--file", file, *changes, "--json")
    [trial] = done.document["trials"]
    assert done.code == 0
    assert (trial["after"]["members"], trial["after"]["partitions"]) == (4, 68)
    assert (trial["after"]["least"], trial["after"]["most"]) == (17, 17)
    assert {row["name"]: row["after"] for row in trial["loads"]} == {
        "m1": 17,
        "m2": 17,
        "m3": None,
        "new-1": 17,
        "new-2": 17,
    }
    assert trial["moved"] + trial["placed"] == len(trial["moves"])


def test_explain(assignors: Assignors, file: Path) -> None:
    done = assignors("explain", "--file", file, "--join", "1:clicks", "--topic", "clicks=1")
    assert (done.code, done.err) == (0, "")
    assert [line for line in done.out.splitlines() if "topic orders" in line and "6 each" in line]
    limits = assignors("explain", "--file", file, "--topic", "clicks=1", "--json").document["limits"]
    assert [(limit["members"], limit["topics"], limit["high"]) for limit in limits] == [
        (["m1", "m2"], ["orders"], 6),
        (["m3"], ["clicks"], 1),
    ]
    assert limits[0]["text"] in assignors("explain", "--file", file, "--topic", "clicks=1").out


def test_compare_as_table_document_and_page(assignors: Assignors, file: Path, tmp_path: Path) -> None:
    names = ["range", "roundrobin", "sticky", "cooperative-sticky", "balanced-by-weight"]
    page = tmp_path / "page.html"
    done = assignors("compare", *names, "--file", file, "--html", page)
    assert done.code == 0
    assert [row[0] for row in done.rows()[2:]] == names
    assert "the page is in" in done.err
    text = page.read_text()
    told = words(text)
    assert "cooperative-sticky: moves 4 would move, 0 would be placed; settled after" in told
    assert "settled after 1 round, computed" in told
    assert "sticky 3 4 6 5.3" in told, "the balance"
    assert "m1 m3 2 clicks 0-1" in told, "a move"
    assert "m1 10 6 m2 4 6 m3 2 4" in told, "loads, the one that changes most first"
    assert '<meter max="10" value="6"' in text
    assert not re.search(r"""<(script|link)[^>]+(src|href)=["']https?:""", text), "it needs no network"
    document = assignors("compare", *names, "--file", file, "--json").document
    assert (document["group"], document["protocol"]) == ("billing", "range")
    assert [trial["assignor"] for trial in document["trials"]] == names
    assert {trial["error"] for trial in document["trials"]} == {None}


def test_a_page_of_a_large_group_shows_those_that_change_most(assignors: Assignors, tmp_path: Path) -> None:
    path, page = tmp_path / "large.json", tmp_path / "large.html"
    members = {f"m{number:04d}": {"topics": ["t"]} for number in range(1_200)}
    members["m1199"]["owned"] = {"t": list(range(2_400))}  # type: ignore[assignment]
    path.write_text(json.dumps({"topics": {"t": 2_400}, "members": members}))
    done = assignors("compare", "sticky", "--file", path, "--html", page)
    assert (done.code, "2,398 would move" in page.read_text()) == (0, True)
    loads = words(page.read_text()).partition("sticky: loads")[2]
    assert re.findall(r"m\d\d\d\d", loads) == ["m1199", *(f"m{number:04d}" for number in range(999))]


def test_an_assignor_is_scored_where_it_is_written(assignors: Assignors, file: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = assignors("compare", "sticky", "scored_here.Broken", "--file", file, "--html", page)
    assert done.code == 1
    assert "scored_here.Broken: ZeroDivisionError: a bug" in done.out
    assert "ZeroDivisionError: a bug" in page.read_text()
    alone = assignors("try", "--assignor", "scored_here.Broken", "--file", file)
    assert (alone.code, "a bug" in alone.out) == (1, True)
    assert assignors("compare", "scored_here.Broken", "--file", file, "--html", page).code == 1
    assert "a bug" in page.read_text()


def test_names_are_shown_as_text(assignors: Assignors, tmp_path: Path) -> None:
    name = "</script><b>[red]"
    path, page = tmp_path / "x.json", tmp_path / "x.html"
    path.write_text(json.dumps({"group": name, "topics": {"t": 2}, "members": {name: {"topics": ["t"]}}}))
    done = assignors("compare", "range", "--file", path, "--html", page)
    assert done.code == 0
    assert "<b>[red]" not in page.read_text()
    assert name in assignors("try", "--assignor", "range", "--file", path).out


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (["try", "--assignor", "stiky"], 1, "no assignor is named 'stiky'. Available:"),
        (["try", "--assignor", "sticky", "--leave", "m9"], 1, "'m9' is no member of the group"),
        (["try", "--assignor", "sticky", "--weights", "lag"], 1, "--weights measures a live group"),
        (["try", "--assignor", "sticky", "--join", "many"], 2, "'many': give a whole number"),
        (["try", "--assignor", "sticky", "--join", "2:"], 2, "give N or N:TOPIC,TOPIC"),
        (["try", "--assignor", "sticky", "--join", "99999"], 2, "give at most 10000"),
        (["try", "--assignor", "sticky", "--topic", "orders"], 2, "give TOPIC=N"),
        (["try"], 2, "--assignor"),
        (["compare", "sticky", "--html", "/nowhere/at/all.html"], 1, "cannot be written"),
    ],
)
def test_errors_are_one_line_that_says_what_to_do(
    assignors: Assignors, file: Path, words: list[str], code: int, error: str
) -> None:
    done = assignors(*words, "--file", file)
    assert (done.code, done.out) == (code, "")
    [line] = done.err.splitlines()
    assert line.startswith("kohort assignors")
    assert error in line


def test_nobody_answers(assignors: Assignors) -> None:
    live = ("--group", "billing", "--bootstrap", "127.0.0.1:1", "--timeout", "0.5")
    assert assignors("try", "--assignor", "sticky", *live).code == 3


@pytest.mark.kafka
async def test_a_live_group_of_ours(
    assignors: Assignors, bootstrap: str, admin: GroupAdmin, member: Maker, new_topic: NewTopic, group: Name
) -> None:
    topic, name = new_topic("orders", partitions=6), group("billing")
    await member(topic, group=name, client_id="one", assignor="range")
    await member(topic, group=name, client_id="two", group_instance_id="pod-2", assignor="range")
    await stable(admin, name, 2)
    live = ("--group", name, "--bootstrap", bootstrap)
    stays = await asyncio.to_thread(assignors, "try", "--assignor", "cooperative-sticky", *live)
    assert stays.code == 0
    assert "nothing moves" in stays.out
    assert "now: range" in stays.out
    changed = await asyncio.to_thread(
        assignors, "try", "--assignor", "sticky", *live, "--leave", "pod-2", "--join", "2", "--json"
    )
    [trial] = changed.document["trials"]
    assert {row["name"]: (row["before"], row["after"]) for row in trial["loads"]} == {
        "one": (3, 2),
        "pod-2": (3, None),
        "new-1": (None, 2),
        "new-2": (None, 2),
    }
    async with Cluster(bootstrap) as cluster:
        found = await cluster.committed(name)
    # a member that is a while alone with its share may have committed where it began
    assert {committed.offset for committed in found.values()} <= {0}, "it only looks"


@pytest.mark.kafka
@pytest.mark.clients
def test_a_live_group_of_others_by_weight(
    assignors: Assignors, bootstrap: str, new_topic: NewTopic, group: Name, produce: Callable[..., None]
) -> None:
    topic, name = new_topic("orders", partitions=4, retention_ms="-1"), group("billing")
    produce(topic, {0: 30, 1: 1, 2: 1, 3: 1})

    async def commit() -> None:
        async with Cluster(bootstrap) as cluster:
            await cluster.commit(name, {TopicPartition(topic, number): 0 for number in range(4)})

    asyncio.run(commit())
    choice = Choice("cooperative-sticky", "pod-1")
    with Member(DRIVERS["kafka-python"], bootstrap, name, f"{topic}", choice) as member:
        wait_until(lambda: len(member.held) == 4, "it holds all", [member])
        live = ("--group", name, "--bootstrap", bootstrap, "--join", 1, "--weights", "lag", "--json")
        done = assignors("compare", "sticky", "balanced-by-weight?weights=lag", *live)
        counted, weighed = done.document["trials"]
        assert done.code == 0
        assert (counted["after"]["least"], counted["after"]["most"]) == (2, 2)
        assert weighed["before"]["most_weight"] <= 33
        assert {row["name"] for row in weighed["loads"]} == {"pod-1", "new-1"}


@pytest.mark.kafka
def test_a_group_that_is_not_there_and_one_without_members(
    assignors: Assignors, bootstrap: str, new_topic: NewTopic, group: Name
) -> None:
    topic, name = new_topic("orders", partitions=2), group("billing")
    live = ("--group", name, "--bootstrap", bootstrap)
    missing = assignors("try", "--assignor", "sticky", *live)
    assert (missing.code, missing.out) == (1, "")
    assert "GROUP_ID_NOT_FOUND (69)" in missing.err

    async def commit() -> None:
        async with Cluster(bootstrap) as cluster:
            await cluster.commit(name, {TopicPartition(topic, 0): 0})

    asyncio.run(commit())
    assert "give N:TOPIC" in assignors("try", "--assignor", "sticky", *live, "--join", 2).err
    done = assignors("try", "--assignor", "sticky", *live, "--join", f"2:{topic}", "--json")
    assert done.document["trials"][0]["after"]["most"] == 1


def test_what_an_assignor_does_is_told_without_the_marks_of_docstrings(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["assignors", "list"]) == 0
    told = capsys.readouterr().out
    assert "sticky (KIP-54): members stop at a rebalance" in told
    assert "`" not in told
