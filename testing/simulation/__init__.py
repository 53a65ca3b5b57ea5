"""Simulates groups under every kind of fault, on virtual time, with the shipped coordinator, log, assignors
and memberships.

``simulate(500)`` runs 500 schedules; each is drawn from its seed alone, so that a failure can be reproduced.
See docs/simulation.md.
"""

from .engine._runs import SimulationFailed, SimulationReport, replay_command
from .engine._schedule import Stats
from .engine._violation import INVARIANTS, Violation, invariants_table
from .groups._member import Application, MakeApplication
from .groups._plan import MakeAssignors, faults_table
from .groups._simulate import simulate, trace

__all__ = [
    "INVARIANTS",
    "Application",
    "MakeApplication",
    "MakeAssignors",
    "SimulationFailed",
    "SimulationReport",
    "Stats",
    "Violation",
    "faults_table",
    "invariants_table",
    "replay_command",
    "simulate",
    "trace",
]
