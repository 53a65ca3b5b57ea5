from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.protocol import TopicPartition
from kohort.spark import DataLossError, NoStartError, OffsetRange
from kohort.spark._intent import intents_of, outcomes_of, positions_of
from kohort.spark._offsets import Bounds, Committed, Plan
from kohort.spark._plan import (
    Limits,
    StartRules,
    allocate_ranges,
    choose_starts,
    plan_batch,
    split_shares,
    split_tasks,
)

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
LOGS = {P0: Bounds(0, 1000), P1: Bounds(0, 1000)}


def spans(*rows: tuple[int, int, int]) -> tuple[OffsetRange, ...]:
    return tuple(OffsetRange("t", *row) for row in rows)


def planned(
    committed: dict[TopicPartition, Committed],
    bounds: dict[TopicPartition, Bounds] | None = None,
    *,
    rules: StartRules | None = None,
    limits: Limits | None = None,
    reached: dict[TopicPartition, int] | None = None,
    least_number: int = 0,
) -> Plan:
    return plan_batch(
        committed,
        LOGS if bounds is None else bounds,
        rules=rules or StartRules(),
        limits=limits or Limits(),
        reached=reached,
        least_number=least_number,
    )


def test_reads_from_the_committed_offsets_to_the_ends() -> None:
    plan = planned({P0: Committed(500), P1: Committed(700)})
    assert replace(plan, token="") == Plan(0, spans((0, 500, 1000), (1, 700, 1000)))
    assert plan.offsets == 800


def test_partitions_without_records_are_left_out() -> None:
    plan = planned({P0: Committed(1000), P1: Committed(999)})
    assert plan.ranges == spans((1, 999, 1000))
    assert not plan.moves


def test_lag_is_what_is_left_after_the_batch() -> None:
    plan = planned({P0: Committed(500), P1: Committed(700)}, limits=Limits(max_offsets=100))
    assert (plan.offsets, plan.lag) == (100, 700)


@pytest.mark.parametrize(
    ("rules", "starts"),
    [
        (StartRules(), (500, 100)),
        # the group has begun: P1 was added later
        (StartRules(fallback="latest"), (500, 100)),
        (StartRules("earliest"), (100, 100)),
        (StartRules("latest"), (1000, 1000)),
        (StartRules({P0: 600, P1: -1}), (600, 1000)),
        (StartRules({P0: -2}), (100, 100)),
        (StartRules({P1: 300}), (500, 300)),
    ],
)
def test_starts_as_the_options_say(rules: StartRules, starts: tuple[int, int]) -> None:
    bounds = {P0: Bounds(100, 1000), P1: Bounds(100, 1000)}
    plan = planned({P0: Committed(500)}, bounds, rules=rules)
    chosen = {**{span.topic_partition: span.start for span in plan.ranges}, **plan.moves}
    assert (chosen[P0], chosen[P1]) == starts


@pytest.mark.parametrize(
    ("committed", "reached", "starts"),
    [
        ({}, {}, (1000, 1000)),
        ({TopicPartition("other", 0): Committed(7)}, {}, (1000, 1000)),
        ({P0: Committed(500)}, {}, (500, 100)),
        # the commits were deleted while the loop runs
        ({}, {P0: 600}, (600, 100)),
    ],
)
def test_a_fallback_of_latest_is_for_the_first_look_and_what_is_added_later_is_read_from_its_start(
    committed: dict[TopicPartition, Committed], reached: dict[TopicPartition, int], starts: tuple[int, int]
) -> None:
    bounds = {P0: Bounds(100, 1000), P1: Bounds(100, 1000)}
    assert choose_starts(bounds, committed, StartRules(fallback="latest"), reached) == dict(
        zip((P0, P1), starts, strict=True)
    )


def test_a_missing_commit_can_be_an_error_that_names_the_partition() -> None:
    with pytest.raises(NoStartError, match=r"no committed offset for t-1: .*starting_offsets_fallback"):
        planned({P0: Committed(500)}, rules=StartRules(fallback="fail"))


