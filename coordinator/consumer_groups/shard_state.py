"""What consumer groups keep in each shard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from ..engine.effects import Request
from ..groups.groups import GroupShard
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
