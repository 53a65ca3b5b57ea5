"""Which partitions change hands, for what leaders may send."""

from __future__ import annotations

import pytest

from kohort.coordinator.groups.events import Move, count_moves, moves_between
from kohort.protocol import TopicPartition, encode_assignment


def shares(**owned: str) -> dict[str, bytes]:
    """``shares(a="t0 u1")``: each owner's partitions, as a leader sends them."""
    return {
        owner: encode_assignment([TopicPartition(name[0], int(name[1:])) for name in names.split()])
        for owner, names in owned.items()
    }


CASES = [
    pytest.param({}, {}, 0, 0, [], id="nobody"),
    pytest.param({}, shares(a="t0 t1"), 2, 2, [("t", 0, None, "a"), ("t", 1, None, "a")], id="the first"),
    pytest.param(shares(a="t0"), shares(a="t0"), 0, 1, [], id="nothing changed"),
    pytest.param(shares(a="t0"), {}, 0, 0, [("t", 0, "a", None)], id="the last one left"),
    pytest.param(
        shares(a="t0 t1", b="t2"),
        shares(a="t1", b="t2 t0"),
        1,
        3,
        [("t", 0, "a", "b")],
        id="one partition goes over",
    ),
    pytest.param(
        shares(a="u0 t1", b="t0"),
        shares(b="u0 t1", a="t0"),
        3,
        3,
        [("t", 0, "b", "a"), ("t", 1, "a", "b"), ("u", 0, "a", "b")],
        id="all of them, by topic and partition",
    ),
    pytest.param({"a": b"?"}, shares(a="t0"), 1, 1, [("t", 0, None, "a")], id="unreadable before"),
    pytest.param(shares(a="t0"), {"a": b"?"}, 0, 0, [("t", 0, "a", None)], id="unreadable after"),
    pytest.param(
        shares(a="t0", b="t1"), shares(a="t0", c="t1"), 1, 2, [("t", 1, "b", "c")], id="another member"
    ),
]


@pytest.mark.parametrize(("before", "after", "moved", "total", "moves"), CASES)
def test_what_changes_hands_is_counted_and_listed(
    before: dict[str, bytes],
    after: dict[str, bytes],
    moved: int,
    total: int,
    moves: list[tuple[str, int, str | None, str | None]],
) -> None:
    assert count_moves(before, after) == (moved, total)
    assert moves_between(before, after) == [Move(*move) for move in moves]
