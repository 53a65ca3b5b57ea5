"""Configs of single consumer groups: sessions, heartbeats, and time between assignments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...protocol.named_tuples import NamedTuple
from ..groups.group_config import ConfigValue, GroupConfigTable, bounded_number
from ..groups.groups import Groups

_SESSION: Final = bounded_number("consumer", "session.timeout.ms", "how long a member may be silent")
_HEARTBEAT: Final = bounded_number(
    "consumer", "heartbeat.interval.ms", "time between two heartbeats of a member"
)
_ASSIGNMENT: Final = bounded_number(
    "consumer", "assignment.interval.ms", "least time between two assignments"
)


def _check_values(values: Mapping[str, ConfigValue]) -> str:
    if int(values[_SESSION.name]) <= int(values[_HEARTBEAT.name]):
        return f"{_SESSION.name} must be greater than {_HEARTBEAT.name}"
    return ""


CONSUMER_CONFIGS: Final = GroupConfigTable(
    {row.name: row for row in (_SESSION, _HEARTBEAT, _ASSIGNMENT)}, _check_values
)


class ConsumerGroupConfig(NamedTuple):
    """Configs that may be set for a single consumer group, in ms."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int


def config_of(groups: Groups, group_id: str) -> ConsumerGroupConfig:
    """Timeouts and intervals of a consumer group: its own, or the broker's."""
    own, settings = groups.configs(group_id), groups.settings
    if not own:
        # every heartbeat asks
        return ConsumerGroupConfig(
            settings.group_consumer_session_timeout_ms,
            settings.group_consumer_heartbeat_interval_ms,
            settings.group_consumer_assignment_interval_ms,
        )
    return ConsumerGroupConfig(
        int(own.get("consumer.session.timeout.ms", settings.group_consumer_session_timeout_ms)),
        int(own.get("consumer.heartbeat.interval.ms", settings.group_consumer_heartbeat_interval_ms)),
        int(own.get("consumer.assignment.interval.ms", settings.group_consumer_assignment_interval_ms)),
    )
