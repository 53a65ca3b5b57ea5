"""Lanes: who had each partition when, from generations and from what the group is now."""

from __future__ import annotations

from typing import Any

from kohort.admin import (
    Coordinator,
    Generation,
    GroupDescription,
    GroupHistory,
    HistoryEntry,
    MemberDescription,
    PartitionMove,
    PartitionOffsets,
)
from kohort.admin.groups.results import LagPoint, TimeStretch
from kohort.admin.pages.lanes import (
    MOST_LANES,
    MOST_SAMPLES,
    UNKNOWN,
    Lanes,
    Person,
    Sample,
    cause,
    gaps_of_samples,
    headline,
    held_up_by,
    keep_sample,
    lanes_of,
    owners_now,
    phases,
)
from kohort.protocol import TopicPartition

WHERE = Coordinator(1, "127.0.0.1", 9092)
UUID = "8d82424e-1d1b-4f43-9a3c-6a0f3d2c1b0a"


def member(name: str, *numbers: int, client_id: str = "app", instance: bool = True) -> MemberDescription:
    held = tuple(TopicPartition("orders", number) for number in numbers)
    return MemberDescription(name, name if instance else None, client_id, "/127.0.0.1", held)


def group(*members: MemberDescription, state: str = "Stable", **more: Any) -> GroupDescription:
    return GroupDescription("billing", state, "consumer", "range", "classic", WHERE, members, **more)


def generation(number: int, at: int, *moves: tuple[int, str | None, str | None], **more: Any) -> Generation:
    made = tuple(PartitionMove("orders", *move) for move in moves)
    moved = sum(move.to_owner is not None for move in made)
    return Generation(number, at, "Stable", **{"moves": made, "partitions_moved": moved, **more})


def picture(now: GroupDescription, *generations: Generation, **more: Any) -> Lanes:
    history = GroupHistory("billing", "coordinator", more.pop("entries", ()), generations)
    return lanes_of(now, history, 10_000, **more)


def told(lanes: Lanes) -> dict[int, list[tuple[int, str]]]:
    """Each partition's spans, with the owners' names."""
    names = {-1: "nobody", -2: "unknown"} | {n: owner.name for n, owner in enumerate(lanes.owners)}
    return {
        lane.partition: [(span.start_ms, names[span.owner]) for span in lane.spans] for lane in lanes.lanes
    }


def test_moves_tell_the_owner_on_both_sides_of_a_generations_end() -> None:
    found = picture(
        group(member("a", 0), member("b", 1)),
        generation(1, 1_000, (0, None, "a"), (1, None, "a"), duration_ms=400),
        generation(2, 4_000, (1, "a", "b")),
    )
    assert found.since_ms == 600
    assert told(found) == {
        0: [(600, "nobody"), (1_000, "a")],
        1: [(600, "nobody"), (1_000, "a"), (4_000, "b")],
    }


def test_a_generation_that_keeps_its_moves_to_itself_leaves_a_gap_until_the_next_that_tells() -> None:
    found = picture(
        group(member("b", 0), member("a", 1)),
        generation(1, 1_000, (0, None, "a"), (1, None, "a")),
        generation(2, 2_000, moves=None, partitions_moved=None),
        generation(3, 3_000, moves=None, partitions_moved=None),
        generation(4, 4_000, (0, "c", "b")),
    )
    assert told(found)[0] == [(1_000, "a"), (2_000, "unknown"), (3_000, "c"), (4_000, "b")]
    # nothing moved partition 1 after the third, as the fourth tells all
    assert told(found)[1] == [(1_000, "a"), (2_000, "unknown"), (3_000, "a")]


def test_only_the_first_of_many_moves_is_a_gap_too() -> None:
    found = picture(
        group(member("b", 0, 1)),
        generation(1, 1_000, (0, None, "a"), (1, None, "a")),
        generation(2, 2_000, (0, "a", "b"), partitions_moved=2),
        generation(3, 3_000, moves=None, partitions_moved=None),
    )
    assert told(found) == {
        0: [(1_000, "a"), (2_000, "b")],
        1: [(1_000, "a"), (2_000, "unknown"), (3_000, "b")],
    }


def test_a_group_that_rebalances_keeps_the_owners_that_it_had() -> None:
    waiting = group(MemberDescription("a", "a", "app", "/h", ()), state="PreparingRebalance")
    found = picture(waiting, generation(1, 1_000, (0, None, "a")))
    assert owners_now(waiting) is None
    assert told(found) == {0: [(1_000, "a")]}


def test_what_moves_just_now_is_seen_at_the_end_of_the_lane() -> None:
    found = picture(group(member("b", 0), epoch=2), generation(1, 1_000, (0, None, "a")))
    assert told(found) == {0: [(1_000, "a"), (10_000, "b")]}


def test_without_a_past_lanes_begin_when_somebody_looked() -> None:
    offsets = PartitionOffsets("orders", 1, 5, 9, 4, None)
    found = picture(group(member("a", 0), partitions=(offsets,)), since_ms=7_000)
    assert told(found) == {0: [(7_000, "a")], 1: [(7_000, "nobody")]}
    assert [lane.lag for lane in found.lanes] == [None, 4]


def test_a_group_that_is_gone_had_its_partitions_until_then() -> None:
    dead = group(state="Dead")
    found = picture(dead, generation(1, 1_000, (0, None, "a")), generation(2, 2_000, (0, "a", None)))
    assert told(found) == {0: [(1_000, "a"), (2_000, "nobody")]}


