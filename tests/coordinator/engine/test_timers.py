"""Timers against a plain list of deadlines, and what the heap must not do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.coordinator.engine.timers import Timers


def fire_all(timers: Timers, now_ms: int) -> list[tuple[str, ...]]:
    fired = []
    while (key := timers.pop_due(now_ms)) is not None:
        fired.append(key)
    return fired


@pytest.mark.row("4/timer-order")
def test_timers_fire_by_deadline_then_by_the_order_they_were_started() -> None:
    timers = Timers()
    for name, deadline in (("c", 30), ("a", 10), ("b", 20), ("a2", 10)):
        timers.start((name,), deadline)
    assert timers.next_deadline() == 10
    assert fire_all(timers, 20) == [("a",), ("a2",), ("b",)]
    assert timers.next_deadline() == 30
    assert len(timers) == 1


@pytest.mark.row("4/timer-replaces")
def test_a_restarted_timer_fires_once_at_its_new_time() -> None:
    timers = Timers()
    timers.start(("later",), 10)
    timers.start(("later",), 50)
    timers.start(("sooner",), 100)
    timers.start(("sooner",), 20)
    assert timers.next_deadline() == 20
    assert fire_all(timers, 49) == [("sooner",)]
    assert fire_all(timers, 100) == [("later",)]
    assert timers.next_deadline() is None


def test_a_cancelled_timer_does_not_fire() -> None:
    timers = Timers()
    timers.start(("a",), 10)
    timers.cancel(("a",))
    timers.cancel(("never started",))
    assert timers.next_deadline() is None
    assert timers.deadline(("a",)) is None
    assert fire_all(timers, 100) == []


def test_a_timer_started_again_after_it_was_cancelled_fires_at_the_second_time() -> None:
    timers = Timers()
    timers.start(("a",), 10)
    timers.cancel(("a",))
    timers.start(("a",), 30)
    assert fire_all(timers, 20) == []
    assert fire_all(timers, 30) == [("a",)]


def test_restarting_over_and_over_keeps_one_entry() -> None:
    timers = Timers()
    timers.start(("session",), 0)
    for deadline in range(100_000):
        timers.start(("session",), deadline)
    assert len(timers._heap) == 1


def test_cancelled_timers_do_not_pile_up_in_the_heap() -> None:
    timers = Timers()
    for index in range(10_000):
        timers.start((f"{index}",), 1_000_000 + index)
        timers.cancel((f"{index}",))
    assert len(timers._heap) < 200


STEPS = st.lists(
    st.tuples(st.sampled_from(["start", "cancel", "fire"]), st.integers(0, 5), st.integers(0, 60)),
    max_size=60,
)


@given(STEPS)
def test_any_sequence_does_what_a_plain_list_of_deadlines_would(steps: list[tuple[str, int, int]]) -> None:
    timers = Timers()
    model: dict[tuple[str, ...], tuple[int, int]] = {}
    now = 0
    for order, (what, name, amount) in enumerate(steps):
        key = (str(name),)
        if what == "start":
            timers.start(key, now + amount)
            model[key] = (now + amount, order)
        elif what == "cancel":
            timers.cancel(key)
            model.pop(key, None)
        else:
            now += amount
            due = sorted((at, number, who) for who, (at, number) in model.items() if at <= now)
            assert fire_all(timers, now) == [who for _, _, who in due]
            for _, _, who in due:
                del model[who]
        assert timers.next_deadline() == min((at for at, _ in model.values()), default=None)
        assert len(timers) == len(model)
        assert all(timers.deadline(who) == at for who, (at, _) in model.items())
