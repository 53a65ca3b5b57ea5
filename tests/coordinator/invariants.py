"""What must hold of a shard after every step, whatever the step was."""

from __future__ import annotations

from typing import cast

from kohort.coordinator.classic_groups.group import CLASSIC_TYPE, ClassicGroup
from kohort.coordinator.groups.groups import GroupShard
from kohort.statemachine import GroupState


def check_invariants(shard: GroupShard) -> None:
    """What must hold after every step (spec section 1.6)."""
    groups = cast("dict[str, ClassicGroup]", shard.state.groups)
    for group in groups.values():
        parked = [m for m in group.members.values() if m.parked_join is not None]
        assert group.awaiting_join_count == len(parked)
        support: dict[str, int] = {}
        for member in group.members.values():
            for name in {name for name, _ in member.protocols}:
                support[name] = support.get(name, 0) + 1
        assert group.protocol_support == support
        assert group.static_members == {
            m.instance_id: m.member_id for m in group.members.values() if m.instance_id is not None
        }
        if group.members:
            assert len(group.members) in support.values(), "no protocol is left that all support"
            assert group.leader_id in group.members
            assert group.state is not GroupState.EMPTY
        else:
            assert group.leader_id is None
            assert group.state in (GroupState.EMPTY, GroupState.PREPARING_REBALANCE)
        assert not group.pending_join.keys() & group.members.keys()
        assert group.pending_sync.keys() <= group.members.keys()
        if group.state is GroupState.STABLE:
            stored = shard.state.durable.of_type(CLASSIC_TYPE)[group.group_id]
            assert stored.generation == group.generation, "Stable, but its generation is not durable"
            if not shard.is_busy(group.group_id) and not group.returned:
                live = group.to_record()._replace(state_timestamp_ms=stored.state_timestamp_ms)
                assert live == stored, "what a Stable group is in memory is not what a load would make of it"
    for key in shard.timers._by_key:
        if key[0] == "session":
            owner = groups[key[1]]
            assert key[2] in owner.members or key[2] in owner.pending_join, f"a timer of nobody: {key}"
        elif key[0] in ("join", "sync"):
            assert key[1] in groups
