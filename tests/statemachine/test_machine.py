"""The machine that is made from a table of moves."""

from __future__ import annotations

from enum import Enum
from types import SimpleNamespace

import pytest

from kohort.statemachine import IllegalTransitionError, LifeCycle, Transition


class Light(Enum):
    RED = "red"
    GREEN = "green"
    OFF = "off"


class Press(Enum):
    GO = "go"
    STOP = "stop"
    BREAK = "break"


Row = Transition[Light, Press]

TABLE = [
    Row(Press.GO, Light.RED, Light.GREEN, "somebody waits"),
    Row(Press.STOP, Light.GREEN, Light.RED, "nobody waits"),
    Row(Press.BREAK, Light.GREEN, Light.OFF, "it is old"),
]


LAMP = LifeCycle("lamp", TABLE, begins=[Light.RED], ends=[Light.OFF], anywhere=Press.BREAK)


@pytest.mark.parametrize("row", TABLE, ids=str)
def test_a_trigger_leads_where_its_row_says(row: Row) -> None:
    lamp = SimpleNamespace(state=row.source)
    LAMP.fire(lamp, row.trigger)
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
        LAMP.fire(lamp, trigger)
    assert str(caught.value) == words
    assert lamp.state is state
