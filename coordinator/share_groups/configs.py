"""Configs of single share groups (KIP-932). Their group coordinator reads some, leaders of partitions the
others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from ...protocol import ErrorCode, KafkaError
from ...protocol.named_tuples import NamedTuple
from ..groups.group_config import ConfigValue, GroupConfig, GroupConfigTable, bounded_number
from ..groups.groups import Groups
from ..settings import GroupSettings

_SESSION: Final = bounded_number(
    "share", "session.timeout.ms", "how long a member of a share group may be silent", floor=1
)
_HEARTBEAT: Final = bounded_number(
    "share", "heartbeat.interval.ms", "time between two heartbeats of a member of a share group", floor=1
)
_ASSIGNMENT: Final = bounded_number(
    "share", "assignment.interval.ms", "least time between two assignments of a share group", floor=0
)
_LOCK: Final = bounded_number(
    "share", "record.lock.duration.ms", "how long a record is locked for the member that has it", floor=1_000
)
_DELIVERIES: Final = bounded_number(
    "share", "delivery.count.limit", "how often a record is given to members of a share group", floor=2
)
_LOCKS: Final = bounded_number(
    "share", "partition.max.record.locks", "most records in flight in a share partition", floor=100
)

_ISOLATION_LEVELS: Final = ("read_committed", "read_uncommitted")
# ISO 8601 as Java reads it, without signs: a duration is not negative
_DURATION: Final = re.compile(
    r"by_duration:P(?=[\dT])(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+(?:[.,]\d{0,9})?S)?)?", re.I | re.ASCII
)


def _invalid_value(name: str, text: str, why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, f"Invalid value {text} for configuration {name}: {why}")


def _parse_reset(text: str, _settings: GroupSettings) -> str:
    name = "share.auto.offset.reset"
    if text not in ("earliest", "latest") and not (
        text.startswith("by_duration:") and _DURATION.fullmatch(text)
    ):
        raise _invalid_value(
            name,
            text,
            f"Invalid value `{text}` for configuration {name}. The value must be either 'earliest', 'latest' "
            "or of the format 'by_duration:<PnDTnHnMn.nS>'.",
        )
    return text


def _parse_isolation(text: str, _settings: GroupSettings) -> str:
    if text not in _ISOLATION_LEVELS:
        why = f"String must be one of: {', '.join(_ISOLATION_LEVELS)}"
        raise _invalid_value("share.isolation.level", text, why)
    return text


def _parse_renew(text: str, _settings: GroupSettings) -> bool:
    if text.strip().lower() not in ("true", "false"):
        why = "Expected value to be either true or false"
        raise _invalid_value("share.renew.acknowledge.enable", text, why)
    return text.strip().lower() == "true"


def _fixed_config(
    name: str, doc: str, default: ConfigValue, parse: Callable[[str, GroupSettings], ConfigValue]
) -> GroupConfig:
    """A config whose default is no setting of the broker."""
    return GroupConfig(name, type(default), doc, "", lambda _settings: default, parse)


_RESET: Final = _fixed_config(
    "share.auto.offset.reset",
    "where a share group begins to read",
    "latest",
    _parse_reset,
)
_ISOLATION: Final = _fixed_config(
    "share.isolation.level",
    "whether aborted records are given",
    "read_uncommitted",
    _parse_isolation,
)
_RENEW: Final = _fixed_config(
    "share.renew.acknowledge.enable", "whether members may renew the locks of records", True, _parse_renew
)

_ROWS: Final = (
    _SESSION,
    _HEARTBEAT,
    _ASSIGNMENT,
    _LOCK,
    _DELIVERIES,
    _LOCKS,
    _RESET,
    _ISOLATION,
    _RENEW,
)


def _check_session(values: Mapping[str, ConfigValue]) -> str:
    if int(values[_SESSION.name]) <= int(values[_HEARTBEAT.name]):
        return f"{_SESSION.name} must be greater than {_HEARTBEAT.name}"
    return ""


SHARE_CONFIGS: Final = GroupConfigTable({row.name: row for row in _ROWS}, _check_session)


class ShareGroupConfig(NamedTuple):
    """What is in force for a share group; times are in ms."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int
    record_lock_duration_ms: int
    delivery_count_limit: int
    partition_max_record_locks: int
    auto_offset_reset: str
    isolation_level: str
    renew_acknowledge_enable: bool


def share_config(own: Mapping[str, ConfigValue], settings: GroupSettings) -> ShareGroupConfig:
    """The configs of a group for which ``own`` were set."""
    values = (own.get(row.name, row.default(settings)) for row in _ROWS)
    return ShareGroupConfig(*values)  # type: ignore[arg-type]


def config_of(groups: Groups, group_id: str) -> ShareGroupConfig:
    """The configs of a share group: its own, or the broker's."""
    return share_config(groups.configs(group_id), groups.settings)
