"""The parts of a broker that handlers use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..cluster import ClusterImage, Document, ProducerIds
from ..coordinator import GroupCoordinator
from ..transactions import TransactionCoordinator
from ._features import Features
from ._fetch_sessions import FetchSessions
from ._group_configs import GroupConfigs
from ._live_settings import LiveSettings
from ._local_logs import LocalLogs
from ._settings import BrokerSettings
from ._topics import Topics
from ._turns import LongWork
from .authorizer import Authorizer
from .metrics import BrokerMetrics
from .quotas import ClientQuotas, Throttle
from .security._scram_users import ScramUsers

if TYPE_CHECKING:
    # what only a broker of a cluster needs
    from ._cluster import ClusterNode
    from ._control import Control


@dataclass(slots=True)
class Node:
    """One broker's parts, handed to every handler.

    ``authorizer`` is None without access rules. ``now_ms`` is the wall clock, with which timestamps are
    compared.
    """

    node_id: int
    settings: BrokerSettings
    topics: Topics
    logs: LocalLogs
    coordinator: GroupCoordinator
    transactions: TransactionCoordinator
    producer_ids: ProducerIds
    group_configs: GroupConfigs
    features: Features
    scram_users: ScramUsers
    now_ms: Callable[[], int]
    live: LiveSettings
    metrics: BrokerMetrics
    quotas: ClientQuotas
    quotas_file: Document
    throttle: Throttle
    fetch_sessions: FetchSessions
    authorizer: Authorizer | None = None
    #: None for a single broker.
    cluster: ClusterNode | None = None
    long_work: LongWork = field(default_factory=LongWork)
    #: Held while metadata are worked out and written; see ``ServedApi.one_at_a_time``.
    metadata_change: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def control(self) -> Control | None:
        """The way to the controller; None for a broker that is alone."""
        return None if self.cluster is None else self.cluster.control

    @property
    def image(self) -> ClusterImage:
        return self.topics.image
