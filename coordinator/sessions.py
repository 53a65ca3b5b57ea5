"""A session ends: a member was not heard of for its session timeout, or an id was never used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .insight import Cause
from .members import remove_member
from .rebalance import maybe_complete_join, rebalance_or_complete

if TYPE_CHECKING:
    from .shard import Shard


def on_session_timer(shard: Shard, group_id: str, member_id: str, now_ms: int) -> None:
    """Remove the member, or forget the id, and see whether those that wait can go on.

    A member whose own request is parked here is alive as far as we know: its session runs again from the
    moment it is answered.
    """
    group = shard.groups[group_id]
    if member_id in group.pending_join:
        del group.pending_join[member_id]
        maybe_complete_join(shard, group, now_ms)
        return
    member = group.members[member_id]
    if member.waits:
        return
    seconds = member.session_timeout_ms / 1000
    text = "did not finish joining in time" if member.is_new else f"session expired after {seconds:.1f} s"
    remove_member(shard, group, member, text)
    cause = Cause(f"member {member_id}: {text}", member_id, member.client_id, member.client_host)
    rebalance_or_complete(shard, group, cause, now_ms)
