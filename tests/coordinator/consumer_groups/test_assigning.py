"""Targets that are computed beside the shard: which answer counts, and what becomes of bad ones.

Covers: coordinator/consumer_groups/target.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, ClassVar

import pytest

from kohort.assignors import Assignor, GroupAssignment, Member, TopicInfo
from kohort.assignors.server import MOST_RECORD_BYTES
from kohort.coordinator.consumer_groups import assigning
from kohort.coordinator.groups.events import AssignorFailed
from kohort.coordinator.groups.groups import GroupRequest
from kohort.protocol import ApiKey, TopicPartition
from tests.coordinator.consumer_groups.group_world import World, partitions

INTERVAL_MS = 1_000
PLUG_IN = f"{__name__}.FirstTakesAll"


class FirstTakesAll(Assignor):
    """All partitions go to the first member that reads the topic."""

    name = "first"
    answer: ClassVar[Any] = None

    def assign(self, topics: Mapping[str, TopicInfo], members: Mapping[str, Member]) -> GroupAssignment:
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer is not None:
            return dict(self.answer)
        given: GroupAssignment = {member_id: [] for member_id in members}
        for topic, info in topics.items():
            readers = sorted(m for m in members if topic in members[m].topics)
            for number in range(info.partition_count if readers else 0):
                given[readers[0]].append(TopicPartition(topic, number))
        return given


@pytest.fixture(autouse=True)
def well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FirstTakesAll, "answer", None)


def world(**settings: Any) -> World:
    return World({"t": 6}, group_consumer_assignors=f"{PLUG_IN},uniform", **settings)


def errors(world: World) -> list[str]:
    return [event.cause for event in world.events if isinstance(event, AssignorFailed)]


def test_members_keep_what_they_have_until_the_target_is_there() -> None:
    w = world()
    joined = w.join("m")
    assert (joined.member_epoch, w.told(joined), w.group().state_name) == (1, {}, "Assigning")
    w.compute()
    answer = w.beat("m", 1)
    assert (answer.member_epoch, w.told(answer)) == (2, {"t": tuple(range(6))})
    assert w.group().assignor("first") == "first"


def test_a_member_that_joins_meanwhile_is_in_the_next_target() -> None:
    w = world()
    w.join("n")
    w.join("m")
    assert [asked.epoch for asked in w.asked] == [2]
    w.compute()
    assert (w.group().epoch, w.group().target_epoch) == (3, 2)
    w.live("n")
    assert not w.asked, "the interval between two targets is not over"
    w.advance(INTERVAL_MS)
    w.beat("m", w.group().members["m"].current.epoch)
    w.compute()
    for name in "nmn":
        w.live(name)
    assert (w.has("m"), w.has("n")) == ({"t": tuple(range(6))}, {})


def test_what_a_member_that_has_left_was_to_have_goes_to_nobody_until_the_next_target() -> None:
    w = world()
    w.join("m")
    w.join("n")
    w.beat("m", -1)
    w.compute()
    assert w.group().targets == {}
    w.live("n")
    w.advance(INTERVAL_MS)
    w.beat("n", 2)
    w.compute()
    w.live("n")
    assert w.has("n") == {"t": tuple(range(6))}


@pytest.mark.parametrize("ids", ["ab", "aa", "aba", "abc"])
def test_a_static_member_that_came_back_meanwhile_has_what_the_one_before_was_to_have(ids: str) -> None:
    w = world()
    w.join(ids[0], instance_id="i")
    for old, new in pairwise(ids):
        w.beat(old, -2, instance_id="i")
        assert w.join(new, instance_id="i").error_code == 0
    w.compute()
    assert list(w.group().targets) == [ids[-1]]
    w.live(ids[-1])
    assert w.has(ids[-1]) == {"t": tuple(range(6))}
    assert w.group().state_name == "Stable"


def test_no_answer_is_taken_in_for_a_group_that_has_started_over() -> None:
    w = world()
    w.join("m")
    w.failing = True
    w.join("n")
    w.failing = False
    w.compute()
    assert (w.group().target_epoch, w.group().targets) == (1, {})
    w.beat("m", 1)
    w.compute()
    assert w.group().target_epoch == 2


def test_nothing_is_written_of_a_group_that_is_being_deleted() -> None:
    w = world()
    w.join("m")
    w.beat("m", -1)
    w.held = []
    assert w.ask(ApiKey.DELETE_GROUPS, 2, GroupRequest("g")) is None
    w.compute()
    w.release()
    assert not w.shard.state.knows("g")


WRONG: list[Any] = [
    RuntimeError("boom"),
    SystemExit,
    {"m": [TopicPartition("t", 99)]},
    {"m": [TopicPartition("t", 0)], "stranger": []},
    {"m": [TopicPartition("t", number) for number in (0, 0, 1, 2, 3, 4, 5)]},
    {"m": [TopicPartition("t", 0)]},
    {"m": None},
    {"m": "nonsense"},
    {1: 2},
    {},
]


@pytest.mark.parametrize("wrong", [each for each in WRONG if each is not SystemExit], ids=repr)
def test_an_assignor_that_fails_costs_the_group_nothing(wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    w = world()
    w.join("m")
    w.compute()
    epoch = w.live("m")
    monkeypatch.setattr(FirstTakesAll, "answer", wrong)
    w.advance(INTERVAL_MS)
    w.join("n")
    w.compute()
    assert len(errors(w)) == 1
    assert errors(w)[0].startswith("assignor first failed, members keep what they have: ")
    answer = w.beat("m", epoch)
    assert (answer.error_code, answer.error_message) == (0, errors(w)[0])
    assert w.has("m") == {"t": tuple(range(6))}
    assert not w.asked, "it is not asked at each heartbeat"
    monkeypatch.setattr(FirstTakesAll, "answer", None)
    w.advance(assigning.RETRY_MS)
    assert w.beat("m", epoch).error_message is not None
    w.compute()
    assert w.beat("m", epoch).error_message is None
    assert w.group().target_epoch == 3


def test_after_a_failure_an_assignor_is_asked_for_another_epoch_when_the_interval_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    w = world()
    monkeypatch.setattr(FirstTakesAll, "answer", RuntimeError("boom"))
    w.join("m")
    w.compute()
    for name in "nop":
        w.join(name)
    assert not w.asked, "however many join"
    w.advance(INTERVAL_MS)
    w.live("m")
    assert [asked.epoch for asked in w.asked] == [w.group().epoch]


def test_after_a_failure_another_assignor_is_asked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    w = world()
    monkeypatch.setattr(FirstTakesAll, "answer", RuntimeError("boom"))
    w.join("m")
    w.compute()
    answer = w.beat("m", 1, (), server_assignor="uniform")
    assert w.told(answer) == {"t": tuple(range(6))}


def test_a_target_of_more_partitions_than_a_member_can_have_is_refused_once() -> None:
    w = World({"t": MOST_RECORD_BYTES // 8 + 1})
    w.join("m")
    w.compute()
    assert "would have 125001 partitions of 1 topics, too many for one record" in errors(w)[0]
    w.advance(INTERVAL_MS)
    w.join("n")
    w.compute()
    assert len(errors(w)) == 1
    assert w.group().target_epoch == 3


@pytest.mark.parametrize("kill", range(8))
def test_a_target_that_is_half_taken_in_gives_no_partition_to_two(
    kill: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assigning, "_STEP", 3)
    w = world()
    names = "mnopq"
    for name in names:
        w.join(name, server_assignor="first")
    w.compute()
    w.live("m")
    w.advance(INTERVAL_MS)
    w.beat("m", 2, server_assignor="uniform")
    for name in names:
        w.beat(name, w.group().members[name].current.epoch, server_assignor="uniform")
    w.advance(INTERVAL_MS)
    w.join("z", server_assignor=PLUG_IN.rpartition(".")[2].lower()[:5])
    w.compute(kill)
    w.restart()
    for _ in range(4):
        for name in (*names, "z"):
            w.live(name)
            owned = partitions(w.has(each) for each in w.group().members)
            assert len(set(owned)) == len(owned)
        w.advance(INTERVAL_MS)
        while w.asked:
            w.compute()
    assert w.group().state_name == "Stable"
    assert len(partitions(w.has(each) for each in w.group().members)) == 6


def test_an_answer_that_comes_after_the_group_was_made_anew_is_not_taken_for_the_new_ones() -> None:
    w = world()
    w.join("m")
    w.beat("m", -1)
    w.ask(ApiKey.DELETE_GROUPS, 2, GroupRequest("g"))
    w.join("m")
    late, asked = w.asked
    assert (late.epoch, w.group().computing) == (2, asked)
    w.compute()
    assert (w.group().computing, w.group().target_epoch, w.group().targets) == (asked, 1, {})
    w.compute()
    assert w.group().target_epoch == 2
