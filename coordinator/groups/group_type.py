"""A type of groups: its name and its states."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, Generic, TypeVar

#: The state of a group without members, in all types.
EMPTY: Final = "Empty"

V_co = TypeVar("V_co", covariant=True)


@dataclass(frozen=True, slots=True, eq=False)
class GroupType(Generic[V_co]):
    """A type of groups, by Kafka's name; the values of ``states`` are Kafka's names of its states.

    Groups of the type are stored in records; ``V_co`` is what durable state keeps of the records of a group.
    """

    name: str
    states: type[Enum]
