"""Settings of the broker, its topics and listeners, of consumers, services and Spark jobs: one table format.

A room's settings are a class in that room (see :class:`Row`); this package reads what users give, explains
what is wrong. ``SettingsModel`` is in ``kohort.settings.model``.
"""

from ._file import read_settings_file
from ._reading import Around, SettingsError, is_plain, read_settings
from ._table import (
    BROKER,
    CONSUMER,
    LISTENER,
    MAX_INT,
    MAX_LONG,
    PRODUCER,
    SERVICE,
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
    "SPARK_BATCH",
    "SPARK_LOOP",
    "SPARK_SINK",
    "SPARK_SOURCE",
    "SPARK_STREAM",
    "TOPIC",
    "Around",
    "Row",
    "Scope",
    "Setting",
    "SettingsError",
    "as_text",
    "is_plain",
    "read_settings",
    "read_settings_file",
    "settings_of",
]
