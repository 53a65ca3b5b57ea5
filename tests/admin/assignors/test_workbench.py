"""The workbench without a broker: groups from files, what-if changes, trials.

Covers: admin/assignors/group_file.py, assignors/simulation.py.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from kohort.admin.assignors.group_file import read_group
from kohort.admin.assignors.workbench import (
    GroupSnapshot,
    Trial,
    WhatIf,
    WorkbenchError,
    balance,
    try_assignor,
)
from kohort.assignors import Assignor, GroupAssignment, Member, RangeAssignor, RebalanceProtocol, TopicInfo
from kohort.protocol import TopicPartition

ROOT = Path(__file__).resolve().parents[3]

YAML = """
group: billing
topics: {orders: 12, clicks: 4, views: {partitions: 2, racks: [[a], [a, b]]}}
members:
  m1: {topics: [orders, clicks], owned: {orders: [0, 1, 2, 3, 4, 5], clicks: [0, 1]}}
  m2: {topics: [orders], owned: {orders: [6, 7, 8, 9, 10, 11]}, instance_id: pod-2, rack: a}
  m3: {topics: [orders, clicks, views], owned: {clicks: [2, 3], views: [0, 1]}, user_data: acme,
    generation: 4}
weights: {orders: 1, clicks: 2, orders-0: 9.5}
"""


def parts(topic: str, *numbers: int) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in numbers]


@pytest.fixture
def billing(tmp_path: Path) -> GroupSnapshot:
    path = tmp_path / "billing.yaml"
    path.write_text(YAML)
    return read_group(path)


def test_a_yaml_file_is_read(billing: GroupSnapshot) -> None:
    assert billing.topics["views"] == TopicInfo(2, (frozenset("a"), frozenset("ab")))
    assert billing.owned["m3"] == (*parts("clicks", 2, 3), *parts("views", 0, 1))
    assert (billing.members["m2"].instance_id, billing.members["m2"].rack) == ("pod-2", "a")
    assert billing.members["m3"].subscription.user_data == b"acme"
    assert billing.members["m3"].subscription.generation == 4
    assert billing.name("m2") == "pod-2"
    assert billing.weights[TopicPartition("orders", 0)] == 9.5
    assert billing.weights[TopicPartition("orders", 1)] == 1
    assert TopicPartition("views", 0) not in billing.weights


def test_json_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "audit.json"
    path.write_text(json.dumps({"topics": {"t": 2}, "members": {"a": {"topics": ["t"]}}}))
    group = read_group(path)
    assert (group.group, group.topics, group.owned) == ("audit", {"t": TopicInfo(2)}, {"a": ()})


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("x.json", "{", "is no JSON"),
        ("x.yaml", "a: [", "is no YAML"),
        ("x.json", "[]", r"the file is \[\]: give names and what belongs to them"),
        ("x.json", '{"topics": {"t": 1}}', "members is None"),
        ("x.json", '{"topics": {"t": "two"}, "members": {}}', "topic t has partitions 'two'"),
        ("x.json", '{"topics": {"t": -1}, "members": {}}', "partition_count is -1"),
        ("x.json", '{"topics": {}, "members": {"a": {}}}', "member a has topics None: give a list"),
        (
            "x.json",
            '{"topics": {}, "members": {"a": {"topics": [], "rak": 1}}}',
            "member a has rak: known are",
        ),
        (
            "x.json",
            '{"topics": {}, "members": {"a": {"topics": [], "owned": {"t": 3}}}}',
            "member a owns t 3: give a list",
        ),
        (
            "x.json",
            '{"topics": {"t": 1}, "members": {}, "weights": {"t-1": 2}}',
            "weights has t-1: known are t, t-0",
        ),
        ("x.json", '{"topics": {"t": 1}, "members": {}, "weights": {"t": "x"}}', "could not convert"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, name: str, text: str, reason: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(WorkbenchError, match=reason):
        read_group(tmp_path / name)


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(WorkbenchError, match=r"nowhere\.json cannot be read"):
        read_group("nowhere.json")


def test_yaml_without_its_library_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    (tmp_path / "x.yaml").write_text(YAML)
    with pytest.raises(WorkbenchError, match=r"pip install 'kohort\[workbench\]'"):
        read_group(tmp_path / "x.yaml")


def test_what_if_members_come_and_go_and_topics_grow(billing: GroupSnapshot) -> None:
    changed = WhatIf(("pod-2",), 2, ("orders",), {"orders": 13, "new": 3, "clicks": 1}).apply(billing)
    assert list(changed.members) == ["m1", "m3", "new-1", "new-2"]
    assert changed.members["new-1"].topics == ("orders",)
    assert {t: info.partition_count for t, info in changed.topics.items()} == {
        "orders": 13,
        "clicks": 1,
        "views": 2,
        "new": 3,
    }
    assert changed.owned["m3"] == tuple(parts("views", 0, 1)), "what is gone is owned by nobody"
    assert "new-1" in WhatIf(join=1).apply(billing).members


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (WhatIf(("m4",)), "'m4' is no member of the group: give one of m1, m3, pod-2"),
        (WhatIf(("m",)), "'m' is the beginning of 3 members"),
    ],
)
def test_a_change_that_cannot_be(billing: GroupSnapshot, change: WhatIf, reason: str) -> None:
    with pytest.raises(WorkbenchError, match=reason):
        change.apply(billing)


def test_nobody_to_take_a_subscription_from() -> None:
    with pytest.raises(WorkbenchError, match="give N:TOPIC"):
        WhatIf(join=1).apply(GroupSnapshot("empty", {}, {}, {}))


def test_a_trial_tells_balance_moves_and_rounds(billing: GroupSnapshot) -> None:
    trial = try_assignor("cooperative-sticky", billing)
    assert (trial.before.least, trial.before.most, trial.before.partitions) == (4, 8, 18)
    assert trial.after is not None
    assert (trial.after.least, trial.after.most, trial.after.deviation) == (6, 6, 0)
    assert (trial.moved, trial.placed, trial.rounds, trial.protocol) == (2, 0, 2, "cooperative")
    assert {(move.from_owner, move.to_owner) for move in trial.moves} == {("m1", "m3")}
    loads = {row.name: (row.before, row.after) for row in trial.loads}
    assert loads == {"m1": (8, 6), "m3": (4, 6), "pod-2": (6, 6)}
    assert trial.usable


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky", "balanced-by-weight"])
def test_what_a_group_has_from_a_sticky_assignor_it_keeps(billing: GroupSnapshot, name: str) -> None:
    even = WhatIf(topics={"views": 0, "clicks": 0}).apply(billing)
    owned = {"m1": tuple(parts("orders", 0, 1, 2, 3)), "m2": tuple(parts("orders", 4, 5, 6, 7))}
    group = GroupSnapshot(
        "g", even.topics, even.members, {**owned, "m3": tuple(parts("orders", 8, 9, 10, 11))}
    )
    trial = try_assignor(name, group)
    assert (trial.moves, trial.rounds) == ((), 1)


def test_those_who_leave_are_in_the_loads_and_their_partitions_are_placed(billing: GroupSnapshot) -> None:
    trial = try_assignor("sticky", billing, WhatIf(("m3",), 1, ("clicks", "orders")).apply(billing))
    loads = {row.name: (row.before, row.after) for row in trial.loads}
    assert loads["m3"] == (4, None)
    assert loads["new-1"][0] is None
    assert trial.placed == 2, "clicks 2 and 3: nobody wants views any more"
    assert trial.after is not None
    assert trial.after.partitions == 16


def test_weights_are_counted_where_they_are_known(billing: GroupSnapshot) -> None:
    found = balance(billing, billing.owned)
    mean = sum(billing.weights.values()) / len(billing.weights)
    assert found.most_weight == 9.5 + 5 + 4
    assert found.least_weight == 6
    assert balance(GroupSnapshot("g", {}, {}, {}), {}).members == 0
    trial = try_assignor("balanced-by-weight?weights=lag,tolerance=0", billing)
    assert trial.after is not None
    assert trial.after.most_weight is not None
    assert trial.after.most_weight <= found.most_weight
    assert mean > 1


class Broken(Assignor):
    name = "broken"

    def assign(self, topics: Mapping[str, TopicInfo], members: Mapping[str, Member]) -> GroupAssignment:
        raise ZeroDivisionError(f"{len(topics)} topics, {len(members)} members")


class Doubling(RangeAssignor):
    name = "doubling"

    def assign(self, topics: Mapping[str, TopicInfo], members: Mapping[str, Member]) -> GroupAssignment:
        return {m: [*given, *given] for m, given in super().assign(topics, members).items()}


class Restless(Assignor):
    """Each gives one up, every time, and m3 takes what is free."""

    name = "restless"
    rebalance_protocols = frozenset({RebalanceProtocol.COOPERATIVE})

    def assign(self, topics: Mapping[str, TopicInfo], members: Mapping[str, Member]) -> GroupAssignment:
        answer = {m: sorted(member.subscription.owned)[1:] for m, member in members.items()}
        claimed = {p for member in members.values() for p in member.subscription.owned}
        everything = {TopicPartition(t, n) for t, info in topics.items() for n in range(info.partition_count)}
        answer["m3"] += everything - claimed
        return answer


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (Broken, "ZeroDivisionError: 3 topics, 3 members"),
        (Doubling, "clicks-0 is given to m1 and to m1"),
        (Restless, "it still moves partitions after 10 rounds"),
    ],
)
def test_what_an_assignor_does_wrong_is_in_the_trial(
    billing: GroupSnapshot, broken: type[Assignor], told: str
) -> None:
    trial: Trial = try_assignor(broken, billing)
    assert told in (trial.error, *trial.problems)
    assert not trial.usable
    assert trial.after is None


def test_the_pages_example_runs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "assignors.md").read_text()
    (code,) = (
        block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "read_group" in block
    )
    shutil.copy(ROOT / "examples" / "tenants" / "billing.yaml", tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("0 2 Balance(members=2, partitions=9, least=4, most=5")


class Tenants(RangeAssignor):
    """Needs to be told whom members serve."""

    name = "tenants"
    seen: dict[str, Any] = {}

    def user_data(self, topics: Sequence[str]) -> bytes:
        del topics
        return b"nobody"

    def assign(self, topics: Mapping[str, TopicInfo], members: Mapping[str, Member]) -> GroupAssignment:
        self.seen.update({m: member.subscription.user_data for m, member in members.items()})
        return super().assign(topics, members)


@pytest.mark.parametrize(
    ("protocol", "expected"), [("tenants", b"acme"), ("", b"acme"), ("range", b"nobody")]
)
def test_members_keep_the_user_data_that_is_of_the_same_assignor(
    billing: GroupSnapshot, protocol: str, expected: bytes
) -> None:
    group = GroupSnapshot("g", billing.topics, billing.members, billing.owned, protocol)
    try_assignor(Tenants, group, WhatIf(join=1).apply(group))
    assert Tenants.seen["m3"] == expected
    assert Tenants.seen["new-1"] == b"nobody"
