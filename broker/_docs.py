"""Parts of docs/broker.md and docs/limits.md that are made from the code."""

from __future__ import annotations

from ..settings import BROKER, TOPIC, markdown, settings_of
from ._settings import BrokerSettings
from ._topic_config import TopicConfig


def settings_table() -> str:
    """Every setting of ``--set``."""
    known = settings_of(BrokerSettings)
    return markdown((known[name] for name in sorted(known)), BROKER)


#: Limits that keep one client from starving the others, in the order of docs/limits.md.
_LIMITS = (
    "socket_request_max_bytes",
    "queued_max_request_bytes",
    "kohort_request_complete_timeout_ms",
    "kohort_response_unread_timeout_ms",
    "kohort_response_unread_max_bytes",
    "connections_max_idle_ms",
    "max_connections",
    "max_connections_per_ip",
    "max_connection_creation_rate",
    "message_max_bytes",
    "fetch_max_bytes",
    "group_max_size",
    "kohort_group_max_pending_ids",
    "kohort_group_max_metadata_bytes",
    "kohort_member_max_metadata_bytes",
    "kohort_member_max_protocols",
    "group_min_session_timeout_ms",
    "group_max_session_timeout_ms",
    "offset_metadata_max_bytes",
    "kohort_commit_max_partitions",
    "kohort_group_history_size",
)


def limits_table() -> str:
    known = settings_of(BrokerSettings)
    return markdown((known[name] for name in _LIMITS), BROKER)


def topic_configs_table() -> str:
    return markdown(settings_of(TopicConfig).values(), TOPIC)


def live_settings_table() -> str:
    known = settings_of(BrokerSettings)
    return markdown((known[name] for name in sorted(known) if known[name].row.dynamic), BROKER)
