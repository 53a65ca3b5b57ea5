"""What the controller decides, event by event, and what it refuses.

Covers: cluster/controller/decisions.py, cluster/controller/partitions.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from kohort.cluster import PartitionState
from kohort.cluster.controller import (
    IsrChange,
    NewPartitions,
    NewTopic,
    Rules,
    add_partitions,
    alter_isr,
    balance_leaders,
    create_topics,
    delete_topics,
    elect_leaders,
    leaders_to_move,
    reassign,
    reassignments,
    steps_to_write,
    tidy_partitions,
)
from kohort.cluster.layout import states_path
from kohort.protocol import ErrorCode, KafkaError, TopicPartition
from tests.cluster.controller.clusters import Cluster

ID = UUID(int=1)
FIRST = TopicPartition("orders", 0)


def topic(cluster: Cluster, *replicas: Sequence[int], **configs: str) -> None:
    new = NewTopic("orders", ID, assignments=replicas, configs=configs)
    assert cluster.do(create_topics(cluster.image, [new])) == {"orders": None}


def code(answer: Any) -> ErrorCode:
    assert isinstance(answer, KafkaError)
    return answer.code


def isr(cluster: Cluster, *replicas: int, **changes: Any) -> PartitionState | KafkaError:
    """What the leader is answered that asks for these in-sync replicas."""
    state = cluster.state("orders")
    epochs = {node: broker.epoch for node, broker in cluster.image.brokers.items()}
    change = IsrChange(
        ID, 0, state.leader_epoch, state.partition_epoch, [(each, epochs.get(each, -1)) for each in replicas]
    )._replace(**changes)
    [answer] = cluster.do(
        alter_isr(cluster.image, state.leader, epochs[state.leader], [change], cluster.rules)
    )
    return answer


# -- topics --------------------------------------------------------------------------------------------------


def test_a_new_topic_has_leaders_and_all_replicas_in_sync() -> None:
    cluster = Cluster(1, 2, 3)
    new = NewTopic("orders", ID, partitions=12, replication_factor=3, configs={"retention.ms": "5"})
    assert cluster.do(create_topics(cluster.image, [new])) == {"orders": None}
    states = cluster.states("orders")
    assert Counter(state.leader for state in states) == {1: 4, 2: 4, 3: 4}
    assert {(state.leader_epoch, state.partition_epoch, len(state.isr)) for state in states} == {(0, 0, 3)}


@pytest.mark.parametrize(
    ("new", "refused"),
    [
        (NewTopic("orders", ID), ErrorCode.TOPIC_ALREADY_EXISTS),
        (NewTopic("new", ID, partitions=0), ErrorCode.INVALID_PARTITIONS),
        (NewTopic("new", ID, replication_factor=3), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("new", ID, assignments=[]), ErrorCode.INVALID_PARTITIONS),
        (NewTopic("new", ID, assignments=[[]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("new", ID, assignments=[[1], [1, 2]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("new", ID, assignments=[[1, 1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("new", ID, assignments=[[1, 7]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
    ids=str,
)
def test_a_topic_that_cannot_be_is_refused_and_the_others_are_created(
    new: NewTopic, refused: ErrorCode
) -> None:
    cluster = Cluster(1, 2)
    topic(cluster, [1])
    answer = cluster.do(create_topics(cluster.image, [new, NewTopic("beside", UUID(int=2))]))
    assert code(answer[new.name]) is refused
    assert answer["beside"] is None
    assert cluster.image.topic("new") is None


def test_a_topic_named_twice_is_created_once() -> None:
    cluster = Cluster(1)
    new = NewTopic("orders", ID), NewTopic("orders", UUID(int=2))
    assert cluster.do(create_topics(cluster.image, new)) == {"orders": None}
    assert cluster.image.topic_by_id(ID) is not None


def test_partitions_are_added_and_led() -> None:
    cluster = Cluster(1, 2)
    topic(cluster, [1, 2])
    answer = cluster.do(
        add_partitions(
            cluster.image,
            [NewPartitions("orders", 4), NewPartitions("none", 2)],
        )
    )
    assert (answer["orders"], code(answer["none"])) == (None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert Counter(state.leader for state in cluster.states("orders")) == {1: 2, 2: 2}
    for count in (4, 3):
        [refused] = cluster.do(add_partitions(cluster.image, [NewPartitions("orders", count)])).values()
        assert code(refused) is ErrorCode.INVALID_PARTITIONS
    cluster.do(add_partitions(cluster.image, [NewPartitions("orders", 5, [[2, 1]])]))
    assert cluster.state("orders", 4).replicas == (2, 1)
    for assignments in ([[1]], [[1, 2], [2, 1]]):
        wanted = [NewPartitions("orders", 6, assignments)]
        [refused] = cluster.do(add_partitions(cluster.image, wanted)).values()
        assert code(refused) is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_a_deleted_topic_is_gone() -> None:
    cluster = Cluster(1)
    topic(cluster, [1], retention="1")
    answer = cluster.do(delete_topics(cluster.image, ["orders", "none"]))
    assert (answer["orders"], code(answer["none"])) == (None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert cluster.image.topics() == []
    topic(cluster, [1])


# -- brokers -------------------------------------------------------------------------------------------------


def test_an_in_sync_replica_leads_when_the_leader_goes_and_goes_on_when_it_is_back() -> None:
    cluster = Cluster(1, 2, 3)
    topic(cluster, [1, 2, 3])
    cluster.kill(1)
    assert cluster.state("orders") == PartitionState(2, 1, (2, 3), (1, 2, 3), partition_epoch=1)
    cluster.kill(3)
    assert cluster.state("orders") == PartitionState(2, 1, (2,), (1, 2, 3), partition_epoch=2)
    cluster.start(1)
    assert cluster.state("orders") == PartitionState(2, 1, (2,), (1, 2, 3), partition_epoch=2)


def test_a_partition_is_offline_until_a_replica_is_back_that_was_in_sync() -> None:
    cluster = Cluster(1, 2)
    topic(cluster, [1, 2])
    cluster.kill(2)
    cluster.kill(1)
    assert cluster.state("orders") == PartitionState(-1, 1, (1,), (1, 2), partition_epoch=2)
    cluster.start(2)
    assert cluster.state("orders").leader == -1
    cluster.start(1)
    assert cluster.state("orders") == PartitionState(1, 2, (1,), (1, 2), partition_epoch=3)


def test_an_unclean_election_is_made_where_the_topic_or_the_cluster_allows_it() -> None:
    for configs, rules in (
        ({"unclean.leader.election.enable": "true"}, Rules()),
        ({}, Rules(unclean_leader_election=True)),
    ):
        cluster = Cluster(1, 2)
        cluster.rules = rules
        topic(cluster, [1, 2], **configs)
        isr(cluster, 1)
        cluster.kill(1)
        assert cluster.state("orders") == PartitionState(
            2, 1, (2,), (1, 2), partition_epoch=2, recovering=True
        )
        cluster.start(1)
        assert code(isr(cluster, 1, 2, recovering=True)) is ErrorCode.INVALID_REQUEST
        settled = isr(cluster, 1, 2)
        assert isinstance(settled, PartitionState)
        assert (set(settled.isr), settled.recovering) == ({1, 2}, False)
        assert code(isr(cluster, 2, recovering=True)) is ErrorCode.INVALID_REQUEST
    cluster = Cluster(1, 2)
    cluster.rules = Rules(unclean_leader_election=True)
    topic(cluster, [1, 2], **{"unclean.leader.election.enable": "false"})
    isr(cluster, 1)
    cluster.kill(1)
    assert cluster.state("orders").leader == -1


def test_a_broker_that_shuts_down_gives_its_partitions_to_others_and_keeps_what_only_it_has() -> None:
    cluster = Cluster(1, 2)
    topic(cluster, [1, 2], [1, 2], [1, 2])
    cluster.do(reassign(cluster.image, {TopicPartition("orders", 2): [1]}, cluster.rules))
    assert leaders_to_move(cluster.image, 1) == 2
    cluster.shut_down(1)
    assert [state.leader for state in cluster.states("orders")] == [2, 2, 1]
    assert [state.isr for state in cluster.states("orders")] == [(2,), (2,), (1,)]
    assert leaders_to_move(cluster.image, 1) == 0
    answer = cluster.do(create_topics(cluster.image, [NewTopic("new", UUID(int=2), 4)]))
    assert answer == {"new": None}
    assert {state.leader for state in cluster.states("new")} == {2}
    cluster.kill(1)
    assert cluster.state("orders", 2).leader == -1


def test_a_damaged_replica_leads_nothing_and_is_not_in_sync() -> None:
    cluster = Cluster(1, 2, 3)
    topic(cluster, [1, 2, 3], [1, 2, 3])
    cluster.damage(1, (ID, 0))
    cluster.damage(3, (ID, 0))
    assert [(state.leader, state.isr) for state in cluster.states("orders")] == [(2, (2,)), (1, (1, 2, 3))]
    known = cluster.image.topic("orders")
    assert known is not None
    assert [state.offline for state in known.partitions] == [(1, 3), ()]
    refused = cluster.do(elect_leaders(cluster.image, [FIRST], cluster.rules, unclean=False))
    assert code(refused[FIRST]) is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    # a leader that does not know of the damage yet is refused, and asks again when the replica fetches
    assert code(isr(cluster, 2, 3)) is ErrorCode.INELIGIBLE_REPLICA
    assert cluster.state("orders").isr == (2,)
    # the last one in sync stays so, and nobody leads: others lack what it has
    cluster.damage(2, (ID, 0))
    assert (cluster.state("orders").leader, cluster.state("orders").isr) == (-1, (2,))
    cluster.damage(1)
    assert cluster.state("orders").leader == -1
    cluster.damage(2)
    assert (cluster.state("orders").leader, cluster.state("orders").isr) == (2, (2,))


def test_a_lost_replica_leads_nothing_unless_all_are_lost() -> None:
    cluster = Cluster(1, 2)
    topic(cluster, [1, 2], [2, 1])
    cluster.kill(2)
    cluster.lose(1, (ID, 0))
    # it was the only one in sync: the other lacks what it had
    assert [(state.leader, state.isr) for state in cluster.states("orders")] == [(-1, (1,)), (1, (1,))]
    cluster.start(2)
    assert cluster.state("orders").leader == -1
    answer = cluster.do(elect_leaders(cluster.image, [FIRST], cluster.rules, unclean=True))
    assert answer == {FIRST: None}
    assert (cluster.state("orders").leader, cluster.state("orders").isr) == (2, (2,))
    cluster.lose(2, (ID, 0))
    # nobody has anything
    assert (cluster.state("orders").leader, cluster.state("orders").isr) == (2, (2,))


# -- leaders -------------------------------------------------------------------------------------------------


def test_preferred_leaders_are_elected_where_they_can_lead() -> None:
    cluster = Cluster(1, 2)
    topic(cluster, [1, 2], [1, 2], [2, 1])
    cluster.kill(1)
    keys = [TopicPartition("orders", number) for number in range(3)] + [TopicPartition("none", 0)]
    answer = cluster.do(elect_leaders(cluster.image, keys, cluster.rules, unclean=False))
    assert [code(answer[key]) for key in keys] == [
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    cluster.start(1)
    isr(cluster, 2, 1)
    answer = cluster.do(elect_leaders(cluster.image, None, cluster.rules, unclean=False))
    assert answer[FIRST] is None
    assert code(answer[TopicPartition("orders", 1)]) is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    assert set(answer) == {FIRST, TopicPartition("orders", 1)}
    assert [state.leader for state in cluster.states("orders")] == [1, 2, 2]
    assert cluster.state("orders").leader_epoch == 2


def test_an_unclean_election_may_be_asked_for() -> None:
    cluster = Cluster(1, 2)
    topic(cluster, [1, 2])
    isr(cluster, 1)
    assert cluster.do(elect_leaders(cluster.image, None, cluster.rules, unclean=True)) == {}
    cluster.kill(1)
    cluster.kill(2)
    answer = cluster.do(elect_leaders(cluster.image, [FIRST], cluster.rules, unclean=True))
    assert code(answer[FIRST]) is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    cluster.start(2)
    assert cluster.do(elect_leaders(cluster.image, None, cluster.rules, unclean=True)) == {FIRST: None}
    assert (cluster.state("orders").leader, cluster.state("orders").recovering) == (2, True)


def test_a_partition_whose_state_is_lost_is_led_by_a_newest_log_and_only_if_somebody_asks() -> None:
    cluster = Cluster(1, 2, 3)
    topic(cluster, [1, 2, 3])
    found = cluster.image.topic("orders")
    assert found is not None
    for node_id in (2, 3):
        cluster.kill(node_id)
    cluster.lose_states()
    cluster.tidy()
    for node_id, epoch in ((2, 5), (3, 5)):
        assert cluster.state("orders").leader == -1, "one that is away may have records"
        cluster.start(node_id)
        cluster.report_epoch(node_id, (found.id, 0), epoch)
    cluster.report_epoch(1, (found.id, 0), 4)
    assert cluster.state("orders") == PartitionState(-1, -1, (), (1, 2, 3))
    assert cluster.do(elect_leaders(cluster.image, None, cluster.rules, unclean=True)) == {FIRST: None}
    state = cluster.state("orders")
    assert (state.leader, state.leader_epoch, state.isr, state.recovering) == (2, 6, (2,), True)


def test_leaders_are_balanced_when_more_than_a_tenth_of_a_brokers_are_elsewhere() -> None:
    cluster = Cluster(1, 2)
    topic(cluster, *([1, 2] for _ in range(10)), *([2, 1] for _ in range(10)))
    cluster.do(reassign(cluster.image, {TopicPartition("orders", 0): [2, 1]}, cluster.rules))
    cluster.do(reassign(cluster.image, {TopicPartition("orders", 0): [1, 2]}, cluster.rules))
    cluster.kill(1)
    cluster.start(1)
    assert cluster.do(balance_leaders(cluster.image, cluster.rules)) == {}, "it is not in sync yet"
    isr(cluster, 2, 1)
    assert cluster.do(balance_leaders(cluster.image, cluster.rules)) == {}, "a tenth is not more than that"
    rules = Rules(leader_imbalance_percent=9)
    assert cluster.do(balance_leaders(cluster.image, rules)) == {FIRST: None}
    assert cluster.state("orders").leader == 1


# -- in-sync replicas ----------------------------------------------------------------------------------------


def test_a_leader_shrinks_and_grows_its_in_sync_replicas() -> None:
    cluster = Cluster(1, 2, 3)
    topic(cluster, [1, 2, 3])
    shrunk = isr(cluster, 1)
    assert shrunk == PartitionState(1, 0, (1,), (1, 2, 3), partition_epoch=1) == cluster.state("orders")
    grown = isr(cluster, 1, 3)
    assert grown == PartitionState(1, 0, (1, 3), (1, 2, 3), partition_epoch=2)
    assert isr(cluster, 3, 1) == grown, "what is so already changes nothing"


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({"topic_id": UUID(int=9)}, ErrorCode.UNKNOWN_TOPIC_ID),
        ({"partition": 7}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"leader_epoch": 5}, ErrorCode.NOT_CONTROLLER),
        ({"partition_epoch": 9}, ErrorCode.NOT_CONTROLLER),
        ({"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"partition_epoch": -1}, ErrorCode.INVALID_UPDATE_VERSION),
        ({"isr": [(2, -1)]}, ErrorCode.INVALID_REQUEST),
        ({"isr": [(1, -1), (1, -1)]}, ErrorCode.INVALID_REQUEST),
        ({"isr": [(1, -1), (4, -1)]}, ErrorCode.INVALID_REQUEST),
        ({"isr": [(1, -1), (3, -1)]}, ErrorCode.INELIGIBLE_REPLICA),
        ({"isr": [(1, -1), (2, 1)]}, ErrorCode.INELIGIBLE_REPLICA),
    ],
    ids=str,
)
def test_in_sync_replicas_that_cannot_be_are_refused(changes: dict[str, Any], refused: ErrorCode) -> None:
    cluster = Cluster(1, 2, 3)
    topic(cluster, [1, 2, 3])
    cluster.kill(3)
    before = cluster.state("orders")
    assert code(isr(cluster, 1, 2, **changes)) is refused
    assert cluster.state("orders") == before


def test_a_broker_that_does_not_lead_or_was_registered_anew_changes_nothing() -> None:
    cluster = Cluster(1, 2)
    topic(cluster, [1, 2])
    epochs = {node: broker.epoch for node, broker in cluster.image.brokers.items()}
    change = IsrChange(ID, 0, 0, 0, [(1, -1)])
    [answer] = alter_isr(cluster.image, 2, epochs[2], [change], cluster.rules).answer
    assert code(answer) is ErrorCode.INVALID_REQUEST
    for node, epoch in ((1, epochs[1] - 1), (7, 0)):
        with pytest.raises(KafkaError, match="STALE_BROKER_EPOCH"):
            alter_isr(cluster.image, node, epoch, [change], cluster.rules)


def test_a_broker_that_shuts_down_is_not_taken_in_again() -> None:
    cluster = Cluster(1, 2)
    topic(cluster, [1, 2])
    cluster.shut_down(2)
    assert cluster.state("orders").isr == (1,)
    assert code(isr(cluster, 1, 2)) is ErrorCode.INELIGIBLE_REPLICA


# -- reassignments -------------------------------------------------------------------------------------------


def test_a_reassignment_adds_then_removes_and_moves_the_leader() -> None:
    cluster = Cluster(1, 2, 3, 4)
    topic(cluster, [1, 2])
    assert cluster.do(reassign(cluster.image, {FIRST: [3, 4]}, cluster.rules)) == {FIRST: None}
    under_way = PartitionState(1, 0, (1, 2), (3, 4, 1, 2), adding=(3, 4), removing=(1, 2), partition_epoch=1)
    assert cluster.state("orders") == under_way
    assert list(reassignments(cluster.image)) == [FIRST]
    isr(cluster, 1, 2, 3)
    assert cluster.state("orders").replicas == (3, 4, 1, 2)
    assert code(isr(cluster, 1, 2, 3, 4)) is ErrorCode.NEW_LEADER_ELECTED
    assert cluster.state("orders") == PartitionState(3, 1, (3, 4), (3, 4), partition_epoch=3)
    assert reassignments(cluster.image) == {}


def test_replicas_that_go_are_refused_by_a_new_epoch_of_the_same_leader() -> None:
    cluster = Cluster(1, 2)
    topic(cluster, [1, 2])
    cluster.do(reassign(cluster.image, {FIRST: [1]}, cluster.rules))
    assert cluster.state("orders") == PartitionState(1, 1, (1,), (1,), partition_epoch=1)


def test_another_order_of_the_same_replicas_is_in_force_at_once() -> None:
    cluster = Cluster(1, 2)
    topic(cluster, [1, 2])
    cluster.do(reassign(cluster.image, {FIRST: [2, 1]}, cluster.rules))
    assert cluster.state("orders") == PartitionState(1, 0, (1, 2), (2, 1), partition_epoch=1)


def test_a_reassignment_is_cancelled() -> None:
    cluster = Cluster(1, 2, 3)
    topic(cluster, [1, 2])
    assert code(cluster.do(reassign(cluster.image, {FIRST: None}, cluster.rules))[FIRST]) is (
        ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    )
    cluster.do(reassign(cluster.image, {FIRST: [3]}, cluster.rules))
    assert cluster.do(reassign(cluster.image, {FIRST: None}, cluster.rules)) == {FIRST: None}
    state = cluster.state("orders")
    assert (set(state.replicas), state.isr, state.adding, state.removing) == ({1, 2}, (1, 2), (), ())


def test_a_reassignment_may_be_changed_while_it_is_under_way() -> None:
    cluster = Cluster(1, 2, 3, 4)
    topic(cluster, [1, 2])
    cluster.do(reassign(cluster.image, {FIRST: [3, 2]}, cluster.rules))
    cluster.do(reassign(cluster.image, {FIRST: [4, 2]}, cluster.rules))
    state = cluster.state("orders")
    assert (state.replicas, state.adding, state.removing) == ((4, 2, 1), (4,), (1,))
    isr(cluster, 1, 2, 4)
    assert (cluster.state("orders").replicas, cluster.state("orders").leader) == ((4, 2), 4)


@pytest.mark.parametrize("replicas", [[], [1, 1], [9]], ids=str)
def test_replicas_that_cannot_be_are_refused(replicas: list[int]) -> None:
    cluster = Cluster(1, 2)
    topic(cluster, [1, 2])
    answer = cluster.do(reassign(cluster.image, {FIRST: replicas}, cluster.rules))
    assert code(answer[FIRST]) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    answer = cluster.do(reassign(cluster.image, {TopicPartition("none", 0): [1]}, cluster.rules))
    assert code(answer[TopicPartition("none", 0)]) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert cluster.state("orders").partition_epoch == 0


def test_partitions_are_not_added_to_a_topic_that_moves() -> None:
    cluster = Cluster(1, 2)
    topic(cluster, [1])
    cluster.do(reassign(cluster.image, {FIRST: [2]}, cluster.rules))
    [refused] = cluster.do(add_partitions(cluster.image, [NewPartitions("orders", 2)])).values()
    assert code(refused) is ErrorCode.REASSIGNMENT_IN_PROGRESS


def test_each_entry_of_states_is_written_once_where_a_broker_is_gone() -> None:
    cluster = Cluster(1, 2, 3)
    placed = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
    names = [f"t{number}" for number in range(1_200)]
    new = [
        NewTopic(name, UUID(int=number + 1), assignments=[placed[number % 3]])
        for number, name in enumerate(names)
    ]
    cluster.do(create_topics(cluster.image, new))
    gone = {node_id: each for node_id, each in cluster.image.brokers.items() if node_id != 3}
    image = cluster.image.with_changes(brokers=gone)
    # whatever their order
    topics = sorted(image.topics(), key=lambda topic: hash(topic.id.int % 7))
    decision = tidy_partitions(image, topics, cluster.rules)
    written = list(steps_to_write(image, cluster.entries(), cluster.stored, decision))
    paths = [change.path for step in written for change in step]
    assert sorted(paths) == [states_path(0), states_path(1), states_path(2)]
    assert len(written) == 1
