"""A life cycle: a table of legal moves, and the state machine made from it.

One machine serves all models of its kind: it keeps no reference to any, so it costs nothing per group or
member. The library checks the table when the machine is made. As moves have neither conditions nor callbacks,
a move is then one lookup in a dict.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from enum import Enum
from typing import Generic, NamedTuple, Protocol, TypeVar

from transitions import Machine

S = TypeVar("S", bound=Enum)
T = TypeVar("T", bound=Enum)

# the library logs every move at INFO, which would clutter the log of a program that uses kohort
logging.getLogger("transitions").setLevel(logging.WARNING)


class IllegalTransitionError(RuntimeError):
    """A trigger was fired in a state that does not have it: a bug in kohort, never caused by a peer."""


class Transition(NamedTuple, Generic[S, T]):
    """One legal move, and its cause in words."""

    trigger: T
    source: S
    target: S
    when: str


class HasState(Protocol[S]):
    """A model with a writable ``state``."""

    state: S


class LifeCycle(Generic[S, T]):
    """The moves of one ``kind`` of model, from a state of ``begins`` to one of ``ends``.

    ``anywhere`` is the trigger that leads to the first of these from every state, if there is one.
    """

    def __init__(
        self,
        kind: str,
        moves: Sequence[Transition[S, T]],
        *,
        begins: Sequence[S],
        ends: Sequence[S],
        anywhere: T | None = None,
    ) -> None:
        self._kind, self._moves = kind, moves
        self._begins, self._ends, self._anywhere = begins, ends, anywhere
        rows = [[move.trigger.value, move.source, move.target] for move in moves]
        states = type(ends[0])
        machine = Machine(None, states, begins[0], auto_transitions=False, transitions=rows)
        self._targets: dict[tuple[S, T], S] = {
            (move.source, move.trigger): states[str(transition.dest)]
            for move in moves
            for transition in machine.get_transitions(move.trigger.value, move.source)
        }

    def next(self, state: S, trigger: T) -> S:
        """Return the state to which a trigger leads. Raises IllegalTransitionError."""
        target = self._targets.get((state, trigger))
        if target is None:
            legal = ", ".join(each.value for each in self.legal(state)) or "nothing"
            raise IllegalTransitionError(
                f"a {self._kind} in state {state.value} cannot {trigger.value}: legal there: {legal}"
            )
        return target

    def fire(self, model: HasState[S], trigger: T) -> None:
        """Set ``model.state`` to the state to which a trigger leads. Raises IllegalTransitionError."""
        model.state = self.next(model.state, trigger)

    def legal(self, state: S) -> tuple[T, ...]:
        """Return the triggers of a state, in the order of the table."""
        return tuple(move.trigger for move in self._moves if move.source is state)

    def diagram(self) -> str:
        """Return the table as a Mermaid state diagram; the moves of ``anywhere`` are a note."""
        lines = ["stateDiagram-v2", *(f"    [*] --> {state.value}" for state in self._begins)]
        for trigger, source, target, when in self._moves:
            if trigger is not self._anywhere:
                # two characters that are syntax in Mermaid
                told = when.replace(";", ",").replace(":", ",")
                lines.append(f"    {source.value} --> {target.value}: {trigger.value} ({told})")
        if self._anywhere is not None:
            lines.append(f"    note right of {self._ends[0].value}: {self._anywhere.value}, from every state")
        return "\n".join([*lines, *(f"    {state.value} --> [*]" for state in self._ends)]) + "\n"
