"""Simulates transactions under faults: the broker as it ships, with producers and readers of committed
records.
"""

from ._plan import faults_table
from ._simulate import simulate_transactions, trace_transactions

__all__ = ["faults_table", "simulate_transactions", "trace_transactions"]
