"""Bugs planted in share partitions at their leader, in the share coordinator and in share groups: see
``planted``.

``python -m tests.simulation.planted_share_groups`` writes their table of docs/simulation.md.
"""

from __future__ import annotations

import sys
from functools import partial

from kohort.testing import simulate_share_groups
from tests.simulation.planted import Bug, look_for

_Bug = partial(Bug, simulate=simulate_share_groups)

_AT_LEADER = (
    _Bug(
        "an acknowledgement is answered before it is stored",
        "broker.apis._share:MemberRequest.acknowledge",
        "told[place] = await write",
        "pass",
    ),
    _Bug(
        "what a write that failed has changed stays under way",
        "broker.share.led_partition:LedPartition._write_these",
        "else self.records.undo(write)",
        "else None",
    ),
    _Bug(
        "the locks of what a failed write has undone never end",
        "share_partitions.partition:SharePartition.undo",
        "heapq.heappush(self._locks, (run.deadline_ms, run.first, run.last))",
        "pass",
    ),
    _Bug(
        "whatever is done with records is stored as available",
        "share_partitions.partition:_add_batch",
        "stored = _STORED[run.state]",
        "stored = StoredState.AVAILABLE",
    ),
    _Bug(
        "the second delivery does not count",
        "share_partitions.partition:SharePartition._lock",
        "run.delivery_count += delivery",
        "run.delivery_count = max(run.delivery_count, delivery)",
    ),
    _Bug(
        "records are given without a limit",
        "share_partitions.partition:_trigger",
        "run.delivery_count >= limits.delivery_count",
        "False",
    ),
    _Bug(
        "a record is archived one delivery early",
        "share_partitions.partition:_trigger",
        "run.delivery_count >= limits.delivery_count",
        "run.delivery_count >= limits.delivery_count - 1",
    ),
    _Bug(
        "a lock is half as long",
        "share_partitions.partition:SharePartition._lock",
        "now_ms + limits.lock_ms",
        "now_ms + limits.lock_ms // 2",
    ),
    _Bug(
        "a lock that was renewed ends as if it had not been",
        "share_partitions.partition:SharePartition.expire",
        "if run.deadline_ms == deadline_ms:",
        "if run.deadline_ms:",
    ),
    _Bug(
        "what was released is not looked for",
        "share_partitions.partition:SharePartition.complete",
        "self._look_from = min(self._look_from, run.first)",
        "pass",
    ),
    _Bug(
        "the start offset passes what is not done",
        "share_partitions.partition:SharePartition._advance",
        "if run.state not in _DONE or run.before is not None:",
        "if run.state is _S.ACQUIRED or run.before is not None:",
    ),
    _Bug(
        "what the log has lost is not dropped",
        "share_partitions.partition:SharePartition.follow_log_start",
        "if offset <= self.start_offset:",
        "if True:",
    ),
    _Bug(
        "what the log has lost still counts as done",
        "share_partitions.partition:SharePartition.follow_log_start",
        "self.done_count -= min(len(run), offset - run.first)",
        "pass",
    ),
    _Bug(
        "a fetch with a limit of records is given whole batches",
        "share_partitions.partition:SharePartition._take_new",
        "min(batch.last, end + left - 1) if strict else batch.last",
        "batch.last",
    ),
    _Bug(
        "records of aborted transactions are given",
        "broker.share.reading:_add_batches",
        "elif header.transactional and header.producer_id in aborting:",
        "elif False:",
    ),
    _Bug(
        "what follows on an aborted transaction is taken for aborted",
        "broker.share.reading:_add_batches",
        "aborting.discard(header.producer_id)",
        "pass",
    ),
    _Bug(
        "records of open transactions are given",
        "broker.share.led_partition:LedPartition._acquire",
        "committed=rules.committed",
        "committed=False",
    ),
    _Bug(
        "a share partition that was never read begins at the end",
        "broker.share.led_partition:LedPartition._begin",
        "return self.partition.log_start_offset",
        "return self.partition.high_watermark",
    ),
    _Bug(
        "a leader that takes over knows no records in flight",
        "broker.share.led_partition:LedPartition._load",
        "SharePartition(start, stored.batches)",
        "SharePartition(start)",
    ),
    _Bug(
        "sessions of a connection that broke go on",
        "broker.share.share_leader:ShareLink.close",
        "self._leader.close_session(session)",
        "pass",
    ),
    _Bug(
        "who closes its session keeps its records",
        "broker.share.share_leader:ShareLeader.close_session",
        "self._led[key].release(session.member)",
        "None",
    ),
    _Bug(
        "a session goes on with partitions that it was to forget",
        "share_partitions.sessions:ShareSessions.update",
        "if place in session.places:\n            del session.places[place]",
        "if False:\n            del session.places[place]",
    ),
    _Bug(
        "a leader that was fenced goes on",
        "broker.share.led_partition:LedPartition._write_these",
        "if failed is not None and refused is not None and refused.code in LOST:",
        "if False:",
    ),
    _Bug(
        "what did not leave the broker stays with its member",
        "broker.share.share_leader:ShareLink.close",
        "led.take_back(member, ranges)",
        "pass",
    ),
    _Bug(
        "what did not leave the broker counts as a delivery",
        "share_partitions.partition:SharePartition.take_back",
        "run.delivery_count -= 1",
        "pass",
    ),
    _Bug(
        "to renew a lock is a delivery",
        "share_partitions.partition:SharePartition.acknowledge_in_steps",
        "delivery=0",
        "delivery=1",
    ),
)

