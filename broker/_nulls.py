"""Nulls where the protocol has none: the decoder lets them through, Apache Kafka closes the connection."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from ..protocol import request_class


class _Watched(NamedTuple):
    """A field that can be null on the wire. ``inner`` are the watched fields of an array's elements.

    ``texts`` marks an array whose elements are themselves strings.
    """

    name: str
    nullable: bool
    texts: bool
    inner: tuple[_Watched, ...]


def null_in(api_key: int, version: int, body: Any) -> str | None:
    """The first field of a request that is null and may not be, as a path; None where all is well.

    Looks only where a null can be, so most partitions of a request cost nothing.
    """
    return _null_in(_watched_fields(api_key, version), body, "")


def _null_in(fields: tuple[_Watched, ...], value: Any, path: str) -> str | None:
    for field in fields:
        item = getattr(value, field.name)
        if item is None:
            if not field.nullable:
                return f"{path}{field.name}"
        elif field.texts:
            if None in item:
                return f"{path}{field.name}[{item.index(None)}]"
        elif field.inner:
            for index, element in enumerate(item):
                if found := _null_in(field.inner, element, f"{path}{field.name}[{index}]."):
                    return found
    return None


@cache
def _watched_fields(api_key: int, version: int) -> tuple[_Watched, ...]:
    return _watched(request_class(api_key)._struct, version)


def _watched(struct: Any, version: int) -> tuple[_Watched, ...]:
    found = []
    for field in struct.untagged_fields(version):
        nullable = field.nullable_for_version_q(version)
        if field.is_struct_array():
            inner = _watched(field.array_of, version)
            if inner or not nullable:
                found.append(_Watched(field.name, nullable, False, inner))
        elif field.is_array():
            texts = _has_length(field.array_of)
            if texts or not nullable:
                found.append(_Watched(field.name, nullable, texts, ()))
        elif _has_length(field) and not nullable:
            found.append(_Watched(field.name, False, False, ()))
    return tuple(found)


def _has_length(field: Any) -> bool:
    # Only what is written with a length can be null; kafka-python reads the zero UUID as None, which is none.
    return getattr(field, "_type_str", "") in {"string", "bytes", "records"}
