"""Simulates the coordinator and its log with light members: fast, for tens of thousands of schedules."""

from ._plan import faults_table
from ._simulate import simulate, trace

__all__ = ["faults_table", "simulate", "trace"]
