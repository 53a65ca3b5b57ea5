"""Simulates transactions under faults: the broker as it ships, with producers and readers of committed
records.
"""

from ..engine._runs import ScheduleKind
from ._plan import draw_transaction_plan, faults_table
from ._world import TransactionWorld

__all__ = ["faults_table", "simulate_transactions", "trace_transactions"]

_KIND = ScheduleKind(" --transactions", draw_transaction_plan, TransactionWorld)
simulate_transactions = _KIND.simulate
"""Run schedules of transactions by seed: see :meth:`~..engine._runs.ScheduleKind.simulate`."""
trace_transactions = _KIND.trace
