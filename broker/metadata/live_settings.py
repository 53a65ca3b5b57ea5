"""Settings that change while the broker serves (KIP-226): for this broker, or as the default of all brokers.

The first of these is in force: the value set for this broker, the default set for all brokers, the value of
the start, the built-in default. Changed settings are saved in a document: in the data folder, or of the
cluster.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Final, TypeVar

from ...cluster import Document, MetadataStore
from ...protocol import ErrorCode, JsonObject, KafkaError
from ...settings import Setting, SettingsError, as_text, read_settings, settings_of
from ..kafka_names import CHANGING, MEANINGLESS
from ..security._listeners import PREFIX, check_listener_settings, listeners_of, take_listener_settings
from ..settings import BrokerSettings

#: Sources of a value, Kafka's numbers.
DYNAMIC_BROKER_SOURCE, DYNAMIC_DEFAULT_SOURCE, STATIC_BROKER_SOURCE, DEFAULT_SOURCE = 2, 3, 4, 5

#: Settings that can be changed: those that Apache Kafka can change, too.
DYNAMIC: Final = frozenset(name for name, one in settings_of(BrokerSettings).items() if one.row.dynamic)

T = TypeVar("T")

log = logging.getLogger("kohort.broker")

#: Field names and typed values that were set; of listeners, and meaningless ones: text, by Kafka's name.
Values = dict[str, object]


@dataclass(slots=True)
class LiveSettings:
    """Settings that may change. All readers share ``settings``, which is changed in place; then ``on_change``
    is called.

    ``of_broker`` and ``of_all`` hold what was set, by field name.
    """

    settings: BrokerSettings
    file: Document | SharedSettings
    on_change: list[Callable[[], None]] = field(default_factory=list)
    of_broker: Values = field(default_factory=dict)
    of_all: Values = field(default_factory=dict)
    _started_with: Values = field(default_factory=dict)
    _of_listeners_at_start: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._started_with = {name: getattr(self.settings, name) for name in DYNAMIC}
        self._of_listeners_at_start = self.settings.listener_name

    def load(self) -> None:
        """Load what was saved and put it in force. Raises StateFileError."""
        kept = self.file.load(
            lambda content: (_check_values(content["broker"]), _check_values(content["all"]))
        )
        if kept is not None and kept != (self.of_broker, self.of_all):
            self.of_broker, self.of_all = kept
            self._apply_values()

    async def set(self, *, for_all: bool, values: Values) -> None:
        """Replace everything that is set by ``values``, durably. Raises OSError and SettingsError, and then
        changes nothing.
        """
        part = "of_all" if for_all else "of_broker"
        before = getattr(self, part)
        setattr(self, part, values)
        try:
            self._apply_values()
            await self.file.save({"broker": self.of_broker, "all": self.of_all})
        except (OSError, SettingsError):
            # do not undo what another broker of the cluster has set meanwhile
            if getattr(self, part) is values:
                setattr(self, part, before)
                self._apply_values()
            raise

    async def change(
        self,
        change: Callable[[Values], Mapping[str, str]],
        *,
        for_all: bool,
        validate_only: bool,
    ) -> None:
        """Replace everything that is set by what ``change`` returns for it. The caller makes changes one at a
        time, since each builds on the last. Raises KafkaError, SettingsError and OSError, and then changes
        nothing.
        """
        values = self.check(change(self.of_all if for_all else self.of_broker), for_all=for_all)
        if not validate_only:
            if unused := sorted(values.keys() & CHANGING):
                log.warning("settings of Apache Kafka that mean nothing here: %s", ", ".join(unused))
            await self.set(for_all=for_all, values=values)

    def check(self, given: Mapping[str, str], *, for_all: bool = False) -> Values:
        """Check and convert values that are to be set. Raises KafkaError and SettingsError."""
        general, of_listeners = take_listener_settings(given)
        of_one = [_shown_name(key) for key in of_listeners]
        of_one += [name for name in general.keys() & CHANGING if name.startswith(("sasl.", "ssl."))]
        if for_all and of_one:
            text = f"{min(of_one)} is a setting of one broker: name the broker"
            raise KafkaError(ErrorCode.INVALID_REQUEST, text)
        names = {name.replace(".", "_") for name in general}
        fixed = [name.replace("_", ".") for name in names & settings_of(BrokerSettings).keys() - DYNAMIC]
        fixed += general.keys() & MEANINGLESS - CHANGING
        fixed += [_shown_name(key) for key in of_listeners if _listener_field(key) is None]
        if fixed:
            text = f"{', '.join(sorted(fixed))} cannot be changed while the broker runs"
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{text}: start it with another value")
        changed = copy(self.settings)
        changed.listener_name = of_listeners
        check_listener_settings(changed, listeners_of(changed))
        return _check_values(given)

    def of_listener(self, name: str) -> tuple[Setting, list[tuple[str, object, int]]]:
        """Return a setting that was set for a listener, by Kafka's name, and its ``synonyms``."""
        key = _listener_keys([name])[0]
        field_name = _listener_field(key)
        assert field_name is not None, "no other can be set"
        found = [(name, self.of_broker[name], DYNAMIC_BROKER_SOURCE)]
        if key in self._of_listeners_at_start:
            found.append((name, self._of_listeners_at_start[key], STATIC_BROKER_SOURCE))
        setting = settings_of(BrokerSettings)[field_name]
        return setting, found + self.synonyms(setting)

    def synonyms(self, setting: Setting) -> list[tuple[str, object, int]]:
        """Name, value and source of every level that sets a value, the one in force first."""
        name = setting.name
        found = [(setting.kafka_name, value, source) for value, source in self.changes_of(name)]
        started_with = self._started_with.get(name, getattr(self.settings, name))
        if started_with != setting.default:
            found.append((setting.kafka_name, started_with, STATIC_BROKER_SOURCE))
        if setting.default is not None:
            found.append((setting.kafka_name, setting.default, DEFAULT_SOURCE))
        return found

    def changes_of(self, name: str) -> list[tuple[object, int]]:
        """Values that were set while the broker serves, with their sources, the one in force first."""
        places = (self.of_broker, DYNAMIC_BROKER_SOURCE), (self.of_all, DYNAMIC_DEFAULT_SOURCE)
        return [(values[name], source) for values, source in places if name in values]

    def _apply_values(self) -> None:
        _, of_listeners = take_listener_settings(
            {name: value for name, value in self.of_broker.items() if name.startswith(PREFIX)}
        )
        self.settings.listener_name = {**self._of_listeners_at_start, **of_listeners}
        for name, value in (self._started_with | self.of_all | self.of_broker).items():
            if name in DYNAMIC:
                setattr(self.settings, name, value)
        for tell in self.on_change:
            tell()


