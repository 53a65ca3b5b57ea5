"""A life cycle: a table of legal moves, and the machine that is made from it.

One machine serves every model of its kind: it keeps no model of its own, so it costs nothing per group or
member. The table is checked once, when the machine is built; its moves have neither conditions nor
callbacks, so each is then only a look into where it says they lead.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from enum import Enum
from typing import Generic, NamedTuple, Protocol, TypeVar

from transitions import Machine

S = TypeVar("S", bound=Enum)
T = TypeVar("T", bound=Enum)

# it logs every move at INFO: noise in the program that embeds us
logging.getLogger("transitions").setLevel(logging.WARNING)


class IllegalTransitionError(RuntimeError):
    """A trigger that the state does not have: a bug of the caller, never of a peer."""


class Transition(NamedTuple, Generic[S, T]):
    """One legal move and when it happens."""

    trigger: T
    source: S
    target: S
    when: str


class HasState(Protocol[S]):
    """Anything that a machine can move: it needs a writable ``state``."""

    state: S


class LifeCycle(Generic[S, T]):
    """The moves of one ``kind`` of model, which begins in one of ``begins`` and ends in ``final``.

    ``anywhere`` is the trigger that leads to ``final`` from every state, if one does.
    """

    def __init__(
        self,
        kind: str,
        moves: Sequence[Transition[S, T]],
        *,
        begins: Sequence[S],
        final: S,
        anywhere: T | None = None,
    ) -> None:
        self._kind, self._moves = kind, moves
        self._begins, self._final, self._anywhere = begins, final, anywhere
        rows = [[move.trigger.value, move.source, move.target] for move in moves]
        states = type(final)
        machine = Machine(None, states, begins[0], auto_transitions=False, transitions=rows)
        self._targets: dict[tuple[S, T], S] = {
            (move.source, move.trigger): states[str(transition.dest)]
            for move in moves
            for transition in machine.get_transitions(move.trigger.value, move.source)
        }

    def next(self, state: S, trigger: T) -> S:
        """The state to which a trigger leads. Raises IllegalTransitionError naming state and trigger."""
        target = self._targets.get((state, trigger))
        if target is None:
            legal = ", ".join(each.value for each in self.legal(state)) or "nothing"
            raise IllegalTransitionError(
                f"a {self._kind} in state {state.value} cannot {trigger.value}: legal there: {legal}"
            )
        return target

    def fire(self, model: HasState[S], trigger: T) -> None:
        """Move ``model.state`` along the table. Raises as ``next`` does."""
        model.state = self.next(model.state, trigger)

    def legal(self, state: S) -> tuple[T, ...]:
        """The triggers of a state, in the order of the table."""
        return tuple(move.trigger for move in self._moves if move.source is state)

    def diagram(self) -> str:
        """The table as a Mermaid state diagram; what leads to the final state from anywhere is a note."""
        lines = ["stateDiagram-v2", *(f"    [*] --> {state.value}" for state in self._begins)]
        for trigger, source, target, when in self._moves:
            if trigger is not self._anywhere:
                # the two characters that Mermaid takes for its own
                told = when.replace(";", ",").replace(":", ",")
                lines.append(f"    {source.value} --> {target.value}: {trigger.value} ({told})")
        final = self._final.value
        if self._anywhere is not None:
            lines.append(f"    note right of {final}: {self._anywhere.value}, from every state")
        return "\n".join([*lines, f"    {final} --> [*]"]) + "\n"
