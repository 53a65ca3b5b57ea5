"""The broker: a data folder, a coordinator and a listener, started and stopped in the right order."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from copy import copy
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ..coordinator import EventStream, GroupCoordinator, HistoryEntry, Note
from ..log import DataFolder
from ..offsets_topic import OffsetsStore
from ..protocol import ApiKey
from ._background import Background
from ._event_log import EventLog
from ._kept import live_settings, quotas_file
from ._names import OFFSETS_TOPIC
from ._node import Node
from ._producer_ids import ProducerIds
from ._requests import Handler
from ._router import Router
from ._server import Server, host_port
from ._settings import BrokerSettings, broker_settings, parse_principals
from ._topics import Topics
from ._warm import warm_up
from .metrics import BrokerMetrics, BrokerSnapshot
from .quotas import ClientQuotas, QuotaTable, QuotaWindows, Throttle
from .security._scram_users import ScramUsers

if TYPE_CHECKING:
    from .authorizer._gate import Gate
    from .metrics._exposer import MetricsListener

log = logging.getLogger("kohort.broker")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class Broker:
    """One Kafka broker in this process, on the running event loop.

    ``async with Broker() as broker:`` serves until the block ends; ``broker.bootstrap`` is what clients
    connect to. Without ``data`` the topics live in a temporary folder that goes with the broker.
    ``settings`` are Kafka's names and values, or a BrokerSettings. ``metrics_port`` is where Prometheus finds
    /metrics (0: a free port, see the attribute). ``clock_ms`` is the time of the groups and
    ``make_router`` what answers requests, both for test kits. ``on_note`` is called with each event of
    the coordinator, ``events`` gives them as they come, ``history`` those that were.

    Raises SettingsError, DataFolderInUseError, and OSError if the address cannot be had.
    """

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        data: str | Path | None = None,
        settings: Mapping[str, Any] | BrokerSettings | None = None,
        on_note: Callable[[Note], None] | None = None,
        clock_ms: Callable[[], int] | None = None,
        make_router: Callable[[Node, Callable[[], Mapping[ApiKey, Handler]]], Router] = Router,
        metrics_port: int | None = None,
    ) -> None:
        #: Where /metrics is served; None: nowhere.
        self.metrics_port = metrics_port
        self._metrics_listener: MetricsListener | None = None
        self.settings = broker_settings(settings or {})
        self.host = host
        self.port = port
        self.temporary = data is None
        #: The data folder; of a temporary one only while it serves.
        self.data = None if data is None else Path(data)
        self._on_note = on_note
        self._clock_ms = clock_ms
        self._make_router = make_router
        self._parts: _Parts | None = None

    def __repr__(self) -> str:
        return f"Broker({self.bootstrap if self._parts else 'not started'}, {self.data})"

    @property
    def bootstrap(self) -> str:
        """``HOST:PORT`` for clients of the first listener."""
        return host_port(self.host, self.port)

    @property
    def endpoints(self) -> dict[str, str]:
        """``HOST:PORT`` of each listener, by its name."""
        return self._running().server.endpoints()

    @property
    def cluster_id(self) -> str:
        return self._running().node.cluster_id

    @property
    def topics(self) -> Topics:
        return self._running().node.topics

    @property
    def coordinator(self) -> GroupCoordinator:
        """The groups, for code on the broker's own event loop."""
        return self._running().coordinator

    def events(self, group: str | None = None) -> EventStream:
        """What happens in a group (None: in all) from now on: ``async for event in broker.events(): ...``.

        For the broker's own event loop, while it serves; ends when it stops.
        """
        return self._running().coordinator.events(group)

    def metrics(self) -> BrokerSnapshot:
        """What the broker has done and does, as plain data; for its own event loop, while it serves."""
        parts = self._running()
        return parts.node.metrics.snapshot(parts.node, parts.server)

    def history(self, group: str, limit: int = -1, after: int = -1) -> list[HistoryEntry]:
        """What happened in a group, oldest first: entries with a higher sequence than ``after``, the newest
        ``limit`` of them (-1: all). Raises KafkaError (GROUP_ID_NOT_FOUND and others).
        """
        return self._running().coordinator.history(group, limit, after)

    async def __aenter__(self) -> Broker:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Open the data folder, listen, load the groups.

        Clients that come before all groups are loaded are served; for a group they are told to ask again.
        Raises LoadError too, with ``kohort.offsets.load.strict``.
        """
        assert self._parts is None, "a broker is started once"
        if self.data is None:
            self.data = _temporary_folder()
        parts: _Parts | None = None
        try:
            parts = _Parts(
                self.data,
                (self.host, self.port),
                self.settings,
                self._on_note,
                self._clock_ms,
                self._make_router,
            )
            parts.coordinator.open()
            await parts.listen()
            self.host, self.port = parts.server.told(self.host)
            await parts.start()
            await self._expose(parts)
        except BaseException:
            if parts is not None:
                await parts.stop()
            self._remove_temporary()
            raise
        self._parts = parts
        warm_up(_handlers)

    async def stop(self) -> None:
        """Stop listening, then the coordinator, then close the logs; waits until all is on disk."""
        parts, self._parts = self._parts, None
        if self._metrics_listener is not None:
            self._metrics_listener.stop()
        if parts is not None:
            await parts.stop()
            self._remove_temporary()

    async def _expose(self, parts: _Parts) -> None:
        """Serve /metrics, where a port was given for it."""
        if self.metrics_port is None:
            return
        from .metrics._exposer import MetricsListener

        node, server = parts.node, parts.server
        listener = MetricsListener(lambda: node.metrics.snapshot(node, server), self.host, self.metrics_port)
        await listener.start()
        self.metrics_port = listener.port
        self._metrics_listener = listener

    def _running(self) -> _Parts:
        assert self._parts is not None, "the broker is not started"
        return self._parts

    def _remove_temporary(self) -> None:
        if self.temporary and self.data is not None:
            import shutil

            shutil.rmtree(self.data, ignore_errors=True)


class _Parts:
    """What a broker consists of while it runs."""

    def __init__(
        self,
        data: Path,
        address: tuple[str, int],
        settings: BrokerSettings,
        on_note: Callable[[Note], None] | None,
        clock_ms: Callable[[], int] | None,
        make_router: Callable[[Node, Callable[[], Mapping[ApiKey, Handler]]], Router],
    ) -> None:
        settings = copy(settings)  # the caller's stay as they are: these may change
        metrics = BrokerMetrics(on_note)
        users = ScramUsers()
        self.server = Server(settings, users, *address)
        self._folder = DataFolder.open(data, node_id=settings.node_id)
        try:
            users.open(Path(self._folder.path))
            users.add_missing(settings.kohort_scram_users)
            live = live_settings(
                settings, self._folder.path, lambda: self.server.quotas.reconfigure(settings)
            )
            live.load()
            topics = Topics(self._folder, settings, _now_ms, metrics.flush_times)
            topics.open()
            live.on_change.append(topics.settings_changed)
            kept_quotas = quotas_file(self._folder.path)
            table = kept_quotas.load(QuotaTable.parse) or QuotaTable()
            gate = _gate(data, settings)
        except BaseException:
            self._folder.close(clean=False)
            raise
        offsets = topics.get(OFFSETS_TOPIC)
        assert offsets is not None, "Topics.open creates it"
        store = OffsetsStore(
            {partition.index: partition for partition in offsets.partitions},
            load_bytes=settings.offsets_load_buffer_size,
        )
        self.coordinator = GroupCoordinator(
            settings=settings,
            store=store,
            partition_count_of=topics.count_of,
            topic_of_id=topics.name_of,
            id_of_topic=topics.id_of,
            clock_ms=clock_ms,
            on_note=EventLog(metrics.groups.see),
            fsync=settings.kohort_offsets_ack_flush,
        )
        quotas = ClientQuotas(
            table,
            QuotaWindows(settings.quota_window_num, settings.quota_window_size_seconds),
            QuotaWindows(settings.controller_quota_window_num, settings.controller_quota_window_size_seconds),
        )
        self.node = Node(
            settings=settings,
            data=Path(self._folder.path),
            cluster_id=self._folder.cluster_id,
            topics=topics,
            coordinator=self.coordinator,
            scram_users=users,
            producer_ids=ProducerIds(topics.next_producer_id, topics.reserve_producer_ids),
            now_ms=_now_ms,
            gate=gate,
            live=live,
            metrics=metrics,
            quotas=quotas,
            quotas_file=kept_quotas,
            throttle=Throttle(quotas),
        )
        self._router = make_router(self.node, _handlers)
        self._background = Background(topics, settings, _now_ms)

    async def listen(self) -> None:
        await self.server.start(self._router)

    async def start(self) -> None:
        await self.coordinator.load_all()
        self._background.start()
        self.node.metrics.start()

    async def stop(self) -> None:
        self.node.metrics.stop()
        await self.server.stop()
        await self.coordinator.stop()
        await self._background.stop()
        clean = False
        try:
            self.node.topics.close()
            clean = not self.node.topics.damaged
        finally:
            self._folder.close(clean=clean)


def _handlers() -> Mapping[ApiKey, Handler]:
    # imported beside the first requests, as the message classes are
    from .handlers import HANDLERS

    return HANDLERS


def _gate(data: Path, settings: BrokerSettings) -> Gate | None:
    """What asks the access rules, where there are some."""
    if not settings.authorizer_class_name:
        return None
    # imported only where it is needed: most brokers are started without
    from .authorizer import Authorizer
    from .authorizer._gate import Gate
    from .authorizer._keeping import AclsFile

    file = AclsFile(data)
    return Gate(
        Authorizer(
            file.load(),
            super_users=parse_principals(settings.super_users),
            allow_everyone_if_no_acl_found=settings.allow_everyone_if_no_acl_found,
            save=file.save,
        )
    )


def _temporary_folder() -> Path:
    # imported here: it is a tenth of what a start imports, and servers have a folder of their own
    import tempfile

    return Path(tempfile.mkdtemp(prefix="kohort-"))
