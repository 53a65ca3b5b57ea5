"""Simulates a share group of share consumers as they ship, or of services on them, on several brokers under
faults.
"""

from ..engine._runs import ScheduleKind
from ._plan import draw_consumer_plan, draw_service_plan, faults_table
from ._world import ShareConsumerWorld

__all__ = [
    "faults_table",
    "simulate_share_consumers",
    "simulate_share_services",
    "trace_share_consumers",
    "trace_share_services",
]

_CONSUMERS = ScheduleKind(" --share-consumers", draw_consumer_plan, ShareConsumerWorld)
simulate_share_consumers = _CONSUMERS.simulate
"""Run schedules of share consumers by seed: see :meth:`~..engine._runs.ScheduleKind.simulate`."""
trace_share_consumers = _CONSUMERS.trace
_SERVICES = ScheduleKind(" --share-services", draw_service_plan, ShareConsumerWorld)
simulate_share_services = _SERVICES.simulate
"""Run schedules of services on share groups by seed."""
trace_share_services = _SERVICES.trace
