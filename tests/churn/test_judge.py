"""The judge of the churn run sees what it is there to see."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.churn import machine
from tests.churn.crowd import LONGEST, Crowd, Plan
from tests.churn.journal import Handled
from tests.churn.judge import Trouble, Verdict, judge, silence
from tests.churn.machine import Watch, starved, waited_s
from tests.churn.report import told
from tests.waiting import wait_until


def _handled(*rows: tuple[float, str, int]) -> list[Handled]:
    """(time, member, offset) of one partition, the offset being the number."""
    return [Handled(at, member, 0, offset, offset) for at, member, offset in rows]


def test_a_record_that_nobody_handled_is_lost() -> None:
    assert judge(3, _handled((1, "a", 0), (2, "a", 1)), []).lost == [2]


def test_a_record_handled_before_its_predecessor_is_out_of_order() -> None:
    verdict = judge(3, _handled((1, "a", 0), (2, "a", 2), (3, "a", 1)), [])
    assert [each.offset for each in verdict.out_of_order] == [2]


def test_a_record_handled_twice_without_trouble_is_told_with_both_handlings() -> None:
    verdict = judge(1, _handled((1, "a", 0), (2, "b", 0)), [])
    assert [(before.member, again.member) for before, again in verdict.twice] == [("a", "b")]


@pytest.mark.parametrize(
    ("trouble", "explained"),
    [
        (Trouble("kill", "a", 1.5), True),
        (Trouble("kill", "a", 2.5), False),  # after it had been handled again
        (Trouble("stop", "a", 0.2, 0.9), False),  # over before the first handling
        (Trouble("stop", "a", 0.2, 1.5), True),
        (Trouble("stop", "b", 1.8, 2.2), True),  # the later one did not know that it was out
        (Trouble("stop", "b", 1.2, 1.8), False),
        (Trouble("kill", "c", 1.5), False),
        (Trouble("broker", None, 1.5, 3.0), True),
    ],
)
def test_only_a_kill_or_a_hang_of_those_concerned_explains_a_second_time(
    trouble: Trouble, explained: bool
) -> None:
    verdict = judge(1, _handled((1, "a", 0), (2, "b", 0)), [trouble])
    assert (verdict.explained, len(verdict.twice)) == ((1, 0) if explained else (0, 1))


def test_a_thread_that_waits_for_a_processor_for_half_a_session_is_starved() -> None:
    idle = [(at / 5, 0.1 * at / 5) for at in range(50)]
    assert starved(idle, "a") == []
    # 1.2 s within two seconds, seen at 12 s, and again before that was over
    busy = [*idle, (11.0, 1.1), (12.0, 2.3), (13.0, 2.4), (16.0, 4.0)]
    assert starved(busy, "a") == [Trouble("starved", "a", 9.8, 21.0)]


def test_one_long_wait_is_seen_once_it_is_over_and_has_begun_with_the_look_before_it() -> None:
    samples = [(0.0, 0.0), (0.2, 0.0), (0.4, 0.0), (4.0, 3.5), (4.2, 3.5)]
    assert starved(samples, None) == [Trouble("starved", None, 0.4, 9.2)]


def test_the_watch_sees_whose_threads_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[float] = []

    def wait_more_each_time(pid: int) -> dict[str, float]:
        looks.append(2.0 * len(looks))
        return {"idle": 0.1, "busy": looks[-1] if pid == 2 else 0.0}

    monkeypatch.setattr(machine, "waited_s", wait_more_each_time)
    watch = Watch(lambda: {"a": 1, None: 2})
    watch.start()
    wait_until(lambda: len(looks) > 6)
    assert {trouble.member for trouble in watch.finish()} == {None}


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="this system does not tell who waits")
def test_how_long_each_thread_has_waited_is_known() -> None:
    assert waited_s(os.getpid())[str(os.getpid())] >= 0.0


def test_what_has_ended_waits_no_longer() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert waited_s(process.pid) == {}


def test_a_run_goes_on_until_it_has_done_its_worst(tmp_path: Path) -> None:
    crowd = Crowd(
        Plan(3, 2.0, 8, ("kohort",), fewest_out=2), bootstrap="", topic="", group="", folder=tmp_path
    )
    crowd.done.update({"join": 4, "broker killed and started": 1, "stop": 1})
    assert not crowd._is_over(2.0)
    assert crowd._is_over(2.0 * LONGEST)
    crowd.done.update({"kill": 1})
    assert not crowd._is_over(1.9)
    assert crowd._is_over(2.0)


def test_silence_is_counted_from_the_last_handling_or_from_when_a_record_was_there() -> None:
    verdict = Verdict()
    handled = _handled((1.0, "a", 0), (2.5, "a", 1), (9.0, "a", 2))
    silence(verdict, handled, {0.5: 1, 1.0: 2, 8.8: 3}, 0.0, 10.0)
    assert verdict.silence_s == pytest.approx(1.5)
    assert verdict.stall_s == pytest.approx(7.8)
    assert verdict.partition_silence_s == pytest.approx(1.5)


def test_the_report_tells_what_others_did_apart_from_ours(tmp_path: Path) -> None:
    plan = Plan(3, 2.0, 8, ("kohort", "aiokafka"))
    crowd = Crowd(plan, bootstrap="", topic="", group="", folder=tmp_path)
    crowd.done.update({"join": 4, "kill": 1, "exit code 0": 2})
    crowd.leaves_s += [0.5, 1.25]
    handled = _handled((1, "0-kohort", 0), (2, "1-aiokafka", 0), (3, "0-kohort", 0), (4, "0-kohort", 1))
    text = told(crowd, judge(2, handled, []), "a title", "kohort")
    assert text.startswith("## Churn on kohort: a title")
    assert "2 s, 4 records a second, seed 3" in text
    assert "| members that joined | 4 |" in text
    assert "left (SIGTERM)" not in text
    assert "after a member of ours | 1 |" in text
    assert "the same after a member of another make | 1 |" in text
    assert "took to leave | 1.2 s |" in text
