"""Settings that change while the broker serves (KIP-226): for this broker, or as the default of all brokers.

A value is the first that there is: this broker's, the default of all brokers, that of the start, the built-in
one. What was set is kept in a document of the data folder and is in force again after a start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ..protocol import ErrorCode, KafkaError
from ._settings import BrokerSettings
from ._state_file import StateFile
from ._topic_config import BROKER_NAMES
from ._validation import Setting, SettingsError, as_text, read_settings, settings_of

#: Sources of a value, Kafka's numbers.
DYNAMIC_BROKER_SOURCE, DYNAMIC_DEFAULT_SOURCE, STATIC_BROKER_SOURCE, DEFAULT_SOURCE = 2, 3, 4, 5

#: The settings that can be changed: those that Apache Kafka changes too.
DYNAMIC: Final = frozenset(
    {
        *BROKER_NAMES.values(),
        "log_cleaner_backoff_ms",
        "log_cleaner_dedupe_buffer_size",
        "log_flush_interval_ms",
        "log_retention_ms",
        "log_roll_ms",
        "max_connection_creation_rate",
        "max_connections",
        "max_connections_per_ip",
        "max_connections_per_ip_overrides",
    }
)

#: Names and typed values that were set.
Values = dict[str, Any]


@dataclass(slots=True)
class LiveSettings:
    """``settings`` is what everybody reads, and is changed in place; ``on_change`` is called after that.

    ``of_broker`` and ``of_all`` hold what was set, by field name.
    """

    settings: BrokerSettings
    file: StateFile
    on_change: list[Callable[[], None]] = field(default_factory=list)
    of_broker: Values = field(default_factory=dict)
    of_all: Values = field(default_factory=dict)
    _started_with: Values = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._started_with = {name: getattr(self.settings, name) for name in DYNAMIC}

    def load(self) -> None:
        """Let what was kept be in force. Raises StateFileError."""
        kept = self.file.load(lambda content: (_checked(content["broker"]), _checked(content["all"])))
        if kept is not None:
            self.of_broker, self.of_all = kept
            self._apply()

    def set(self, *, for_all: bool, values: Values) -> None:
        """Let these be all that is set: on disk, then in force. Raises OSError, and SettingsError for values
        that do not go together; nothing is changed then.
        """
        before = self.of_broker, self.of_all
        if for_all:
            self.of_all = values
        else:
            self.of_broker = values
        try:
            self._apply()
            self.file.save({"broker": self.of_broker, "all": self.of_all})
        except (OSError, SettingsError):
            self.of_broker, self.of_all = before
            self._apply()
            raise

    def check(self, given: Mapping[str, str]) -> Values:
        """What is to be set, checked and typed. Raises KafkaError and SettingsError."""
        names = {name.replace(".", "_") for name in given}
        if fixed := sorted(names & settings_of(BrokerSettings).keys() - DYNAMIC):
            shown = ", ".join(name.replace("_", ".") for name in fixed)
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"{shown} cannot be changed while the broker runs: start it with another value",
            )
        return _checked(given)

    def synonyms(self, setting: Setting) -> list[tuple[str, Any, int]]:
        """Name, value and source of every place that gives a value, the one in force first."""
        name = setting.name
        found = []
        for values, source in (
            (self.of_broker, DYNAMIC_BROKER_SOURCE),
            (self.of_all, DYNAMIC_DEFAULT_SOURCE),
        ):
            if name in values:
                found.append((setting.kafka_name, values[name], source))
        started_with = self._started_with.get(name, getattr(self.settings, name))
        if started_with != setting.default:
            found.append((setting.kafka_name, started_with, STATIC_BROKER_SOURCE))
        if setting.default is not None:
            found.append((setting.kafka_name, setting.default, DEFAULT_SOURCE))
        return found

    def _apply(self) -> None:
        for name, value in (self._started_with | self.of_all | self.of_broker).items():
            setattr(self.settings, name, value)
        for tell in self.on_change:
            tell()


def _checked(given: Mapping[str, Any]) -> Values:
    texts = {name: as_text(value) for name, value in given.items()}
    checked = read_settings(BrokerSettings, texts)
    return {name: getattr(checked, name) for name in (key.replace(".", "_") for key in given)}
