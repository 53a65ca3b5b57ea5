"""Simulates a share group of share consumers as they ship, on several brokers under faults."""

from ..engine._runs import ScheduleKind
from ._plan import draw_consumer_plan, faults_table
from ._world import ShareConsumerWorld

__all__ = ["faults_table", "simulate_share_consumers", "trace_share_consumers"]

_KIND = ScheduleKind(" --share-consumers", draw_consumer_plan, ShareConsumerWorld)
simulate_share_consumers = _KIND.simulate
"""Run schedules of share consumers by seed: see :meth:`~..engine._runs.ScheduleKind.simulate`."""
trace_share_consumers = _KIND.trace
