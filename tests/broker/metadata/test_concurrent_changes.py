"""Clients that change metadata at the same time, each through another broker: no change undoes another.

Covers: broker/requests/router.py, broker/apis/_api.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pytest

from kohort.protocol import ApiKey
from kohort.protocol.messages.create_partitions import CreatePartitionsTopic
from kohort.protocol.messages.describe_configs import DescribeConfigsResource
from kohort.testing import running_broker, running_cluster
from tests.broker.apis import test_client_quotas as quotas
from tests.broker.apis import test_scram_credentials as scram
from tests.broker.apis.test_alter_configs import APPEND, SET, change
from tests.broker.wire import Wire, create_topic, part
from tests.simulation.planted import Bug

TOPIC, BROKER, GROUP = 2, 4, 32

#: Clients that change at the same time.
CLIENTS = 12

TOPIC_CONFIGS = (
    "retention.ms",
    "retention.bytes",
    "segment.bytes",
    "segment.ms",
    "max.message.bytes",
    "flush.messages",
    "flush.ms",
    "delete.retention.ms",
    "file.delete.delay.ms",
    "index.interval.bytes",
    "min.compaction.lag.ms",
    "segment.jitter.ms",
)
BROKER_SETTINGS = (
    "log.retention.ms",
    "log.retention.bytes",
    "log.segment.bytes",
    "message.max.bytes",
    "log.index.interval.bytes",
    "log.cleaner.delete.retention.ms",
)
THROTTLED = "leader.replication.throttled.replicas"


def _set_of(wire: Wire, kind: int, name: str, names: tuple[str, ...], source: int) -> set[int]:
    wanted = DescribeConfigsResource(kind, name, list(names))
    [result] = wire.call(ApiKey.DESCRIBE_CONFIGS, 4, resources=[wanted], include_synonyms=True).results
    own = {row.name for row in result.configs if any(each.source == source for each in row.synonyms)}
    return {number for number, each in enumerate(names) if each in own}


def _throttled(wire: Wire) -> set[int]:
    wanted = DescribeConfigsResource(TOPIC, "throttled", [THROTTLED])
    [result] = wire.call(ApiKey.DESCRIBE_CONFIGS, 4, resources=[wanted]).results
    return {int(each.partition(":")[0]) for each in (result.configs[0].value or "").split(",") if each}


def _rule(wire: Wire, number: int) -> int:
    fields = {
        "resource_type": 2,
        "resource_name": f"topic-{number}",
        "resource_pattern_type": 3,
        "principal": "User:ann",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    creation = part(ApiKey.CREATE_ACLS, 3, "AclCreation", **fields)
    code: int = wire.call(ApiKey.CREATE_ACLS, 3, creations=[creation]).results[0].error_code
    return code


def _rules(wire: Wire) -> set[int]:
    answer = wire.call(
        ApiKey.DESCRIBE_ACLS,
        3,
        resource_type_filter=2,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    return {int(each.resource_name.removeprefix("topic-")) for each in answer.resources}


def _partitions(wire: Wire, number: int) -> int:
    asked = [CreatePartitionsTopic(f"grows-{number}", 2, None)]
    code: int = wire.call(ApiKey.CREATE_PARTITIONS, 3, topics=asked, timeout_ms=5_000).results[0].error_code
    return code


def _grown(wire: Wire) -> set[int]:
    found = wire.call(ApiKey.METADATA, 12, topics=None).topics
    return {int(each.name.removeprefix("grows-")) for each in found if len(each.partitions) == 2}


class Kind(NamedTuple):
    """One kind of change: the n-th change of it (an error code), and the changes that are in force."""

    make: Callable[[Wire, int], int]
    present: Callable[[Wire], set[int]]
    changes: int = CLIENTS


KINDS = {
    "configs of a topic": Kind(
        lambda wire, n: change(wire, "configured", (TOPIC_CONFIGS[n], SET, "5000")),
        lambda wire: _set_of(wire, TOPIC, "configured", TOPIC_CONFIGS, 1),
    ),
    "a list of a topic": Kind(
        lambda wire, n: change(wire, "throttled", (THROTTLED, APPEND, f"{n}:1")),
        _throttled,
    ),
    "settings of all brokers": Kind(
        lambda wire, n: change(wire, "", (BROKER_SETTINGS[n], SET, "5000000"), kind=BROKER),
        lambda wire: _set_of(wire, BROKER, "1", BROKER_SETTINGS, 3),
        len(BROKER_SETTINGS),
    ),
    "configs of groups": Kind(
        lambda wire, n: change(wire, f"group-{n}", ("consumer.session.timeout.ms", SET, "50000"), kind=GROUP),
        lambda wire: {
            n
            for n in range(CLIENTS)
            if _set_of(wire, GROUP, f"group-{n}", ("consumer.session.timeout.ms",), 8)
        },
    ),
    "quotas": Kind(
        lambda wire, n: quotas.alter(wire, ([("user", f"user-{n}")], {"producer_byte_rate": 1_000.0}))[0][0],
        lambda wire: {
            int(str(name).removeprefix("user-"))
            for ((_, name),) in quotas.describe(wire, ("user", quotas.ANY, None))
        },
    ),
    "users": Kind(
        lambda wire, n: scram.alter(wire, scram.upsertion(f"user-{n}"))[f"user-{n}"],
        lambda wire: {int(user.removeprefix("user-")) for user in scram.described(wire)},
    ),
    "access rules": Kind(_rule, _rules),
    "partitions of topics": Kind(_partitions, _grown),
}


@pytest.fixture(scope="module", params=["one broker", "three brokers"])
def addresses(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    settings: dict[str, Any] = {
        "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super_users": "User:ANONYMOUS",
    }
    if request.param == "one broker":
        with running_broker(**settings) as broker:
            yield [broker.bootstrap]
    else:
        with running_cluster(3, **settings) as cluster:
            yield [each.bootstrap for each in cluster.brokers.values()]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_changes_made_at_the_same_time_are_all_in_force(addresses: list[str], kind: Kind) -> None:
    assert made_together(addresses, kind) == set(range(kind.changes))


def made_together(addresses: list[str], kind: Kind) -> set[int]:
    """Which changes are in force when all of them were made at the same time, and acknowledged."""
    with Wire(addresses[0]) as wire:
        for name in ("configured", "throttled", *(f"grows-{n}" for n in range(CLIENTS))):
            create_topic(wire, name)

    def make(number: int) -> int:
        with Wire(addresses[number % len(addresses)]) as wire:
            return int(kind.make(wire, number))

    with ThreadPoolExecutor(kind.changes) as clients:
        assert list(clients.map(make, range(kind.changes))) == [0] * kind.changes
    with Wire(addresses[0]) as wire:
        return kind.present(wire)


def test_a_change_is_lost_where_each_is_worked_out_from_what_was_before() -> None:
    bug = Bug(
        "changes of metadata are carried out together",
        "broker.requests.router:Router._handle",
        "if request.api.one_at_a_time:",
        "if False:",
    )
    kinds = [KINDS[name] for name in ("a list of a topic", "configs of a topic", "settings of all brokers")]
    with bug.planted(), running_cluster(3) as cluster:
        addresses = [each.bootstrap for each in cluster.brokers.values()]
        assert any(made_together(addresses, kind) != set(range(kind.changes)) for kind in kinds)