def test_a_start_of_a_partition_that_is_not_read_is_an_error_that_names_it() -> None:
    unread = TopicPartition("typo", 0)
    with pytest.raises(NoStartError, match=r"the starting offsets name t-7, typo-0, which is not among what"):
        planned(
            {}, {P0: Bounds(100, 1000)}, rules=StartRules({P0: 5, P0._replace(partition=7): 0, unread: 3})
        )


def test_a_commit_that_has_expired_meanwhile_does_not_start_the_job_over() -> None:
    assert planned({P0: Committed(1000)}, reached={P1: 990}).ranges == spans((1, 990, 1000))


def test_the_first_position_of_an_empty_partition_is_to_be_committed_so_that_latest_is_chosen_once() -> None:
    rules = StartRules(fallback="latest")
    first = planned({}, rules=rules)
    assert (first.ranges, first.moves) == ((), {P0: 1000, P1: 1000})
    later = {P0: Bounds(0, 1200), P1: Bounds(0, 1000)}
    assert planned(positions_of(first), later, rules=rules).ranges == spans((0, 1000, 1200))


def test_an_announced_batch_is_planned_again_exactly() -> None:
    announced = spans((0, 500, 600), (1, 700, 750))
    plan = planned(intents_of(Plan(3, announced, "f00d")), limits=Limits(max_offsets=7))
    assert plan == Plan(3, announced, "f00d", replayed=True, lag=400 + 250)


def test_a_number_that_comes_again_after_a_reset_comes_with_another_token() -> None:
    first, again = planned({}), planned({})
    assert (first.number, first.ranges) == (again.number, again.ranges)
    assert first.token != again.token


def test_a_running_driver_goes_on_counting_after_a_reset() -> None:
    assert planned({}, least_number=7).number == 7
    assert planned(outcomes_of(9, spans((0, 0, 5))), least_number=7).number == 10


def test_a_part_of_an_announced_batch_does_not_pass_for_the_whole() -> None:
    announced = intents_of(Plan(3, spans((0, 500, 600), (1, 700, 750)), "f00d"))
    part = planned(announced, {P0: LOGS[P0]})
    assert (part.number, part.replayed, part.ranges) == (3, True, spans((0, 500, 600)))
    assert part.token != "f00d"
    # the topics that were left out come later, and a sink that has done the part must take them
    rest = planned(announced | intents_of(part) | outcomes_of(3, part.ranges))
    assert (rest.ranges, rest.token) == (spans((1, 700, 750)), "f00d")


def test_a_reset_of_all_offsets_cancels_the_announced_batch() -> None:
    plan = planned({P0: Committed(0), P1: Committed(0)})
    assert (plan.replayed, plan.ranges) == (False, spans((0, 0, 1000), (1, 0, 1000)))


def test_a_start_given_in_the_options_comes_before_an_announced_batch_and_keeps_the_count() -> None:
    plan = planned(intents_of(Plan(3, spans((0, 500, 600)), "f00d")), rules=StartRules("earliest"))
    assert (plan.number, plan.replayed, plan.ranges[0].start) == (4, False, 0)


def test_numbers_go_on_when_other_topics_are_read() -> None:
    others = outcomes_of(5, [OffsetRange("others", 0, 0, 10)])
    assert planned(others).number == 6


@pytest.mark.parametrize(
    ("commit", "log", "lost"),
    [
        (Committed(500), Bounds(800, 2000), spans((0, 500, 800))),
        (Committed(500), Bounds(0, 200), spans((0, 200, 500))),
        (Committed(0), Bounds(800, 800), spans((0, 0, 800))),
        (Committed(500, '{"b":3,"e":900,"k":""}'), Bounds(800, 2000), spans((0, 500, 800))),
        (Committed(500, '{"b":3,"e":900,"k":""}'), Bounds(1500, 2000), spans((0, 500, 1500))),
        (Committed(500, '{"b":3,"e":900,"k":""}'), Bounds(0, 700), spans((0, 700, 900))),
    ],
)
def test_loss_is_an_error_that_names_the_range(
    commit: Committed, log: Bounds, lost: tuple[OffsetRange, ...]
) -> None:
    with pytest.raises(DataLossError, match=r"t-0 \[\d+, \d+\).*fail_on_data_loss=False") as caught:
        planned({P0: commit}, {P0: log})
    assert caught.value.lost == lost
    plan = planned({P0: commit}, {P0: log}, rules=StartRules(fail_on_data_loss=False))
    assert plan.lost == lost


