"""Simulates groups under every kind of fault, on virtual time, with the shipped coordinator, log, assignors
and memberships.

``simulate(500)`` runs 500 schedules; each is drawn from its seed alone, so that a failure can be reproduced.
See docs/simulation.md.
"""

from ._member import Application, MakeApplication
from ._plan import MakeAssignors, faults_table
from ._schedule import Stats
from ._simulate import SimulationFailed, SimulationReport, replay_command, simulate, trace
from ._violation import INVARIANTS, Violation, invariants_table

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
