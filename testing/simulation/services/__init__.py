"""Simulates whole services under faults: the consumer as it ships, on a simulated event loop and cluster."""

from ._plan import faults_table
from ._simulate import simulate_service, trace_service

__all__ = ["faults_table", "simulate_service", "trace_service"]
