"""Listeners: names, protocols, addresses, and settings for one listener (KIP-103, KIP-226)."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields

from ...protocol.named_tuples import NamedTuple
from ...settings import SettingsError, as_text, read_settings
from ._settings import SecuritySettings

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")

#: Prefix of settings for one listener.
PREFIX = "listener.name."

_ADDRESS = re.compile(r"(?P<name>[^:/]+)://(?P<host>\[[^\]]*\]|[^:]*):(?P<port>\d{1,5})", re.ASCII)
_META_ADDRESSES = ("", "0.0.0.0", "::")


class ListenAddress(NamedTuple):
    """``NAME://HOST:PORT``."""

    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Listener:
    """A listener. ``advertised`` is the address for clients, if it is not the one that they connected to.

    ``protected``: ``max.connections`` does not hold up its connections; ``control``: nor do waiting requests,
    and its connections do not count.
    """

    name: str
    protocol: str
    host: str
    port: int
    advertised: tuple[str, int] | None = None
    control: bool = False
    protected: bool = False

    @property
    def tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.protocol.endswith("SSL")

    @property
    def sasl(self) -> bool:
        """Whether clients log in with SASL."""
        return self.protocol.startswith("SASL_")

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def listeners_of(settings: SecuritySettings, host: str = "127.0.0.1", port: int = 0) -> list[Listener]:
    """The listeners, the control listener last; by default PLAINTEXT on ``host:port``. Raises
    SettingsError.
    """
    protocols = _parse_protocols(settings.listener_security_protocol_map)
    addresses = _parse_addresses("listeners", settings.listeners) or [ListenAddress("PLAINTEXT", host, port)]
    _check_ports(addresses)
    names = [address.name for address in addresses]
    advertised = {
        item.name: item for item in _parse_addresses("advertised.listeners", settings.advertised_listeners)
    }
    for name in advertised:
        _check_known("advertised.listeners", name, names)
    control = settings.control_plane_listener_name.upper()
    inter = settings.inter_broker_listener_name.upper()
    if control:
        _check_known("control.plane.listener.name", control, names)
        if control == inter or len(names) < 2:
            raise SettingsError(
                f"control.plane.listener.name={control} is not allowed: it must be a listener beside the one "
                "of clients and of brokers"
            )
    if inter:
        _check_known("inter.broker.listener.name", inter, names)
    # with a single listener, all connections are clients'
    protected = (control, inter) if len(names) > 1 else ()
    made = [_make_listener(address, protocols, advertised, control, protected) for address in addresses]
    return sorted(made, key=lambda listener: listener.control)


def _make_listener(
    address: ListenAddress,
    protocols: Mapping[str, str],
    advertised: Mapping[str, ListenAddress],
    control: str,
    protected: Collection[str],
) -> Listener:
    if address.name not in protocols:
        raise SettingsError(
            f"listeners: {address.name} has no protocol: add {address.name}:PROTOCOL to "
            f"listener.security.protocol.map, with one of {', '.join(PROTOCOLS)}"
        )
    told = advertised.get(address.name)
    if told is not None and (told.host in _META_ADDRESSES or not told.port):
        raise SettingsError(
            f"advertised.listeners={told.name}://{told.host}:{told.port} is not allowed: clients need a host "
            "and a port to connect to"
        )
    return Listener(
        address.name,
        protocols[address.name],
        address.host,
        address.port,
        None if told is None else (told.host, told.port),
        control=address.name == control,
        protected=address.name in protected,
    )


def _parse_protocols(text: str) -> dict[str, str]:
    found = {}
    for item in _split_items(text):
        name, colon, protocol = (part.strip().upper() for part in item.partition(":"))
        if not colon or not name or protocol not in PROTOCOLS:
            raise SettingsError(
                f"listener.security.protocol.map: {item} is not allowed: it must be NAME:PROTOCOL "
                f"with one of {', '.join(PROTOCOLS)}"
            )
        found[name] = protocol
    return found


