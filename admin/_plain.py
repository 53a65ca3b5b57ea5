"""Results as JSON: dataclasses and named tuples become objects with their own field names, None is null."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any


def plain(value: Any) -> Any:
    """The value in lists, dicts, strings and numbers."""
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: plain(item) for name, item in zip(value._fields, value, strict=True)}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def document(value: Any, *, indent: int | None = 2) -> str:
    """One JSON document."""
    return json.dumps(plain(value), indent=indent, ensure_ascii=False)
