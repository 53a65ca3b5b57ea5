"""The parts of docs/broker.md and docs/limits.md that are made from the code."""

from __future__ import annotations

from collections.abc import Iterable

from ._live_settings import DYNAMIC
from ._settings import documented
from ._topic_config import TopicConfig
from ._validation import Setting, as_text, settings_of


def settings_table() -> str:
    """Every setting of ``--set``."""
    return _table(sorted(documented(), key=lambda setting: setting.name))


#: What keeps one client from hurting the others, in the order of docs/limits.md.
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
    """The settings that are limits."""
    known = {setting.name: setting for setting in documented()}
    return _table(known[name] for name in _LIMITS)


def topic_configs_table() -> str:
    """Every config a topic can have."""
    return _table(settings_of(TopicConfig).values())


def live_settings_table() -> str:
    """The settings that may change while the broker runs."""
    return _table(
        setting for setting in sorted(documented(), key=lambda one: one.name) if setting.name in DYNAMIC
    )


def _table(settings: Iterable[Setting]) -> str:
    lines = [
        f"| `{setting.kafka_name}` | {_default(setting)} | {setting.allowed} | {setting.doc} |"
        for setting in settings
    ]
    return "\n".join(("| name | default | allowed | what it does |", "| --- | --- | --- | --- |", *lines))


def _default(setting: Setting) -> str:
    text = as_text(setting.default)
    return f"`{text}`" if text else ""
