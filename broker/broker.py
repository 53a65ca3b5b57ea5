"""The broker: a data folder, a coordinator and a listener, started and stopped in the right order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..cluster import MetadataStore
from ..coordinator import CoordinatorEvent, EventStream, GroupCoordinator, KeptEvent
from ..lag import GroupLag
from ..protocol import KohortError
from ..settings import SettingsError
from .apis import AnyApi, warm_up
from .assembly import BrokerAssembly
from .event_loop.process import pause_collector
from .kafka_names import find_meaningless
from .metadata.topics import Topics
from .metrics import BrokerSnapshot
from .network._server import host_port
from .node import Node
from .requests.router import Router
from .settings import BrokerSettings, broker_settings

if TYPE_CHECKING:
    from .metadata.cluster_node import ClusterNode
    from .metrics._exposer import MetricsListener
    from .share.share_leader import ShareLeader

log = logging.getLogger("kohort.broker")


class Broker:
    """One Kafka broker in this process, on the running event loop.

    ``async with Broker() as broker:`` serves until the block ends; clients connect to ``broker.bootstrap``.
    Without ``data`` the topics are in a temporary folder, which is removed with the broker. ``settings`` maps
    Kafka's names to values, or is a BrokerSettings. ``metrics_port`` serves /metrics for Prometheus (0: a
    free port, see the attribute). ``clock_ms`` is the groups' clock and ``make_router`` makes the router,
    both for test kits. ``on_event`` is called with each event of the coordinator; ``events`` subscribes to
    them, ``history`` returns past ones. ``open_store`` begins a session with metadata that brokers share:
    this is then one broker of a cluster, and its data folder holds only records.

    Raises SettingsError; ``start`` raises DataFolderInUseError, and OSError if the address is not available.
    """

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        data: str | Path | None = None,
        settings: Mapping[str, object] | BrokerSettings | None = None,
        on_event: Callable[[CoordinatorEvent], None] | None = None,
        clock_ms: Callable[[], int] | None = None,
        make_router: Callable[[Node, Callable[[], Mapping[int, AnyApi]]], Router] = Router,
        metrics_port: int | None = None,
        open_store: Callable[[], Awaitable[MetadataStore]] | None = None,
    ) -> None:
        #: Port of /metrics; None: not served.
        self.metrics_port = metrics_port
        self._metrics_listener: MetricsListener | None = None
        if not isinstance(settings, BrokerSettings) and (ignored := find_meaningless(settings or ())):
            log.warning("settings of Apache Kafka that mean nothing here: %s", ", ".join(ignored))
        self.settings = broker_settings(settings or {})
        self.host = host
        self.port = port
        self.temporary = data is None
        #: The data folder; a temporary one is known only while the broker serves.
        self.data = None if data is None else Path(data)
        self._on_event = on_event
        self._clock_ms = clock_ms
        self._make_router = make_router
        if open_store is None and self.settings.zookeeper_connect:
            open_store = partial(open_shared_metadata, self.settings)
        if open_store is None:
            _check_alone(self.settings)
        self._open_store = open_store
        self._parts: BrokerAssembly | None = None
        self._addresses: dict[str, tuple[str, int]] = {}

    def __repr__(self) -> str:
        return f"Broker({self.bootstrap if self._parts else 'not started'}, {self.data})"

    @property
    def bootstrap(self) -> str:
        """``HOST:PORT`` for clients of the first listener."""
        return host_port(self.host, self.port)

    @property
    def endpoints(self) -> dict[str, str]:
        """``HOST:PORT`` of each listener, by its name."""
        return self._require_running().server.endpoints()

    @property
    def addresses(self) -> dict[str, str]:
        """``HOST:PORT`` where each listener listens, by its name; the first is ``bootstrap``."""
        return {name: host_port(*address) for name, address in self._addresses.items()}

    @property
    def cluster_id(self) -> str:
        """Id of the cluster. Raises RuntimeError while the broker does not run."""
        return self._require_running().node.image.cluster_id

    @property
    def cluster(self) -> ClusterNode | None:
        """This broker's part in its cluster; None for a single broker."""
        return self._require_running().node.cluster

    @property
    def topics(self) -> Topics:
        """The topics as this broker knows them, for code on its own event loop."""
        return self._require_running().node.topics

    @property
    def coordinator(self) -> GroupCoordinator:
        """The groups, for code on the broker's own event loop."""
        return self._require_running().coordinator

    @property
    def shares(self) -> ShareLeader:
        """The share partitions that this broker leads, for code on its own event loop."""
        return self._require_running().node.shares

    def events(self, group: str | None = None) -> EventStream:
        """Events of a group (None: of all) from now on: ``async for event in broker.events(): ...``.

        Use it on the broker's own event loop while it serves; the stream ends when the broker stops.
        """
        return self._require_running().coordinator.events(group)

    def metrics(self) -> BrokerSnapshot:
        """Snapshot of the broker's figures. Use it on the broker's own event loop while it serves."""
        return self._require_running().snapshot()

    async def look_at_lag(self) -> Sequence[GroupLag]:
        """Look at the lag of every group that this broker coordinates, now and not at the next interval; it
        is in ``metrics().lag``, too. Use it on the broker's own event loop while it serves.
        """
        sampler = self._require_running().lag
        await sampler.look()
        return sampler.figures.groups

    def history(self, group: str, limit: int = -1, after: int = -1) -> list[KeptEvent]:
        """History of a group, oldest first: entries with a higher sequence than ``after``, the newest
        ``limit`` of them (-1: all). Raises KafkaError (GROUP_ID_NOT_FOUND and others).
        """
        return self._require_running().coordinator.history(group, limit, after)

    async def __aenter__(self) -> Broker:
        await self.start()
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Open the data folder, listen, load the groups.

        Clients that connect before all groups are loaded are served; requests about groups that are still
        loading are answered with a retriable error. With ``kohort.offsets.load.strict`` also raises
        LoadError.
        """
        assert self._parts is None, "a broker is started once"
        if self.data is None:
            self.data = _temporary_folder()
        parts: BrokerAssembly | None = None
        store: MetadataStore | None = None
        try:
            cluster_id = None
            if self._open_store is not None:
                store = await self._open_store()
                from .metadata.lone_folder import begun_cluster

                cluster_id = await begun_cluster(self.data, store, self.settings.node_id)
            with pause_collector():
                parts = BrokerAssembly(
                    self.data,
                    (self.host, self.port),
                    self.settings,
                    self._on_event,
                    self._clock_ms,
                    self._make_router,
                    store=store,
                    cluster_id=cluster_id,
                    records=not self.temporary,
                )
            if store is not None:
                from ..cluster import ZooKeeperStore

                # the folder is locked by now
                if isinstance(store, ZooKeeperStore):
                    await store.end_former(self.data)
            parts.open()
            await parts.listen()
            self._addresses = parts.server.addresses(self.host)
            self.host, self.port = next(iter(self._addresses.values()))
            await parts.start()
            await self._expose_metrics(parts)
        except BaseException as error:
            if parts is not None:
                try:
                    await parts.stop()
                except Exception as another:
                    # a full disk for one: what went wrong first is what has to be told
                    error.add_note(f"stopping then failed, too: {another}")
            elif store is not None:
                store.close()
            self._remove_temporary()
            raise
        self._parts = parts
        warm_up()

    async def failure(self) -> None:
        """Wait until the broker cannot serve any more, for ever if that does not happen. Raises KohortError,
        with what to do; then stop it.
        """
        cluster = self.cluster
        await (
            asyncio.get_running_loop().create_future() if cluster is None else asyncio.shield(cluster.failure)
        )

    async def stop(self) -> None:
        """Stop listening, stop the coordinator, close the logs; return when everything is on disk."""
        parts, self._parts = self._parts, None
        if self._metrics_listener is not None:
            self._metrics_listener.stop()
        if parts is not None:
            await parts.stop()
            self._remove_temporary()

    async def kill(self) -> None:
        """Stop as if the process were killed: announce nothing, and write and flush nothing more. The session
        with shared metadata stays open until its opener ends it.
        """
        parts, self._parts = self._parts, None
        if parts is not None:
            await parts.kill()

    async def _expose_metrics(self, parts: BrokerAssembly) -> None:
        """Serve /metrics, if a port was given."""
        if self.metrics_port is None:
            return
        from .metrics._exposer import MetricsListener

        listener = MetricsListener(parts.snapshot, self.host, self.metrics_port)
        await listener.start()
        self.metrics_port = listener.port
        self._metrics_listener = listener
        parts.lag.start(self.settings.kohort_lag_interval_ms, at_once=True)

    def _require_running(self) -> BrokerAssembly:
        assert self._parts is not None, "the broker is not started"
        return self._parts

    def _remove_temporary(self) -> None:
        if self.temporary and self.data is not None:
            import shutil

            shutil.rmtree(self.data, ignore_errors=True)


async def open_shared_metadata(settings: BrokerSettings) -> MetadataStore:
    """Begin a session with the ensemble of the settings. Raises KohortError."""
    from ..client.zookeeper import ZooKeeperSettings
    from ..cluster import open_zookeeper

    try:
        return await open_zookeeper(
            ZooKeeperSettings(
                settings.zookeeper_connect,
                settings.zookeeper_session_timeout_ms,
                settings.zookeeper_connection_timeout_ms or settings.zookeeper_session_timeout_ms,
                settings.kohort_zookeeper_digest or None,
                tls=settings.zookeeper_ssl_client_enable,
                ca=settings.zookeeper_ssl_truststore_location or None,
                certificate=settings.zookeeper_ssl_keystore_location or None,
                set_acl=settings.zookeeper_set_acl,
            )
        )
    except (ConnectionError, ImportError, ValueError) as error:
        raise KohortError(str(error)) from error


def _check_alone(settings: BrokerSettings) -> None:
    """Raise SettingsError for replicas that no other broker could have."""
    for name in (
        "default_replication_factor",
        "offsets_topic_replication_factor",
        "transaction_state_log_replication_factor",
    ):
        if getattr(settings, name) > 1:
            raise SettingsError(
                f"{name.replace('_', '.')}={getattr(settings, name)} is not allowed: this broker is alone; "
                "set it to 1, or give zookeeper.connect"
            )


def _temporary_folder() -> Path:
    # imported here: it is a tenth of a start's imports, and servers have a folder of their own
    import tempfile

    return Path(tempfile.mkdtemp(prefix="kohort-"))
