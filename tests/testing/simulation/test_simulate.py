"""A schedule is its seed alone; users' assignors and applications run in it; failures can be replayed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping

import pytest

from kohort.assignors import GroupAssignment, Member, RangeAssignor, TopicInfo
from kohort.consumer import Record
from kohort.protocol import TopicPartition
from kohort.testing import SimulationFailed, simulate
from kohort.testing.simulation import trace
from kohort.testing.simulation.__main__ import main
from kohort.testing.simulation.groups._world import MemberWorld


def test_a_seed_is_the_same_schedule_each_time() -> None:
    assert trace(3) == trace(3)
    assert simulate([3]) == simulate([3])


def test_another_seed_is_another_schedule() -> None:
    assert trace(3)[0] != trace(4)[0]


async def test_the_event_loop_of_the_caller_stays() -> None:
    loop = asyncio.get_running_loop()
    simulate(1)
    assert asyncio.get_running_loop() is loop
    await asyncio.sleep(0)


class Forgetful(RangeAssignor):
    """Leaves a partition out whenever there are two members."""

    name = "forgetful"

    def assign(self, topics: Mapping[str, TopicInfo], members: Mapping[str, Member]) -> GroupAssignment:
        shares = super().assign(topics, members)
        if len(members) > 1:
            next(share for share in shares.values() if share).pop()
        return shares


def test_an_assignor_of_the_user_is_put_through_it() -> None:
    assert simulate(3, assignors=lambda: [RangeAssignor()]).stats.rebalances > 0
    with pytest.raises(SimulationFailed, match="forgetful") as failure:
        simulate(5, assignors=lambda: [Forgetful()])
    assert failure.value.violation.name == "A"


class Sink:
    """Keeps what it is given; the first time it is given a record it may fail."""

    def __init__(self, *, loses: bool = False) -> None:
        self.kept: Counter[tuple[TopicPartition, int]] = Counter()
        self._refused: set[tuple[TopicPartition, int]] = set()
        self._loses = loses

    def handle(self, record: Record) -> None:
        place = record.topic_partition, record.offset
        if record.offset % 5 == 4 and place not in self._refused:
            self._refused.add(place)
            raise ConnectionError("try again")
        if not (self._loses and record.offset == 2):
            self.kept[place] += 1

    def check_results(self, produced: Mapping[TopicPartition, int]) -> None:
        kept = {place for place, _ in self.kept.items()}
        assert {(p, n) for p, end in produced.items() for n in range(end)} <= kept, "a record is missing"


def test_an_application_sees_every_record_until_it_takes_it() -> None:
    simulate(5, application=Sink)
    with pytest.raises(SimulationFailed, match="a record is missing"):
        simulate(5, application=lambda: Sink(loses=True))


def test_a_failure_says_how_to_see_it_again(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SimulationFailed) as failure:
        simulate(5, assignors=lambda: [Forgetful()])
    text = str(failure.value)
    assert f"python -m kohort.testing.simulation --seed {failure.value.seed}" in text
    assert "starts" in text
    assert failure.value.left_out, "nothing could be left out"
    lines, violation = trace(
        failure.value.seed, assignors=lambda: [Forgetful()], left_out=failure.value.left_out
    )
    assert violation is not None
    assert violation.name == "A"
    assert lines == failure.value.trace
    assert capsys.readouterr().out == ""


def test_the_command_runs_schedules(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["simulation", "--seeds", "2"])
    assert main() == 0
    assert "2 schedules" in capsys.readouterr().out


def test_the_command_shows_one(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["simulation", "--seed", "1", "--without", "kill,g0m1"])
    assert main() == 0
    out = capsys.readouterr().out
    assert "the faults are over" in out
    assert "g0m1 starts" not in out


def test_an_error_of_a_schedule_itself_tells_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_world: MemberWorld) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(MemberWorld, "_run", fail)
    with pytest.raises(ZeroDivisionError) as error:
        simulate([41], crashes=2)
    assert "--crashes 2 --seed 41" in error.value.__notes__[0]