def test_more_partitions_than_a_browser_bears_are_counted_only() -> None:
    found = picture(group(member("a", *range(MOST_LANES + 3))))
    assert (len(found.lanes), found.hidden) == (MOST_LANES, 3)


def test_owners_are_called_what_people_call_them() -> None:
    members = (
        member("pod-1", 0),
        member(f"app-1-{UUID}", 1, client_id="app-1", instance=False),
        member("m7yOvDyySzaYkzXJyEFCkg", 2, client_id="twin", instance=False),
        member("KC2eQqqHSUyAjSPuXLbR3w", 3, client_id="twin", instance=False),
    )
    gone = {"AAAAAAAAAAAAAAAAAAAAAA": Person("gone", "/10.0.0.1")}
    moved = generation(1, 1_000, (4, "AAAAAAAAAAAAAAAAAAAAAA", None))
    found = picture(group(*members), moved, people=gone)
    assert [row.name for row in found.owners] == ["pod-1", "app-1", "twin m7yOvD", "twin KC2eQq", "gone"]
    assert found.name(None) == "nobody"
    assert found.name(f"other-{UUID}") == "other-8d82424e"


def test_the_document_is_what_the_script_reads() -> None:
    found = picture(
        group(member("a", 0)),
        generation(3, 1_000, (0, None, "a"), cause="x\x1b[2J joined"),
        samples=[Sample(9, 2)],
    )
    assert found.document() == {
        "group": "billing",
        "now": 10_000,
        "since": 1_000,
        "owners": [["a", "a", "/127.0.0.1"]],
        "lanes": [["orders", 0, None, ((1_000, 0),)]],
        "generations": [[3, 1_000, None, "x\ufffd[2J joined; 1 moved"]],
        "lag": (Sample(9, 2),),
        "gaps": [],
        "total": None,
    }


def test_old_points_of_lag_are_thinned_out() -> None:
    samples: list[Sample] = []
    for second in range(MOST_SAMPLES + 1):
        keep_sample(samples, Sample(second, 0))
    assert len(samples) <= MOST_SAMPLES
    assert (samples[0].timestamp_ms, samples[-1].timestamp_ms) == (0, MOST_SAMPLES)
    assert [s.timestamp_ms for s in samples[-100:]] == list(range(MOST_SAMPLES - 99, MOST_SAMPLES + 1))


def test_a_generation_is_told_in_a_line() -> None:
    known = generation(1, 1_000, (0, "a", "b"), (1, "a", None), cause="member b joined", duration_ms=1_200)
    assert headline(known) == "member b joined; took 1.2 s; 1 moved; 1 without an owner"
    assert cause(generation(1, 1, joined=("a", "b"), left=("c",))) == "cause unknown (2 joined, 1 left)"
    assert cause(generation(1, 1)) == "cause unknown"


def test_phases_are_those_of_the_groups_protocol() -> None:
    row = generation(1, 1_000, duration_ms=500, join_ms=400)
    assert [tuple(each) for each in phases(row, "classic")] == [
        ("members join", 400),
        ("the assignment is handed out", 100),
    ]
    assert phases(row, "consumer")[0].name == "the target is computed"
    assert phases(generation(1, 1_000), "classic") == []


def test_who_held_a_rebalance_up_is_told() -> None:
    row = generation(2, 5_000, duration_ms=2_000, slowest="pod-1", slowest_ms=1_500)

    def gone(at: int, kind: str, text: str) -> HistoryEntry:
        return HistoryEntry(1, at, "MemberGone", 1, text, "m", "app", "/h", {"cause_kind": kind})

    entries = (
        gone(4_000, "late_join", "member m did not rejoin within 60.0 s"),
        gone(4_500, "leave", "member m left"),
        gone(1_000, "late_join", "an earlier one"),
    )
    found = picture(group(member("pod-1", 0)), row, entries=entries)
    assert held_up_by(found, row) == [
        "pod-1 gave up its partitions after 1.5 s",
        "member m did not rejoin within 60.0 s",
    ]


def test_lanes_are_unknown_in_gaps_and_known_around_them() -> None:
    rows = (generation(3, 1_000, (0, None, "a")), generation(9, 8_000, (0, "b", "a")))
    history = GroupHistory("billing", "coordinator", (), rows, gaps=(TimeStretch(2_000, 5_000),))
    found = lanes_of(group(member("a", 0)), history, 10_000)
    names = [row.id for row in found.owners]
    [lane] = found.lanes
    assert [(start, owner if owner < 0 else names[owner]) for start, owner in lane.spans] == [
        (1_000, "a"),
        (2_000, UNKNOWN),
        (5_000, "b"),
        (8_000, "a"),
    ]
    assert found.document()["gaps"] == [TimeStretch(2_000, 5_000)]


def test_lag_is_unknown_where_nobody_looked_for_much_longer_than_usual() -> None:
    steady = [Sample(60_000 * at, 1) for at in range(10)]
    assert gaps_of_samples(steady) == []
    # old samples are thinned out
    assert gaps_of_samples([*(Sample(600_000 * at - 3_000_000, 1) for at in range(5)), *steady]) == []
    later = [Sample(each.timestamp_ms + 7_200_000, 1) for each in steady]
    assert gaps_of_samples([*steady, *later]) == [TimeStretch(540_000, 7_200_000)]
    assert gaps_of_samples([Sample(0, 1), Sample(10**9, 2)]) == []


def test_lags_of_a_recording_are_drawn() -> None:
    lag = (LagPoint(1_000, 5, 7), LagPoint(2_000))
    history = GroupHistory("billing", "recording", (), (), lag=lag)
    assert lanes_of(group(), history, 10_000).samples == (Sample(1_000, 5),)
