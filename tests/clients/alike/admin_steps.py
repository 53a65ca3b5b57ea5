"""Steps drawn by chance for who runs a broker: access rules, configs, quotas, users.

Between them others ask for topics, records and groups, so that every rule that was drawn decides something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

from kohort.protocol import ApiKey
from tests.broker.wire import part

from . import log_steps, steps
from .side import Side

Fields = dict[str, Any]
USERS = ("alice", "bob")
ADMIN = 0
#: Names that no test but this one uses, so that what is asked for is told alike.
NOBODY = "drawn-user"
TOPIC, GROUP, CLUSTER = 2, 3, 4
BROKER = 4
MECHANISMS = (1, 2)
QUOTAS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")


class AdminStep(NamedTuple):
    client: int
    kind: ApiKey
    seed: int


class Asking:
    """What a step means on one side; all that is drawn here is drawn alike on the other."""

    def __init__(self, step: AdminStep, side: Side) -> None:
        self.kind, self.side, self.random = step.kind, side, Random(step.seed)
        self.by_admin = step.client == ADMIN
        self.version = self.random.randint(*VERSIONS[step.kind])

    def struct(self, *names: str, **fields: Any) -> Any:
        return part(self.kind, self.version, *names, **fields)

    def pick(self, usual: list[Any], wrong: list[Any], share: float = 0.06) -> Any:
        return self.random.choice(wrong if self.random.random() < share else usual)

    def resource(self) -> tuple[int, str]:
        topics = [name for name, _ in self.side.topics.values()]
        kind = self.random.choices([TOPIC, GROUP, CLUSTER], [5, 4, 2])[0]
        named = {TOPIC: topics, GROUP: self.side.groups, CLUSTER: ["kafka-cluster"]}[kind]
        return kind, self.random.choice(named)


def create_acls(asking: Asking) -> Fields:
    random = asking.random
    made = []
    for _ in range(random.randint(1, 3)):
        kind, name = asking.resource()
        prefixed = kind != CLUSTER and random.random() < 0.25
        if random.random() < 0.2 and kind != CLUSTER:
            name = name[: random.randint(1, len(name))] if prefixed else "*"
        made.append(
            asking.struct(
                "AclCreation",
                resource_type=asking.pick([kind], [5, 6, 9]),
                resource_name=asking.pick([name], ["", "other"], 0.03),
                resource_pattern_type=asking.pick([4 if prefixed else 3], [9], 0.03),
                principal=asking.pick(
                    ["User:alice", "User:alice", "User:bob", "User:*"], ["alice", "", "User:", "Group:x"]
                ),
                host=asking.pick(["*", "*", "127.0.0.1"], ["10.0.0.1", "", "localhost"]),
                operation=asking.pick([2, *range(2, 13)], [14, 99], 0.04),
                permission_type=asking.pick([3, 3, 3, 3, 2], [9], 0.03),
            )
        )
    return {"creations": made}


def _filter(asking: Asking) -> Fields:
    random = asking.random
    kind, name = asking.resource()
    return {
        "resource_type_filter": asking.pick([1, 1, kind], [2, 3, 9]),
        "resource_name_filter": asking.pick([None, name], ["*", "x", ""], 0.2),
        "pattern_type_filter": asking.pick([1, 1, 2, 3, 4], [9], 0.03),
        "principal_filter": asking.pick([None, "User:alice", "User:bob"], ["User:*", "nobody", ""], 0.1),
        "host_filter": asking.pick([None, None, "*"], ["127.0.0.1", ""]),
        "operation": random.choice([1, 1, 1, *range(2, 13)]),
        "permission_type": random.choice([1, 1, 2, 3]),
    }


def describe_acls(asking: Asking) -> Fields:
    return _filter(asking)


def delete_acls(asking: Asking) -> Fields:
    count = asking.random.choice([1, 1, 2])
    return {"filters": [asking.struct("DeleteAclsFilter", **_filter(asking)) for _ in range(count)]}


#: Values of a topic's configs, good and bad, none of which changes what its records are answered with.
TOPIC_CONFIGS = {
    "retention.ms": ("-1", "3600000000", "-2", "x", ""),
    "retention.bytes": ("-1", "1000000000", "1e9"),
    "max.message.bytes": ("1048588", "2000000", "-1"),
    "delete.retention.ms": ("1000", "-1"),
    "flush.messages": ("5", "0"),
    "min.cleanable.dirty.ratio": ("0.3", "1.5", "half"),
    "unclean.leader.election.enable": ("true", "maybe"),
    "message.timestamp.before.max.ms": ("9223372036854775807", "-1"),
    "no.such.config": ("1",),
}
BROKER_CONFIGS = {
    "log.retention.ms": ("3600000000", "x"),
    "message.max.bytes": ("1048588", "-5"),
    "log.flush.interval.messages": ("9223372036854775807", "0"),
    "num.partitions": ("4",),
}


def _configured(asking: Asking) -> tuple[int, str, dict[str, tuple[str, ...]]]:
    random = asking.random
    if random.random() < 0.75:
        topics = [name for name, _ in asking.side.topics.values()]
        return TOPIC, asking.pick(topics, ["no-such-topic", "", "a/b"]), TOPIC_CONFIGS
    return BROKER, asking.pick(["1", ""], ["7", "x"]), BROKER_CONFIGS


def _alter(asking: Asking, **more: Callable[[], Any]) -> Fields:
    random = asking.random
    resources = []
    # two of a kind in a request of the older API are not answered by Apache Kafka when one has no value
    for _ in range(random.choice([1, 1, 1, 2]) if more else 1):
        kind, name, known = _configured(asking)
        if kind == BROKER and not (asking.by_admin and (name or more)):
            # wrong values are told before rights, and defaults of all brokers have one that must stay
            continue
        names = random.sample(list(known), random.choice([1, 1, 2]))
        if random.random() < 0.03:
            names.append(names[0])
        configs = [
            asking.struct(
                "AlterConfigsResource",
                "AlterableConfig",
                name=each,
                value=asking.pick(list(known[each])[:2], [*known[each], None], 0.3),
                **{field: make() for field, make in more.items()},
            )
            for each in names
        ]
        resources.append(
            asking.struct(
                "AlterConfigsResource",
                resource_type=asking.pick([kind], [1, 3, 99], 0.03),
                resource_name=name,
                configs=configs,
            )
        )
    return {"resources": resources, "validate_only": random.random() < 0.15}


def alter_configs(asking: Asking) -> Fields:
    return _alter(asking)


def incremental_alter_configs(asking: Asking) -> Fields:
    return _alter(asking, config_operation=lambda: asking.pick([0, 0, 0, 1], [2, 3, 9], 0.1))


def describe_configs(asking: Asking) -> Fields:
    resources = []
    for _ in range(asking.random.choice([1, 1, 2])):
        kind, name, known = _configured(asking)
        resources.append(
            asking.struct(
                "DescribeConfigsResource",
                resource_type=asking.pick([kind], [1, 3, 99], 0.03),
                resource_name=name,
                configuration_keys=asking.random.sample(list(known), 3),
            )
        )
    return {"resources": resources, "include_synonyms": False, "include_documentation": False}


def _entity(asking: Asking, name: str | None) -> list[Any]:
    kinds = asking.pick([("user",), ("client-id",), ("user", "client-id")], [(), ("ip", "user"), ("group",)])
    return [asking.struct("EntryData", "EntityData", entity_type=kind, entity_name=name) for kind in kinds]


def alter_client_quotas(asking: Asking) -> Fields:
    random = asking.random
    entries = []
    # an entity that comes twice is set and refused by Apache Kafka
    for name in random.sample([NOBODY, f"{NOBODY}-2", None, ""], random.choice([1, 1, 2])):
        ops = [
            asking.struct(
                "EntryData",
                "OpData",
                key=asking.pick([key], ["no.such.quota", "connection_creation_rate"]),
                value=asking.pick([1e9, 2e9, 5e8], [0.0, -1.0, 1.5, 1e300, float("nan")], 0.15),
                remove=random.random() < 0.25,
            )
            for key in random.sample(QUOTAS, random.choice([1, 1, 2]))
        ]
        entity = _entity(asking, name)
        entries.append(asking.struct("EntryData", entity=entity, ops=ops))
    return {"entries": entries, "validate_only": random.random() < 0.15}


def describe_client_quotas(asking: Asking) -> Fields:
    random = asking.random
    kinds = random.choice([["user"], ["client-id"], ["user", "client-id"], []])
    if random.random() < 0.06:
        kinds = random.choice([["user", "user"], ["group"], ["ip", "user"], ["ip"], [""]])
    components = []
    for kind in kinds:
        how = asking.pick([0, 0, 1, 2], [7, 3], 0.05)
        # how a match is told that has none, or one too many, is drawn as well
        match = NOBODY if how == 0 else None
        if random.random() < 0.05:
            match = None if match else NOBODY
        components.append(asking.struct("ComponentData", entity_type=kind, match_type=how, match=match))
    return {"components": components, "strict": random.random() < 0.4}


def alter_scram(asking: Asking) -> Fields:
    """Each user is changed once: of two mechanisms of one user Apache Kafka refuses the second."""
    random = asking.random
    names = asking.pick([[NOBODY, f"{NOBODY}-2"]], [["", NOBODY], ["somebody", NOBODY]])
    mechanism = asking.pick(list(MECHANISMS), [0, 3])
    deleted, upserted = random.choice([(0, 1), (0, 1), (0, 2), (1, 1), (1, 0), (0, 0)])
    deletions = [
        asking.struct("ScramCredentialDeletion", name=name, mechanism=mechanism) for name in names[:deleted]
    ]
    upsertions = [
        asking.struct(
            "ScramCredentialUpsertion",
            name=name,
            mechanism=mechanism,
            iterations=asking.pick([4096, 8192], [0, 4095, 16384, 16385, -1], 0.15),
            salt=b"salt",
            salted_password=b"s" * 32,
        )
        for name in names[deleted : deleted + upserted]
    ]
    return {"deletions": deletions, "upsertions": upsertions}


def describe_scram(asking: Asking) -> Fields:
    names = [NOBODY, f"{NOBODY}-2", "nobody", NOBODY]
    some = asking.random.sample(names, asking.random.randint(1, 3))
    return {"users": [asking.struct("UserName", name=name) for name in some]}


def describe_cluster(asking: Asking) -> Fields:
    kind = {"endpoint_type": asking.pick([1], [2, 9])} if asking.version >= 1 else {}
    return {"include_cluster_authorized_operations": asking.random.random() < 0.7, **kind}


#: How often each is drawn, and what makes its body.
REQUESTS: dict[ApiKey, tuple[int, Callable[[Asking], Fields]]] = {
    ApiKey.CREATE_ACLS: (14, create_acls),
    ApiKey.DELETE_ACLS: (5, delete_acls),
    ApiKey.DESCRIBE_ACLS: (6, describe_acls),
    ApiKey.ALTER_CONFIGS: (3, alter_configs),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (6, incremental_alter_configs),
    ApiKey.DESCRIBE_CONFIGS: (6, describe_configs),
    ApiKey.ALTER_CLIENT_QUOTAS: (5, alter_client_quotas),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (5, describe_client_quotas),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (4, alter_scram),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (3, describe_scram),
    ApiKey.DESCRIBE_CLUSTER: (2, describe_cluster),
}
#: The versions that both brokers have.
VERSIONS: dict[ApiKey, tuple[int, int]] = {
    ApiKey.CREATE_ACLS: (1, 3),
    ApiKey.DELETE_ACLS: (1, 3),
    ApiKey.DESCRIBE_ACLS: (1, 3),
    ApiKey.ALTER_CONFIGS: (0, 2),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (0, 1),
    ApiKey.DESCRIBE_CONFIGS: (1, 4),
    ApiKey.ALTER_CLIENT_QUOTAS: (0, 1),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (0, 1),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (0, 0),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (0, 0),
    ApiKey.DESCRIBE_CLUSTER: (0, 1),
}
#: What others ask: no member joins, since who waits for whom is a matter of other tests.
OTHERS = [each for each in steps.REQUESTS if each not in (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP)]

AnyStep = AdminStep | log_steps.LogStep | steps.Step


def draw(random: Random, count: int) -> list[AnyStep]:
    """The first makes the topics; mostly the admin changes something and the users ask."""
    drawn: list[AnyStep] = [log_steps.LogStep(ADMIN, ApiKey.CREATE_TOPICS, 3)]
    weights = [weight for weight, _ in REQUESTS.values()]
    while len(drawn) < count:
        seed, user = random.getrandbits(30), random.randint(1, len(USERS))
        match random.choices(["admin", "log", "group"], [5, 4, 3])[0]:
            case "admin":
                client = user if random.random() < 0.2 else ADMIN
                kind = random.choices(list(REQUESTS), weights)[0]
                drawn.append(AdminStep(client, kind, seed))
            case "log":
                kind = random.choice(list(log_steps.REQUESTS))
                client = ADMIN if random.random() < 0.15 else user
                drawn.append(log_steps.LogStep(client, kind, seed))
            case _:
                kind, client = random.choice(OTHERS), ADMIN if random.random() < 0.15 else user
                drawn.append(steps.Step(client, kind, random.randrange(2), "none", "none", None, seed))
    return drawn


def request_of(step: AnyStep, side: Side) -> tuple[int, Fields]:
    """Version and fields of the request."""
    if isinstance(step, log_steps.LogStep):
        return log_steps.request_of(step, side)
    if isinstance(step, steps.Step):
        return steps.REQUESTS[step.kind][1](steps.Asking(step, side))
    asking = Asking(step, side)
    return asking.version, REQUESTS[step.kind][1](asking)


def forgetting() -> Iterator[tuple[ApiKey, int, Fields]]:
    """Requests that take back whatever was drawn; what was not there is refused, which does no harm."""
    anything = {
        "resource_type_filter": 1,
        "resource_name_filter": None,
        "pattern_type_filter": 1,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }
    yield (
        ApiKey.DELETE_ACLS,
        3,
        {"filters": [part(ApiKey.DELETE_ACLS, 3, "DeleteAclsFilter", **anything)]},
    )
    key = ApiKey.INCREMENTAL_ALTER_CONFIGS
    for broker in ("", "1"):
        configs = [
            part(key, 1, "AlterConfigsResource", "AlterableConfig", name=name, value=None, config_operation=1)
            for name in BROKER_CONFIGS
            if name != "num.partitions"
        ]
        resource = part(
            key, 1, "AlterConfigsResource", resource_type=4, resource_name=broker, configs=configs
        )
        yield key, 1, {"resources": [resource], "validate_only": False}
    key = ApiKey.ALTER_CLIENT_QUOTAS
    names = (NOBODY, f"{NOBODY}-2", None)
    entities = [{kind: name} for kind in ("user", "client-id") for name in names]
    entities += [{"user": user, "client-id": client} for user in names for client in names]
    ops = [
        part(key, 1, "EntryData", "OpData", key=quota, value=0.0, remove=True)
        for quota in (
            "producer_byte_rate",
            "consumer_byte_rate",
            "request_percentage",
            "controller_mutation_rate",
        )
    ]
    entries = [
        part(
            key,
            1,
            "EntryData",
            ops=ops,
            entity=[
                part(key, 1, "EntryData", "EntityData", entity_type=kind, entity_name=name)
                for kind, name in entity.items()
            ],
        )
        for entity in entities
    ]
    yield key, 1, {"entries": entries, "validate_only": False}
    key = ApiKey.ALTER_USER_SCRAM_CREDENTIALS
    for name in (NOBODY, f"{NOBODY}-2"):
        for mechanism in MECHANISMS:
            deletion = part(key, 0, "ScramCredentialDeletion", name=name, mechanism=mechanism)
            yield key, 0, {"deletions": [deletion], "upsertions": []}
