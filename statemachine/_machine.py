"""The machine behind both life cycles, made from a table of legal moves.

One machine serves every model of its kind: it keeps no model of its own, so it costs nothing per group or
member. The table is checked once, when the machine is built; its moves have neither conditions nor
callbacks, so each is then only a look into where it says they lead.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Protocol

from transitions import Machine

# it logs every move at INFO: noise in the program that embeds us
logging.getLogger("transitions").setLevel(logging.WARNING)


class IllegalTransitionError(RuntimeError):
    """A trigger that the state does not have: a bug of the caller, never of a peer."""


class Move(Protocol):
    """A row of a table: ``trigger`` leads from ``source`` to ``target``; ``when`` says in what case."""

    @property
    def trigger(self) -> Enum: ...
    @property
    def source(self) -> Enum: ...
    @property
    def target(self) -> Enum: ...


def follower(kind: str, states: type[Enum], moves: Sequence[Move]) -> Callable[[Any, Enum], Any]:
    """A function that gives the state to which a trigger leads from a state.

    It raises IllegalTransitionError, naming ``kind``, state and trigger, for a move that is not in the table.
    Raises ValueError for a table with a state that is none of ``states``.
    """
    for move in moves:
        for state in (move.source, move.target):
            if not isinstance(state, states):
                raise ValueError(f"{state} is no state of a {kind}")
    machine = Machine(
        model=None,
        states=states,
        initial=next(iter(states)),
        auto_transitions=False,
        transitions=[[move.trigger.value, move.source, move.target] for move in moves],
    )
    targets = {
        (move.source, move.trigger): states[str(transition.dest)]
        for move in moves
        for transition in machine.get_transitions(move.trigger.value, move.source)
    }

    def follow(state: Any, trigger: Enum) -> Any:
        target = targets.get((state, trigger))
        if target is None:
            legal = ", ".join(move.trigger.value for move in moves if move.source is state) or "nothing"
            raise IllegalTransitionError(
                f"a {kind} in state {state.value} cannot {trigger.value}: legal there: {legal}"
            )
        return target

    return follow


def mover(kind: str, states: type[Enum], moves: Sequence[Move]) -> Callable[[Any, Enum], None]:
    """A function that moves a model, anything with a writable ``state``, by a trigger. See ``follower``."""
    follow = follower(kind, states, moves)

    def fire(model: Any, trigger: Enum) -> None:
        model.state = follow(model.state, trigger)

    return fire
