"""Configs as DescribeConfigs and CreateTopics show them: text, and the source of each value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from ...settings import MAX_INT, Setting, as_text, settings_of
from ..kafka_names import CHANGING
from ..metadata.group_configs import GROUP_CONFIGS
from ..metadata.live_settings import (
    DEFAULT_SOURCE,
    DYNAMIC,
    DYNAMIC_DEFAULT_SOURCE,
    STATIC_BROKER_SOURCE,
    LiveSettings,
)
from ..partitions.topic_config import TopicConfig, topic_defaults
from ..security._listeners import PREFIX
from ..settings import BrokerSettings

if TYPE_CHECKING:
    from ..node import Node

#: Kafka's numbers for the sources "topic" and "group".
TOPIC_SOURCE, GROUP_SOURCE = 1, 8

#: Name, value and source.
_Synonym = tuple[str, str | None, int]

#: Kafka's numbers of config types.
_BOOLEAN, _STRING, _INT, _LONG, _DOUBLE, _LIST, _PASSWORD = 1, 2, 3, 5, 6, 7, 9


_GROUP_CONFIG_TYPES: Final[Mapping[type, int]] = {bool: _BOOLEAN, int: _INT, str: _STRING}


@dataclass(frozen=True, slots=True)
class ConfigRow:
    """One config. The first of the ``synonyms`` is in force."""

    name: str
    value: str | None
    source: int
    read_only: bool
    type: int
    doc: str
    synonyms: tuple[_Synonym, ...]
    sensitive: bool = False


def topic_rows(node: Node, configs: Mapping[str, object]) -> list[ConfigRow]:
    """Every config of a topic for which ``configs`` were set."""
    settings = node.settings
    defaults = topic_defaults(settings)
    broker = settings_of(BrokerSettings)
    rows = []
    for name, setting in settings_of(TopicConfig).items():
        synonyms = [] if name not in configs else [(setting.kafka_name, as_text(configs[name]), TOPIC_SOURCE)]
        if setting.row.default_from:
            synonyms += _broker_synonyms(node.live, broker[setting.row.default_from])
        value = configs.get(name, defaults.get(name, setting.default))
        source = DEFAULT_SOURCE if value == setting.default else STATIC_BROKER_SOURCE
        rows.append(_config_row(setting, as_text(value), synonyms, source))
    return rows


def group_rows(node: Node, group_id: str) -> list[ConfigRow]:
    """All configs of a group, whatever its type."""
    rows, own = [], node.group_configs.of(group_id)
    for name, config in GROUP_CONFIGS.items():
        default = as_text(node.group_configs.default(config))
        synonyms = [(name, as_text(own[name]), GROUP_SOURCE)] if name in own else []
        if config.setting:
            synonyms.append((config.setting, default, DEFAULT_SOURCE))
        _, value, source = synonyms[0] if synonyms else (name, default, DEFAULT_SOURCE)
        kind = _GROUP_CONFIG_TYPES[config.type]
        rows.append(ConfigRow(name, value, source, False, kind, config.doc, tuple(synonyms)))
    return rows


def _config_row(
    setting: Setting, value: str | None, synonyms: list[_Synonym], source: int, *, read_only: bool = False
) -> ConfigRow:
    """``source`` is that of a value that has no synonyms."""
    if synonyms:
        source = synonyms[0][2]
    kind, row = _config_type(setting), setting.row
    name = setting.kafka_name
    return ConfigRow(name, value, source, read_only, kind, row.doc, tuple(synonyms), row.sensitive)


def default_rows(node: Node) -> list[ConfigRow]:
    """The settings that were set as the default of all brokers."""
    shown = []
    for row in broker_rows(node):
        values = tuple(one for one in row.synonyms if one[2] == DYNAMIC_DEFAULT_SOURCE)
        if values:
            shown.append(replace(row, value=values[0][1], source=DYNAMIC_DEFAULT_SOURCE, synonyms=values))
    return shown


def broker_rows(node: Node) -> list[ConfigRow]:
    """Return a row for every setting of this broker; secrets have no value."""
    rows = []
    for setting in settings_of(BrokerSettings).values():
        value = _show_value(setting, getattr(node.settings, setting.name))
        synonyms = _broker_synonyms(node.live, setting)
        fixed = setting.name not in DYNAMIC
        rows.append(_config_row(setting, value, synonyms, DEFAULT_SOURCE, read_only=fixed))
    return rows + _listener_rows(node.live) + _unused_rows(node.live)


def _unused_rows(live: LiveSettings) -> list[ConfigRow]:
    """The settings that were set while the broker serves, and mean nothing here."""
    names = sorted((live.of_broker.keys() | live.of_all.keys()) & CHANGING)
    told = [[(name, as_text(value), source) for value, source in live.changes_of(name)] for name in names]
    return [ConfigRow(*rows[0], False, _STRING, "means nothing here", tuple(rows)) for rows in told]


def _listener_rows(live: LiveSettings) -> list[ConfigRow]:
    """The settings that were set for one listener while the broker serves."""
    rows = []
    for name in live.of_broker:
        if name.startswith(PREFIX):
            setting, synonyms = live.of_listener(name)
            texts = [(known_as, as_text(value), source) for known_as, value, source in synonyms]
            rows.append(replace(_config_row(setting, texts[0][1], texts, DEFAULT_SOURCE), name=name))
    return rows


def _broker_synonyms(live: LiveSettings, setting: Setting) -> list[_Synonym]:
    return [(name, _show_value(setting, value), source) for name, value, source in live.synonyms(setting)]


def _show_value(setting: Setting, value: object) -> str | None:
    return None if setting.row.sensitive else as_text(value)


def _config_type(setting: Setting) -> int:
    if setting.row.sensitive:
        return _PASSWORD
    if setting.row.commas:
        return _LIST
    if setting.type is bool:
        return _BOOLEAN
    if setting.type is float:
        return _DOUBLE
    if setting.type is int:
        return _INT if setting.row.most is not None and setting.row.most <= MAX_INT else _LONG
    return _STRING
