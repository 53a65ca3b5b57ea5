"""Requests that change a cluster: whichever broker is asked, the controller carries them out.

Covers: broker/apis/envelope.py, broker/apis/alter_partition.py, broker/apis/alter_partition_reassignments.py.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest

from kohort.client import Cluster, Sasl
from kohort.protocol import ApiKey, ErrorCode, encode_request
from kohort.protocol.messages.alter_client_quotas import EntityData, OpData, RequestEntryData
from kohort.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
)
from kohort.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kohort.protocol.messages.create_acls import AclCreation
from kohort.protocol.messages.create_partitions import CreatePartitionsAssignment, CreatePartitionsTopic
from kohort.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kohort.protocol.messages.delete_acls import DeleteAclsFilter
from kohort.protocol.messages.elect_leaders import TopicPartitions
from kohort.protocol.messages.envelope import EnvelopeRequest
from kohort.protocol.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource
from kohort.testing import RunningCluster, running_cluster
from tests.broker.wire import Wire, create_topic

TOPIC, BROKER = 2, 4


@pytest.fixture(scope="module")
def cluster() -> Iterator[RunningCluster]:
    with running_cluster(3, racks=["a", "b", "c"]) as running:
        yield running


@pytest.fixture
def wire(cluster: RunningCluster) -> Iterator[Wire]:
    """A connection to a broker that is not controller."""
    other = next(number for number in cluster.brokers if number != cluster.controller)
    with Wire(cluster.brokers[other].bootstrap) as opened:
        yield opened


def create(wire: Wire, *topics: CreatableTopic, **fields: Any) -> dict[str, Any]:
    answer = wire.call(ApiKey.CREATE_TOPICS, 7, topics=topics, timeout_ms=1_000, **fields)
    return {topic.name: topic for topic in answer.topics}


def described(wire: Wire, name: str) -> Any:
    [topic] = wire.call(ApiKey.METADATA, 12, topics=[name_of(name)], allow_auto_topic_creation=False).topics
    return topic


def name_of(name: str) -> Any:
    from kohort.protocol.messages.metadata import MetadataRequestTopic

    return MetadataRequestTopic(name=name)


def test_a_topic_is_there_for_who_asked_another_broker_than_the_controller(wire: Wire) -> None:
    for number in range(20):
        made = create_topic(wire, f"mine-{number}", 2)
        assert (made.error_code, made.num_partitions, made.replication_factor) == (0, 2, 3)
        found = described(wire, f"mine-{number}")
        assert (found.error_code, found.topic_id, len(found.partitions)) == (0, made.topic_id, 2)
        assert {part.leader_id for part in found.partitions} <= {1, 2, 3}


def test_replicas_are_checked_against_the_brokers_that_are_there(wire: Wire) -> None:
    chosen = [CreatableReplicaAssignment(1, [3, 1]), CreatableReplicaAssignment(0, [2, 3])]
    made = create(
        wire,
        CreatableTopic("many", 1, 4),
        CreatableTopic("none", 1, 0),
        CreatableTopic("chosen", -1, -1, chosen),
        CreatableTopic("away", -1, -1, [CreatableReplicaAssignment(0, [1, 9])]),
        CreatableTopic("two", 1, 2),
    )
    codes = {name: ErrorCode(topic.error_code).name for name, topic in made.items()}
    assert codes == {
        "many": "INVALID_REPLICATION_FACTOR",
        "none": "INVALID_REPLICATION_FACTOR",
        "chosen": "NONE",
        "away": "INVALID_REPLICA_ASSIGNMENT",
        "two": "NONE",
    }
    assert made["chosen"].replication_factor == made["two"].replication_factor == 2
    assert [part.replica_nodes for part in described(wire, "chosen").partitions] == [[2, 3], [3, 1]]
    checked = create(wire, CreatableTopic("many", 1, 4), CreatableTopic("three", 1, 3), validate_only=True)
    assert [ErrorCode(topic.error_code).name for topic in checked.values()] == [
        "INVALID_REPLICATION_FACTOR",
        "NONE",
    ]
    assert described(wire, "three").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_partitions_are_added_and_topics_deleted(wire: Wire) -> None:
    create_topic(wire, "grows", 1)
    asked = [
        CreatePartitionsTopic("grows", 3, [CreatePartitionsAssignment([3, 2, 1])] * 2),
        CreatePartitionsTopic("gone", 3, None),
    ]
    answer = wire.call(ApiKey.CREATE_PARTITIONS, 3, topics=asked, timeout_ms=1_000)
    assert [ErrorCode(one.error_code).name for one in answer.results] == [
        "NONE",
        "UNKNOWN_TOPIC_OR_PARTITION",
    ]
    assert [part.replica_nodes for part in described(wire, "grows").partitions[1:]] == [[3, 2, 1]] * 2
    asked = [CreatePartitionsTopic("grows", 4, [CreatePartitionsAssignment([1])])]
    answer = wire.call(ApiKey.CREATE_PARTITIONS, 3, topics=asked, timeout_ms=1_000)
    assert answer.results[0].error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    gone = wire.call(ApiKey.DELETE_TOPICS, 5, topic_names=["grows"], timeout_ms=1_000)
    assert gone.responses[0].error_code == 0
    assert described(wire, "grows").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def alter(wire: Wire, kind: int, name: str, **configs: str) -> int:
    rows = [AlterableConfig(key.replace("_", "."), 0, value) for key, value in configs.items()]
    answer = wire.call(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        1,
        resources=[AlterConfigsResource(kind, name, rows)],
        validate_only=False,
    )
    code: int = answer.responses[0].error_code
    return code


def config(wire: Wire, kind: int, name: str, key: str) -> str:
    from kohort.protocol.messages.describe_configs import DescribeConfigsResource

    wanted = DescribeConfigsResource(kind, name, [key])
    [result] = wire.call(ApiKey.DESCRIBE_CONFIGS, 4, resources=[wanted]).results
    value: str = result.configs[0].value
    return value


def test_configs_of_topics_can_be_set_removed_and_set_again(wire: Wire) -> None:
    create_topic(wire, "kept", 1)
    for value in ("5000", "6000"):
        assert alter(wire, TOPIC, "kept", retention_ms=value) == 0
        assert config(wire, TOPIC, "kept", "retention.ms") == value
        rows = [AlterableConfig("retention.ms", 1, None)]
        answer = wire.call(
            ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[AlterConfigsResource(TOPIC, "kept", rows)]
        )
        assert answer.responses[0].error_code == 0
        assert config(wire, TOPIC, "kept", "retention.ms") == "604800000"


def test_settings_of_all_brokers_and_of_one(cluster: RunningCluster) -> None:
    name = "log.cleaner.delete.retention.ms"
    wires = {number: Wire(broker.bootstrap) for number, broker in cluster.brokers.items()}
    assert alter(wires[1], BROKER, "", log_cleaner_delete_retention_ms="7000") == 0
    for number, wire in wires.items():
        assert config(wire, BROKER, str(number), name) == "7000"
    assert alter(wires[2], BROKER, "2", log_cleaner_delete_retention_ms="8000") == 0
    assert [config(wire, BROKER, str(number), name) for number, wire in wires.items()] == [
        "7000",
        "8000",
        "7000",
    ]
    for wire in wires.values():
        wire.close()


def test_replicas_move_and_leaders_are_elected(cluster: RunningCluster, wire: Wire) -> None:
    create(wire, CreatableTopic("moves", -1, -1, [CreatableReplicaAssignment(0, [1, 2])]))
    cluster.produce("moves", ["a", "b", "c"])

    def reassign(replicas: list[int] | None, *, partition: int = 0, **fields: Any) -> str:
        topics = [ReassignableTopic("moves", [ReassignablePartition(partition, replicas)])]
        answer = wire.call(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 1, topics=topics, **fields)
        return ErrorCode(answer.responses[0].partitions[0].error_code).name

    assert reassign(None) == "NO_REASSIGNMENT_IN_PROGRESS"
    assert reassign([1, 9]) == "INVALID_REPLICA_ASSIGNMENT"
    assert reassign([1, 2], partition=7) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert reassign([1, 2, 3], allow_replication_factor_change=False) == "INVALID_REPLICATION_FACTOR"
    assert reassign([1, 2, 9], allow_replication_factor_change=False) == "INVALID_REPLICA_ASSIGNMENT"
    assert reassign([3, 1]) == "NONE"
    cluster._eventually(lambda: cluster.state("moves", 0).replicas == (3, 1) or None)
    assert wire.call(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, topics=None).topics == []

    def elect(kind: int, *numbers: int) -> list[str]:
        answer = wire.call(
            ApiKey.ELECT_LEADERS, 2, election_type=kind, topic_partitions=[TopicPartitions("moves", numbers)]
        )
        [topic] = answer.replica_election_results
        return [ErrorCode(part.error_code).name for part in topic.partition_result]

    assert cluster.leader_of("moves") == 1
    assert elect(0, 0, 5) == ["NONE", "UNKNOWN_TOPIC_OR_PARTITION"]
    assert cluster.leader_of("moves") == 3
    assert elect(0, 0) == elect(1, 0) == ["ELECTION_NOT_NEEDED"]
    assert [record.value for record in cluster.read("moves")] == [b"a", b"b", b"c"]


def test_a_reassignment_that_waits_is_told_and_can_be_cancelled(cluster: RunningCluster, wire: Wire) -> None:
    leader, waits = (n for n in cluster.brokers if n != cluster.controller)
    create(wire, CreatableTopic("waits", -1, -1, [CreatableReplicaAssignment(0, [leader])]))
    cluster.cut(leader, waits)
    # the broker that is asked hears nothing of what the controller decides
    asked = next(n for n, each in cluster.brokers.items() if each.port == wire.socket.getpeername()[1])
    cluster._stores[asked].suspend()
    topics = [ReassignableTopic("waits", [ReassignablePartition(0, [waits])])]
    wire.call(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, topics=topics)
    [topic] = wire.call(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, topics=None).topics
    [part] = topic.partitions
    assert (topic.name, part.adding_replicas, part.removing_replicas) == ("waits", [waits], [leader])
    topics = [ReassignableTopic("waits", [ReassignablePartition(0, None)])]
    answer = wire.call(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, topics=topics)
    assert answer.responses[0].partitions[0].error_code == 0
    assert cluster.state("waits", 0).replicas == (leader,)
    cluster.heal()


def test_leaders_ask_the_controller_for_in_sync_replicas(cluster: RunningCluster) -> None:
    with Wire(cluster.brokers[cluster.controller].bootstrap) as wire:
        made = create(wire, CreatableTopic("synced", -1, -1, [CreatableReplicaAssignment(0, [1, 2])]))[
            "synced"
        ]
        epochs = {n: part.epoch for n, part in cluster._image(1).brokers.items()}

        def ask(isr: list[int], *, epoch: int | None = None) -> Any:
            partition = RequestPartitionData(0, 0, (), [BrokerState(n, epochs[n]) for n in isr], 0, 0)
            return wire.call(
                ApiKey.ALTER_PARTITION,
                3,
                broker_id=1,
                broker_epoch=epochs[1] if epoch is None else epoch,
                topics=[RequestTopicData(made.topic_id, [partition])],
            )

        assert ask([1], epoch=7).error_code == ErrorCode.STALE_BROKER_EPOCH
        assert ask([1, 3]).topics[0].partitions[0].error_code == ErrorCode.INVALID_REQUEST
        [part] = ask([2, 1]).topics[0].partitions
        assert (part.error_code, part.leader_id, part.isr, part.partition_epoch) == (0, 1, [1, 2], 0)


def test_what_a_broker_alone_does_not_serve(cluster: RunningCluster) -> None:
    from kohort.testing import running_broker

    ours = {ApiKey.ALTER_PARTITION, ApiKey.ENVELOPE}
    with running_broker() as alone, Wire(alone.bootstrap) as wire:
        served = {row.api_key for row in wire.call(ApiKey.API_VERSIONS, 2).api_keys}
    assert not served & ours
    with Wire(cluster.brokers[1].bootstrap) as wire:
        assert ours <= {row.api_key for row in wire.call(ApiKey.API_VERSIONS, 2).api_keys}


def envelope(wire: Wire, body: Any, version: int) -> str:
    frame = encode_request(version, 7, "client", body)[4:]
    answer = wire.call(
        ApiKey.ENVELOPE,
        0,
        request_data=frame,
        request_principal=b"User:ANONYMOUS",
        client_host_address=b"127.0.0.1",
    )
    return ErrorCode(answer.error_code).name


def test_only_requests_for_the_controller_are_in_envelopes(cluster: RunningCluster, wire: Wire) -> None:
    made = CreateTopicsRequest([CreatableTopic("in-envelope", 1, 1)], timeout_ms=1_000)
    assert envelope(wire, made, 7) == "NOT_CONTROLLER"
    with Wire(cluster.brokers[cluster.controller].bootstrap) as controller:
        assert envelope(controller, AlterPartitionRequest(), 3) == "INVALID_REQUEST"
        assert envelope(controller, made, 7) == "NONE"
        for fields in (
            {"request_data": encode_request(7, 7, "client", made)[4:-3]},
            {"request_data": b"\x00\x13\x00\x63" + bytes(40)},
            {"request_principal": b"\xff"},
        ):
            whole = {
                "request_data": encode_request(7, 7, "client", made)[4:],
                "request_principal": b"User:alice",
                "client_host_address": b"127.0.0.1",
            }
            answer = controller.call(ApiKey.ENVELOPE, 0, **{**whole, **fields})
            assert answer.error_code == ErrorCode.INVALID_REQUEST
    cluster.wait_in_sync("in-envelope")


def test_quotas_of_clients_do_not_come_between_brokers(cluster: RunningCluster, wire: Wire) -> None:
    def limit(*rates: tuple[str, float]) -> None:
        entry = RequestEntryData([EntityData("client-id", None)], [OpData(key, rate) for key, rate in rates])
        [answer] = wire.call(ApiKey.ALTER_CLIENT_QUOTAS, 1, entries=[entry], validate_only=False).entries
        assert answer.error_code == 0

    limit(("request_percentage", 1.0), ("consumer_byte_rate", 1.0))
    assert create_topic(wire, "within-quotas", 1).error_code == 0
    cluster.wait_in_sync("within-quotas")
    cluster.produce("within-quotas", ["x" * 1_000] * 20)
    state = cluster.state("within-quotas", 0)
    assert set(state.isr) == set(state.replicas)
    remove = [OpData(key, 0.0, True) for key in ("request_percentage", "consumer_byte_rate")]
    entry = RequestEntryData([EntityData("client-id", None)], remove)
    wire.call(ApiKey.ALTER_CLIENT_QUOTAS, 1, entries=[entry], validate_only=False)


def test_who_is_delayed_by_the_controller_is_held_up_where_it_is_connected(wire: Wire) -> None:
    def limit(rate: float, *, remove: bool) -> None:
        entry = RequestEntryData(
            [EntityData("client-id", "wire")], [OpData("controller_mutation_rate", rate, remove)]
        )
        wire.call(ApiKey.ALTER_CLIENT_QUOTAS, 1, entries=[entry], validate_only=False)

    def make(name: str) -> Any:
        # of a version whose clients are delayed, and not refused
        topics = [CreatableTopic(name, 50, 1)]
        return wire.call(ApiKey.CREATE_TOPICS, 5, topics=topics, timeout_ms=5_000, validate_only=False)

    limit(50.0, remove=False)
    told_ms, number = 0, 0
    while not told_ms:
        number += 1
        told_ms = make(f"delayed-{number}").throttle_time_ms
    begun = time.monotonic()
    wire.call(ApiKey.API_VERSIONS, 0)
    assert time.monotonic() - begun > told_ms / 2_000
    limit(0.0, remove=True)


@pytest.fixture(scope="module")
def guarded() -> Iterator[RunningCluster]:
    """A cluster with access rules: brokers are super users, clients log in."""
    with running_cluster(
        2,
        listeners="BROKERS://127.0.0.1:0,CLIENTS://127.0.0.1:0",
        listener_security_protocol_map="BROKERS:PLAINTEXT,CLIENTS:SASL_PLAINTEXT",
        inter_broker_listener_name="BROKERS",
        sasl_enabled_mechanisms="SCRAM-SHA-256",
        kohort_scram_users="alice=secret,bob=secret",
        authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        super_users="User:ANONYMOUS",
    ) as running:
        yield running


def test_rights_are_those_of_the_client_and_not_of_the_broker_that_forwards(guarded: RunningCluster) -> None:
    other = next(n for n in guarded.brokers if n != guarded.controller)

    async def create_as(user: str, number: int) -> str:
        address = guarded.brokers[number].endpoints["CLIENTS"]
        sasl = Sasl("SCRAM-SHA-256", user, "secret")
        async with Cluster(address, sasl=sasl) as client:
            body = CreateTopicsRequest([CreatableTopic(f"of-{user}", 1, 1)], timeout_ms=1_000)
            [topic] = (await client.request(number, ApiKey.CREATE_TOPICS, body)).topics
            return ErrorCode(topic.error_code).name

    def create_now(user: str, number: int) -> str:
        return asyncio.run(create_as(user, number))

    for number in guarded.brokers:
        assert create_now("alice", number) == "TOPIC_AUTHORIZATION_FAILED"
    with Wire(guarded.brokers[other].endpoints["BROKERS"]) as wire:
        rule = AclCreation(2, "of-alice", 3, "User:alice", "*", 5, 3)
        [made] = wire.call(ApiKey.CREATE_ACLS, 3, creations=[rule]).results
        assert made.error_code == 0
    assert create_now("alice", other) == "NONE"
    assert create_now("bob", other) == "TOPIC_AUTHORIZATION_FAILED"


def test_envelopes_are_opened_on_the_listener_of_brokers_alone(guarded: RunningCluster) -> None:
    number = guarded.controller
    with Wire(guarded.brokers[number].endpoints["BROKERS"]) as wire:
        rule = AclCreation(4, "kafka-cluster", 3, "User:alice", "*", 2, 3)
        [made] = wire.call(ApiKey.CREATE_ACLS, 3, creations=[rule]).results
        assert made.error_code == 0

    async def ask() -> str:
        sasl = Sasl("SCRAM-SHA-256", "alice", "secret")
        async with Cluster(guarded.brokers[number].endpoints["CLIENTS"], sasl=sasl) as client:
            body = CreateTopicsRequest([CreatableTopic("of-nobody", 1, 1)], timeout_ms=1_000)
            frame = bytes(encode_request(7, 7, "client", body)[4:])
            forged = EnvelopeRequest(frame, b"User:ANONYMOUS", b"127.0.0.1")
            answer = await client.request(number, ApiKey.ENVELOPE, forged)
            return ErrorCode(answer.error_code).name

    assert asyncio.run(ask()) == "CLUSTER_AUTHORIZATION_FAILED"
    with Wire(guarded.brokers[number].endpoints["BROKERS"]) as wire:
        gone = DeleteAclsFilter(4, "kafka-cluster", 3, "User:alice", "*", 2, 3)
        wire.call(ApiKey.DELETE_ACLS, 3, filters=[gone])


def test_only_brokers_may_ask_for_what_is_between_brokers(guarded: RunningCluster) -> None:
    number = guarded.controller

    async def ask(body: Any) -> str:
        sasl = Sasl("SCRAM-SHA-256", "alice", "secret")
        async with Cluster(guarded.brokers[number].endpoints["CLIENTS"], sasl=sasl) as client:
            answer = await client.request(number, body.API_KEY, body)
            return ErrorCode(answer.error_code).name

    for body in (
        AlterPartitionRequest(1, 1),
        EnvelopeRequest(b"", b"User:ANONYMOUS", b"127.0.0.1"),
        AlterPartitionReassignmentsRequest(),
    ):
        assert asyncio.run(ask(body)) == "CLUSTER_AUTHORIZATION_FAILED"


def test_a_replica_that_lacks_records_leads_only_where_the_topic_allows_it() -> None:
    with running_cluster(3, replica_lag_time_max_ms=500, replica_fetch_wait_max_ms=50) as cluster:
        first, second = (number for number in cluster.brokers if number != cluster.controller)
        chosen = [CreatableReplicaAssignment(0, [first, second])]
        allowed = [CreatableTopicConfig("unclean.leader.election.enable", "true")]
        with Wire(cluster.brokers[first].bootstrap) as wire:
            create(
                wire,
                CreatableTopic("risky", -1, -1, chosen, allowed),
                CreatableTopic("safe", -1, -1, chosen),
            )
        for topic in ("risky", "safe"):
            cluster.wait_in_sync(topic)
            cluster.produce(topic, ["kept"])
        cluster.cut(first, second)
        for topic in ("risky", "safe"):
            # it waits until the other replica is out of sync, which one that has all is not
            cluster.produce(topic, ["only at the first"])
            # the leader knows it a moment before others do
            cluster._eventually(lambda topic=topic: cluster.state(topic, 0).isr == (first,) or None)  # type: ignore[misc]
        cluster.kill(first)
        assert (cluster.state("risky", 0).leader, cluster.state("safe", 0).leader) == (second, -1)
        cluster.heal()
        cluster.restart(first)
        for topic in ("risky", "safe"):
            cluster.wait_in_sync(topic)
            assert not cluster.state(topic, 0).recovering
        assert [record.value for record in cluster.read("risky")] == [b"kept"]
        assert [record.value for record in cluster.read("safe")] == [b"kept", b"only at the first"]


def test_a_broker_that_comes_back_leads_again_after_a_while() -> None:
    with running_cluster(3, leader_imbalance_check_interval_seconds=1) as cluster:
        cluster.create_topic("orders", 3)
        first = next(number for number in cluster.brokers if number != cluster.controller)
        cluster.kill(first)
        assert first not in {cluster.leader_of("orders", number) for number in range(3)}
        cluster.restart(first)
        cluster.wait_in_sync("orders")
        cluster._eventually(lambda: {cluster.leader_of("orders", n) for n in range(3)} == {1, 2, 3} or None)


def test_the_next_controller_carries_out_what_the_last_one_cannot() -> None:
    with running_cluster(3) as cluster:
        last = cluster.controller
        other = next(number for number in cluster.brokers if number != last)
        with Wire(cluster.brokers[other].bootstrap) as wire:
            create_topic(wire, "before", 1)
            cluster.kill(last)
            assert create_topic(wire, "behind", 1).error_code in (
                ErrorCode.NONE,
                ErrorCode.INVALID_REPLICATION_FACTOR,
            )
            cluster.restart(last)
            cluster.wait_in_sync("before")
            assert create_topic(wire, "whole", 1).error_code == 0
            cluster.wait_in_sync("whole")
