"""What consumer groups keep in each shard, and the timeouts of a group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ...protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from ..engine.effects import Request
from ..groups.groups import Groups, GroupShard
from ..settings import GroupSettings
from .target import server_assignors


@dataclass(slots=True, eq=False)
class ConsumerState:
    """The state of consumer groups in one shard."""

    #: The spec that loads each assignor, by name; the first is the default.
    assignors: Mapping[str, str]
    #: Held heartbeats by group and member, each with its response if nothing changes.
    held: dict[str, dict[str, tuple[Request, ConsumerGroupHeartbeatResponse]]] = field(default_factory=dict)

    @classmethod
    def from_settings(cls, settings: GroupSettings) -> ConsumerState:
        """The state of a new shard. Raises AssignorError for an assignor that cannot be used."""
        return cls(server_assignors(settings.group_consumer_assignors))


def state_of(shard: GroupShard) -> ConsumerState:
    """The state of consumer groups in this shard."""
    return shard.state.state_of(ConsumerState)


class ConsumerGroupConfig(NamedTuple):
    """Configs that may be set for a single consumer group, in ms."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int


def config_of(groups: Groups, group_id: str) -> ConsumerGroupConfig:
    """Timeouts and intervals of a consumer group: its own, or the broker's."""
    own, settings = groups.configs(group_id), groups.settings
    return ConsumerGroupConfig(
        own.get("consumer.session.timeout.ms", settings.group_consumer_session_timeout_ms),
        own.get("consumer.heartbeat.interval.ms", settings.group_consumer_heartbeat_interval_ms),
        own.get("consumer.assignment.interval.ms", settings.group_consumer_assignment_interval_ms),
    )
