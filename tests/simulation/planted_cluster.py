"""Bugs planted in replication, in the controller and in what follows leaders: see ``planted``.

``python -m tests.simulation.planted_cluster`` writes their table of docs/simulation.md.
"""

from __future__ import annotations

import sys
from functools import partial

from kohort.testing import simulate_cluster
from tests.simulation.planted import Bug, look_for

_Bug = partial(Bug, simulate=simulate_cluster)

CLUSTER_BUGS = (
    _Bug(
        "records are acknowledged when the leader has them",
        "broker.partitions.leadership:Leadership.when_committed",
        "if self.replication.high_watermark >= end_offset:",
        "if self.replication.log_end_offset >= end_offset:",
    ),
    _Bug(
        "whoever waits for replicas is told that they have it when another leads",
        "broker.partitions.leadership:Leadership.end",
        "each.then(error)",
        "each.then(None)",
    ),
    _Bug(
        "a follower that fetches is taken to have all",
        "replication._replication:Replication.on_fetch",
        "follower.on_fetch(offset, now_ms, self.log_end_offset, broker_epoch)",
        "follower.on_fetch(self.log_end_offset, now_ms, self.log_end_offset, broker_epoch)",
    ),
    _Bug(
        "in-sync replicas that a leader asks for are not written",
        "cluster.controller.decisions:alter_isr",
        "return Decision(answer, list(changed.values()))",
        "return Decision(answer, [])",
    ),
    _Bug(
        "who is gone stays in sync",
        "cluster.controller.partitions:_in_sync",
        "return staying or stopping or state.isr",
        "return state.isr",
    ),
    _Bug(
        "a follower does not learn where its log parts from the leader's",
        "broker.apis.fetch:_find_divergence",
        "parted = epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset",
        "parted = False",
    ),
    _Bug(
        "a follower gets in sync before it has what is committed",
        "replication._replication:Replication._may_join",
        "return self._is_eligible(node_id) and offset >= self.high_watermark and offset >= self.start_offset",
        "return self._is_eligible(node_id)",
    ),
    _Bug(
        "what in-sync replicas have does not count",
        "replication._replication:Replication._advance_high_watermark",
        "if node_id in self.maximal_isr or joins:",
        "if joins:",
    ),
    _Bug(
        "consumers read what is not committed",
        "broker.apis.fetch:_read_partition",
        "to_log_end=fetch.by_broker,",
        "to_log_end=True,",
    ),
    _Bug(
        "a broker is back before it was missed",
        "broker.metadata.cluster_node:ClusterNode._is_counted_on",
        "return self.node_id in brokers or any(",
        "return False and any(",
    ),
    _Bug(
        "a new leader has the epoch of the one before",
        "cluster.controller.partitions:settle_state",
        "epoch = before.leader_epoch + (leader != before.leader or bool(taken))",
        "epoch = before.leader_epoch + (before.leader_epoch < 0)",
    ),
    _Bug(
        "any replica may lead, in sync or not",
        "cluster.controller.partitions:_choose_leader",
        "candidates = [each for each in state.replicas if each in state.isr and each in may_lead]",
        "candidates = [each for each in state.replicas if each in may_lead]",
    ),
    _Bug(
        "a follower keeps what a loss of power has damaged",
        "broker.partitions.partition:Partition.cut_damage",
        "(damaged := log.first_damaged_offset) is not None",
        "(damaged := None) is not None",
    ),
    _Bug(
        "a coordinator answers before other replicas have it",
        "broker.replicas.replicas:MovingShards.when_committed",
        "return found.leadership.when_committed(end_offset, then)",
        "return True",
    ),
    _Bug(
        "who has lost the session is not registered again",
        "cluster._registration:Registration._keep_entry",
        "await self._try_to_register()",
        "await (asyncio.Event().wait() if self._sessions_lost else self._try_to_register())",
    ),
    _Bug(
        "the generation of a group is not in its record",
        "coordinator.classic_groups.group:ClassicGroup.to_record",
        "self.generation,",
        "0,",
    ),
    _Bug(
        "sessions are ended by a coordinator that has just begun",
        "coordinator.classic_groups.rebalance:resume",
        "restart_session(shard, group, member, now_ms)",
        "restart_session(shard, group, member, now_ms - 10_000)",
    ),
    _Bug(
        "replicas that are taken away stay in sync",
        "cluster.controller.partitions:_after_reassignment",
        "isr=staying",
        "isr=state.isr",
    ),
    _Bug(
        "a broker keeps what was given to others",
        "broker.metadata.topics:Topics._create_replicas",
        "[n for n in local.partitions if n not in here]",
        "[]",
    ),
    _Bug(
        "consumers read from followers what is not committed",
        "broker.replicas.fetcher:ReplicaFetcher._append_records",
        "partition.commit_up_to(data.high_watermark)",
        "partition.commit_up_to(partition.log_end_offset)",
    ),
    _Bug(
        "followers do not see where transactions end",
        "log._partition:PartitionLog.append_copied",
        "markers_of(data, headers)",
        "[None] * len(headers)",
    ),
    _Bug(
        "a transaction is over though another broker has not marked its end",
        "broker.coordinators.transactions:end_in",
        "return not error or error in _FINAL",
        "return True",
    ),
    _Bug(
        "a marker that its coordinator has given up ends what is open by then",
        "broker.partitions.marker_order:MarkerOrder.admit",
        "if number < self._newest.get(producer_id, number):",
        "if False:",
    ),
    _Bug(
        "sessions of members that it assigns are ended by a coordinator that has just begun",
        "coordinator.consumer_groups.changes:start_sessions",
        "restart_session(shard, group, member, now_ms)",
        "restart_session(shard, group, member, now_ms - 10_000)",
    ),
    _Bug(
        "elections are unclean where the topic does not allow it",
        "cluster.controller.decisions:unclean_is_allowed",
        "return rules.unclean_leader_election if set_for_it is None",
        "return True if set_for_it is None",
    ),
)

if __name__ == "__main__":
    sys.exit(look_for(CLUSTER_BUGS, " in clusters"))
