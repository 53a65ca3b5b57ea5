"""Equality and text of dataclasses without code of their own: a start makes many, and compares few."""

from __future__ import annotations

from dataclasses import Field, fields
from typing import ClassVar


class ComparedFields:
    """Base of dataclasses that are made with ``eq=False, repr=False``: two are equal, and look, as if those
    were generated. To compile both takes as long as the rest of the class; of settings it takes milliseconds.
    """

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[object]]]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        names = (field.name for field in fields(self) if field.compare)
        return all(getattr(self, name) == getattr(other, name) for name in names)

    def __repr__(self) -> str:
        shown = (f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr)
        return f"{type(self).__qualname__}({', '.join(shown)})"
