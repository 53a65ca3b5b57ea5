"""A broker that answers requests about consumer groups, beside another that has to answer the same.

Topic ids are told as names. Groups have no assignment interval, so that nothing depends on the clock.
"""

from __future__ import annotations

import re
import time
import uuid
from typing import Any

from kohort.protocol import ApiKey
from tests.broker.wire import Wire, create_topic

CLIENTS = 4
TOPICS = {"a": 12, "b": 12}
GROUP_RESOURCE = 32
INTERVAL = "consumer.assignment.interval.ms"


class Side:
    """One broker: its topics, and what its members were told last."""

    def __init__(self, bootstrap: str) -> None:
        self.wire = Wire(bootstrap, timeout_s=30)
        tag = uuid.uuid4().hex[:8]
        self.names = {topic: f"{topic}-{tag}" for topic in TOPICS}
        for topic, partitions in TOPICS.items():
            assert create_topic(self.wire, self.names[topic], partitions).error_code == 0
        self.ids: dict[str, uuid.UUID] = {}
        while len(self.ids) < len(TOPICS):
            answer = self.wire.call(ApiKey.METADATA, 12, topics=None, allow_auto_topic_creation=False)
            told = {each.name: each.topic_id for each in answer.topics}
            self.ids = {topic: told[name] for topic, name in self.names.items() if name in told}
            time.sleep(0.05)
        self.by_id = {topic_id: topic for topic, topic_id in self.ids.items()}
        self.by_name = {name: topic for topic, name in self.names.items()}

    def begin(self, group: str) -> None:
        """A sequence begins, in a group of its own."""
        self.group = group
        self.members = {f"m{client}": f"m{client}" for client in range(CLIENTS)}
        self.epochs: dict[str, int] = {}
        self.before: dict[str, int] = {}
        self.had: dict[str, Any] = {}
        self.has: dict[str, Any] = {}
        # members that speak the classic protocol, by a name that both brokers have for them
        self.classic: dict[str, str] = {}
        self.generations: dict[str, int] = {}
        self.owned: dict[str, Any] = {}
        # topics that members of a share group read
        self.subscribed: dict[str, set[str]] = {}

    def told(self, value: Any) -> Any:
        """An answer in words that both brokers have in common."""
        if hasattr(value, "_fields"):
            if (
                "partitions" in value._fields
                and "topic_id" in value._fields
                and "error_code" not in dir(value)
            ):
                numbers = value.partitions
                if not numbers or isinstance(numbers[0], int):
                    return self.by_id.get(value.topic_id, "?"), tuple(sorted(numbers))
            return {
                name: self.told(getattr(value, name)) for name in value._fields if name != "throttle_time_ms"
            }
        if isinstance(value, uuid.UUID):
            return self.by_id.get(value, "?")
        if isinstance(value, str):
            # an id that a broker chose, also within a sentence
            value = re.sub(r"(?<![\w-])[\w-]{22}(?![\w-])", "?", value)
            for name, topic in self.by_name.items():
                value = value.replace(name, topic)
            return "?" if len(value) == 22 and " " not in value else value
        if isinstance(value, (list, tuple)):
            return sorted((self.told(one) for one in value), key=repr)
        if isinstance(value, bytes):
            return self.told(value.decode("latin-1"))
        return value


def begin(sides: tuple[Side, Side]) -> None:
    group = f"alike-{uuid.uuid4().hex[:10]}"
    for side in sides:
        configs = [{"name": INTERVAL, "config_operation": 0, "value": "0"}]
        answer = side.wire.call(
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            1,
            resources=[{"resource_type": GROUP_RESOURCE, "resource_name": group, "configs": configs}],
            validate_only=False,
        )
        assert answer.responses[0].error_code == 0, answer
        while side.wire.call(ApiKey.FIND_COORDINATOR, 3, key=group, key_type=0).error_code:
            time.sleep(0.05)
        side.begin(group)
    time.sleep(0.1)


def describe(side: Side, version: int) -> Any:
    return side.wire.call(
        ApiKey.CONSUMER_GROUP_DESCRIBE, version, group_ids=[side.group], include_authorized_operations=False
    )
