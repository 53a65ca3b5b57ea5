"""Simulates several brokers with a share group under faults (KIP-932)."""

from ..engine._runs import ScheduleKind
from ._plan import draw_share_plan, faults_table
from ._world import ShareWorld

__all__ = ["faults_table", "simulate_share_groups", "trace_share_groups"]

_KIND = ScheduleKind(" --share-groups", draw_share_plan, ShareWorld)
simulate_share_groups = _KIND.simulate
"""Run schedules of share groups by seed: see :meth:`~..engine._runs.ScheduleKind.simulate`."""
trace_share_groups = _KIND.trace
