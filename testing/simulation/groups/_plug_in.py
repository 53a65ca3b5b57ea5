"""A plug-in assignor's process: how long it takes, and what it does wrong while ``assignor-fails`` lasts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any, Final

from ....assignors import Member, StickyAssignor, TopicInfo
from ....assignors.server import changed_targets
from ....coordinator.consumer_groups.assigning import Step, step_for_failure, steps_to_target
from ....coordinator.consumer_groups.assignor_processes import AssignorProcesses
from ....coordinator.consumer_groups.group import ConsumerGroup, live_consumer_group
from ....coordinator.consumer_groups.target import ComputeTarget
from ....coordinator.engine.runner import ShardRunner
from ....coordinator.groups.groups import Groups, GroupShard
from ....protocol import TopicPartition
from ..engine._loop import ProcessLoop
from ..engine._schedule import Schedule
from ._plan import GroupsPlan

#: What a plug-in may do wrong.
FAULTS: Final = ("hangs", "is slow", "raises", "runs out of memory", "answers nonsense")

_STRANGER: Final = "a stranger"


class PlugIn(StickyAssignor):
    """Assigns partitions, or does wrong what ``fault`` says."""

    def __init__(self, fault: str, rng: Random) -> None:
        super().__init__()
        self._fault = fault
        self._rng = rng

    def assign(self, topics: Mapping[str, TopicInfo], members: Mapping[str, Member]) -> Any:
        answer = super().assign(topics, members)
        match self._fault:
            case "raises":
                raise LookupError("no such tenant")
            case "runs out of memory":
                raise MemoryError
            case "answers nonsense":
                return self._nonsense(dict(answer))
        return answer

    def _nonsense(self, answer: dict[str, Any]) -> Any:
        every = [partition for given in answer.values() for partition in given]
        one = self._rng.choice(sorted(answer))
        topic, number = self._rng.choice(sorted(every))
        return self._rng.choice(
            (
                None,
                answer | {_STRANGER: every},
                answer | {one: 17},
                answer | {one: [*answer[one], ("no such topic", 0)]},
                answer | {one: [*answer[one], TopicPartition(topic, number + 100)]},
                answer | {one: [*answer[one], TopicPartition(topic, number)]},
                dict.fromkeys(answer, every),
                {},
            )
        )


class PlugInProcess(AssignorProcesses):
    """Computes targets on the loop, after the time that a separate process might need. ``fault`` returns
    what the plug-in does wrong now; "" if nothing.
    """

    def __init__(self, schedule: Schedule[GroupsPlan], loop: ProcessLoop, fault: Callable[[], str]) -> None:
        super().__init__(timeout_ms=2 * schedule.plan.session_ms)
        self._schedule = schedule
        self._loop = loop
        self._fault = fault

    def carry_out(self, runner: ShardRunner[Groups], asked: ComputeTarget) -> None:
        fault, rng = self._fault(), self._schedule.rng
        if fault == "hangs":
            self._loop.call_later(self._timeout_s, self._fail, runner, asked, "it gave no answer")
        elif fault == "is slow":
            self._loop.call_later(rng.random() * self._timeout_s, self._answer, runner, asked, fault)
        else:
            self._later(self._answer, runner, asked, fault)

    def _answer(self, runner: ShardRunner[Groups], asked: ComputeTarget, fault: str) -> None:
        assignor = PlugIn(fault, self._schedule.rng)
        try:
            changed = changed_targets(assignor, asked.counts, dict(asked.served_members()))
        except Exception as error:  # it raises, or its answer is refused
            self._fail(runner, asked, repr(error))
        else:
            self._step(runner, steps_to_target(asked, changed))

    def _fail(self, runner: ShardRunner[Groups], asked: ComputeTarget, why: str) -> None:
        before = runner.steer(lambda shard, _now_ms: _what_members_have(shard, asked.group_id))
        runner.steer(step_for_failure(asked, why))
        after = runner.steer(lambda shard, _now_ms: _what_members_have(shard, asked.group_id))
        if before != after:
            self._schedule.fail("S21", f"{asked.group_id} was {before}, and is {after}: {why}")

    def _step(self, runner: ShardRunner[Groups], rest: Iterator[Step]) -> None:
        step = next(rest, None)
        if step is not None:
            runner.steer(step)
            self._later(self._step, runner, rest)

    def _later(self, action: Callable[..., None], *args: object) -> None:
        self._loop.call_later(self._schedule.rng.choice((0, 1, 10, 100)) / 1_000, action, *args)


def _what_members_have(shard: GroupShard, group_id: str) -> object:
    """Everything that an assignor that fails must leave as it is."""
    group: ConsumerGroup | None = live_consumer_group(shard, group_id)
    if group is None:
        return None
    members = {name: (member.metadata, member.current) for name, member in group.members.items()}
    return group.epoch, group.target_epoch, members, dict(group.targets)
