"""The coordinator's side: its quick way to a target of ``uniform`` gives the answer of the long one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.assignors import AssignorError
from kohort.assignors import server as served
from kohort.assignors.server import Numbers, ServedMember, changed_targets, load_server_assignor

NAMES = ("a", "b", "c")


@st.composite
def groups(draw: Any) -> tuple[dict[str, int], dict[str, ServedMember]]:
    """Topics, and members that read the same ones; some partitions have an owner."""
    counts = {topic: draw(st.integers(0, 9)) for topic in NAMES}
    wanted = tuple(topic for topic in NAMES if draw(st.booleans())) or ("a",)
    ids = draw(st.lists(st.integers(0, 2_000), min_size=1, max_size=8, unique=True))
    owned: list[dict[str, list[int]]] = [{} for _ in ids]
    for topic in wanted:
        for number in range(counts[topic]):
            owner = draw(st.integers(-1, len(ids) - 1))
            if owner >= 0:
                owned[owner].setdefault(topic, []).append(number)
    members = {
        f"m{each}": ServedMember(
            f"i{each}" if draw(st.booleans()) else None,
            "client",
            None,
            wanted,
            {topic: tuple(row) for topic, row in mine.items()},
            draw(st.booleans()),
        )
        for each, mine in zip(ids, owned, strict=True)
    }
    return {topic: count for topic, count in counts.items() if topic in wanted and count}, members


def the_long_way(topics: dict[str, int], members: dict[str, ServedMember]) -> dict[str, Numbers]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(served, "_few_moves", lambda _topics, _members: None)
        return changed_targets(load_server_assignor("uniform"), topics, members)


@given(groups())
def test_uniform_answers_the_same_whichever_way_it_takes(
    group: tuple[dict[str, int], dict[str, ServedMember]],
) -> None:
    topics, members = group
    quick = served._few_moves(topics, members)
    assert (quick is None) == (not topics)
    assert changed_targets(load_server_assignor("uniform"), topics, members) == the_long_way(topics, members)


@pytest.mark.parametrize(
    "owned",
    [
        [{"a": (0, 1)}, {"a": (1,)}],
        [{"a": (0, 7)}, {}],
        [{"a": (0, 0)}, {}],
        [{"gone": (0,)}, {}],
    ],
    ids=["two own one", "no such partition", "one twice", "another topic"],
)
def test_what_was_owned_wrongly_takes_the_long_way(owned: list[Numbers]) -> None:
    members = {f"m{number}": ServedMember(None, "", None, ("a",), row) for number, row in enumerate(owned)}
    assert served._few_moves({"a": 3}, members) is None
    answer = changed_targets(load_server_assignor("uniform"), {"a": 3}, members)
    whole = {**{name: member.owned for name, member in members.items()}, **answer}
    assert sorted(number for row in whole.values() for number in row.get("a", ())) == [0, 1, 2]


def test_members_that_read_different_topics_take_the_long_way() -> None:
    members = {name: ServedMember(None, "", None, (name,), {}) for name in "ab"}
    assert served._few_moves({"a": 1, "b": 1}, members) is None


def test_a_record_has_no_room_for_too_many_partitions() -> None:
    members = {"m": ServedMember(None, "", None, ("a",), {})}
    with pytest.raises(AssignorError, match="too many for one record"):
        changed_targets(load_server_assignor("uniform"), {"a": 200_000}, members)