_AT_COORDINATOR = (
    _Bug(
        "a leader that knows the state of before may write",
        "share_state.shards:handle_write",
        # the time of creation tells states apart, too
        "if NONE != row.state_epoch < now.state_epoch:\n"
        "        return _refuse(shard, request, ErrorCode.FENCED_STATE_EPOCH)\n"
        "    if row.created_ms not in (NONE, now.create_ms):",
        "if False:",
    ),
    _Bug(
        "an update is all that is known",
        "share_state.shards:apply_update",
        "merge_batches(now.batches, update.batches, start)",
        "update.batches",
    ),
    _Bug(
        "an update does not move the start offset",
        "share_state.shards:apply_update",
        "start = now.start_offset if update.start_offset == NONE else update.start_offset",
        "start = now.start_offset",
    ),
    _Bug(
        "a snapshot has no batches",
        "share_state.shards:_next_snapshot",
        "write_ms=now_ms",
        "write_ms=now_ms, batches=()",
    ),
    _Bug(
        "a snapshot that is needed is cut off",
        "share_state.shards:ShareStates.needed_from",
        "min((kept.snapshot_offset for kept in self.by_key.values()), default=self.end_offset)",
        "self.end_offset",
    ),
    _Bug(
        "of two batches the older one wins",
        "share_state.merging:_cut_pieces",
        "max(batch, written, key=_rank)",
        "min(batch, written, key=_rank)",
    ),
    _Bug(
        "a change of state is answered before it is written",
        "share_state.shards:_append",
        "shard.append(request.body.text, (record,), answers=((request, answer),))",
        "shard.append(request.body.text, (record,))\n    shard.reply(request, answer)",
    ),
    _Bug(
        "a leader of before may write",
        "share_state.shards:handle_write",
        "if NONE != row.leader_epoch < kept.leader_epoch:",
        "if False:",
    ),
    _Bug(
        "a leader of before may read",
        "share_state.shards:handle_read",
        "if NONE != row.leader_epoch < kept.leader_epoch:",
        "if False:",
    ),
    _Bug(
        "who reads does not fence the leaders before",
        "share_state.shards:handle_read",
        "if epoch == now.leader_epoch and not shard.state.is_replicated:",
        "if True:",
    ),
    _Bug(
        "a write that comes late takes the start offset back",
        "share_state.shards:handle_write",
        "if NONE != start < now.start_offset:",
        "if False:",
    ),
    _Bug(
        "a deleted state is there until the next load",
        "share_state.shards:ShareStates.remove",
        "self.by_key.pop(record.key, None)",
        "self.by_key.get(record.key)",
    ),
    _Bug(
        "a change of a state is carried out though a later one was",
        "share_state.order:StateOrder.admit",
        "if order < newest:",
        "if False:",
    ),
    _Bug(
        "the log of states is not cut",
        "share_state.shards:_on_prune_timer",
        "if state.cut is None and state.needed_from > state.pruned_offset:",
        "if False:",
    ),
    _Bug(
        "a snapshot is needed from where the first one was",
        "share_state.shards:ShareStates.store",
        "Kept(record, at, max(",
        "Kept(record, at if before is None else before.snapshot_offset, max(",
    ),
    _Bug(
        "the snapshots of what is not used get old",
        "share_state.shards:_is_cold",
        "> 2 * len(state.by_key)",
        "> 1_000_000",
    ),
)

