"""A session ends: a member was not heard of for its session timeout, or an id was never used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..events import about, quoted
from ..settings import NEW_MEMBER_JOIN_TIMEOUT_MS
from .members import name_of, note_unused, remove_member
from .rebalance import maybe_complete_join, rebalance_or_complete

if TYPE_CHECKING:
    from ..engine.shard import Shard


def on_session_timer(shard: Shard, group_id: str, member_id: str, now_ms: int) -> None:
    """Remove the member, or forget the id, and see whether those that wait can go on.

    A member whose own request is parked here is alive as far as we know: its session runs again from the
    moment it is answered.
    """
    group = shard.groups[group_id]
    if member_id in group.pending_join:
        del group.pending_join[member_id]
        note_unused(
            shard, group, member_id, f"member id {quoted(member_id)} was given out and not used in time"
        )
        maybe_complete_join(shard, group, now_ms)
        return
    member = group.members[member_id]
    if member.waits:
        return
    if member.is_new:
        seconds = NEW_MEMBER_JOIN_TIMEOUT_MS / 1000
        text = f"{name_of(member)} did not finish joining within {seconds:.1f} s"
    else:
        text = f"session of {name_of(member)} expired after {member.session_timeout_ms / 1000:.1f} s"
    remove_member(shard, group, member, text)
    rebalance_or_complete(shard, group, about(member, text), now_ms)
