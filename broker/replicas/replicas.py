"""The replicas on a broker of a cluster: it leads some and follows others, as the image says, and asks the
controller for changes of in-sync replicas of those that it leads.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Final, Protocol

from ...cluster import NO_LEADER, ClusterImage, PartitionState, TopicImage
from ...cluster.controller import IsrChange
from ...offsets_topic import OffsetsStore
from ...protocol import ErrorCode, KafkaError
from ...protocol.named_tuples import NamedTuple
from ...replication import IsrChangeRequest, Replication
from ..clients.fetch_sessions import FetchSessions
from ..event_loop.time_slices import Slices
from ..metadata.cluster_node import ClusterNode
from ..metadata.topics import Topics
from ..partitions.leadership import Leadership, Then
from ..partitions.local_logs import LocalLogs
from ..partitions.partition import Partition, not_leader
from ..partitions.topic_names import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from ..settings import BrokerSettings
from .fetcher import ReplicaFetcher
from .openings import Openings

log = logging.getLogger("kohort.broker")

#: Pause before a change that was refused, or whose outcome is unknown, is requested again, in seconds.
_AGAIN_S: Final = 0.05

#: Fetches that a follower may miss before another broker may lead, while the metadata store is out of reach.
_FETCHES: Final = 2
#: How often followers are checked within ``replica.lag.time.max.ms``; Apache Kafka checks twice, so that one
#: that is out of reach may hold up ``acks=all`` for half as long again.
_LAG_CHECKS: Final = 8


class _PendingChange(NamedTuple):
    partition: Partition
    leadership: Leadership
    request: IsrChangeRequest


class Replicas:
    """Follows images. ``shards`` are the coordinators by the name of their topics."""

    def __init__(
        self,
        cluster: ClusterNode,
        topics: Topics,
        settings: BrokerSettings,
        now_ms: Callable[[], int],
        clock_ms: Callable[[], int],
        shards: Mapping[str, MovingShards],
    ) -> None:
        self._cluster = cluster
        self._topics = topics
        self._settings = settings
        self._now_ms = now_ms
        self._clock_ms = clock_ms
        self._shards = shards
        self._led: dict[Partition, Leadership] = {}
        # the broker from which each is fetched
        self._followed: dict[Partition, int] = {}
        self._fetchers: dict[int, ReplicaFetcher] = {}
        # partitions that could not be led or followed as the image says, and those that cannot be used
        self._misplaced: set[Partition] = set()
        self._damaged: set[Partition] = set()
        topics.on_damage = self._take_out
        self._openings = Openings(self._place_opened)
        self._eligible: dict[int, int] = {}
        self._lost = True
        # the number of the image that is followed
        self._turn = 0
        self._pending: list[_PendingChange] = []
        self._requested = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def __repr__(self) -> str:
        return f"Replicas({len(self._led)} led, {len(self._followed)} followed)"

    def start(self) -> None:
        """Begin to announce changes of in-sync replicas and to look for laggards."""
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._send_isr_changes()), loop.create_task(self._watch_lag())]

    async def stop(self) -> None:
        """Stop fetching, and stop asking the controller. Led partitions are still served."""
        tasks = [*self._tasks, *(each.stop() for each in self._fetchers.values())]
        self._fetchers, self._followed = {}, {}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._openings.stop()

    # -- images ----------------------------------------------------------------------------------------------

    def follow(self, image: ClusterImage | None) -> None:
        """Lead and follow as the image says; None: the session is over, others lead from now on."""
        self._turn += 1
        if image is None:
            self._lost = True
            for partition in list(self._led):
                self._resign_partition(partition)
                partition.follow(partition.leader_epoch)
            for partition in list(self._followed):
                self._stop_following(partition)
            return
        for topic in self._changed_by(image):
            self._place_all_of(topic)
        self._end_roles(image)

    async def follow_in_slices(self, image: ClusterImage) -> None:
        """Lead and follow as the image says, what this broker leads first; requests are served in between. It
        ends early where the session is lost meanwhile.
        """
        self._turn += 1
        turn, slices, node_id = self._turn, Slices(), self._cluster.node_id
        changed = list(self._changed_by(image))
        changed.sort(key=lambda topic: all(state.leader != node_id for state in topic.partitions))
        for topic in changed:
            self._place_all_of(topic)
            await slices.end_if_due()
            if self._turn != turn:
                return
        self._end_roles(image)

    def _changed_by(self, image: ClusterImage) -> Iterable[TopicImage]:
        """Adapt topics and logs here to the image; return the topics whose partitions may have to be led or
        followed in another way.
        """
        changed: Iterable[TopicImage] = self._topics.follow(image)
        self._see_brokers(image)
        self._drop_gone()
        if self._lost:
            self._topics.logs.sort_unclaimed(image.deletions)
            self._lost = False
            changed = self._topics.all()
        return changed

    def _place_all_of(self, topic: TopicImage) -> None:
        local = self._topics.logs.topic(topic.name)
        for partition in () if local is None else list(local.partitions.values()):
            self._place_replica(partition, topic.partitions[partition.index])

    def _end_roles(self, image: ClusterImage) -> None:
        for partition in [each for each, source in self._followed.items() if source not in image.brokers]:
            self._stop_following(partition)
        self._place_again()

    def _take_out(self, partition: Partition) -> None:
        """Announce a partition that cannot be used here, so that the controller finds another leader."""
        self._damaged.add(partition)
        self._stop_following(partition)
        self._tell_damaged()

    def _tell_damaged(self) -> None:
        self._damaged = {each for each in self._damaged if not each.gone}
        found = frozenset((each.topic.id, each.index) for each in self._damaged)
        self._cluster.registration.announce_damaged(found)

    def _place_again(self) -> None:
        misplaced, self._misplaced = self._misplaced, set()
        for partition in misplaced:
            topic = self._topics.image.topic_by_id(partition.topic.id)
            if topic is not None and not partition.gone and not self._lost:
                self._place_replica(partition, topic.partitions[partition.index])

    def _see_brokers(self, image: ClusterImage) -> None:
        eligible = {
            node_id: broker.epoch for node_id, broker in image.brokers.items() if not broker.shutting_down
        }
        if eligible != self._eligible:
            self._eligible = eligible
            for leadership in self._led.values():
                leadership.brokers_changed(eligible)

    def _drop_gone(self) -> None:
        for partition in [each for each in (*self._led, *self._followed) if each.gone]:
            self._resign_partition(partition)
            self._stop_following(partition)
        self._tell_damaged()

    def _place_opened(self, partition: Partition, error: Exception | None) -> None:
        """Lead or follow a partition whose files were read; with an error it is read again later."""
        self._misplaced.add(partition)
        if error is None:
            self._place_again()

    def _read_again(self, partition: Partition) -> None:
        self._stop_following(partition)
        self._misplaced.add(partition)

    def _place_replica(self, partition: Partition, state: PartitionState) -> None:
        if self._topics.logs.is_read_first(partition):
            self._openings.begin_opening(partition)
            return
        node_id = self._cluster.node_id
        try:
            if state.leader == node_id:
                self._stop_following(partition)
                self._lead_partition(partition, state)
                return
            self._resign_partition(partition)
            if state.leader_epoch != partition.leader_epoch or partition.leadership is not None:
                partition.follow(state.leader_epoch)
            there = state.leader != NO_LEADER and state.leader in self._cluster.image.brokers
            if there and partition.damage is None:
                partition.cut_damage("copied from its leader", now_ms=self._now_ms())
                self._follow_leader(partition, state.leader)
            else:
                self._stop_following(partition)
        except KafkaError as error:
            log.error("%s-%d: %s", partition.topic.name, partition.index, error)
            if len(state.isr) > 1:
                partition.give_up(error)
            if partition.damage is None:
                self._misplaced.add(partition)
        except Exception:
            # whatever the error: lead and follow the others, and retry this one
            log.exception("%s-%d is neither led nor followed", partition.topic.name, partition.index)
            self._misplaced.add(partition)

    def _lead_partition(self, partition: Partition, state: PartitionState) -> None:
        leadership = self._led.get(partition)
        min_isr = partition.topic.config.min_insync_replicas
        lag_ms = self._settings.replica_lag_time_max_ms
        if leadership is not None and partition.leader_epoch == state.leader_epoch:
            leadership.on_change(state)
            leadership.reconfigure(min_isr, lag_ms)
            return
        self._resign_partition(partition)
        if state.recovering:
            # no follower that lacks what is damaged could copy it, so none would get in sync; what is lost is
            # lost by an unclean election
            partition.cut_damage("led on from there: its election was unclean", now_ms=self._now_ms())

        def begin(log_end_offset: int, high_watermark: int) -> Leadership:
            replication = Replication(
                self._cluster.node_id,
                leader_epoch=state.leader_epoch,
                partition_epoch=state.partition_epoch,
                replicas=state.replicas,
                isr=state.isr,
                recovering=state.recovering,
                log_end_offset=log_end_offset,
                high_watermark=high_watermark,
                now_ms=self._clock_ms(),
                lag_time_max_ms=lag_ms,
                min_isr=min_isr,
                eligible=self._eligible,
            )
            return Leadership(
                replication,
                self._clock_ms,
                partition.commit_up_to,
                lambda leadership, request: self._request_isr_change(
                    _PendingChange(partition, leadership, request)
                ),
            )

        partition.lead(state.leader_epoch, begin)
        assert partition.leadership is not None, "it was made just now"
        self._led[partition] = partition.leadership
        partition.leadership.advance()
        shards = self._shards.get(partition.topic.name)
        if shards is not None:
            shards.lead(partition.index)

    def _resign_partition(self, partition: Partition) -> None:
        if self._led.pop(partition, None) is not None:
            shards = self._shards.get(partition.topic.name)
            if shards is not None:
                shards.resign(partition.index)

    def _follow_leader(self, partition: Partition, leader: int) -> None:
        if self._followed.get(partition) not in (leader, None):
            self._stop_following(partition)
        self._followed[partition] = leader
        fetcher = self._fetchers.get(leader)
        if fetcher is None:
            fetcher = self._fetchers[leader] = ReplicaFetcher(
                leader,
                self._cluster,
                self._settings,
                self._now_ms,
                self._topics.logs.write_checkpoints,
                self._read_again,
            )
        fetcher.add(partition)

    def _stop_following(self, partition: Partition) -> None:
        source = self._followed.pop(partition, None)
        if source is not None:
            self._fetchers[source].remove(partition)

    # -- in-sync replicas ------------------------------------------------------------------------------------

    def _request_isr_change(self, change: _PendingChange) -> None:
        self._pending.append(change)
        self._requested.set()

    async def _send_isr_changes(self) -> None:
        while True:
            await self._requested.wait()
            self._requested.clear()
            pending, self._pending = self._pending, []
            current = [each for each in pending if self._led.get(each.partition) is each.leadership]
            if current and not await self._ask_for(current):
                await asyncio.sleep(_AGAIN_S)
                for each in current:
                    each.leadership.advance()

    async def _ask_for(self, pending: list[_PendingChange]) -> bool:
        """Request all of these changes at once; return whether none has to be requested again."""
        epoch = self._cluster.epoch
        changes = [
            IsrChange(
                each.partition.topic.id,
                each.partition.index,
                each.request.leader_epoch,
                each.request.partition_epoch,
                [
                    (node_id, epoch if node_id == self._cluster.node_id else broker_epoch)
                    for node_id, broker_epoch in each.request.isr
                ],
            )
            for each in pending
        ]
        try:
            answers = await self._cluster.control.alter_isr(changes)
        except (KafkaError, OSError) as error:
            # the outcome is unknown
            code = error.code if isinstance(error, KafkaError) else ErrorCode.NETWORK_EXCEPTION
            log.info("the in-sync replicas of %d partitions could not be changed: %s", len(pending), error)
            for each in pending:
                each.leadership.on_refused(each.request, code)
            return False
        all_done = True
        for each, answer in zip(pending, answers, strict=True):
            if isinstance(answer, KafkaError):
                all_done = False
                each.leadership.on_refused(each.request, answer.code)
            elif self._led.get(each.partition) is each.leadership:
                # the response does not name the replicas
                replicas = each.leadership.replication.replicas
                each.leadership.on_change(answer._replace(replicas=replicas))
        return all_done

    async def _watch_lag(self) -> None:
        """Remove replicas that do not keep up from the in-sync ones."""
        loop = asyncio.get_running_loop()
        not_before_s = 0.0
        while True:
            lag_s = self._settings.replica_lag_time_max_ms / 1_000
            due_s = loop.time() + lag_s / _LAG_CHECKS
            await asyncio.sleep(lag_s / _LAG_CHECKS)
            now_s = loop.time()
            if now_s >= due_s + lag_s / 2:
                # this process stood still and gave its followers nothing: they get time to fetch
                not_before_s = now_s + lag_s / 2
            if now_s >= not_before_s:
                for leadership in list(self._led.values()):
                    leadership.advance()
            self._place_again()


class HearsOfLeaders(Protocol):
    """A broker's part in its cluster, as far as it matters to doubts."""

    def hears_of_leaders(self) -> bool:
        """Return whether this broker would know by now if others led its partitions."""

    def awake_since_s(self) -> float:
        """Return the time on the loop's clock since when this process has not stood still."""