_IN_GROUP = (
    _Bug(
        "the partitions of who has left stay with it",
        "coordinator.share_groups.changes:ShareChanges.remove",
        "self.bump(cause)",
        "pass",
    ),
    _Bug(
        "who is silent stays",
        "coordinator.share_groups.heartbeat:on_session_timer",
        "remove_silent(shard, group, group.members[key[2]], now_ms)",
        "pass",
    ),
    _Bug(
        "sessions do not run again after a load",
        "coordinator.share_groups:_resume_groups",
        "shard.timers.start((RESUME, group_id), now_ms)",
        "pass",
    ),
    _Bug(
        "a session is a quarter as long",
        "coordinator.share_groups.changes:restart_session",
        ".session_timeout_ms",
        ".session_timeout_ms // 4",
    ),
    _Bug(
        "a heartbeat does not restart the session",
        "coordinator.share_groups.heartbeat:_handle_heartbeat",
        "restart_session(shard, group, member, now_ms)",
        "member.current.epoch or restart_session(shard, group, member, now_ms)",
    ),
    _Bug(
        "a member stays at the epoch at which it joined",
        "coordinator.share_groups.heartbeat:_advance_member",
        "if before.epoch == epoch and not changed:",
        "if before.epoch and not changed:",
    ),
    _Bug(
        "an epoch does not rise",
        "coordinator.share_groups.changes:ShareChanges.bump",
        "ShareEpoch(group.epoch + 1, group.hash_topics())",
        "ShareEpoch(max(group.epoch, 2), group.hash_topics())",
    ),
    _Bug(
        "each partition has one member, however many there are",
        "coordinator.share_groups.assignor:_spread_places",
        "sharing = -(-len(members) // len(places))",
        "sharing = 1",
    ),
    _Bug(
        "partitions that are initialized take the place of those that were",
        "coordinator.share_groups.kept:_take_in",
        "initialized[topic_id] = _merge_topics(initialized.get(topic_id), told)",
        "initialized[topic_id] = told",
    ),
    _Bug(
        "a topic that has grown is not initialized",
        "coordinator.share_groups.kept:_initialize_missing",
        "if not numbers:",
        "if has is not None or not numbers:",
    ),
    _Bug(
        "a deleted group leaves the state of its partitions",
        "coordinator.share_groups.delete:handle_delete_group",
        "if not topics:",
        "if True:",
    ),
    _Bug(
        "topics that were deleted while nobody led a group stay in it",
        "coordinator.share_groups:_resume_groups",
        "look_for_deleted_topics(shard, group_id, now_ms)",
        "pass",
    ),
    _Bug(
        "a state is replaced with the epoch that it had",
        "coordinator.share_groups.kept:initialize_state",
        "group.epoch",
        "1",
    ),
)

SHARE_BUGS = (*_AT_LEADER, *_AT_COORDINATOR, *_IN_GROUP)


if __name__ == "__main__":
    sys.exit(look_for(SHARE_BUGS, " in share groups"))
