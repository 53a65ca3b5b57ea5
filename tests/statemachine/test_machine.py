"""The machine that is made from a table of moves."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from types import SimpleNamespace

import pytest

from kohort.statemachine import IllegalTransitionError
from kohort.statemachine._machine import mover


class Light(Enum):
    RED = "red"
    GREEN = "green"
    OFF = "off"


class Other(Enum):
    BLUE = "blue"


class Press(Enum):
    GO = "go"
    STOP = "stop"
    BREAK = "break"


@dataclass(frozen=True)
class Row:
    trigger: Enum
    source: Enum
    target: Enum


TABLE = [
    Row(Press.GO, Light.RED, Light.GREEN),
    Row(Press.STOP, Light.GREEN, Light.RED),
    Row(Press.BREAK, Light.GREEN, Light.OFF),
]


@pytest.mark.parametrize("row", TABLE, ids=str)
def test_a_trigger_leads_where_its_row_says(row: Row) -> None:
    lamp = SimpleNamespace(state=row.source)
    mover("lamp", Light, TABLE)(lamp, row.trigger)
    assert lamp.state is row.target


@pytest.mark.parametrize(
    ("state", "trigger", "words"),
    [
        (Light.GREEN, Press.GO, "a lamp in state green cannot go: legal there: stop, break"),
        (Light.RED, Press.STOP, "a lamp in state red cannot stop: legal there: go"),
        (Light.OFF, Press.GO, "a lamp in state off cannot go: legal there: nothing"),
    ],
)
def test_a_trigger_that_the_state_does_not_have_is_refused_and_changes_nothing(
    state: Light, trigger: Press, words: str
) -> None:
    lamp = SimpleNamespace(state=state)
    with pytest.raises(IllegalTransitionError) as caught:
        mover("lamp", Light, TABLE)(lamp, trigger)
    assert str(caught.value) == words
    assert lamp.state is state


@pytest.mark.parametrize(
    "row", [Row(Press.GO, Light.RED, Other.BLUE), Row(Press.GO, Other.BLUE, Light.RED)], ids=str
)
def test_a_table_that_names_a_state_of_another_machine_is_refused_when_it_is_read(row: Row) -> None:
    with pytest.raises(ValueError, match=r"Other\.BLUE is no state of a lamp"):
        mover("lamp", Light, [*TABLE, row])