class SharedSettings:
    """The settings of one broker of a cluster as a document: an entry of its own and one of all brokers, like
    Apache Kafka's in ZooKeeper.
    """

    def __init__(self, store: MetadataStore, node_id: int) -> None:
        self._parts = {
            "broker": Document(store, f"/config/brokers/{node_id}"),
            "all": Document(store, "/config/brokers/<default>"),
        }
        self._kept: dict[str, dict[str, str]] = {part: {} for part in self._parts}

    def load(self, parse: Callable[[JsonObject], T]) -> T | None:
        """See ``Document``."""

        def texts(content: JsonObject) -> dict[str, str]:
            return dict(content["config"])

        for part, document in self._parts.items():
            # one that is lost stays as it was
            if (found := document.load(texts)) is not None:
                self._kept[part] = found
        return parse(self._kept)

    async def save(self, content: Mapping[str, Values]) -> None:
        """See ``Document``."""
        for part, document in self._parts.items():
            texts = {kafka_name(name): as_text(value) or "" for name, value in content[part].items()}
            if texts != self._kept[part]:
                await document.save({"version": 1, "config": texts})
                self._kept[part] = texts

    def follow(self, changed: Callable[[], None]) -> None:
        """See ``Document``."""
        for document in self._parts.values():
            document.follow(changed)


def kafka_name(name: str) -> str:
    """Kafka's name of a setting, and a single form for names of listener settings. Raises SettingsError."""
    return _shown_name(_listener_keys([name])[0]) if name.startswith(PREFIX) else name.replace("_", ".")


def _check_values(given: Mapping[str, object]) -> Values:
    general, of_listeners = take_listener_settings(given)
    unused: Values = {name: general[name] for name in general.keys() & CHANGING}
    texts = {name: as_text(value) for name, value in general.items() if name not in unused}
    checked = read_settings(BrokerSettings, texts)
    values = {name: getattr(checked, name) for name in (key.replace(".", "_") for key in texts)}
    return values | unused | {_shown_name(key): value for key, value in of_listeners.items()}


def _listener_keys(names: Iterable[str]) -> list[str]:
    """Keys of settings of listeners in ``listener_name``."""
    return list(take_listener_settings(dict.fromkeys(names, ""))[1])


def _listener_field(key: str) -> str | None:
    """Field of a setting of a listener that can be changed; None if it cannot."""
    _, mechanism, name = key.rsplit(".", 2)
    dynamic = settings_of(BrokerSettings)[name].row.dynamic
    return name if not mechanism and dynamic == "listener" else None


def _shown_name(key: str) -> str:
    listener, mechanism, name = key.rsplit(".", 2)
    words = [listener.lower(), *([mechanism.lower()] if mechanism else []), name.replace("_", ".")]
    return PREFIX + ".".join(words)
