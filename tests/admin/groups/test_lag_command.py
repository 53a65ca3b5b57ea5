"""``kohort groups lag``, and what other commands show of lag, on any cluster."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable

import pytest

from kohort.admin.groups.lag_command import is_over
from kohort.client import Cluster, CommittedOffset
from kohort.lag import GroupLag, PartitionLag
from kohort.protocol import TopicPartition
from tests.admin.conftest import Groups

pytestmark = pytest.mark.kafka

HOUR_MS = 3_600_000


@pytest.fixture
def behind(
    bootstrap: str,
    group: Callable[[str], str],
    new_topic: Callable[..., str],
    produce: Callable[..., None],
) -> tuple[str, str, str]:
    """A group with 25 unread records, the oldest two hours old; one that has read all; their topic."""
    topic, names = new_topic("t", partitions=2), (group("behind"), group("done"))
    produce(topic, {0: 20, 1: 10}, first_ms=round(time.time() * 1_000) - 2 * HOUR_MS)

    async def commit() -> None:
        async with Cluster(bootstrap) as cluster:
            for name, offsets in zip(names, ((5, 0), (20, 10)), strict=True):
                committed = {TopicPartition(topic, n): CommittedOffset(at) for n, at in enumerate(offsets)}
                await cluster.commit(name, committed)

    asyncio.run(commit())
    return (*names, topic)


def test_all_groups_are_shown_the_furthest_behind_first(behind: tuple[str, str, str], groups: Groups) -> None:
    shown = groups("lag")
    assert shown.code == 0
    rows = {row[0]: (place, row) for place, row in enumerate(shown.rows())}
    assert shown.rows()[0] == ["GROUP", "STATE", "MEMBERS", "LAG", "OLDEST"]
    (first, late), (second, done) = rows[behind[0]], rows[behind[1]]
    assert first < second
    assert late[1:4] == ["Empty", "0", "25"]
    assert late[4:] in (["2", "h", "0", "min"], ["2", "h", "1", "min"], ["1", "h", "59", "min"])
    assert done[1:] == ["Empty", "0", "0", "-"]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--over", "24"], 1),
        (["--over", "25"], 0),
        (["--older-than", "1h"], 1),
        (["--older-than", "1d"], 0),
        (["--over", "1000", "--older-than", "1h"], 1),
    ],
)
def test_the_exit_code_says_whether_a_group_is_too_far_behind(
    behind: tuple[str, str, str], groups: Groups, options: list[str], code: int
) -> None:
    late, done, _ = behind
    shown = groups("lag", late, done, *options)
    assert shown.code == code
    assert [row[0] for row in shown.rows()[1:]] == [late] * code
    assert ("no group is further behind" in shown.err) == (not code)


def test_json_has_the_groups_with_their_partitions(behind: tuple[str, str, str], groups: Groups) -> None:
    late, done, topic = behind
    shown = groups("lag", late, done, "--json")
    assert shown.code == 0
    first, second = shown.document["groups"]
    assert (first["group"], first["records"], second["records"], second["age_ms"]) == (late, 25, 0, 0)
    assert first["age_ms"] >= HOUR_MS
    assert first["error"] is None
    row = first["partitions"][0]
    assert (row["topic"], row["partition"], row["committed_offset"], row["end_offset"]) == (topic, 0, 5, 20)
    assert groups("lag", late, done, "--over", "24", "--json").document["groups"][0]["group"] == late


def test_partitions_have_rows_of_their_own(behind: tuple[str, str, str], groups: Groups) -> None:
    late, _, topic = behind
    rows = groups("lag", late, "--partitions").rows()
    assert rows[0] == ["GROUP", "TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "OLDEST", "MEMBER", "NOTE"]
    assert [row[:6] for row in rows[1:]] == [
        [late, topic, "0", "5", "20", "15"],
        [late, topic, "1", "0", "10", "10"],
    ]


def test_two_looks_name_what_stands_still(behind: tuple[str, str, str], groups: Groups) -> None:
    late, done, topic = behind
    shown = groups("lag", late, done, "--during", "20ms")
    assert shown.code == 0
    text = " ".join(" ".join(row) for row in shown.rows())
    assert "ARRIVE/S READ/S CAUGHT UP IN" in text
    assert "0 0 never at this rate" in text
    assert f"{late} {topic} 0-1" in text
    assert f"{done} {topic}" not in text
    with_partitions = groups("lag", late, "--during", "20ms", "--partitions")
    assert "STANDS FOR" in with_partitions.out


def test_a_watch_shows_each_look(behind: tuple[str, str, str], groups: Groups) -> None:
    late, _, _ = behind
    words = ("lag", late, "--watch", "--count", "2", "--interval", "0.01")
    shown = groups(*words, "--json")
    looks = [json.loads(line) for line in shown.out.splitlines()]
    assert [look["groups"][0]["work_rate"] for look in looks] == [None, 0]
    assert groups(*words).out.count("CAUGHT UP IN") == 1


def test_a_group_that_does_not_exist_is_said_and_the_others_are_shown(
    behind: tuple[str, str, str], groups: Groups
) -> None:
    shown = groups("lag", behind[0], "no-such-group")
    assert shown.code == 1
    assert shown.rows()[1][0] == behind[0]
    assert "no-such-group: " in shown.err
    assert "does not exist" in shown.err


def test_the_list_has_lag_where_it_is_asked_for(behind: tuple[str, str, str], groups: Groups) -> None:
    late, _, _ = behind
    shown = groups("list", "--lag")
    assert shown.rows()[0][-3:] == ["MEMBERS", "LAG", "OLDEST"]
    [row] = [row for row in shown.rows() if row[0] == late]
    assert row[-6:-4] == ["0", "25"]
    found = {row["group"]: row for row in groups("list", "--lag", "--json").document["groups"]}
    assert (found[late]["records"], found[late]["member_count"]) == (25, 0)
    assert "records" not in groups("list", "--json").document["groups"][0]


def test_several_groups_are_described_or_all(behind: tuple[str, str, str], groups: Groups) -> None:
    late, done, _ = behind
    shown = groups("describe", late, done, "--json")
    assert [row["group"] for row in shown.document["groups"]] == [late, done]
    assert groups("describe", late, "--json").document["group"] == late
    everything = groups("describe", "--all-groups", "--json")
    assert everything.code == 0
    assert {late, done} <= {row["group"] for row in everything.document["groups"]}
    partly = groups("describe", late, "no-such-group")
    assert partly.code == 1
    assert late in partly.out
    assert "'no-such-group' does not exist" in partly.err
    assert groups("describe").code == groups("describe", late, "--all-groups").code == 2


@pytest.mark.parametrize(
    ("records", "age_ms", "over", "older_than", "expected"),
    [
        (11, 0, 10, None, True),
        (10, 0, 10, None, False),
        (None, None, 0, 0, False),
        (1, 1_001, None, 1_000, True),
        (1, 1_000, 5, 1_000, False),
        (9, 9_999, None, None, False),
    ],
)
def test_what_is_over(
    records: int | None, age_ms: int | None, over: int | None, older_than: int | None, expected: bool
) -> None:
    row = PartitionLag("t", 0, 0, records, records, age_ms)
    assert is_over(GroupLag("g", "classic", "Empty", 0, (row,)), over, older_than) is expected
