"""The parts of a running broker: assembled, started and stopped in the right order, and observed."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from copy import copy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ..cluster import Document, FolderStore, MetadataStore, ProducerIds, TopicImage
from ..coordinator import CoordinatorEvent, GroupCoordinator
from ..coordinator.engine.runtime import steady_clock_ms
from ..log import OPEN_FILES, OS_FILES, DataFolder, FileSystem
from ..offsets_topic import OffsetsStore
from ..recording import RecorderFigures, RecordingBounds
from ..share_state import ShareCoordinator
from ..transactions import TransactionCoordinator
from .apis import AnyApi, served_apis
from .authorizer import Authorizer, Operation, ResourceType
from .authorizer._keeping import AclsFile
from .background import Background
from .clients.fetch_sessions import FetchSessions
from .coordinators.share_groups import share_workers
from .coordinators.share_state import (
    largest_state,
    partition_count,
    prune_state,
    share_state_client,
    start_share_state,
)
from .coordinators.transactions import (
    end_in,
    end_unknown,
    largest_record,
    start_transactions,
    take_producer_id,
)
from .event_loop.stopwatch import clock
from .lag_sampler import LagSampler
from .metadata.features import TRANSACTION_VERSION, Features
from .metadata.group_configs import GroupConfigs
from .metadata.live_settings import LiveSettings, SharedSettings
from .metadata.lone_control import LoneControl
from .metadata.topics import Topics
from .metrics import (
    BrokerMetrics,
    BrokerSnapshot,
    FetchSessionFigures,
    GroupFigures,
    PartitionFigures,
    QuotaFigures,
    ReplicaFigures,
)
from .network._server import Server
from .node import Node
from .partitions.late_transactions import find_late
from .partitions.partition import Partition
from .partitions.topic_names import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from .quotas import ClientQuotas, QuotaTable, QuotaWindows, Throttle
from .reporting.event_log import WAIT_S, EventLogWriter
from .requests.router import Router
from .security._scram_users import ScramUsers
from .settings import BrokerSettings, parse_principals
from .share.group_rules import RulesOfGroups
from .share.share_leader import ShareLeader
from .share.share_watch import ShareHistory
from .share.state_persister import StatePersister

if TYPE_CHECKING:
    from .metadata.cluster_node import ClusterNode
    from .replicas.replicas import MovingShards, Replicas
    from .reporting.group_recording import GroupEventRecorder
    from .reporting.lag_recording import LagRecorder

#: How long a broker that stops waits for others to take over leadership, in seconds.
_LEAVE_S = 30.0

_HOUR_MS = 3_600_000


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class _Coordinator(Protocol):
    """A coordinator whose shards come and go with the leadership of their partitions."""

    async def load(self, partition: int, /) -> None: ...
    def unload(self, partition: int, /) -> None: ...


@dataclass(slots=True)
class _Opened:
    """What the metadata of a broker hold, in its folder or in its cluster."""

    settings: BrokerSettings
    metadata: MetadataStore
    live: LiveSettings
    topics: Topics
    producer_ids: ProducerIds
    quotas_file: Document
    quotas: QuotaTable
    authorizer: Authorizer | None
    group_configs: GroupConfigs
    features: Features
    #: Of a broker of a cluster, and of one that is alone.
    cluster: ClusterNode | None
    lone: LoneControl | None


class BrokerAssembly:
    """``store`` is a session with the metadata of the cluster ``cluster_id``; None for a single broker, whose
    metadata is in its folder. ``fs``, ``make_store`` and ``now_ms`` are the disk, the metadata store of a
    folder and the wall clock. ``records``: what happens to groups is recorded in the folder.
    """

    coordinator: GroupCoordinator
    transactions: TransactionCoordinator
    share_states: ShareCoordinator

    def __init__(
        self,
        data: Path,
        address: tuple[str, int],
        settings: BrokerSettings,
        on_event: Callable[[CoordinatorEvent], None] | None,
        clock_ms: Callable[[], int] | None,
        make_router: Callable[[Node, Callable[[], Mapping[int, AnyApi]]], Router],
        *,
        store: MetadataStore | None = None,
        cluster_id: str | None = None,
        fs: FileSystem = OS_FILES,
        make_store: Callable[[str], FolderStore] = FolderStore,
        now_ms: Callable[[], int] = _now_ms,
        records: bool = False,
    ) -> None:
        settings = copy(settings)  # a copy: the caller's settings are not changed
        metrics, users = BrokerMetrics(on_event), ScramUsers()
        self.server = Server(settings, users, metrics, *address)
        # first of all that is on the disk: it locks the folder
        self._folder = DataFolder.open(data, node_id=settings.node_id, cluster_id=cluster_id, fs=fs)
        try:
            opened = self._open_metadata(
                make_store(self._folder.path) if store is None else store, settings, users, metrics, now_ms
            )
        except BaseException:
            self._folder.close(clean=False)
            raise
        self._metadata, self._lone = opened.metadata, opened.lone
        fetch_sessions = FetchSessions(settings.max_incremental_fetch_session_cache_slots)
        self._moving: dict[str, MovingShards] = {}
        self._replicas: Replicas | None = None
        may_be_replaced: Callable[[Partition], bool] = _is_alone
        if opened.cluster is None:
            offsets_log = _lone_offsets(opened)
        else:
            offsets_log, may_be_replaced = self._open_replicas(opened, opened.cluster, fetch_sessions, now_ms)
        later = partial(asyncio.get_running_loop().call_later, WAIT_S)
        self._recording = _make_recording(Path(self._folder.path), settings) if records else None
        self._event_logs = EventLogWriter(self._note_event, later), EventLogWriter(later=later)
        self._count_event = metrics.groups.count_event
        self._make_coordinators(opened, offsets_log, metrics, clock_ms, now_ms)
        opened.topics.on_deleted = self._on_deleted
        self.node = self._make_node(opened, users, metrics, fetch_sessions, now_ms)
        # it asks the coordinators, which ask the node
        self.node.shares = ShareLeader(
            StatePersister(lambda: share_state_client(self.node), self.share_states),
            RulesOfGroups(opened.group_configs),
            self.node.long_work.run,
            now_ms,
            metrics.shares,
            may_be_replaced,
            ShareHistory(settings.kohort_group_history_size, now_ms, self.coordinator.pass_on),
        )
        self._router = make_router(self.node, served_apis)
        if opened.cluster is not None:
            self._start_replicated(opened.cluster)
        self._background = Background(opened.topics, settings, now_ms)
        self.lag = LagSampler(self.node)
        self._lag_recorder: LagRecorder | None = None
        if self._recording is not None:
            from .reporting.lag_recording import LagRecorder

            self._lag_recorder = LagRecorder(self._recording.recorder)
            self.lag.listeners.append(self._lag_recorder.note_look)

    def _open_metadata(
        self,
        metadata: MetadataStore,
        settings: BrokerSettings,
        users: ScramUsers,
        metrics: BrokerMetrics,
        now_ms: Callable[[], int],
    ) -> _Opened:
        """Read what is stored. The settings come first, since all that follows is made with them."""
        # a single broker has its metadata in its folder
        alone = isinstance(metadata, FolderStore)
        users.open(Document(metadata, "scram-users"))
        if alone:
            users.add_missing(settings.kohort_scram_users)
        live = LiveSettings(
            settings,
            Document(metadata, "settings") if alone else SharedSettings(metadata, settings.node_id),
            [lambda: self.server.quotas.reconfigure(settings)],
        )
        live.load()
        topics = Topics(self._folder, settings, now_ms, metrics.flush_times, replicated=not alone)
        cluster: ClusterNode | None = None
        lone: LoneControl | None = None
        if isinstance(metadata, FolderStore):
            lone = LoneControl(topics, metadata, settings)
            lone.open()
            producer_ids = ProducerIds(metadata)
        else:
            from .metadata.cluster_node import ClusterNode
            from .metadata.producer_id_note import ProducerIdNote

            cluster = ClusterNode(metadata, settings, now_ms, self._folder)
            topics.control = cluster.control
            topics.logs.take_in_replicas()
            note = ProducerIdNote(self._folder)
            producer_ids = ProducerIds(metadata, note.read(), note.write)
        live.on_change.append(topics.settings_changed)
        quotas_file = Document(metadata, "client-quotas")
        opened = _Opened(
            settings,
            metadata,
            live,
            topics,
            producer_ids,
            quotas_file,
            quotas_file.load(QuotaTable.parse) or QuotaTable(),
            _make_authorizer(metadata, settings),
            GroupConfigs(settings, Document(metadata, "groups")),
            Features(settings.node_id, Document(metadata, "features")),
            cluster,
            lone,
        )
        opened.group_configs.load()
        opened.features.load()
        return opened

    def _open_replicas(
        self,
        opened: _Opened,
        cluster: ClusterNode,
        fetch_sessions: FetchSessions,
        now_ms: Callable[[], int],
    ) -> tuple[OffsetsStore, Callable[[Partition], bool]]:
        """Make what leads and follows partitions, and moves the shards of coordinators with them. Return the
        log of the group coordinator, and what tells whether a partition may have another leader by now.
        """
        from .replicas.replicas import LeaderDoubts, MovingShards, Replicas, replicated_log

        settings, topics = opened.settings, opened.topics
        loop = asyncio.get_running_loop()
        doubts = LeaderDoubts(cluster, settings, fetch_sessions)

        def move_shards(topic: str, shards: Callable[[], _Coordinator], timeout_ms: int) -> None:
            # the coordinators are made later: they need the logs
            self._moving[topic] = MovingShards(
                topic,
                topics.logs,
                doubts,
                lambda partition: shards().load(partition),
                lambda partition: shards().unload(partition),
                timeout_ms=timeout_ms,
            )

        move_shards(OFFSETS_TOPIC, lambda: _RecordedGroups(self), settings.offsets_commit_timeout_ms)
        move_shards(TRANSACTIONS_TOPIC, lambda: self.transactions, settings.offsets_commit_timeout_ms)
        move_shards(SHARE_STATE_TOPIC, lambda: self.share_states, settings.share_coordinator_write_timeout_ms)
        self._replicas = Replicas(
            cluster, topics, settings, now_ms, lambda: int(loop.time() * 1_000), self._moving
        )
        cluster.follow = self._replicas.follow
        cluster.follow_in_slices = self._replicas.follow_in_slices
        return replicated_log(OFFSETS_TOPIC, topics, settings), doubts.may_be_replaced

    def _make_coordinators(
        self,
        opened: _Opened,
        offsets_log: OffsetsStore,
        metrics: BrokerMetrics,
        clock_ms: Callable[[], int] | None,
        now_ms: Callable[[], int],
    ) -> None:
        settings, topics, authorizer = opened.settings, opened.topics, opened.authorizer
        self.coordinator = GroupCoordinator(
            settings=settings,
            store=offsets_log,
            partition_count_of=topics.count_of,
            topic_of_id=topics.name_of,
            id_of_topic=topics.id_of,
            topic_names=topics.names,
            topics_version=lambda: topics.image,
            shows_topic=lambda context, name: (
                authorizer is None or authorizer.shows(context, Operation.DESCRIBE, ResourceType.TOPIC, name)
            ),
            group_configs=opened.group_configs.of,
            clock_ms=clock_ms,
            on_event=self._event_logs[0],
            fsync=settings.kohort_offsets_ack_flush,
            replicas=self._moving.get(OFFSETS_TOPIC),
            workers=share_workers(
                lambda: share_state_client(self.node),
                lambda index: topics.logs.partition(OFFSETS_TOPIC, index).leader_epoch,
            ),
        )
        self.transactions = TransactionCoordinator(
            settings=settings,
            take_producer_id=lambda: take_producer_id(opened.producer_ids, topics.logs.disk),
            reserve_producer_ids=opened.producer_ids.begin_behind,
            write_marker=lambda place, marker: end_in(self.node, place, marker),
            version=lambda: opened.features.levels[TRANSACTION_VERSION],
            max_bytes=lambda: largest_record(topics.logs),
            epoch_of=lambda index: topics.logs.partition(TRANSACTIONS_TOPIC, index).leader_epoch,
            clock_ms=clock_ms or steady_clock_ms(),
            on_event=self._event_logs[1],
            fsync=settings.kohort_offsets_ack_flush,
        )
        self.share_states = ShareCoordinator(
            settings=settings,
            prune=lambda index, cut: prune_state(topics.logs, index, cut, now_ms()),
            partitions_of=lambda topic_id: partition_count(topics.by_id(topic_id)),
            max_bytes=lambda: largest_state(topics.logs),
            epoch_of=lambda index: topics.logs.partition(SHARE_STATE_TOPIC, index).leader_epoch,
            clock_ms=clock_ms or steady_clock_ms(),
            on_event=self._event_logs[1],
            on_write=metrics.count_share_write,
            fsync=settings.kohort_offsets_ack_flush,
        )

    def _make_node(
        self,
        opened: _Opened,
        users: ScramUsers,
        metrics: BrokerMetrics,
        fetch_sessions: FetchSessions,
        now_ms: Callable[[], int],
    ) -> Node:
        settings = opened.settings
        quotas = ClientQuotas(
            opened.quotas,
            QuotaWindows(settings.quota_window_num, settings.quota_window_size_seconds),
            QuotaWindows(settings.controller_quota_window_num, settings.controller_quota_window_size_seconds),
        )
        return Node(
            node_id=settings.node_id,
            settings=settings,
            topics=opened.topics,
            logs=opened.topics.logs,
            coordinator=self.coordinator,
            transactions=self.transactions,
            share_states=self.share_states,
            scram_users=users,
            producer_ids=opened.producer_ids,
            group_configs=opened.group_configs,
            features=opened.features,
            now_ms=now_ms,
            authorizer=opened.authorizer,
            recorder=None if self._recording is None else self._recording.recorder,
            cluster=opened.cluster,
            live=opened.live,
            metrics=metrics,
            quotas=quotas,
            quotas_file=opened.quotas_file,
            throttle=Throttle(quotas),
            fetch_sessions=fetch_sessions,
        )

    def _start_replicated(self, cluster: ClusterNode) -> None:
        """Tie the coordinators, the controller and what is stored to the cluster."""
        from .replicas.replicas import replicated_log

        topics, settings = self.node.topics, self.node.settings
        self.transactions.start_replicated(
            replicated_log(TRANSACTIONS_TOPIC, topics, settings), self._moving[TRANSACTIONS_TOPIC]
        )
        self.share_states.start_replicated(
            replicated_log(SHARE_STATE_TOPIC, topics, settings), self._moving[SHARE_STATE_TOPIC]
        )
        cluster.control.answer = self._router.answer
        self.node.live.on_change.append(cluster.control.settings_changed)
        self._follow_documents()

    def open(self) -> None:
        """Accept requests, which get the errors of a loading coordinator so far."""
        self.coordinator.open()

    def _on_deleted(self, gone: Collection[TopicImage]) -> None:
        self.coordinator.topics_deleted([topic.name for topic in gone])
        self.share_states.topics_deleted([topic.id for topic in gone])

    def _follow_documents(self) -> None:
        """Apply the changes that other brokers make."""
        node = self.node
        node.live.file.follow(node.live.load)
        node.scram_users.follow()
        node.group_configs.file.follow(node.group_configs.load)
        node.features.file.follow(node.features.load)
        node.quotas_file.follow(
            lambda: node.quotas.replace(node.quotas_file.load(QuotaTable.parse) or QuotaTable(), clock())
        )

    async def listen(self) -> None:
        """Listen on all listeners; clients wait until ``start``. Raises OSError."""
        await self.server.listen(self._router)

    async def start(self) -> None:
        """Register, take up the partitions that the metadata give this broker, and serve clients."""
        topics, cluster, lone = self.node.topics, self.node.cluster, self._lone
        if self._recording is not None:
            self._recording.recorder.start()
        if lone is not None:
            self.server.start()
            self.coordinator.topics_deleted(lone.lately_deleted)
            await self.coordinator.load_all()
            if self._recording is not None:
                self._recording.recorder.watch()
            if topics.get(TRANSACTIONS_TOPIC) is not None:
                await start_transactions(self.node)
            if topics.get(SHARE_STATE_TOPIC) is not None:
                await start_share_state(self.node)
            if not self.node.logs.clean:
                await end_unknown(self.node)
            if not self.coordinator.is_loading:
                await lone.forget_deleted()
        else:
            assert cluster is not None, "it has the topics of a cluster"
            assert self._replicas is not None, "it has the topics of a cluster"
            endpoints = self.server.registered_endpoints()
            self._replicas.start()
            await cluster.start(endpoints)
            # earlier, it would report every topic as unknown, and producers would give up records
            self.server.start()
            await self.node.scram_users.add_missing_shared(self.node.settings.kohort_scram_users)
        self._background.start()
        self.node.metrics.start()
        if self._lag_recorder is not None:
            self.lag.start(self._lag_recorder.every_ms)

    def _note_event(self, event: CoordinatorEvent) -> None:
        self._count_event(event)
        if self._recording is not None:
            self._recording.note_event(event)

    def snapshot(self) -> BrokerSnapshot:
        """Snapshot of the broker's figures; use it on the broker's event loop."""
        node, server, metrics, now = self.node, self.server, self.node.metrics, clock()
        topics = node.logs.topics()
        partitions = list(node.logs.partitions())
        return BrokerSnapshot(
            timestamp_ms=node.now_ms(),
            cluster_id=node.image.cluster_id,
            node_id=node.node_id,
            apis=metrics.requests.figures(now),
            clients=metrics.clients.figures(server.peers()),
            topics={topic.name: topic.traffic.figures() for topic in topics},
            partitions=[
                PartitionFigures(
                    one.topic.name, one.index, one.size_bytes, one.log_start_offset, one.log_end_offset
                )
                for one in partitions
                if one.log is not None
            ],
            groups=_group_figures(node),
            lag=self.lag.figures,
            quotas=_quota_figures(node, now),
            connections=server.quotas.by_listener(),
            connections_made=server.connections_made,
            connections_refused=dict(server.quotas.refused),
            lacks_descriptors=any(each.lacks_descriptors for each in server.acceptors),
            is_full=any(each.is_full for each in server.acceptors),
            certificate_ends=server.certificates.ends(),
            failed_logins=metrics.failed_logins.figures(now),
            request_bytes_held=server.backpressure.held_bytes,
            request_bytes_limit=node.settings.queued_max_request_bytes,
            request_bytes_depleted_s=server.backpressure.depleted_s(server.now()),
            flush_times=metrics.flush_times.figures(),
            replicas=_replica_figures(node),
            metadata=None if node.cluster is None else node.cluster.figures(),
            open_log_files=len(OPEN_FILES),
            max_open_log_files=OPEN_FILES.limit,
            disk=node.logs.disk.figures(),
            recording=RecorderFigures() if node.recorder is None else node.recorder.figures,
            fetch_sessions=FetchSessionFigures(
                len(node.fetch_sessions), node.fetch_sessions.partitions, node.fetch_sessions.evicted
            ),
            shares=node.shares.figures(),
            producer_ids=sum(len(one.log.producers) for one in partitions if one.log is not None),
            late_transactions=len(
                find_late(partitions, node.settings.transaction_max_timeout_ms, node.now_ms())
            ),
            share_writes=metrics.share_writes.figures(),
            share_write_rate=metrics.share_write_rate.rate(clock()),
            share_states_cut=self.share_states.pruned_offsets(),
        )

    async def stop(self) -> None:
        """Hand leadership to others, stop serving, and write what a clean start needs."""
        cluster = self.node.cluster
        if cluster is not None:
            await cluster.control.leave(_LEAVE_S)
        self.node.metrics.stop()
        await self.lag.stop()
        await self.server.stop()
        if cluster is not None:
            cluster.close()
        await self._stop_replicas()
        await self.node.shares.stop()
        await self.transactions.stop()
        self.share_states.stop()
        await self.coordinator.stop()
        if self._lag_recorder is not None:
            self._lag_recorder.flush()
        if self._recording is not None:
            await asyncio.to_thread(self._recording.recorder.close)
        await self._background.stop()
        clean = False
        try:
            self.node.logs.close()
            clean = not self.node.logs.has_damage
        finally:
            if cluster is not None:
                await cluster.stop()
            self._metadata.close()
            self._folder.close(clean=clean)
            # last: a failing log handler must not prevent anything else from being closed
            for log in self._event_logs:
                log.close()

    async def kill(self) -> None:
        """Stop as if the process were killed: files stay as they are, the session goes on."""
        self.node.metrics.stop()
        await self.lag.stop()
        await self.server.stop()
        if self.node.cluster is not None:
            self.node.cluster.close()
            await self.node.cluster.control.stop()
        await self._stop_replicas()
        for partition in self.node.logs.partitions():
            partition.delete()
        await self.transactions.stop()
        self.share_states.stop()
        await self.coordinator.stop()
        if self._recording is not None:
            self._recording.recorder.abandon()
        await self._background.stop()
        self._folder.close(clean=False)
        for log in self._event_logs:
            log.close()

    async def _stop_replicas(self) -> None:
        if self._replicas is not None:
            await self._replicas.stop()
        for shards in self._moving.values():
            await shards.stop()


class _RecordedGroups:
    """The group coordinator of a broker of a cluster: groups are recorded while this broker has them."""

    def __init__(self, parts: BrokerAssembly) -> None:
        self._coordinator = parts.coordinator
        self._recorder = parts.node.recorder

    async def load(self, partition: int) -> None:
        await self._coordinator.load(partition)
        if self._recorder is not None:
            self._recorder.watch(str(partition))

    def unload(self, partition: int) -> None:
        if self._recorder is not None:
            self._recorder.end_watch(str(partition))
        self._coordinator.unload(partition)


def _make_recording(data: Path, settings: BrokerSettings) -> GroupEventRecorder | None:
    """What records groups; None if the settings want no recording."""
    if not settings.kohort_recording_max_bytes:
        return None
    from .reporting.group_recording import GroupEventRecorder

    bounds = RecordingBounds(
        settings.kohort_recording_max_bytes,
        settings.kohort_recording_retention_hours * _HOUR_MS,
        settings.kohort_recording_details_hours * _HOUR_MS,
    )
    return GroupEventRecorder(data, bounds)


def _make_authorizer(metadata: MetadataStore, settings: BrokerSettings) -> Authorizer | None:
    """The authorizer with the stored access rules; None if the settings name no authorizer."""
    if not settings.authorizer_class_name:
        return None
    file = AclsFile(Document(metadata, "acls"))
    authorizer = Authorizer(
        file.load(),
        super_users=parse_principals(settings.super_users),
        allow_everyone_if_no_acl_found=settings.allow_everyone_if_no_acl_found,
        save=file.save,
    )
    file.follow(authorizer.replace)
    return authorizer


def _lone_offsets(opened: _Opened) -> OffsetsStore:
    """The log of the group coordinator of a broker that is alone."""
    offsets = opened.topics.logs.topic(OFFSETS_TOPIC)
    assert offsets is not None, "LoneControl.open creates it"
    return OffsetsStore(offsets.partitions, load_bytes=opened.settings.offsets_load_buffer_size)


def _is_alone(partition: Partition) -> bool:
    """Of a single broker's partitions: no other one may lead them."""
    del partition
    return False