@pytest.mark.parametrize(
    ("commit", "log", "ranges", "moves"),
    [
        (Committed(500), Bounds(800, 2000), spans((0, 800, 2000)), {}),
        # the topic was recreated: what it holds has not been read
        (Committed(500), Bounds(0, 200), spans((0, 0, 200)), {}),
        # nothing to read behind the loss: only the commit of the new position keeps it from being told again
        (Committed(500), Bounds(800, 800), (), {P0: 800}),
        (Committed(500, '{"b":3,"e":900,"k":""}'), Bounds(800, 2000), spans((0, 800, 900)), {}),
        (Committed(500, '{"b":3,"e":900,"k":""}'), Bounds(1500, 1500), (), {P0: 1500}),
    ],
)
def test_goes_on_behind_a_loss_when_told_to(
    commit: Committed, log: Bounds, ranges: tuple[OffsetRange, ...], moves: dict[TopicPartition, int]
) -> None:
    rules = StartRules(fail_on_data_loss=False)
    plan = planned({P0: commit}, {P0: log}, rules=rules)
    assert (plan.ranges, plan.moves) == (ranges, moves)
    after = {**outcomes_of(plan.number, plan.ranges), **positions_of(plan)}
    assert not planned(after, {P0: log}, rules=rules).lost


@st.composite
def situations(
    draw: st.DrawFn,
) -> tuple[dict[TopicPartition, Committed], dict[TopicPartition, Bounds], Limits]:
    bounds, committed = {}, {}
    for number in range(draw(st.integers(1, 6))):
        partition = TopicPartition("t", number)
        earliest = draw(st.integers(0, 50))
        bounds[partition] = Bounds(earliest, earliest + draw(st.integers(0, 500)))
        if draw(st.booleans()):
            committed[partition] = Committed(draw(st.integers(earliest, bounds[partition].latest)))
    limit = st.none() | st.integers(1, 600)
    return committed, bounds, Limits(draw(limit), draw(limit))


@given(situations())
def test_batch_after_batch_reads_everything_once_and_in_order(
    situation: tuple[dict[TopicPartition, Committed], dict[TopicPartition, Bounds], Limits],
) -> None:
    committed, bounds, limits = situation
    position = {p: committed[p].offset if p in committed else log.earliest for p, log in bounds.items()}
    for number in range(10_000):
        plan = planned(committed, bounds, limits=limits)
        committed |= positions_of(plan)
        if not plan.ranges:
            break
        assert plan.number == number
        # the driver dies after the announcement, and the next one plans the same
        announced = committed | intents_of(plan) | positions_of(plan)
        replay = planned(announced, bounds, limits=limits)
        assert (replay.number, replay.ranges, replay.replayed) == (number, plan.ranges, True)
        assert replay.token == plan.token
        assert replay.lag == plan.lag
        for span in plan.ranges:
            assert position[span.topic_partition] == span.start
            position[span.topic_partition] = span.end
        committed |= outcomes_of(number, plan.ranges)
    assert position == {p: log.latest for p, log in bounds.items()}
    assert {p: committed[p].offset for p in bounds} == position


sizes = st.lists(st.integers(1, 5_000), min_size=1, max_size=12)


@given(sizes, st.integers(1, 20_000))
def test_shares_fill_the_limit_and_starve_nobody(lags: list[int], limit: int) -> None:
    given_out = split_shares(lags, limit)
    assert sum(given_out) == min(sum(lags), max(limit, len(lags)))
    assert all(1 <= share <= lag for share, lag in zip(given_out, lags, strict=True))
    assert all(
        a <= b
        for (x, a) in zip(lags, given_out, strict=True)
        for (y, b) in zip(lags, given_out, strict=True)
        if x < y
    )


