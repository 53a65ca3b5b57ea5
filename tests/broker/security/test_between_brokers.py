"""Brokers of a cluster log in to each other, over TLS; nobody else may do what brokers do.

Covers: broker/security/_between_brokers.py.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from kohort.broker import Broker
from kohort.broker.authorizer import (
    CLUSTER_NAME,
    Acl,
    AclBindingFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from kohort.broker.security._between_brokers import BetweenBrokers
from kohort.broker.settings import broker_settings
from kohort.client import Cluster
from kohort.cluster import MetadataStore
from kohort.protocol import ApiKey, ErrorCode, build_batch
from kohort.protocol.messages.fetch import ReplicaState
from kohort.settings import SettingsError
from kohort.testing.memory_store import MemoryHome
from tests.broker.clusters import Nodes, cluster, in_sync
from tests.broker.security.certificates import Certificates
from tests.broker.wire import Wire

#: For clusters that are smaller than usual.
ALONE: dict[str, Any] = {
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.replication.factor": 1,
}

LOGIN = 'ScramLoginModule required username="broker" password="{}";'


def secured(folder: Path, **others: Any) -> dict[str, Any]:
    """Settings of brokers that trust each other's certificates and log in, with clients in the clear."""
    certificates = Certificates(folder)
    own = "listener.name.brokers."
    return {
        "listeners": "OUT://127.0.0.1:0,BROKERS://127.0.0.1:0",
        "listener.security.protocol.map": "OUT:PLAINTEXT,BROKERS:SASL_SSL",
        "inter.broker.listener.name": "BROKERS",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        own + "ssl.keystore.location": certificates.server(),
        own + "ssl.truststore.location": certificates.cafile,
        own + "ssl.client.auth": "required",
        own + "scram-sha-512.sasl.jaas.config": LOGIN.format("secret"),
        "kohort.scram.users": "broker=secret",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:broker",
        **others,
    }


async def allow(nodes: Nodes, *rights: tuple[ResourceType, Operation], who: str = "User:ANONYMOUS") -> None:
    """Let ``who`` do this with everything."""
    acls = [
        Acl(
            kind,
            CLUSTER_NAME if kind is ResourceType.CLUSTER else "*",
            PatternType.LITERAL,
            who,
            "*",
            operation,
            Permission.ALLOW,
        )
        for kind, operation in rights
    ]
    rules = [each._require_running().node.authorizer for each in nodes.brokers.values()]
    assert rules[0] is not None
    await rules[0].create(acls)
    await nodes.until(
        lambda: all(each is not None and set(acls) <= set(each.find(AclBindingFilter())) for each in rules)
    )


