"""Brokers for tests, without Docker or a JVM: ready in milliseconds, with faults and time under the test's
control.

``with running_broker(num_partitions=3) as broker:`` serves clients of any kind at ``broker.bootstrap``; with
pytest, ask for the fixtures ``kohort_broker`` and ``kohort_service``. ``simulate(500)`` runs groups through
drawn faults on virtual time, ``simulate_service(500, service=make)`` whole services.
"""

import importlib
from typing import TYPE_CHECKING

from ._running import running_broker

if TYPE_CHECKING:
    from ._running_broker import RunningBroker
    from ._running_cluster import RunningCluster, running_cluster
    from ._services import ServiceRun, run_service
    from ._steering import Fault, RequestFaults
    from .simulation import SimulationFailed, simulate
    from .simulation.cluster import simulate_cluster
    from .simulation.services import simulate_service
    from .simulation.share_consumers import simulate_share_consumers, simulate_share_services
    from .simulation.share_groups import simulate_share_groups
    from .simulation.transactions import simulate_transactions

_LAZY = {
    "Fault": "_steering",
    "RequestFaults": "_steering",
    "RunningBroker": "_running_broker",
    "RunningCluster": "_running_cluster",
    "ServiceRun": "_services",
    "SimulationFailed": "simulation",
    "run_service": "_services",
    "running_cluster": "_running_cluster",
    "simulate": "simulation",
    "simulate_service": "simulation.services",
    "simulate_cluster": "simulation.cluster",
    "simulate_share_consumers": "simulation.share_consumers",
    "simulate_share_groups": "simulation.share_groups",
    "simulate_share_services": "simulation.share_consumers",
    "simulate_transactions": "simulation.transactions",
}


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Fault",
    "RequestFaults",
    "RunningBroker",
    "RunningCluster",
    "ServiceRun",
    "SimulationFailed",
    "run_service",
    "running_broker",
    "running_cluster",
    "simulate",
    "simulate_cluster",
    "simulate_service",
    "simulate_share_consumers",
    "simulate_share_groups",
    "simulate_share_services",
    "simulate_transactions",
]