def test_shares_are_proportional_to_the_lag() -> None:
    assert split_shares([100, 2000], 500) == [24, 476]


def test_a_limit_for_each_partition_comes_first() -> None:
    limits = Limits(max_offsets=100, max_offsets_per_partition=10)
    assert allocate_ranges(spans((0, 0, 1000), (1, 5, 9)), limits) == spans((0, 0, 10), (1, 5, 9))


@given(sizes, st.integers(1, 8), st.integers(1, 20), st.none() | st.integers(1, 3_000))
def test_tasks_hold_each_offset_once_in_about_equal_shares(
    lags: list[int], cores: int, min_tasks: int, records_per_task: int | None
) -> None:
    ranges = [OffsetRange("t", number, 10, 10 + lag) for number, lag in enumerate(lags)]
    tasks = split_tasks(ranges, cores=cores, min_tasks=min_tasks, records_per_task=records_per_task)
    pieces = sorted(piece for task in tasks for piece in task)
    assert [(piece.partition, offset) for piece in pieces for offset in range(piece.start, piece.end)] == [
        (span.partition, offset) for span in ranges for offset in range(span.start, span.end)
    ]
    loads = [sum(piece.offsets for piece in task) for task in tasks]
    assert max(loads) - min(loads) <= 1
    if records_per_task is None:
        assert len(tasks) <= max(cores, min_tasks)
    else:
        assert max(loads) <= records_per_task


@pytest.mark.parametrize(
    ("offsets", "min_tasks", "tasks"),
    [(0, 1, 0), (1, 4, 1), (99_999, 1, 1), (100_001, 1, 2), (5_000_000, 1, 4), (5_000_000, 10, 10)],
)
def test_tasks_are_counted_by_records_and_cores(offsets: int, min_tasks: int, tasks: int) -> None:
    assert len(split_tasks(spans((0, 0, offsets)), cores=4, min_tasks=min_tasks)) == tasks


def test_the_work_of_splitting_grows_with_ranges_and_tasks_and_not_with_their_product(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at, made = [0], [0]
    size, make = OffsetRange.offsets, OffsetRange.__init__

    def counted_size(span: OffsetRange) -> int:
        looked_at[0] += 1
        return size.__get__(span)  # type: ignore[no-any-return]

    def counted_make(span: OffsetRange, *row: Any) -> None:
        made[0] += 1
        make(span, *row)

    ranges = [OffsetRange("t", number, 0, 1_000) for number in range(500)]
    monkeypatch.setattr(OffsetRange, "offsets", property(counted_size))
    monkeypatch.setattr(OffsetRange, "__init__", counted_make)
    tasks = split_tasks(ranges, cores=400, records_per_task=1_250)
    monkeypatch.undo()
    assert len(tasks) == 400
    assert sum(piece.offsets for task in tasks for piece in task) == 500_000
    assert looked_at[0] + made[0] <= 5 * (500 + 400)


#: Records of open transactions begin at 60: the log goes on, and readers of committed records wait there.
WAITING = {P0: Bounds(0, 60, log_end=100), P1: Bounds(0, 1000)}


@pytest.mark.parametrize("strict", [True, False])
def test_a_commit_behind_open_transactions_is_no_loss_and_stays(strict: bool) -> None:
    rules = StartRules(fail_on_data_loss=strict)
    plan = planned({P0: Committed(90), P1: Committed(700)}, WAITING, rules=rules)
    assert (plan.ranges, plan.lost, plan.moves, plan.lag) == (spans((1, 700, 1000)), (), {}, 0)
    later = planned({P0: Committed(90)}, {P0: Bounds(0, 100)}, rules=rules)
    assert later.ranges == spans((0, 90, 100))


def test_a_commit_beyond_the_log_is_a_loss_with_open_transactions_too() -> None:
    with pytest.raises(DataLossError) as caught:
        planned({P0: Committed(101)}, {P0: WAITING[P0]})
    assert caught.value.lost == spans((0, 60, 101))
