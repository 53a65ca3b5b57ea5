"""Dataclasses whose equality and text are not generated are compared and shown as those whose are."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from kohort.broker.settings import BrokerSettings
from kohort.coordinator.groups.events import MemberJoined, RebalanceStarted
from kohort.protocol.compared_fields import ComparedFields


@dataclass(slots=True)
class Generated:
    name: str
    size: int = 1
    seen: int = field(default=0, compare=False)
    secret: str = field(default="", repr=False)


@dataclass(slots=True, eq=False, repr=False)
class Parcel(ComparedFields):
    name: str
    size: int = 1
    seen: int = field(default=0, compare=False)
    secret: str = field(default="", repr=False)


class Letter(Parcel):
    """Has no fields of its own."""

    __slots__ = ()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a",), ("a",)),
        (("a",), ("b",)),
        (("a", 1, 2), ("a", 1, 3)),
        (("a", 1, 0, "x"), ("a", 1, 0, "y")),
    ],
)
def test_two_are_equal_as_if_that_were_generated(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    assert (Parcel(*one) == Parcel(*other)) is (Generated(*one) == Generated(*other))  # type: ignore[arg-type]


def test_of_two_classes_they_are_never_equal() -> None:
    assert Parcel("a") != Letter("a")
    assert Letter("a") == Letter("a")
    assert Parcel("a") != "a"


def test_they_show_themselves_as_if_that_were_generated() -> None:
    assert repr(Parcel("a", secret="x")) == repr(Generated("a", secret="x")).replace("Generated", "Parcel")
    assert repr(Letter("a")) == "Letter(name='a', size=1, seen=0)"


def test_they_have_no_hash_since_they_change() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(Parcel("a"))


def test_settings_are_compared_by_all_of_them_not_only_by_those_of_one_part() -> None:
    assert BrokerSettings() == BrokerSettings()
    assert BrokerSettings() != BrokerSettings(group_max_size=7)
    assert BrokerSettings() != BrokerSettings(num_partitions=7)
    assert "group_max_size=7" in repr(BrokerSettings(group_max_size=7))


def test_events_are_equal_whenever_and_wherever_in_a_history_they_happened() -> None:
    assert MemberJoined("g", cause="a", sequence=1) == MemberJoined("g", cause="a", timestamp_ms=5)
    assert MemberJoined("g", cause="a") != MemberJoined("g", cause="b")
    assert RebalanceStarted("g") != MemberJoined("g")
