"""Entities of quotas: users, client ids, pairs of them, and the defaults; their filters and values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from ...protocol import ErrorCode, KafkaError

#: The name of the default entity, for all that have no quota of their own.
DEFAULT_NAME: Final = None

#: In a filter: any name.
ANY_NAME: Final = object()

USER: Final = "user"
CLIENT_ID: Final = "client-id"
_TYPES: Final = (USER, CLIENT_ID)
#: Tools also request quotas of addresses; there are none.
_ADDRESS: Final = "ip"
_ASKED_FOR: Final = (*_TYPES, _ADDRESS)

#: Kafka's numbers for how a filter names an entity.
_EXACT, _DEFAULT, _ANY = 0, 1, 2

#: Longest name of a user or client, in characters.
MAX_NAME: Final = 32_767


class QuotaKey(StrEnum):
    """Quotas: bytes a second, percent of the event loop's time, partitions a second."""

    PRODUCER_BYTE_RATE = "producer_byte_rate"
    CONSUMER_BYTE_RATE = "consumer_byte_rate"
    REQUEST_PERCENTAGE = "request_percentage"
    CONTROLLER_MUTATION_RATE = "controller_mutation_rate"


_WHOLE: Final = frozenset({QuotaKey.PRODUCER_BYTE_RATE, QuotaKey.CONSUMER_BYTE_RATE})
#: Larger than every integer of 64 bits.
_TOO_MUCH: Final = 2**63


@dataclass(frozen=True, slots=True)
class QuotaEntity:
    """Parts by type, ``user`` before ``client-id``; the name None is the default of that type."""

    parts: tuple[tuple[str, str | None], ...]

    @property
    def names(self) -> dict[str, str | None]:
        """Names by type of entity (user, client-id, ip); None is the default entity."""
        return dict(self.parts)

    def __str__(self) -> str:
        return " ".join(f"{kind}={'<default>' if name is None else name}" for kind, name in self.parts)


#: A filter's name for each type that it contains: a name, None for the default, or ANY_NAME.
Wanted: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter of entities; ``strict`` excludes entities with other types."""

    wanted: Wanted
    strict: bool

    def matches(self, entity: QuotaEntity) -> bool:
        """Return whether the filter matches an entity."""
        names = entity.names
        if self.strict and len(names) != len(self.wanted):
            return False
        return all(
            kind in names and (name is ANY_NAME or names[kind] == name) for kind, name in self.wanted.items()
        )


def entity_of(parts: Iterable[tuple[str, str | None]]) -> QuotaEntity:
    """The entity with these types and names. Raises KafkaError INVALID_REQUEST."""
    names: dict[str, str | None] = {}
    for kind, name in parts:
        if kind not in _TYPES:
            raise _refusal_for(f"entity type {kind!r}: quotas are for {USER} and {CLIENT_ID}")
        if kind in names:
            raise _refusal_for(f"entity type {kind} is named twice: name it once")
        if name is not None and not 0 < len(name) <= MAX_NAME:
            raise _refusal_for(f"a {kind} has 1 to {MAX_NAME} characters: null is the default")
        names[kind] = name
    if not names:
        raise _refusal_for(f"the entity is empty: name a {USER}, a {CLIENT_ID} or both")
    return QuotaEntity(tuple((kind, names[kind]) for kind in _TYPES if kind in names))


def check_filter(components: Iterable[tuple[str, int, str | None]], *, strict: bool) -> Filter:
    """The filter of a request: type, Kafka's number of how it is matched, name.

    Raises KafkaError: INVALID_REQUEST, and UNSUPPORTED_VERSION for an unknown type.
    """
    wanted: dict[str, object] = {}
    for kind, how, name in components:
        if not kind:
            raise _refusal_for("an entity type is empty: name one")
        if kind in wanted:
            raise _refusal_for(f"entity type {kind} is named twice: name it once")
        if kind not in _ASKED_FOR:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION, f"entity type {kind!r}: quotas are for {USER} and {CLIENT_ID}"
            )
        wanted[kind] = _wanted_name(kind, how, name)
    if _ADDRESS in wanted and len(wanted) > 1:
        raise _refusal_for("quotas of addresses are for nothing else: ask for ip alone")
    return Filter(wanted, strict)


def check_value(key: str, value: float) -> QuotaKey:
    """The key of a quota that may be set. Raises KafkaError INVALID_REQUEST."""
    try:
        known = QuotaKey(key)
    except ValueError:
        raise _refusal_for(f"{key!r} is no quota: there are {', '.join(QuotaKey)}") from None
    if not math.isfinite(value) or value <= 0:
        raise _refusal_for(f"{key}={value:g} is not allowed: it must be above 0")
    if known in _WHOLE and (value != int(value) or value >= _TOO_MUCH):
        raise _refusal_for(f"{key}={value:g} is not allowed: it must be a whole number below 2^63")
    return known


def _wanted_name(kind: str, how: int, name: str | None) -> object:
    if how == _EXACT:
        if name is None:
            raise _refusal_for(f"an exact match of {kind} needs a name: give one")
        return name
    if how not in (_DEFAULT, _ANY):
        raise _refusal_for(f"match type {how}: 0 (exact), 1 (default) and 2 (any) are known")
    if name is not None:
        raise _refusal_for(f"match type {how} of {kind} takes no name: leave it null")
    return DEFAULT_NAME if how == _DEFAULT else ANY_NAME


def _refusal_for(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)
