"""Named tuples that are made cheaply are those of ``typing.NamedTuple``."""

from __future__ import annotations

import copy
import pickle
import typing
from typing import Any

import pytest

from kohort.protocol.named_tuples import NamedTuple


class Place(NamedTuple):
    """A field without a default, one with, and what is no field."""

    topic: str
    number: int = 0

    @property
    def text(self) -> str:
        return f"{self.topic}-{self.number}"


class Plain(typing.NamedTuple):
    topic: str
    number: int = 0


class NamedPlace(Place):
    """Derived, as ``typing`` has it: the fields of its base, and a ``__dict__``."""

    def __str__(self) -> str:
        return self.text


def test_fields_without_a_default_have_to_be_given() -> None:
    assert tuple(Place("t")) == tuple(Plain("t"))
    assert repr(Place("t", 2)) == "Place(topic='t', number=2)"
    assert (Place("t", 2).text, Place("t", 2)._asdict()) == ("t-2", Plain("t", 2)._asdict())
    assert (Place._fields, Place._field_defaults) == (Plain._fields, Plain._field_defaults)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'topic'"):
        Place()  # type: ignore[call-arg]


def test_they_are_made_from_as_many_values_as_they_have_fields() -> None:
    assert type(Place._make(["t", 2])) is Place
    assert tuple(Place._make(iter(["t", 2]))) == ("t", 2)
    for kind in (Place, Plain):
        told: Any = kind
        with pytest.raises(TypeError, match="xpected 2 arguments, got 1"):
            told._make(["t"])


def test_a_derived_class_has_the_fields_of_its_base() -> None:
    made = NamedPlace("t", number=3)
    made.note = "more"  # type: ignore[attr-defined]
    assert (str(made), made._fields, made.number) == ("t-3", ("topic", "number"), 3)
    assert repr(made) == "NamedPlace(topic='t', number=3)"
    for again in (copy.copy(made), pickle.loads(pickle.dumps(made)), made._replace(number=3)):
        assert (type(again), again) == (NamedPlace, made)