async def test_brokers_with_certificates_and_passwords_replicate_forward_and_coordinate(
    tmp_path: Path,
) -> None:
    async with cluster(**secured(tmp_path), group_initial_rebalance_delay_ms=0) as nodes:
        await allow(
            nodes,
            *(
                (kind, Operation.ALL)
                for kind in (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
            ),
        )
        # by a broker that is not the controller: it forwards the request with who sent it
        other = next(
            n for n, each in nodes.brokers.items() if each.cluster and not each.cluster.control.is_active
        )
        async with Cluster(nodes.brokers[other].bootstrap) as client:
            await client.create_topics({"orders": 3}, replication_factor=3)
        await in_sync(nodes)
        sender = AIOKafkaProducer(bootstrap_servers=nodes.bootstrap(), acks="all", transactional_id="t")
        async with sender, sender.transaction():
            for number in range(30):
                await sender.send_and_wait("orders", b"%d" % number, partition=number % 3)
        async with AIOKafkaConsumer(
            "orders",
            bootstrap_servers=nodes.bootstrap(),
            group_id="g",
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        ) as consumer:
            got = {(await consumer.getone()).value for _ in range(30)}
            await consumer.commit()
        assert got == {b"%d" % number for number in range(30)}


async def test_a_stranger_may_do_nothing_that_brokers_do(tmp_path: Path) -> None:
    async with cluster(1, **secured(tmp_path), **ALONE) as nodes:
        await nodes.create("orders")
        await allow(nodes, (ResourceType.TOPIC, Operation.READ), (ResourceType.TOPIC, Operation.DESCRIBE))
        topic_id = nodes.any().topics.id_of("orders")

        def ask() -> dict[str, int]:
            with Wire(nodes.any().bootstrap) as wire:
                rows = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1_000}]
                fetched = wire.call(
                    ApiKey.FETCH,
                    17,
                    max_wait_ms=0,
                    min_bytes=0,
                    max_bytes=1_000,
                    session_epoch=-1,
                    replica_state=ReplicaState(2, 7),
                    topics=[{"topic_id": topic_id, "partitions": rows}],
                )
                wanted = {
                    "partition_index": 0,
                    "leader_epoch": 0,
                    "new_isr_with_epochs": [(2, 7)],
                    "partition_epoch": 0,
                }
                altered = wire.call(
                    ApiKey.ALTER_PARTITION,
                    3,
                    broker_id=1,
                    broker_epoch=1,
                    topics=[{"topic_id": topic_id, "partitions": [wanted]}],
                )
                enveloped = wire.call(
                    ApiKey.ENVELOPE,
                    0,
                    request_data=b"",
                    request_principal=b"User:broker",
                    client_host_address=b"127.0.0.1",
                )
                marked = wire.call(
                    ApiKey.WRITE_TXN_MARKERS,
                    1,
                    markers=[(1, 0, True, [("orders", [0])], 0)],
                )
                transaction = ("t", 1, 0, True, [("orders", [0])])
                added = wire.call(ApiKey.ADD_PARTITIONS_TO_TXN, 5, transactions=[transaction])
                return {
                    "fetch": fetched.responses[0].partitions[0].error_code,
                    "alter": altered.error_code,
                    "envelope": enveloped.error_code,
                    "markers": marked.markers[0].topics[0].partitions[0].error_code,
                    "add": added.error_code,
                }

        refused = await asyncio.to_thread(ask)
        assert refused.pop("fetch") == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert set(refused.values()) == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}, refused
        await allow(nodes, (ResourceType.CLUSTER, Operation.CLUSTER_ACTION))
        allowed = await asyncio.to_thread(ask)
        # who has the right, but does not come by the listener of brokers, speaks for nobody else
        assert allowed.pop("envelope") == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert ErrorCode.CLUSTER_AUTHORIZATION_FAILED not in allowed.values()
        assert ErrorCode.TOPIC_AUTHORIZATION_FAILED not in allowed.values()


@pytest.mark.parametrize(
    ("wrong", "advice"),
    [
        ("password", "the user and the password of listener.name.brokers.scram-sha-512.sasl.jaas.config"),
        ("authority", "listener.name.brokers.ssl.truststore.location must have the authority"),
    ],
)
async def test_a_broker_that_is_not_let_in_says_what_to_look_at(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, wrong: str, advice: str
) -> None:
    own = "listener.name.brokers."
    usual = secured(tmp_path)
    (tmp_path / "other").mkdir()
    others = Certificates(tmp_path / "other")
    async with cluster(2, **usual, **ALONE) as nodes:
        await nodes.create("orders")
        await in_sync(nodes, count=2)
        follower = nodes.state("orders").replicas[1]
        await nodes.kill(follower)
        await in_sync(nodes, count=1)
        nodes.settings |= {
            "password": {own + "scram-sha-512.sasl.jaas.config": LOGIN.format("wrong")},
            "authority": {own + "ssl.truststore.location": others.cafile},
        }[wrong]
        with caplog.at_level(logging.WARNING, "kohort.broker"):
            await nodes.start(follower)
            await nodes.until(lambda: advice in caplog.text)
        assert len(nodes.state("orders").isr) == 1


async def one_is_copied(nodes: Nodes) -> None:
    """Write a record, and wait until the follower has it."""
    leader, follower = (
        nodes.brokers[n].topics.logs.partition("orders", 0) for n in nodes.state("orders").replicas
    )
    leader.append(bytes(build_batch([(None, b"x", ())], timestamp_ms=0)), now_ms=0)
    await nodes.until(lambda: follower.log_end_offset == 1)


async def test_brokers_without_rights_are_told_which_ones_they_need(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "kohort.broker"):
        async with cluster(2, **secured(tmp_path, **{"super.users": "User:admin"}), **ALONE) as nodes:
            await nodes.create("orders")
            await nodes.until(lambda: "ClusterAction on the cluster, name their principals" in caplog.text)
            await allow(nodes, (ResourceType.CLUSTER, Operation.CLUSTER_ACTION), who="User:broker")
            await one_is_copied(nodes)


