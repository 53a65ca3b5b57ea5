"""Members of consumer groups (KIP-848), by their heartbeats."""

from __future__ import annotations

from typing import Any

from kohort.protocol import ApiKey
from tests.broker.wire import Wire

LEAVE, AWAY = -1, -2


class Member:
    """A consumer-protocol member by its heartbeats; ``has`` is what it was assigned last."""

    def __init__(self, group: str, name: str, **subscription: Any) -> None:
        self.group, self.name, self.epoch = group, name, 0
        self.instance: str | None = subscription.pop("instance", None)
        self.subscription = subscription
        self.has: list[tuple[Any, list[int]]] = []

    def beat(self, wire: Wire, **fields: Any) -> Any:
        """A heartbeat, which must be taken, and what follows from its answer."""
        answer = self.ask(wire, **fields)
        assert not answer.error_code, (self.group, self.name, answer)
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.has = [(row.topic_id, list(row.partitions)) for row in answer.assignment.topic_partitions]
        return answer

    def ask(self, wire: Wire, **fields: Any) -> Any:
        first = self.epoch == 0
        said: dict[str, Any] = {
            "rebalance_timeout_ms": 600_000 if first else -1,
            "subscribed_topic_names": self.subscription.get("topics") if first else None,
            "subscribed_topic_regex": self.subscription.get("regex") if first else None,
            "topic_partitions": [] if first else None,
            "member_epoch": self.epoch,
        }
        return wire.call(
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            1,
            group_id=self.group,
            member_id=self.name,
            instance_id=self.instance,
            **{**said, **fields},
        )

    def follow(self, wire: Wire) -> None:
        """As a client that gives up at once what it is told to."""
        self.beat(wire)
        self.beat(wire, topic_partitions=self.has)

    def numbers(self) -> set[int]:
        return {number for _, numbers in self.has for number in numbers}
