"""Bugs planted in consumer groups, and in the membership of that protocol: see ``planted``.

``python -m tests.simulation.planted_consumer_groups`` writes their table of docs/simulation.md.
"""

from __future__ import annotations

import sys
from functools import partial

from kohort.testing import simulate
from tests.simulation.planted import Bug, look_for

_Bug = partial(Bug, simulate=partial(simulate, protocol="mixed"))

CONSUMER_GROUP_BUGS = (
    _Bug(
        "a member gets what others have not given up",
        "coordinator.consumer_groups.reconciliation:_reconcile_step",
        "if others:",
        "if False:",
    ),
    _Bug(
        "what is to be given up counts as given up",
        "coordinator.consumer_groups.reconciliation:_given_up",
        "if owned is None:\n        return False",
        "if owned is None:\n        return True",
    ),
    _Bug(
        "who waits for partitions counts as settled",
        "coordinator.consumer_groups.reconciliation:_reconcile_step",
        "state = _UNRELEASED if waits else _STABLE",
        "state = _STABLE",
    ),
    _Bug(
        "partitions that are being given up have no owner",
        "coordinator.consumer_groups.group:ConsumerGroup._set_owners",
        "for topics in (current.assigned, current.revoking):",
        "for topics in (current.assigned,):",
    ),
    _Bug(
        "nobody is removed who does not give up in time",
        "coordinator.consumer_groups.changes:start_revocation",
        "shard.timers.start(key, now_ms + member.metadata.rebalance_timeout_ms)",
        "pass",
    ),
    _Bug(
        "sessions do not run again after a load",
        "coordinator.consumer_groups.changes:start_sessions",
        "restart_session(shard, group, member, now_ms)",
        "pass",
    ),
    _Bug(
        "a heartbeat that says nothing does not restart the session",
        "coordinator.consumer_groups.heartbeat:_goes_on",
        "shard.timers.start((SESSION, group_id, member_id), now_ms + config.session_timeout_ms)",
        "pass",
    ),
    _Bug(
        "a heartbeat is answered before what it changed is written",
        "coordinator.consumer_groups.heartbeat:handle_heartbeat",
        "shard.reply_when_written(group_id, request, answer)",
        "shard.reply(request, answer)",
    ),
    _Bug(
        "who waits for a partition is not told that it is free",
        "coordinator.consumer_groups.holding:answer_held",
        "if member_id in held:",
        "if False:",
    ),
    _Bug(
        "a process that was held up removes who could send nothing meanwhile",
        "coordinator.consumer_groups.heartbeat:_leave_rest",
        "max(until_ms, now_ms + rest_ms)",
        "until_ms",
    ),
    _Bug(
        "only those who wait for partitions are told of a new target",
        "coordinator.consumer_groups.changes:Changes.commit",
        "everyone=self.has_moved,",
        "everyone=False,",
    ),
    _Bug(
        "who has as many topics as its target has all of it",
        "coordinator.consumer_groups.reconciliation:has_all",
        "topic_id in assigned and assigned[topic_id].keys() == frozenset(numbers)",
        "topic_id in assigned",
    ),
    _Bug(
        "topics that change are not noticed",
        "coordinator.consumer_groups.heartbeat:refresh_epoch",
        "if group.subscribed_topics()[1] != group.metadata_hash:",
        "if False:",
    ),
    _Bug(
        "a static member that comes back waits for nothing",
        "coordinator.consumer_groups.heartbeat:replace_member",
        "state = _UNRELEASED if current.state == _UNRELEASED else NEW_MEMBER.state",
        "state = NEW_MEMBER.state",
    ),
    _Bug(
        "a clock that was ahead holds targets up",
        "coordinator.consumer_groups.assigning:refresh_target",
        "0 <= now_ms - group.target_ms",
        "now_ms - group.target_ms",
    ),
    _Bug(
        "a group that turns back while partitions move does not rebalance",
        "coordinator.consumer_groups.classic_members:_join_group",
        "settled = group.state is ConsumerGroupState.STABLE",
        "settled = True",
        # since heartbeats are held partitions move for a moment only: these leave more time for switches
        simulate=partial(
            simulate, protocol="mixed", left_out=("pause", "member-crash", "poll-stop", "leave")
        ),
    ),
    _Bug(
        "a classic member is not told to rejoin when there is a newer target",
        "coordinator.consumer_groups.classic_members:_must_rejoin",
        "if current.epoch < group.target_epoch or current.state == _UNREVOKED:",
        "if current.state == _UNREVOKED:",
    ),
    _Bug(
        "a classic member is not told of what became free",
        "coordinator.consumer_groups.classic_members:_must_rejoin",
        "return current.state == _UNRELEASED and not any(",
        "return False and not any(",
    ),
    _Bug(
        "members of a classic group lose what they have when a consumer joins",
        "coordinator.consumer_groups.migration:upgrade_group",
        "if topic_id is not None:",
        "if topic_id is None:",
    ),
    _Bug(
        "who joins in the middle of a cooperative rebalance gets what others still read",
        "coordinator.consumer_groups.migration:upgrade_group",
        "still_read = _still_read(shard, group, assigned, subscriptions)",
        "still_read = {}",
    ),
    _Bug(
        "a group of classic members that may not turn back has no target",
        "coordinator.consumer_groups.classic_members:handle_heartbeat",
        "_look_after_target(shard, group, now_ms)",
        "pass",
    ),
    _Bug(
        "the target of a member that is gone stays in the log",
        "coordinator.consumer_groups.changes:Changes.drop_member",
        "for kind in (_TYPES.CURRENT, _TYPES.TARGET, _TYPES.MEMBER):",
        "for kind in (_TYPES.CURRENT, _TYPES.MEMBER):",
    ),
    _Bug(
        "a partition is given up although its commit was refused",
        "coordinator.consumer_groups.holding:with_given_up",
        "if number in own and not _is_committed(shard, body.group_id, name, topic_id, number, told):",
        "if False:",
    ),
    _Bug(
        "a member says that it has given up what it still reads",
        "consumer.group.consumer_group:ConsumerMembership._partitions_by_id",
        "for p, topic in self._held.items())",
        "for p, topic in self._held.items() if p in self.owned)",
    ),
    _Bug(
        "a group whose assignor failed waits for its answer for ever",
        "coordinator.consumer_groups.assigning:step_for_failure",
        "group.computing = None",
        "pass",
    ),
    _Bug(
        "what a plug-in answers is not checked",
        "assignors.server:changed_targets",
        "if type(assignor) not in OWN.values() and (",
        "if False and (",
    ),
    _Bug(
        "an assignor that fails takes the targets of its group away",
        "coordinator.consumer_groups.assigning:_fail_target",
        "group.failure = Failure(",
        "group.targets.clear()\n    group.failure = Failure(",
    ),
)


if __name__ == "__main__":
    sys.exit(look_for(CONSUMER_GROUP_BUGS, " in consumer groups"))