async def test_the_name_in_a_certificate_is_looked_at_unless_that_is_switched_off(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = secured(tmp_path)
    certificate = Certificates(tmp_path).server("elsewhere.pem", "kafka.example.org")
    settings |= {
        "listener.name.brokers.ssl.keystore.location": certificate,
        "listener.name.brokers.ssl.truststore.location": str(tmp_path / "ca.pem"),
    }
    for algorithm in ("https", ""):
        caplog.clear()
        settings["listener.name.brokers.ssl.endpoint.identification.algorithm"] = algorithm
        with caplog.at_level(logging.WARNING, "kohort.broker"):
            async with cluster(2, **settings, **ALONE) as nodes:
                await nodes.create("orders")
                if algorithm:
                    await nodes.until(lambda: "IP address mismatch" in caplog.text)
                    assert "the certificate the address of its advertised.listeners" in caplog.text
                else:
                    await one_is_copied(nodes)


@pytest.mark.parametrize("kind", ["certificate", "PLAIN"])
async def test_brokers_are_known_by_their_certificates_or_log_in_by_plain(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    own = "listener.name.brokers."
    changes: dict[str, Any] = {
        "certificate": {
            "listener.security.protocol.map": "OUT:PLAINTEXT,BROKERS:SSL",
            "ssl.principal.mapping.rules": "RULE:^.*CN=broker.*$/broker/",
            own + "ssl.keystore.location": "broker.pem",
            own + "ssl.endpoint.identification.algorithm": "",
        },
        "PLAIN": {
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            own + "sasl.enabled.mechanisms": "PLAIN",
            own + "plain.sasl.jaas.config": 'PlainLoginModule required username="broker" password="x" '
            'user_broker="x";',
        },
    }[kind]
    settings = secured(tmp_path, **changes)
    if kind == "certificate":
        certificates = Certificates(tmp_path)
        settings[own + "ssl.keystore.location"] = certificates.client("broker")
    with caplog.at_level(logging.INFO, "kohort.broker"):
        async with cluster(2, **settings, **ALONE) as nodes:
            await nodes.create("orders")
            await one_is_copied(nodes)
    assert "cannot be followed" not in caplog.text.partition("is not controller any more")[0]


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        (
            {"sasl.mechanism.inter.broker.protocol": ""},
            "sasl.mechanism.inter.broker.protocol= is not allowed",
        ),
        (
            {"listener.name.brokers.sasl.enabled.mechanisms": "SCRAM-SHA-256"},
            r"which must be in its sasl.enabled.mechanisms \(SCRAM-SHA-256\)",
        ),
        (
            {"listener.name.brokers.scram-sha-512.sasl.jaas.config": "ScramLoginModule required;"},
            'sasl.jaas.config to the module.*username="..." password="...";',
        ),
        (
            {"listener.name.brokers.ssl.truststore.location": "/nowhere"},
            "ssl.truststore.location is a PEM file",
        ),
        (
            {"inter.broker.listener.name": "", "listener.security.protocol.map": "OUT:SSL,BROKERS:SASL_SSL"},
            "none is PLAINTEXT",
        ),
    ],
)
def test_settings_that_do_not_suffice_are_refused_at_the_start(
    tmp_path: Path, given: dict[str, str], advice: str
) -> None:
    settings = broker_settings(secured(tmp_path, **given))
    with pytest.raises(SettingsError, match=advice):
        BetweenBrokers(settings)


async def test_a_listener_on_every_address_needs_a_name_that_others_know() -> None:
    home = MemoryHome()

    async def open_store() -> MetadataStore:
        return home.open()

    with pytest.raises(SettingsError, match=r"PLAINTEXT listens on every address: name the one by which"):
        await Broker(host="0.0.0.0", open_store=open_store).start()


def test_without_a_name_the_protocol_says_which_listener_is_that_of_brokers(tmp_path: Path) -> None:
    by_protocol = {"inter.broker.listener.name": "", "security.inter.broker.protocol": "SASL_SSL"}
    assert BetweenBrokers(broker_settings(secured(tmp_path, **by_protocol))).listener.name == "BROKERS"
