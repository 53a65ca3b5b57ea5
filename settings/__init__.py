"""One table format for all settings: of brokers, topics, listeners, consumers, producers, services, Spark
jobs.

The settings of a room are a class in that room, with a :class:`Row` for each field. This package reads the
values that users give and reports wrong ones. ``SettingsModel`` is in ``kohort.settings.model``.
"""

from ._file import read_settings_file
from ._reading import Fallback, SettingsError, is_plain, not_overridden, read_settings
from ._secrets import read_secret
from ._table import (
    BROKER,
    CONSUMER,
    LISTENER,
    MAX_INT,
    MAX_LONG,
    PRODUCER,
    SERVICE,
    SHARE_CONSUMER,
    SPARK_BATCH,
    SPARK_LOOP,
    SPARK_SINK,
    SPARK_SOURCE,
    SPARK_STREAM,
    TOPIC,
    Row,
    Scope,
    Setting,
    as_text,
    settings_of,
)

__all__ = [
    "BROKER",
    "CONSUMER",
    "LISTENER",
    "MAX_INT",
    "MAX_LONG",
    "PRODUCER",
    "SERVICE",
    "SHARE_CONSUMER",
    "SPARK_BATCH",
    "SPARK_LOOP",
    "SPARK_SINK",
    "SPARK_SOURCE",
    "SPARK_STREAM",
    "TOPIC",
    "Fallback",
    "Row",
    "Scope",
    "Setting",
    "SettingsError",
    "as_text",
    "is_plain",
    "not_overridden",
    "read_secret",
    "read_settings",
    "read_settings_file",
    "settings_of",
]
