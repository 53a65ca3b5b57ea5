"""Simulates several brokers under faults: replication, controller, coordinators as they ship, with producers
and consumers as they ship.
"""

from ..engine._runs import ScheduleKind
from ._plan import draw_cluster_plan, faults_table
from ._world import ClusterWorld

__all__ = ["faults_table", "simulate_cluster", "trace_cluster"]

_KIND = ScheduleKind(" --cluster", draw_cluster_plan, ClusterWorld)
simulate_cluster = _KIND.simulate
"""Run schedules of brokers by seed: see :meth:`~..engine._runs.ScheduleKind.simulate`."""
trace_cluster = _KIND.trace
