"""The parts of a broker that handlers use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..cluster import ClusterImage, Document, ProducerIds
from ..coordinator import GroupCoordinator, GroupEvent
from ..recording import Recorder
from ..share_state import ShareCoordinator
from ..transactions import TransactionCoordinator
from .authorizer import Authorizer
from .clients.fetch_sessions import FetchSessions
from .event_loop.time_slices import LongWork
from .metadata.controller_requests import ControllerRequests
from .metadata.features import Features
from .metadata.group_configs import GroupConfigs
from .metadata.live_settings import LiveSettings
from .metadata.topics import Topics
from .metrics import BrokerMetrics
from .partitions.local_logs import LocalLogs
from .quotas import ClientQuotas, Throttle
from .security._scram_users import ScramUsers
from .settings import BrokerSettings
from .share.share_leader import ShareLeader

if TYPE_CHECKING:
    # what only a broker of a cluster needs
    from .metadata.cluster_node import ClusterNode


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
    share_states: ShareCoordinator
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
    #: The share partitions that this broker leads. They need the node to reach the share coordinators.
    shares: ShareLeader = field(init=False)
    authorizer: Authorizer | None = None
    #: What records the broker's groups; None: nothing does.
    recorder: Recorder[GroupEvent] | None = None
    #: None for a single broker.
    cluster: ClusterNode | None = None
    long_work: LongWork = field(default_factory=LongWork)
    #: Held while metadata are worked out and written; see ``ServedApi.one_at_a_time``.
    metadata_change: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def control(self) -> ControllerRequests:
        """The way to the controller."""
        return self.topics.control

    @property
    def image(self) -> ClusterImage:
        """The newest image of topics and brokers that this broker has put in force."""
        return self.topics.image
