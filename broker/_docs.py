"""The parts of docs/broker.md that are made from the code."""

from __future__ import annotations

from collections.abc import Iterable

from ..protocol import APIS, ApiKey
from ._live_settings import DYNAMIC
from ._settings import documented
from ._topic_config import TopicConfig
from ._validation import Setting, as_text, settings_of
from .handlers import HANDLERS
from .handlers.api_versions import ranges


def settings_table() -> str:
    """Every setting of ``--set``."""
    return _table(sorted(documented(), key=lambda setting: setting.name))


def topic_configs_table() -> str:
    """Every config a topic can have."""
    return _table(settings_of(TopicConfig).values())


def live_settings_table() -> str:
    """The settings that may change while the broker runs."""
    return _table(
        setting for setting in sorted(documented(), key=lambda one: one.name) if setting.name in DYNAMIC
    )


def apis_table() -> str:
    """What ApiVersions offers."""
    rows = ranges((*HANDLERS, ApiKey.API_VERSIONS))
    lines = [f"| {key} | {APIS[key].name} | {low}-{high} |" for key, low, high in rows]
    return "\n".join(("| number | API | versions |", "| --- | --- | --- |", *lines))


def _table(settings: Iterable[Setting]) -> str:
    lines = [
        f"| `{setting.kafka_name}` | {_default(setting)} | {setting.allowed} | {setting.doc} |"
        for setting in settings
    ]
    return "\n".join(("| name | default | allowed | what it does |", "| --- | --- | --- | --- |", *lines))


def _default(setting: Setting) -> str:
    text = as_text(setting.default)
    return f"`{text}`" if text else ""
