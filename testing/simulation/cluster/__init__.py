"""Simulates several brokers under faults: replication, controller, coordinators as they ship, with producers
and consumers as they ship.
"""

from ._plan import faults_table
from ._simulate import simulate_cluster, trace_cluster

__all__ = ["faults_table", "simulate_cluster", "trace_cluster"]
