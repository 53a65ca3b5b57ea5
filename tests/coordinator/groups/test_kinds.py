"""What a type of groups brings: a made-up one takes part in everything that is common to all types.

Covers: coordinator/groups/group_type.py, coordinator/groups/group_config.py, coordinator/groups/shards.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from types import SimpleNamespace
from typing import Any, ClassVar, Final, NamedTuple

import pytest

from kohort.broker.apis import served_apis
from kohort.coordinator.engine.effects import Request
from kohort.coordinator.engine.shard import Shard
from kohort.coordinator.engine.timers import Timers
from kohort.coordinator.groups.group_type import GroupType
from kohort.coordinator.groups.groups import Group, GroupKind, Groups, GroupShard
from kohort.coordinator.groups.kinds import KINDS
from kohort.coordinator.groups.shards import make_topic
from kohort.offsets_topic import ConsumerGroupRecord, GroupEpoch, GroupRecordType, GroupStored
from kohort.protocol import ApiKey, ErrorCode
from tests.coordinator.consumer_groups.group_world import Classic, World


class ToyState(Enum):
    WOUND_UP = "WoundUp"
    RUN_DOWN = "RunDown"


class ToyRecord(NamedTuple):
    """The one record of a toy group; no ``turns`` for a tombstone."""

    group: str
    turns: int | None

    def encode(self) -> tuple[bytes, bytes | None]:
        return b"\x7f\x00" + self.group.encode(), None if self.turns is None else bytes([self.turns])

    def readable(self) -> tuple[str, dict[str, Any]]:
        return "toy group", self._asdict()


TOY_TYPE: Final[GroupType[ToyRecord]] = GroupType("toy", ToyState)


@dataclass(slots=True, eq=False)
class ToyGroup:
    """A group without members and offsets, which is empty when it has run down."""

    type: ClassVar[GroupType[object]] = TOY_TYPE

    group_id: str
    turns: int

    generation = 0
    protocol_type = "toy"
    member_count = 0
    is_idle = False

    @property
    def state_name(self) -> str:
        state = ToyState.WOUND_UP if self.turns else ToyState.RUN_DOWN
        return str(state.value)

    @property
    def is_empty(self) -> bool:
        return not self.turns

    def check_commit(self, *_sender: Any) -> ErrorCode:
        return ErrorCode.GROUP_ID_NOT_FOUND

    def is_no_generation(self, _generation: int) -> bool:
        return False

    def check_offset_delete(self) -> ErrorCode:
        return ErrorCode.GROUP_ID_NOT_FOUND

    def check_fetch(self, _member_id: str | None, _epoch: int) -> ErrorCode:
        return ErrorCode.NONE

    def why_refused(self, *_sender: Any) -> str:
        return "it is a toy"

    def heard_from(self, _member_id: str, _timers: Timers, _now_ms: int) -> None:
        raise AssertionError("it has no members")

    def subscribes_to(self, _topic: str) -> bool:
        return False

    def offset_age_counts_from(self, _topic: str, _commit_ms: int) -> int | None:
        return None

    def tombstones(self) -> tuple[Any, ...]:
        return (ToyRecord(self.group_id, None),)

    def stop_timers(self, timers: Timers) -> None:
        timers.cancel(("toy", self.group_id))


@dataclass(slots=True)
class ToyShardState:
    refused: int = 0


def _keep(groups: Groups, records: Sequence[ToyRecord], _at: int, _producer_id: int) -> None:
    for record in records:
        if record.turns is None:
            del groups.durable.of_type(TOY_TYPE)[record.group]
        else:
            groups.durable.of_type(TOY_TYPE)[record.group] = record


def _refuse(shard: GroupShard, _group: ToyGroup, request: Request, _now_ms: int) -> None:
    shard.state.state_of(ToyShardState).refused += 1
    shard.refuse(request, ErrorCode.INVALID_GROUP_ID)


TOY_GROUPS: Final = GroupKind(
    group_type=TOY_TYPE,
    restore=lambda _groups, group_id, record: ToyGroup(group_id, record.turns),
    new_state=lambda _settings: ToyShardState(),
    applies={ToyRecord: _keep},
    overrides={ApiKey.SYNC_GROUP: _refuse, ApiKey.OFFSET_DELETE: _refuse},
)


class ToyWorld(World):
    def _shard(self) -> Any:
        kinds = (*KINDS, TOY_GROUPS)
        known = super()._shard().state
        return Shard(make_topic(kinds), Groups(known.settings, known.new_id, kinds, known.topics))

    def wind_up(self, turns: int) -> None:
        self.shard.apply((ToyRecord("g", turns),), 0)


def test_what_a_kind_brings_no_other_brings_too() -> None:
    parts: list[list[object]] = [
        [kind.group_type.name for kind in KINDS],
        [key for kind in KINDS for key in kind.apis],
        [record for kind in KINDS for record in kind.applies],
        [timer for kind in KINDS for timer in kind.timers],
        [command for kind in KINDS for command in kind.commands],
        [config for kind in KINDS if kind.configs is not None for config in kind.configs.rows],
        [kind.feature.name for kind in KINDS if kind.feature is not None],
    ]
    assert [part for part in parts if len(part) > len(set(part))] == []


def test_each_kinds_apis_are_served_while_its_feature_is_on() -> None:
    served = served_apis()
    for kind in KINDS:
        feature = None if kind.feature is None else kind.feature.name
        assert [key for key in kind.apis if served[key].feature != feature] == []


def test_a_group_is_known_restored_and_listed() -> None:
    world = ToyWorld()
    assert not world.shard.state.knows("g")
    world.wind_up(3)
    assert world.shard.state.group_ids() == ["g"]
    group: Group | None = world.shard.state.find("g")
    assert isinstance(group, ToyGroup)
    for types, states in (({"toy"}, set()), (set(), {"woundup"}), (set(), set())):
        wanted = SimpleNamespace(states=states, types=types, group_id="")
        (listed,) = world.ask(ApiKey.LIST_GROUPS, 5, wanted)
        assert (listed.group_type, listed.group_state, listed.protocol_type) == ("toy", "WoundUp", "toy")


def test_deleting_writes_its_own_tombstones() -> None:
    world = ToyWorld()
    delete = SimpleNamespace(group_id="g")
    world.wind_up(3)
    assert world.ask(ApiKey.DELETE_GROUPS, 2, delete).error_code == ErrorCode.NON_EMPTY_GROUP
    world.shard.state.groups.clear()
    world.wind_up(0)
    assert world.ask(ApiKey.DELETE_GROUPS, 2, delete).error_code == ErrorCode.NONE
    assert world.log == [ToyRecord("g", None)]
    assert not world.shard.state.knows("g")


@pytest.mark.parametrize("is_in_memory", [False, True])
def test_no_other_type_takes_its_group(is_in_memory: bool) -> None:
    world = ToyWorld()
    world.wind_up(0)
    if is_in_memory:
        world.shard.state.find("g")
    assert Classic(world).join().error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    answer = world.join("a", "t")
    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert answer.error_message == "Group g is not a consumer group."
    assert isinstance(world.shard.state.find("g"), ToyGroup)
    assert world.log == []


def test_an_api_of_another_kind_that_it_answers_itself_comes_to_its_groups_only() -> None:
    world = ToyWorld()
    world.wind_up(1)
    sync = {"member_id": "m", "generation_id": 1, "group_instance_id": None}
    mine = world.ask(ApiKey.SYNC_GROUP, 3, SimpleNamespace(group_id="g", **sync))
    other = world.ask(ApiKey.SYNC_GROUP, 3, SimpleNamespace(group_id="h", **sync))
    assert (mine.error_code, other.error_code) == (ErrorCode.INVALID_GROUP_ID, ErrorCode.UNKNOWN_MEMBER_ID)
    assert world.shard.state.state_of(ToyShardState).refused == 1


def test_an_api_of_all_types_that_it_answers_itself_is_the_others_for_theirs() -> None:
    world = ToyWorld()
    world.wind_up(1)
    mine, other = (
        world.ask(ApiKey.OFFSET_DELETE, 0, SimpleNamespace(group_id=group, topics=[])) for group in "gh"
    )
    assert (mine.error_code, other.error_code) == (ErrorCode.INVALID_GROUP_ID, ErrorCode.GROUP_ID_NOT_FOUND)


def test_of_a_group_with_records_of_two_types_the_later_kind_counts() -> None:
    """Compaction may have dropped the tombstone of the type that it had before."""
    world = World()
    new = ConsumerGroupRecord(GroupRecordType.EPOCH, "g", "", GroupEpoch(2))
    world.shard.apply((GroupStored("g", "consumer", 3, None, None, 0), new), 0)
    group = world.group("g")
    assert group.generation == 2
