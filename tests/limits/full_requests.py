"""Requests whose arrays are full, made from the schemas of all messages: each array in turn, also nested."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final

from kohort.protocol import APIS, ApiKey, encode_request
from tests.broker.wire import batch
from tests.messages import MESSAGES

#: The one name of everything that there is: a topic, a classic group, a transactional id, a user.
KNOWN: Final = "known"
#: A consumer group, and its member.
KNOWN_NEXT: Final = "known-next"

#: The names of arrays from the outermost one to the one that is full.
Path = tuple[str, ...]

#: Values of fields with which a request gets as far as it can, by the end of their names.
_NUMBERS: Final = {
    "acks": -1,
    "replication_factor": -1,
    "num_partitions": 1,
    "count": 100,
    "endpoint_type": 1,
    "generation_id": -1,
    "generation_id_or_member_epoch": -1,
    "leader_epoch": -1,
    "last_fetched_epoch": -1,
    "max_bytes": 1 << 20,
    "operation": 3,
    "owner": -1,
    "pattern_type": 3,
    "resource_pattern_type": 3,
    "pattern_type_filter": 3,
    "permission_type": 3,
    "replica_id": -1,
    "resource_type": 2,
    "resource_type_filter": 2,
    "response_partition_limit": 2_000,
    "session_timeout_ms": 10_000,
    "rebalance_timeout_ms": 10_000,
    "timestamp": -1,
    "transaction_timeout_ms": 10_000,
}

_TEXTS: Final = {
    "assignor": "range",
    "entity_type": "user",
    "host": "*",
    "host_filter": "*",
    "key": "producer_byte_rate",
    "protocol_type": "consumer",
    "value": "1000",
}

#: Texts that begin so wherever they stand.
_PREFIXES: Final = {"principal": "User:", "principal_filter": "User:"}

#: Arrays that are empty unless they are the one that is full, or lead to it.
_EMPTY: Final = ("assignments", "configs", "forgotten_topics_data", "topic_partitions")

#: Fields that decide what a request is about: each of these values is tried.
CHOICES: Final = {"key_type": (0, 1), "resource_type": (2, 4, 32), "member_epoch": (0, 1)}

_LARGEST: Final = {"int8": 7, "int16": 15, "uint16": 16, "int32": 31, "uint32": 32, "int64": 63}


@dataclass(frozen=True, slots=True)
class Naming:
    """How the elements of a full array are named; ``name(number)`` is the text of the element at a place."""

    kind: str
    name: Callable[[int], str]
    #: Whether numbers are another one each time, as names are.
    distinct: bool
    #: The name of everything outside of the full array.
    outside: str = KNOWN
    #: Whether numbers are as large as they can be.
    largest: bool = False
    topic_id: uuid.UUID | None = None

    def __repr__(self) -> str:
        return self.kind


def array_paths(key: ApiKey, version: int) -> list[Path]:
    """The arrays of a request in this version."""

    def of(fields: list[Any], before: Path) -> Iterator[Path]:
        for each in fields:
            if version not in each.versions:
                continue
            here = (*before, each.name)
            if each.array:
                yield here
            yield from of(each.fields, here)

    return list(of(_fields(key), ()))


def choices(key: ApiKey, version: int) -> list[dict[str, Any]]:
    """The values of fields that decide what a request is about, in each combination."""

    def names(fields: list[Any]) -> Iterator[str]:
        for each in fields:
            if version in each.versions:
                yield each.name
                yield from names(each.fields)

    found = [name for name in dict.fromkeys(names(_fields(key))) if name in CHOICES]
    combined = itertools.product(*(CHOICES[name] for name in found))
    return [dict(zip(found, values, strict=True)) for values in combined]


def request_frame(
    key: ApiKey, version: int, path: Path, count: int, naming: Naming, client_id: str = KNOWN, **chosen: Any
) -> bytes:
    """A request whose array at ``path`` has ``count`` elements, and every other one element. ``chosen`` are
    values of fields, by their names.
    """
    body = _Filler(version, path, count, naming, chosen).struct(_fields(key), ())
    body.API_KEY = key
    return bytes(encode_request(version, 7, client_id, body))


def _fields(key: ApiKey) -> list[Any]:
    fields: list[Any] = MESSAGES[f"{APIS[key].name}Request"][1].fields
    return fields


class _Filler:
    def __init__(self, version: int, path: Path, count: int, naming: Naming, chosen: dict[str, Any]) -> None:
        self._version = version
        self._path = path
        self._count = count
        self._naming = naming
        self._chosen = chosen
        self._records = batch()
        #: The place in the full array.
        self._number = 0
        #: Whether its elements differ.
        self._distinct = naming.distinct or naming.name(0) != naming.name(1)

    def struct(self, fields: list[Any], before: Path) -> SimpleNamespace:
        return SimpleNamespace(
            **{
                each.name: self._field(each, (*before, each.name))
                for each in fields
                if self._version in each.versions
            }
        )

    def _field(self, field: Any, here: Path) -> Any:
        if not field.array:
            return self._one(field, here)
        if here != self._path:
            leads = self._path[: len(here)] == here
            return [self._one(field, here)] if leads or field.name not in _EMPTY else []
        made = []
        for number in range(self._count if self._distinct else min(1, self._count)):
            self._number = number
            made.append(self._one(field, here))
        return made if self._distinct else made * self._count

    def _one(self, field: Any, here: Path) -> Any:
        inside = here[: len(self._path)] == self._path
        naming = self._naming
        if field.is_struct:
            alone = not field.array and (field.tag is not None or self._version in field.nullable)
            return None if alone else self.struct(field.fields, here)
        if field.name in self._chosen:
            return self._chosen[field.name]
        if field.kind == "string":
            return self._text(field.name, here, naming.name(self._number) if inside else naming.outside)
        if field.kind == "records":
            return self._records
        if field.kind == "bytes":
            return b""
        if field.kind == "uuid":
            return uuid.UUID(int=1 + self._number) if inside and naming.distinct else naming.topic_id
        if field.kind == "bool":
            return field.name == "allow_replication_factor_change"
        if field.kind == "float64":
            return 1.0
        if inside and naming.distinct and ("partition" in field.name or field.array):
            return self._number % (1 << _LARGEST[field.kind])
        if naming.largest:
            return (1 << _LARGEST[field.kind]) - 1
        return _NUMBERS.get(field.name, 0)

    def _text(self, field: str, here: Path, name: str) -> str:
        if field == "name" and "configs" in here:
            return name if self._naming.distinct else "retention.ms"
        if not self._naming.largest and field in _TEXTS:
            return _TEXTS[field]
        return _PREFIXES.get(field, "") + name
