"""The parts of a broker that handlers use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..coordinator import GroupCoordinator
from ._live_settings import LiveSettings
from ._producer_ids import ProducerIds
from ._settings import BrokerSettings
from ._state_file import StateFile
from ._topics import Topics
from ._turns import LongWork
from .metrics import BrokerMetrics
from .quotas import ClientQuotas, Throttle
from .security._scram_users import ScramUsers

if TYPE_CHECKING:
    from .authorizer import Authorizer


@dataclass(slots=True)
class Node:
    """One broker's parts, handed to every handler.

    ``data`` is the data folder, where a :class:`~._state_file.StateFile` lies. ``authorizer`` is None
    where there are no access rules. ``now_ms`` is the wall clock that timestamps are compared with.
    """

    settings: BrokerSettings
    data: Path
    cluster_id: str
    topics: Topics
    coordinator: GroupCoordinator
    producer_ids: ProducerIds
    scram_users: ScramUsers
    now_ms: Callable[[], int]
    live: LiveSettings
    metrics: BrokerMetrics
    quotas: ClientQuotas
    quotas_file: StateFile
    throttle: Throttle
    authorizer: Authorizer | None = None
    long_work: LongWork = field(default_factory=LongWork)

    @property
    def node_id(self) -> int:
        return self.settings.node_id