def _parse_addresses(setting: str, text: str) -> list[ListenAddress]:
    found = []
    for item in _split_items(text):
        match = _ADDRESS.fullmatch(item)
        if match is None or int(match["port"]) > 65_535:
            raise SettingsError(f"{setting}={text} is not allowed: it must be NAME://HOST:PORT, with commas")
        found.append(ListenAddress(match["name"].upper(), match["host"].strip("[]"), int(match["port"])))
    twice = [name for name, times in Counter(address.name for address in found).items() if times > 1]
    if twice:
        raise SettingsError(f"{setting}={text} is not allowed: {twice[0]} is there twice, give each its name")
    return found


def _check_ports(addresses: list[ListenAddress]) -> None:
    times = Counter((address.port, ":" in address.host) for address in addresses if address.port)
    for (port, _), count in times.items():
        if count > 1:
            raise SettingsError(
                f"listeners: port {port} is there twice: give each listener a port of its own"
            )


def _check_known(setting: str, name: str, names: list[str]) -> None:
    if name not in names:
        raise SettingsError(f"{setting}: {name} is not in listeners, which are {', '.join(names)}")


def _split_items(text: str) -> Iterator[str]:
    return (item.strip() for item in text.split(",") if item.strip())


def parse_list(text: str) -> list[str]:
    """The items of a comma-separated list, in upper case: names of listeners and mechanisms."""
    return [item.upper() for item in _split_items(text)]


# the settings of one listener


class _Override(NamedTuple):
    """A setting for one listener: its field, and the SASL mechanism that it is for ("" for all)."""

    listener: str
    mechanism: str
    field: str


_FIELDS = sorted((field.name for field in fields(SecuritySettings)), key=len, reverse=True)


def take_listener_settings(given: Mapping[str, object]) -> tuple[dict[str, object], dict[str, str]]:
    """Split settings into the broker's, and those for single listeners by ``NAME.MECHANISM.field``. Raises
    SettingsError for an unknown one.
    """
    rest, own = {}, {}
    for name, value in given.items():
        dotted = name.replace("listener_name_", PREFIX, 1)
        if dotted.startswith(PREFIX):
            own[".".join(_parse_override(dotted.removeprefix(PREFIX), name))] = as_text(value) or ""
        else:
            rest[name] = value
    return rest, own


def _parse_override(text: str, name: str) -> _Override:
    words = text.replace(".", "_")
    found = next((field for field in _FIELDS if words.endswith("_" + field)), None)
    if found is None:
        raise SettingsError(f"{name} is no setting: {PREFIX}LISTENER.SETTING is, docs/security.md lists them")
    head = words.removesuffix("_" + found).upper()
    mechanism = next((each for each in MECHANISMS if head.endswith("_" + each)), "")
    return _Override(head.removesuffix("_" + mechanism) if mechanism else head, mechanism, found)


def check_listener_settings(settings: SecuritySettings, listeners: list[Listener]) -> None:
    """Raise SettingsError for a setting of an unknown listener, or an invalid value."""
    known = [listener.name.replace(".", "_") for listener in listeners]
    for key in settings.listener_name:
        override = _Override(*key.rsplit(".", 2))
        _check_known(PREFIX + override.listener.lower(), override.listener, known)
        settings_for(settings, override.listener, override.mechanism)


def settings_for(settings: SecuritySettings, listener: str, mechanism: str = "") -> SecuritySettings:
    """The settings in force for one listener and, if given, for one mechanism on it."""
    own: dict[str, str] = {}
    for wanted in dict.fromkeys(("", mechanism)):
        for key, value in settings.listener_name.items():
            override = _Override(*key.rsplit(".", 2))
            if (override.listener, override.mechanism) == (listener.replace(".", "_"), wanted):
                own[override.field] = value
    if not own:
        return settings
    checked = read_settings(SecuritySettings, own)
    return dataclasses.replace(settings, **{name: getattr(checked, name) for name in own})


def is_own(settings: SecuritySettings, listener: str, field: str) -> bool:
    """Return whether a setting was given for this listener."""
    return f"{listener.replace('.', '_')}..{field}" in settings.listener_name