def _replica_figures(node: Node) -> ReplicaFigures:
    found = node.topics.figures(is_controller=node.control.is_active)
    if node.cluster is None:
        return found
    cluster, now = node.cluster, clock()
    return found._replace(
        leader_throttled_rate=cluster.leader_throttle.used(now),
        follower_throttled_rate=cluster.follower_throttle.used(now),
    )


#: Counters of groups that are shown as they are.
_COUNTS = (
    "share_rebalances",
    "abandoned",
    "expired_members",
    "offsets_removed",
    "refusals",
    "assignor_failures",
    "records_skipped",
)


def _group_figures(node: Node) -> GroupFigures:
    counted = node.metrics.groups
    by_type, members = node.coordinator.group_counts()
    by_state: Counter[str] = Counter()
    for (_, state), count in by_type.items():
        by_state[state] += count
    return GroupFigures(
        by_state=dict(+by_state),
        by_type=by_type,
        members=members,
        offsets_committed=node.metrics.requests.offsets_committed,
        rebalances=dict(counted.rebalances),
        rebalance_times=counted.rebalance_times.figures(),
        **{name: getattr(counted, name) for name in _COUNTS},
    )


def _quota_figures(node: Node, now: float) -> list[QuotaFigures]:
    return [
        QuotaFigures(str(key), user, client_id, gauge.limit, gauge.used(now), gauge.throttled_s)
        for (key, user, client_id), gauge in node.quotas.gauges()
    ]
