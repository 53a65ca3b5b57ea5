"""A broker's part in a cluster: its session with the shared metadata, its registration, its image of the
cluster, and its connections to other brokers.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from ...client import AuthenticationError, BrokerConnectionError
from ...client.connection import Connection
from ...client.metadata import Address
from ...client.surroundings import SURROUNDINGS
from ...cluster import (
    NO_LEADER,
    UNKNOWN_EPOCH,
    BrokerRegistration,
    ClusterImage,
    ClusterView,
    Endpoint,
    MetadataStore,
    Registration,
    SessionState,
    WrongClusterError,
    own_version,
)
from ...cluster.controller import DELETIONS_KEPT_S
from ...log import DataFolder
from ...protocol import ErrorCode, KafkaError, KohortError, RequestBody, TopicPartition
from ...settings import MAX_INT, SettingsError
from ..event_loop.standstill import StandstillWatch
from ..metrics import MetadataFigures
from ..quotas import QuotaWindows, ReplicationThrottle
from ..reporting.trouble import Trouble
from ..security._between_brokers import BetweenBrokers
from ..settings import BrokerSettings
from .controller_client import Control
from .lost_replicas import LostReplicas
from .newer_epochs import NewerEpochs
from .stray_coordinators import StrayCoordinators

log = logging.getLogger("kohort.broker")

T = TypeVar("T")

#: Time for a connection to another broker to be accepted, in milliseconds.
_CONNECT_MS = 2_000

#: Least time between two lines about ZooKeeper out of reach, in seconds.
_TOLD_AGAIN_S = 10.0


class ClusterNode:
    """A broker of a cluster. ``store`` is its open session with the shared metadata, ``now_ms`` the wall
    clock.

    ``follow_in_slices`` is awaited with each new image, in order; ``follow`` is called with the first one,
    and with None when the session is over: from then on this broker must not lead anything.
    """

    def __init__(
        self, store: MetadataStore, settings: BrokerSettings, now_ms: Callable[[], int], folder: DataFolder
    ) -> None:
        self.node_id = settings.node_id
        self.store = store
        self.follow: Callable[[ClusterImage | None], None] = lambda _: None
        self.follow_in_slices: Callable[[ClusterImage], Awaitable[None]]
        self._between = BetweenBrokers(settings)
        windows = QuotaWindows(
            settings.replication_quota_window_num, settings.replication_quota_window_size_seconds
        )
        #: Throttles of what this broker sends to followers, and of what it fetches as one.
        self.leader_throttle = ReplicationThrottle(
            self.node_id, windows, lambda: settings.leader_replication_throttled_rate
        )
        self.follower_throttle = ReplicationThrottle(
            self.node_id, windows, lambda: settings.follower_replication_throttled_rate
        )
        self._wake = asyncio.Event()
        #: Fails when this broker cannot be part of its cluster any more.
        self.failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._disconnects = self._expired = 0
        self._away = Trouble(repeat_s=_TOLD_AGAIN_S)
        # since when the metadata store is out of reach, on the loop's clock
        self._away_since: float | None = None
        self._connections: dict[int, Connection] = {}
        self._connecting: dict[int, asyncio.Lock] = {}
        self._follower: asyncio.Task[None] | None = None
        self.view = ClusterView(store, self._wake.set)
        self._standstill = StandstillWatch(store, settings.zookeeper_session_timeout_ms / 1_000)
        self.registration = Registration(
            store,
            BrokerRegistration(settings.node_id, settings.broker_rack or None, version=own_version()),
            now_ms,
        )
        self._lost = LostReplicas(folder, self.registration, self.node_id)
        self._newer_epochs = NewerEpochs(folder, self.registration, self.node_id)
        self._stray_coordinators = StrayCoordinators(folder, self.registration, self.node_id)
        self.control = Control(store, self.view, self.registration, settings, now_ms, self.connect)
        store.on_session(self._session_changed)

    def __repr__(self) -> str:
        return f"ClusterNode({self.node_id}, {self.view.image}, {self.store.session.value})"

    @property
    def image(self) -> ClusterImage:
        """The cluster as its metadata is now."""
        return self.view.image

    @property
    def epoch(self) -> int:
        """The epoch of this broker's registration; -1 while it has none."""
        return self.registration.epoch

    def figures(self) -> MetadataFigures:
        """Figures of the session, and of the brokers that are registered."""
        versions = Counter(each.version for each in self.view.image.brokers.values())
        connected = self.store.session is SessionState.CONNECTED
        return MetadataFigures(connected, self._disconnects, self._expired, versions)

    async def create_internal(self, name: str) -> None:
        """Create a topic of a coordinator, unless it exists. Raises KafkaError: COORDINATOR_NOT_AVAILABLE
        where files of an older one are strays, INVALID_REPLICATION_FACTOR as long as there are too few
        brokers, and others.
        """
        self._stray_coordinators.check(self.view.image, name)
        await self.control.create_internal(name)

    def hears_of_leaders(self) -> bool:
        """Return whether this broker would know by now if others led its partitions."""
        return self.store.session is SessionState.CONNECTED and not self._standstill.is_in_doubt

    def awake_since_s(self) -> float:
        """Return the time on the loop's clock since when this process has not stood still."""
        return self._standstill.awake_since_s

    async def start(self, endpoints: Sequence[Endpoint]) -> None:
        """Join the cluster: register, follow images, and stand for election as controller."""
        self._standstill.start()
        # before it registers: if all brokers were gone, the image must show that this one was
        self.control.start()
        await self._wait_until_missed()
        self._lost.begin(self.view.image)
        self._newer_epochs.begin(self.view.image)
        self._stray_coordinators.begin(self.view.image)
        await self.registration.register(endpoints)
        self.follow(self.view.image)
        self._wake.set()
        self._follower = asyncio.get_running_loop().create_task(self._follow_image())

    async def stop(self) -> None:
        """Stop deciding and leave the store: the session ends, other brokers take over."""
        await self.control.stop()
        self.close()
        self.store.close()

    def close(self) -> None:
        """Stop following images; the session expires as that of a killed broker."""
        self._standstill.stop()
        self.registration.close()
        for connection in self._connections.values():
            connection.close()
        if self._follower is not None:
            self._follower.cancel()

    def endpoint(self, node_id: int, listener: str) -> tuple[str, int] | None:
        """Host and port that a broker advertises for a listener; None if it is not registered, or has no such
        listener.
        """
        broker = self.view.image.brokers.get(node_id)
        return None if broker is None else broker.address(listener)

    def leader_of(self, topic: str, partition: int) -> int:
        """Node id of the broker that leads a partition; -1 if none does."""
        found = self.view.image.topic(topic)
        if found is None or not 0 <= partition < len(found.partitions):
            return NO_LEADER
        return found.partitions[partition].leader

    def leader_epoch_of(self, topic: str, partition: int) -> int:
        """Leader epoch of a partition; -1 if it is not known."""
        found = self.view.image.topic(topic)
        if found is None or not 0 <= partition < len(found.partitions):
            return UNKNOWN_EPOCH
        return found.partitions[partition].leader_epoch

    async def ask(self, node_id: int, body: RequestBody[T], *, timeout_ms: float) -> T:
        """Send a request to another broker over a kept connection. Raises as ``connect`` does."""
        # one that is out of reach keeps nobody from the others
        async with self._connecting.setdefault(node_id, asyncio.Lock()):
            connection = self._connections.get(node_id)
            if connection is None or not connection.is_usable():
                connection = self._connections[node_id] = await self.connect(node_id)
        return await connection.request(body, timeout_ms=timeout_ms)

    async def ask_leader(self, place: TopicPartition, body: RequestBody[T], *, timeout_ms: float) -> T:
        """As ``ask``, the leader of a partition. Raises KafkaError NOT_LEADER_OR_FOLLOWER, too: when another
        broker leads the request is given up, and must do no harm where it still arrives.
        """
        leader = self.leader_of(*place)
        loop = asyncio.get_running_loop()
        asking = loop.create_task(self.ask(leader, body, timeout_ms=timeout_ms))
        moving = loop.create_task(self._moved_from(leader, place))
        try:
            await asyncio.wait((asking, moving), return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                return asking.result()
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"broker {leader} has not answered, and leads {place.topic}-{place.partition} no more",
            )
        finally:
            asking.cancel()
            moving.cancel()

    async def _moved_from(self, leader: int, place: TopicPartition) -> None:
        while self.leader_of(*place) == leader:
            await self.control.next_image()

    async def connect(self, node_id: int) -> Connection:
        """A new connection to another broker, over the listener of brokers. Raises KafkaError
        BROKER_NOT_AVAILABLE, and BrokerConnectionError.
        """
        between = self._between
        found = self.endpoint(node_id, between.listener.name)
        if found is None:
            raise KafkaError(
                ErrorCode.BROKER_NOT_AVAILABLE,
                f"broker {node_id} is not there, or has no listener {between.listener.name}",
            )
        address = Address(*found)
        try:
            return await SURROUNDINGS.get().open_connection(
                address,
                client_id=f"broker-{self.node_id}",
                timeout_ms=_CONNECT_MS,
                # leaders send the first batch whole, and what a topic takes may be raised at any time
                max_frame_bytes=MAX_INT,
                ssl_context=between.tls_context(),
                sasl=between.sasl,
            )
        except SettingsError as error:
            # certificate files may be being replaced at this moment
            raise BrokerConnectionError(str(address), str(error)) from error
        except AuthenticationError as error:
            # a retry may succeed: passwords and certificates are replaced while brokers run
            raise BrokerConnectionError(str(address), f"{error}; {between.advice()}") from error

    async def _wait_until_missed(self) -> None:
        """Wait until the controller has noticed that the former process is gone, and others lead its
        partitions. The log may have lost records that were not on the disk. If this broker came back too
        early, it would count as in sync although it lacks records, or lead in an epoch in which followers
        have other records, and a controller elected meanwhile could not tell.
        """
        told = False
        while True:
            self._wake.clear()
            self.control.image_changed()
            if not self._is_counted_on():
                return
            if not told:
                told = True
                log.warning(
                    "broker %d waits until the session of its former process, or of another broker with this "
                    "node id, has ended, and others lead for it",
                    self.node_id,
                )
            await self._wake.wait()

    def _is_counted_on(self) -> bool:
        """Return whether the image has this broker as registered, as a leader, or in sync beside replicas
        that can be used.
        """
        brokers = self.view.image.brokers
        return self.node_id in brokers or any(
            state.leader == self.node_id
            or (self.node_id in state.isr and not set(state.isr) <= set(state.offline))
            for topic in self.view.image.topics()
            for state in topic.partitions
        )

    def _is_replaced(self, image: ClusterImage) -> bool:
        """Return whether another process has taken this node id since the session was lost: the image then
        describes that process.
        """
        found = image.brokers.get(self.node_id)
        return found is not None and found.endpoints != self.registration.endpoints

    def _session_changed(self, state: SessionState) -> None:
        now = asyncio.get_running_loop().time()
        if state is SessionState.CONNECTED:
            if self._away_since is not None and now - self._away_since > DELETIONS_KEPT_S / 2:
                self.view.forget()
            self._away_since = None
            self._away.on_absent("ZooKeeper is in reach again")
        elif self._away_since is None:
            self._away_since = now
            self._disconnects += 1
            self._away.on_present("ZooKeeper is out of reach: once its session is over others lead")
        if state is SessionState.LOST:
            self._expired += 1
            log.warning("the session with ZooKeeper is over: others lead what this broker led")
            self.follow(None)
            if self.store.refusal is not None:
                self._leave_cluster(self.store.refusal)
        self._wake.set()

    def _leave_foreign(self) -> None:
        """Leave: other metadata are in the place of this cluster's."""
        error = WrongClusterError(
            f"this broker belongs to cluster {self.view.image.cluster_id}, and its metadata store has become "
            "that of another: it leads nothing any more, and its files stay as they are; bring back the "
            "metadata store that it had, then start it again"
        )
        log.error("%s", error)
        self._leave_cluster(error)

    def _leave_cluster(self, error: KohortError) -> None:
        """Lead nothing, and tell the owner to stop."""
        self.registration.close()
        self.follow(None)
        if not self.failure.done():
            self.failure.set_exception(error)
            # it is told in the log, too: nobody has to wait for it
            self.failure.exception()

    async def _follow_image(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self.store.session is SessionState.LOST:
                continue
            if self.view.is_foreign:
                self._leave_foreign()
                return
            image = self.view.image
            self._lost.follow(image)
            self._newer_epochs.follow(image)
            try:
                if self._is_replaced(image):
                    self.follow(None)
                else:
                    await self.follow_in_slices(image)
            except Exception:
                log.exception("broker %d could not follow the image of its cluster", self.node_id)
            self.control.image_changed()
