"""Steps drawn by chance, and the request that each side is sent for one: ids and generations are its own."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

from kohort.protocol import ApiKey, Subscription, encode_subscription
from tests.broker.wire import part

from .side import Side

Fields = dict[str, Any]

#: A topic that nobody has made.
MISSING = ("no-such-topic", UUID(int=77))
METADATA = (
    encode_subscription(Subscription(("orders",)), version=0),
    encode_subscription(Subscription(("orders", "payments")), version=1),
    b"\x01\x02",
)
PROTOCOLS = (("range",), ("range",), ("range", "roundrobin"), ("roundrobin", "range"), ("sticky",), ())
SESSION_MS, REBALANCE_MS = 60_000, 120_000


class Step(NamedTuple):
    """``member`` and ``generation`` say whose id and which generation the client gives as its own."""

    client: int
    kind: ApiKey
    group: int
    member: str
    generation: str
    instance: str | None
    seed: int


def draw(random: Random, clients: int, steps: int) -> list[Step]:
    """Mostly what clients do, now and then what they should not."""
    static = [random.random() < 0.3 for _ in range(clients)]
    drawn: list[Step] = []
    for _ in range(steps):
        client = random.randrange(clients)
        instance = f"instance-{client}" if static[client] else None
        if random.random() < 0.07:
            instance = random.choice([None, "instance-0", "instance-9"])
        drawn.append(
            Step(
                client,
                random.choices(list(REQUESTS), [weight for weight, _ in REQUESTS.values()])[0],
                0 if random.random() < 0.93 else 1,
                random.choices(["own", "none", "stranger", "former", "other"], [86, 5, 3, 3, 3])[0],
                random.choices(["own", "none", "older", "newer"], [88, 4, 4, 4])[0],
                instance,
                random.getrandbits(30),
            )
        )
    return drawn


class Asking:
    """What a step means on one side. All that is drawn here is drawn alike on the other."""

    def __init__(self, step: Step, side: Side) -> None:
        self.step, self.side, self.random = step, side, Random(step.seed)
        client = side.clients[step.client]
        other = side.clients[(step.client + 1) % len(side.clients)]
        self.client, self.other = client, other
        self.group = side.groups[step.group]
        ids = {"own": client.id, "none": "", "stranger": "stranger", "former": client.former_id}
        self.member_id = ids.get(step.member, other.id)
        generations = {"own": client.generation, "none": -1, "older": client.generation - 1}
        self.generation = generations.get(step.generation, client.generation + 1)

    def version(self, *versions: int) -> int:
        """One of these; of a static member one that knows of instances, mostly the last."""
        return self.random.choice([*versions, versions[-1]])

    def instance(self, known: bool) -> str | None:
        return self.step.instance if known else None

    def topics(self, version: int, ids_from: int, *names: str, **nested: Callable[[], Any]) -> list[Any]:
        """One to three topics by name or id, one of which may not exist."""
        known = [*self.side.topics.values(), MISSING]
        rows = []
        for name, topic_id in self.random.sample(known, self.random.randint(1, len(known))):
            by = {"topic_id": topic_id} if version >= ids_from else {"name": name}
            made = {key: make() for key, make in nested.items()}
            rows.append(part(self.step.kind, version, *names, **by, **made))
        return rows

    def partitions(self) -> list[int]:
        numbers = [0, 1, 9, -1] if self.random.random() < 0.2 else [0, 1]
        return self.random.sample(numbers, self.random.randint(1, 2))


def join(asking: Asking) -> tuple[int, Fields]:
    random = asking.random
    version = asking.version(*range(5, 10)) if asking.step.instance else asking.version(*range(10))
    metadata = random.choices(METADATA, [6, 2, 1])[0]
    return version, {
        "group_id": asking.group,
        "session_timeout_ms": random.choices([SESSION_MS, 10, 10_000_000], [96, 2, 2])[0],
        "rebalance_timeout_ms": REBALANCE_MS,
        "member_id": asking.member_id,
        "group_instance_id": asking.instance(version >= 5),
        "protocol_type": random.choices(["consumer", "connect", ""], [95, 3, 2])[0],
        "protocols": [
            part(ApiKey.JOIN_GROUP, version, "JoinGroupRequestProtocol", name=name, metadata=metadata)
            for name in random.choices(PROTOCOLS, [4, 4, 2, 2, 1, 1])[0]
        ],
        "reason": "drawn" if version >= 8 else None,
    }


def sync(asking: Asking) -> tuple[int, Fields]:
    random, client = asking.random, asking.client
    version = asking.version(3, 4, 5) if asking.step.instance else asking.version(*range(6))
    given = [member_id for member_id in client.members if random.random() < 0.95]
    named = version >= 5
    return version, {
        "group_id": asking.group,
        "generation_id": asking.generation,
        "member_id": asking.member_id,
        "group_instance_id": asking.instance(version >= 3),
        "protocol_type": random.choices(["consumer", None, "connect"], [18, 1, 1])[0] if named else None,
        "protocol_name": random.choices([client.protocol, None, "other"], [18, 1, 1])[0] if named else None,
        "assignments": [
            part(
                ApiKey.SYNC_GROUP,
                version,
                "SyncGroupRequestAssignment",
                member_id=member_id,
                assignment=b"share %d" % random.randrange(3),
            )
            for member_id in [*given, *(["stranger"] if random.random() < 0.05 else [])]
        ],
    }


def heartbeat(asking: Asking) -> tuple[int, Fields]:
    version = asking.version(*range(5))
    return version, {
        "group_id": asking.group,
        "generation_id": asking.generation,
        "member_id": asking.member_id,
        "group_instance_id": asking.instance(version >= 3),
    }


def leave(asking: Asking) -> tuple[int, Fields]:
    random, version = asking.random, asking.version(*range(6))
    if version < 3:
        return version, {"group_id": asking.group, "member_id": asking.member_id}
    who = {
        "self": (asking.member_id, asking.step.instance),
        "instance": ("", asking.step.instance or "instance-0"),
        "stranger": ("stranger", random.choice([None, "instance-9"])),
        "other": (asking.other.id, None),
    }
    leaving = random.choices(list(who), [6, 1, 1, 1], k=random.choice([0, 1, 1, 1, 2, 3]))
    identity: dict[str, Any] = {"reason": None} if version >= 5 else {}
    return version, {
        "group_id": asking.group,
        "members": [
            part(
                ApiKey.LEAVE_GROUP,
                version,
                "MemberIdentity",
                member_id=who[one][0],
                group_instance_id=who[one][1],
                **identity,
            )
            for one in leaving
        ],
    }


def offset_commit(asking: Asking) -> tuple[int, Fields]:
    random, version = asking.random, asking.version(*range(2, 11))
    standalone = random.random() < 0.12
    # a group that nothing is committed to is there for Apache Kafka, not for kohort
    much = "x" * 5_000 if asking.generation >= 0 and not standalone else "much"

    def partitions() -> list[Any]:
        epoch = {"committed_leader_epoch": random.choice([-1, 0, 3])} if version >= 6 else {}
        return [
            part(
                ApiKey.OFFSET_COMMIT,
                version,
                "OffsetCommitRequestTopic",
                "OffsetCommitRequestPartition",
                partition_index=number,
                committed_offset=random.choice([-1, 0, random.randrange(100)]),
                committed_metadata=random.choice([None, "", "why", much]),
                **epoch,
            )
            for number in asking.partitions()
        ]

    fields: Fields = {
        "group_id": asking.group,
        "generation_id_or_member_epoch": -1 if standalone else asking.generation,
        "member_id": "" if standalone else asking.member_id,
        "topics": asking.topics(version, 10, "OffsetCommitRequestTopic", partitions=partitions),
    }
    if version >= 7:
        fields["group_instance_id"] = None if standalone else asking.step.instance
    if version <= 4:
        fields["retention_time_ms"] = -1
    return version, fields


def offset_fetch(asking: Asking) -> tuple[int, Fields]:
    random, version = asking.random, asking.version(*range(1, 11))
    stable = {"require_stable": random.random() < 0.3} if version >= 7 else {}

    def topics(*names: str) -> list[Any] | None:
        if version >= 2 and random.random() < 0.3:
            return None
        return asking.topics(version, 10, *names, partition_indexes=asking.partitions)

    if version < 8:
        return version, {"group_id": asking.group, "topics": topics("OffsetFetchRequestTopic"), **stable}
    groups = []
    for group in random.sample([*asking.side.groups, "no-such-group"], random.randint(1, 2)):
        fields: Fields = {"topics": topics("OffsetFetchRequestGroup", "OffsetFetchRequestTopics")}
        if version >= 9 and random.random() < 0.3:
            fields |= {"member_id": asking.member_id or None, "member_epoch": asking.generation}
        groups.append(part(ApiKey.OFFSET_FETCH, version, "OffsetFetchRequestGroup", group_id=group, **fields))
    return version, {"groups": groups, **stable}


def describe_groups(asking: Asking) -> tuple[int, Fields]:
    random, version = asking.random, asking.version(*range(7))
    rights = {"include_authorized_operations": random.random() < 0.3} if version >= 3 else {}
    groups = random.sample([*asking.side.groups, "no-such-group"], random.randint(1, 2))
    return version, {"groups": groups, **rights}


def list_groups(asking: Asking) -> tuple[int, Fields]:
    random, version = asking.random, asking.version(*range(6))
    states = [[], ["Stable"], ["empty"], ["PreparingRebalance", "CompletingRebalance"], ["no such state"]]
    types = [[], ["classic"], ["consumer"], ["Classic"]]
    fields: Fields = {"states_filter": random.choice(states)} if version >= 4 else {}
    return version, fields | ({"types_filter": random.choice(types)} if version >= 5 else {})


def delete_groups(asking: Asking) -> tuple[int, Fields]:
    named = [[asking.group], [asking.group, "no-such-group"], asking.side.groups, [asking.group] * 2]
    return asking.version(*range(3)), {"groups_names": asking.random.choice(named)}


def offset_delete(asking: Asking) -> tuple[int, Fields]:
    def partitions() -> list[Any]:
        names = "OffsetDeleteRequestTopic", "OffsetDeleteRequestPartition"
        return [
            part(ApiKey.OFFSET_DELETE, 0, *names, partition_index=number) for number in asking.partitions()
        ]

    topics = asking.topics(0, 1, "OffsetDeleteRequestTopic", partitions=partitions)
    return 0, {"group_id": asking.group, "topics": topics}


def find_coordinator(asking: Asking) -> tuple[int, Fields]:
    random, version = asking.random, asking.version(*range(7))
    fields: Fields = {"key_type": random.choice([0, 0, 0, 5])} if version >= 1 else {}
    if version >= 4:
        keys = [[asking.group], [asking.group, "no-such-group"], [""], []]
        return version, {"coordinator_keys": random.choice(keys), **fields}
    return version, {"key": random.choice([asking.group, ""]), **fields}


#: How often each is drawn, and what makes its body.
REQUESTS: dict[ApiKey, tuple[int, Callable[[Asking], tuple[int, Fields]]]] = {
    ApiKey.JOIN_GROUP: (30, join),
    ApiKey.SYNC_GROUP: (22, sync),
    ApiKey.HEARTBEAT: (9, heartbeat),
    ApiKey.LEAVE_GROUP: (8, leave),
    ApiKey.OFFSET_COMMIT: (12, offset_commit),
    ApiKey.OFFSET_FETCH: (9, offset_fetch),
    ApiKey.DESCRIBE_GROUPS: (7, describe_groups),
    ApiKey.LIST_GROUPS: (2, list_groups),
    ApiKey.DELETE_GROUPS: (3, delete_groups),
    ApiKey.OFFSET_DELETE: (3, offset_delete),
    ApiKey.FIND_COORDINATOR: (1, find_coordinator),
}
