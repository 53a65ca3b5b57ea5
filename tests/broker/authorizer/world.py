"""What the cases of access rules are tried in, and their answers as text."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from kohort.broker.authorizer import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from kohort.protocol import ApiKey
from tests.broker.wire import Wire, batch, create_topic, part, produce
from tests.messages import MESSAGES

TIMEOUT_S = 60.0
ALICE = "User:alice"

#: Fields of answers that say what a rule decides. Of a number in ``_SIGNS`` only whether there is one.
_TOLD = {
    "error_code",
    "partition_error_code",
    "topic_config_error_code",
    "name",
    "topic",
    "topic_name",
    "topic_id",
    "group_id",
    "key",
    "resource_name",
    "num_partitions",
    "replication_factor",
    "metadata",
}
_SIGNS = {
    "producer_id",
    "node_id",
    "base_offset",
    "high_watermark",
    "low_watermark",
    "committed_offset",
    "offset",
    "end_offset",
}
_OPERATIONS = "authorized_operations"
#: Arrays that no rule has to do with.
_NOT_TOLD = {"record_errors", "aborted_transactions", "node_endpoints", "offline_replicas", "brokers"}
#: Arrays of which only the size is told, as some or none.
_SIZES = {"configs", "records", "members"}


@dataclass(frozen=True, slots=True)
class Right:
    """Something that Alice may do; ``name`` is a name in the world."""

    operation: Operation
    resource: ResourceType
    name: str

    def __str__(self) -> str:
        return f"{self.operation.name} {self.resource.name} {self.name}"


@dataclass
class World:
    """Topics ``seen`` and ``hidden``, groups ``seen`` and ``hidden`` with an offset in each topic.

    ``admin`` may do everything, ``alice`` what ``allow`` permits: rights are for what is named ``seen``. What
    is not done after ``settle_s`` will not be.
    """

    admin: Wire
    connect: Callable[[], Wire]
    settle_s: float = 0.0
    names: dict[str, str] = field(default_factory=dict)
    ids: dict[str, uuid.UUID] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.alice = self.connect()
        unique = uuid.uuid4().hex[:10]
        self.names = {
            plain: f"{plain.replace('/', '-')}-{unique}"
            for plain in (
                "t/seen",
                "t/hidden",
                "t/new",
                "g/seen",
                "g/hidden",
                "g/next",
                "g/share",
                "x/seen",
                "x/hidden",
            )
        }
        self.names["cluster"] = CLUSTER_NAME
        for plain in ("t/seen", "t/hidden"):
            self.make_topic(plain)
        for group in ("g/seen", "g/hidden"):
            self.commit(group)
        wanted = {"transactional_id": None, "transaction_timeout_ms": 1000}
        self.wait(lambda: self.admin.call(ApiKey.INIT_PRODUCER_ID, 2, **wanted).error_code == 0)

    def __getitem__(self, plain: str) -> str:
        return self.names[plain]

    def close(self) -> None:
        self.alice.close()

    def make_topic(self, plain: str) -> None:
        """A topic with a record, known to the broker."""
        name = self[plain]
        assert create_topic(self.admin, name).error_code == 0
        self.wait(lambda: name in self._found())
        self.ids[plain] = self._found()[name]
        self.wait(lambda: produce(self.admin, name, batch()).error_code == 0)

    def exists(self, plain: str) -> bool:
        return self[plain] in self._found()

    def commit(self, group: str) -> None:
        """An offset for each topic, so that there is such a group."""
        self.wait(
            lambda: self.admin.call(ApiKey.FIND_COORDINATOR, 3, key=self[group], key_type=0).error_code == 0
        )
        fields = commit_fields(self, group, 9)
        self.wait(lambda: _all_well(self.admin.call(ApiKey.OFFSET_COMMIT, 9, **fields)))

    def allow(self, rights: Iterable[Right], permission: Permission = Permission.ALLOW) -> None:
        """Rules that permit just this, in force when this returns."""
        self._replace(
            [
                part(
                    ApiKey.CREATE_ACLS,
                    3,
                    "AclCreation",
                    resource_type=right.resource,
                    resource_name=self[right.name],
                    resource_pattern_type=PatternType.LITERAL,
                    principal=ALICE,
                    host="*",
                    operation=right.operation,
                    permission_type=permission,
                )
                for right in rights
            ]
        )

    def _replace(self, creations: list[Any]) -> None:
        wanted = part(ApiKey.DELETE_ACLS, 3, "DeleteAclsFilter", **_anything(ALICE))
        answer = self.admin.call(ApiKey.DELETE_ACLS, 3, filters=[wanted])
        assert not answer.filter_results[0].error_code
        self.wait(lambda: self._rules() == 0)
        if creations:
            answer = self.admin.call(ApiKey.CREATE_ACLS, 3, creations=creations)
            assert not any(result.error_code for result in answer.results)
            self.wait(lambda: self._rules() == len(creations))

    def _rules(self) -> int:
        answer = self.admin.call(ApiKey.DESCRIBE_ACLS, 3, **_anything(ALICE))
        return sum(len(resource.acls) for resource in answer.resources)

    def _found(self) -> dict[str, uuid.UUID]:
        answer = self.admin.call(ApiKey.METADATA, 12, topics=None, allow_auto_topic_creation=False)
        return {topic.name: topic.topic_id for topic in answer.topics}

    def settled(self, done: Callable[[], bool]) -> bool:
        """Whether it is done, or will soon be."""
        deadline = time.monotonic() + self.settle_s
        while not done():
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.01)
        return True

    def wait(self, done: Callable[[], bool]) -> None:
        """Until it is so: Apache Kafka answers before all of it knows."""
        deadline = time.monotonic() + TIMEOUT_S
        while not done():
            assert time.monotonic() < deadline, "it did not happen"
            time.sleep(0.01)

    def told(self, key: ApiKey, version: int, answer: Any) -> str:
        """What of an answer a rule decides, as text with plain names, elements in order of their text."""
        _, schema = MESSAGES[type(answer).__name__]
        assert schema.key == key
        return self._told(schema.fields, version, answer)

    def _told(self, fields: list[Any], version: int, value: Any) -> str:
        parts = []
        for one in fields:
            if version not in one.versions:
                continue
            text = self._told_field(one, version, getattr(value, one.name))
            if text is not None:
                name = _OPERATIONS if one.name.endswith(_OPERATIONS) else one.name
                parts.append(f"{name}={text}")
        return " ".join(parts) or "-"

    def _told_field(self, field: Any, version: int, value: Any) -> str | None:
        name = field.name
        plain = {text: plain for plain, text in self.names.items()}
        plain |= {str(topic_id): f"id of {at}" for at, topic_id in self.ids.items()}
        if name in _NOT_TOLD:
            return None
        if name in _SIZES:
            return "some" if value else "none"
        if name.endswith(_OPERATIONS):
            if value < 0:
                return None
            return "{" + ",".join(one.name for one in Operation if value >> one & 1) + "}"
        if isinstance(value, list):
            if value and not field.is_struct:
                return None
            ours = [self._told(field.fields, version, one) for one in value if self._ours(one)]
            return "[" + ", ".join(sorted(ours)) + "]"
        if name in _SIGNS:
            return "some" if value >= 0 else "none"
        if name in _TOLD:
            if name == "key":
                return plain.get(value, "a key")
            if isinstance(value, uuid.UUID) and value not in self.ids.values():
                return "an id"
            return "null" if value is None else plain.get(str(value), str(value) or "empty")
        return None

    def _ours(self, element: Any) -> bool:
        """Whether an element of an answer is of this world: others may be beside it."""
        for name in ("name", "group_id"):
            text = getattr(element, name, None)
            if isinstance(text, str) and text and text not in self.names.values():
                return False
        return True


def commit_fields(world: World, group: str, version: int) -> dict[str, Any]:
    """An OffsetCommit of 7 in every topic, by someone who is no member."""
    partition = part(
        ApiKey.OFFSET_COMMIT,
        version,
        "OffsetCommitRequestTopic",
        "OffsetCommitRequestPartition",
        partition_index=0,
        committed_offset=7,
        committed_leader_epoch=-1,
        committed_metadata="m",
    )
    return {
        "group_id": world[group],
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "group_instance_id": None,
        "retention_time_ms": -1,
        "topics": [
            part(
                ApiKey.OFFSET_COMMIT,
                version,
                "OffsetCommitRequestTopic",
                name=world[plain] if version < 10 else "",
                topic_id=world.ids[plain] if version >= 10 else None,
                partitions=[partition],
            )
            for plain in ("t/seen", "t/hidden")
        ],
    }


def _all_well(answer: Any) -> bool:
    return not any(partition.error_code for topic in answer.topics for partition in topic.partitions)


def _anything(principal: str) -> dict[str, Any]:
    return {
        "resource_type_filter": ResourceType.ANY,
        "resource_name_filter": None,
        "pattern_type_filter": PatternType.ANY,
        "principal_filter": principal,
        "host_filter": None,
        "operation": Operation.ANY,
        "permission_type": Permission.ANY,
    }