class LeaderDoubts:
    """Tells whether others may lead by now what this broker leads. A metadata store in reach tells of new
    leaders. While it is not, the followers show that none of them leads: each fetches again within
    ``replica.fetch.wait.max.ms``. What they sent while this process stood still is read afterwards, and shows
    nothing: only fetches that come so much later do.
    """

    def __init__(
        self, cluster: HearsOfLeaders, settings: BrokerSettings, fetch_sessions: FetchSessions
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._fetch_sessions = fetch_sessions

    def may_be_replaced(self, partition: Partition) -> bool:
        """Return whether another broker may lead a partition by now, without this one knowing."""
        if self._cluster.hears_of_leaders():
            return False
        if partition.leadership is None:
            return True
        wait_s = self._settings.replica_fetch_wait_max_ms / 1_000
        since_s = max(
            asyncio.get_running_loop().time() - _FETCHES * wait_s, self._cluster.awake_since_s() + wait_s
        )
        silent = partition.leadership.replication.silent(int(since_s * 1_000))
        # a request of a session does not name partitions without news
        return not silent <= self._fetch_sessions.followers(partition.topic.id, partition.index, since_s)


class MovingShards:
    """Shards of one coordinator, which follow the leadership of its topic's partitions. Also tells them which
    records all in-sync replicas have.
    """

    def __init__(
        self,
        topic: str,
        logs: LocalLogs,
        doubts: LeaderDoubts,
        load: Callable[[int], Awaitable[None]],
        unload: Callable[[int], object],
        *,
        timeout_ms: int,
    ) -> None:
        self.timeout_s = timeout_ms / 1_000
        self._topic = topic
        self._logs = logs
        self._doubts = doubts
        self._load = load
        self._unload = unload
        self._loads: dict[int, asyncio.Task[None]] = {}

    def __repr__(self) -> str:
        return f"MovingShards({self._topic}, {len(self._loads)} loading)"

    def lead(self, partition: int) -> None:
        """Load the shard of a partition, and serve it."""
        self._loads[partition] = asyncio.get_running_loop().create_task(self._take_on(partition))

    def resign(self, partition: int) -> None:
        """Unload the shard of a partition that another broker leads now."""
        task = self._loads.pop(partition, None)
        if task is not None:
            task.cancel()
        self._unload(partition)

    async def stop(self) -> None:
        """Load nothing more."""
        tasks = list(self._loads.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def when_committed(self, partition: int, end_offset: int, then: Then) -> bool:
        """See the engine's ``Replicas``."""
        found = self._find_partition(partition)
        if found is None or found.leadership is None:
            then(not_leader(self._topic, partition))
            return False
        return found.leadership.when_committed(end_offset, then)

    def when_loaded(self, partition: int, then: Then) -> bool:
        """See the engine's ``Replicas``."""
        found = self._find_partition(partition)
        if found is None or found.leadership is None:
            then(not_leader(self._topic, partition))
            return False
        end_offset = found.log_end_offset
        return found.leadership.when(lambda replication: replication.in_sync_end >= end_offset, then)

    def may_be_replaced(self, partition: int) -> bool:
        """See the engine's ``Replicas``."""
        found = self._find_partition(partition)
        return found is None or self._doubts.may_be_replaced(found)

    def _find_partition(self, partition: int) -> Partition | None:
        topic = self._logs.topic(self._topic)
        return None if topic is None else topic.partitions.get(partition)

    async def _take_on(self, partition: int) -> None:
        try:
            await self._load(partition)
        except Exception:
            log.exception("%s-%d could not be loaded: its groups are not served", self._topic, partition)


def replicated_log(topic: str, topics: Topics, settings: BrokerSettings) -> OffsetsStore:
    """The log of a coordinator's topic, which may not exist yet."""
    default = {
        OFFSETS_TOPIC: settings.offsets_topic_num_partitions,
        TRANSACTIONS_TOPIC: settings.transaction_state_log_num_partitions,
        SHARE_STATE_TOPIC: settings.share_coordinator_state_topic_num_partitions,
    }
    return OffsetsStore(
        _Here(topic, topics.logs),
        lambda: topics.count_of(topic) or default[topic],
        load_bytes=settings.offsets_load_buffer_size,
    )


class _Here(Mapping[int, Partition]):
    """The partitions of a topic on this broker, by number; there may be none."""

    def __init__(self, topic: str, logs: LocalLogs) -> None:
        self._topic = topic
        self._logs = logs

    def _replicas_here(self) -> Mapping[int, Partition]:
        topic = self._logs.topic(self._topic)
        return {} if topic is None else topic.partitions

    def __getitem__(self, partition: int) -> Partition:
        return self._replicas_here()[partition]

    def __iter__(self) -> Iterator[int]:
        return iter(self._replicas_here())

    def __len__(self) -> int:
        return len(self._replicas_here())
