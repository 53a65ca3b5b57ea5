"""The machine behind both life cycles, made from a table of legal moves.

One machine serves every model of its kind: it keeps no model of its own, so it costs nothing per group or
member, and a move takes some microseconds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Protocol

from transitions import Machine, MachineError

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


def mover(kind: str, states: type[Enum], moves: Sequence[Move]) -> Callable[[Any, Enum], None]:
    """A function that moves a model, anything with a writable ``state``, by a trigger.

    It raises IllegalTransitionError, naming ``kind``, state and trigger, for a move that is not in the table.
    """
    machine = Machine(
        model=None,
        states=states,
        initial=next(iter(states)),
        auto_transitions=False,
        transitions=[[move.trigger.value, move.source, move.target] for move in moves],
    )
    events = {move.trigger: machine.events[move.trigger.value] for move in moves}

    def fire(model: Any, trigger: Enum) -> None:
        try:
            events[trigger].trigger(model)
        except MachineError as error:
            legal = ", ".join(move.trigger.value for move in moves if move.source is model.state) or "nothing"
            raise IllegalTransitionError(
                f"a {kind} in state {model.state.value} cannot {trigger.value}: legal there: {legal}"
            ) from error

    return fire
