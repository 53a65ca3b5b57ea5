"""Followers: the partitions that one other broker leads are copied from there, over one connection.

A follower asks with Fetch from its log's end on, with the epoch of its last record; where the leader's log
parts from it the leader says so instead of giving records, and the follower cuts its own off (KIP-595).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any, Final

from ..client.connection import Connection
from ..protocol import ErrorCode, KafkaError, KohortError
from ..protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ReplicaState,
)
from ..protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ..replication import truncation
from ._cluster import ClusterNode
from ._log_lines import RateLimitedLog
from ._partition import Partition
from ._settings import BrokerSettings
from ._stopwatch import clock
from .security._between_brokers import refusal

log = logging.getLogger("kohort.broker")

#: Until a partition that its leader has refused is asked for again, and a broker that cannot be reached.
_REFUSED_S: Final = 0.05
_UNREACHABLE_S: Final = 0.1

#: Until it is looked again whether partitions that are throttled may be asked for.
_HELD_BACK_S: Final = 0.1

#: How long an answer may take longer than it waits for records, in milliseconds.
_ANSWER_MS: Final = 5_000

_NO_EPOCH: Final = -1
_LATEST, _EARLIEST = -1, -2


class Fetcher:
    """Follows the partitions that ``source`` leads, from the first ``add`` to ``stop``. ``checkpoint`` makes
    durable where logs end that were cut.
    """

    def __init__(
        self,
        source: int,
        cluster: ClusterNode,
        settings: BrokerSettings,
        now_ms: Callable[[], int],
        checkpoint: Callable[[], None],
    ) -> None:
        self._source = source
        self._cluster = cluster
        self._settings = settings
        self._now_ms = now_ms
        self._checkpoint = checkpoint
        # when each may be asked for again, by the loop's time
        self._partitions: dict[Partition, float] = {}
        # those that lack what is committed, as far as it is known
        self._lagging: set[Partition] = set()
        self._turn = 0
        self._changed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._unreachable = RateLimitedLog()
        self._refused = RateLimitedLog(logging.INFO)
        self._connection: Connection | None = None
        self._task = self._loop.create_task(self._run())

    def __repr__(self) -> str:
        return f"Fetcher(from {self._source}, {len(self._partitions)} partitions)"

    def add(self, partition: Partition) -> None:
        """Follow a partition too, or under its new leader epoch."""
        self._partitions[partition] = 0.0
        self._lagging.add(partition)
        self._begin_anew()

    def remove(self, partition: Partition) -> None:
        self._partitions.pop(partition, None)
        self._lagging.discard(partition)

    def stop(self) -> asyncio.Task[None]:
        """Follow nothing more; returns the task that is to be waited for."""
        self._task.cancel()
        self._close()
        return self._task

    def _begin_anew(self) -> None:
        """Ask for all partitions now: the request that is under way may wait for records of the others, and
        a connection answers one after the other.
        """
        self._changed.set()
        self._close()

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close("other partitions are followed")

    async def _run(self) -> None:
        while True:
            self._changed.clear()
            if not self._partitions:
                await self._changed.wait()
            try:
                await self._round()
            except (KohortError, OSError) as error:
                self._close()
                if self._changed.is_set():
                    continue
                self._unreachable.say("broker %d cannot be followed: %s", self._source, error)
                await asyncio.sleep(_UNREACHABLE_S)
            except Exception:
                log.exception("following broker %d failed: it is tried again", self._source)
                self._close()
                await asyncio.sleep(_UNREACHABLE_S)

    async def _round(self) -> None:
        """Ask once for all partitions, and take in what came."""
        now = self._loop.time()
        self._hold_back(now)
        due = [each for each, time in self._partitions.items() if time <= now]
        # only the first of an answer may be larger than it may be: each has its turn
        self._turn += 1
        first = self._turn % max(len(due), 1)
        due = due[first:] + due[:first]
        if not due:
            pause_s = min(self._partitions.values(), default=now) - now
            await asyncio.sleep(max(pause_s, 0.001))
            return
        asked = {}
        for partition in due:
            try:
                asked[partition] = self._position(partition)
            except KafkaError as error:
                self._refuse(partition, error)
        connection = self._connection
        if connection is None or not connection.is_usable():
            connection = self._connection = await self._cluster.connect(self._source)
            if self._changed.is_set():
                return
        # no longer than until one that was refused is due again
        again_s = min((time - now for time in self._partitions.values() if time > now), default=60.0)
        wait_ms = max(1, min(self._settings.replica_fetch_wait_max_ms, int(again_s * 1_000)))
        answer = await connection.request(self._request(asked, wait_ms), timeout_ms=wait_ms + _ANSWER_MS)
        if answer.error_code:
            raise refusal(answer.error_code, f"broker {self._source} refuses Fetch")
        await self._take(connection, asked, answer)

    def _hold_back(self, now: float) -> None:
        """Let throttled partitions wait that have to catch up, if as much was taken as may be (KIP-73)."""
        throttle = self._cluster.follower_throttle
        if self._lagging and throttle.is_exceeded(clock()):
            for partition in self._lagging:
                if self._is_throttled(partition):
                    self._partitions[partition] = now + _HELD_BACK_S

    def _is_throttled(self, partition: Partition) -> bool:
        replicas = partition.topic.config.follower_replication_throttled_replicas
        return self._cluster.follower_throttle.concerns(replicas, partition.index)

    def _position(self, partition: Partition) -> FetchPartition:
        log_end = partition.log_end_offset
        start = partition.log_start_offset
        last_epoch = _NO_EPOCH
        if partition.log is not None and log_end > start:
            last_epoch = partition.log.epoch_for_offset(log_end - 1)
        return FetchPartition(
            partition=partition.index,
            current_leader_epoch=partition.leader_epoch,
            fetch_offset=log_end,
            last_fetched_epoch=last_epoch,
            log_start_offset=start,
            partition_max_bytes=self._settings.replica_fetch_max_bytes,
        )

    def _request(self, asked: dict[Partition, FetchPartition], wait_ms: int) -> FetchRequest:
        topics: dict[str, tuple[Any, list[FetchPartition]]] = {}
        for partition, position in asked.items():
            topic = partition.topic
            topics.setdefault(topic.name, (topic.id, []))[1].append(position)
        return FetchRequest(
            replica_state=ReplicaState(self._cluster.node_id, self._cluster.epoch),
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=self._settings.replica_fetch_response_max_bytes,
            session_epoch=-1,
            topics=[
                FetchTopic(topic=name, topic_id=topic_id, partitions=partitions)
                for name, (topic_id, partitions) in topics.items()
            ],
        )

    # -- answers ---------------------------------------------------------------------------------------------

    async def _take(
        self, connection: Connection, asked: dict[Partition, FetchPartition], answer: Any
    ) -> None:
        by_place = {(each.topic.id, each.index): each for each in asked}
        cut: list[tuple[Partition, int, bool]] = []
        lost: list[Partition] = []
        for topic in answer.responses:
            for data in topic.partitions:
                partition = by_place.get((topic.topic_id, data.partition_index))
                if partition is None or not self._is_current(partition, asked[partition]):
                    continue
                try:
                    if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                        lost.append(partition)
                    elif data.error_code:
                        raise refusal(data.error_code, f"broker {self._source} refuses it")
                    elif data.diverging_epoch is not None and data.diverging_epoch.epoch >= 0:
                        cut.append((partition, self._parts_at(partition, data.diverging_epoch), False))
                    else:
                        self._append(partition, data)
                except KafkaError as error:
                    self._refuse(partition, error)
        if lost:
            cut += await self._found_anew(connection, [(each, asked[each]) for each in lost])
        self._truncate(cut)

    def _is_current(self, partition: Partition, position: FetchPartition) -> bool:
        """Return whether an answer still is for what the partition is."""
        return (
            partition in self._partitions
            and partition.leadership is None
            and not partition.gone
            and partition.leader_epoch == position.current_leader_epoch
            and partition.log_end_offset == position.fetch_offset
        )

    def _append(self, partition: Partition, data: Any) -> None:
        if data.records:
            partition.append_copied(bytes(data.records), now_ms=self._now_ms())
            if self._is_throttled(partition):
                self._cluster.follower_throttle.record(len(data.records), clock())
        if partition.log_end_offset < data.high_watermark:
            self._lagging.add(partition)
        else:
            self._lagging.discard(partition)
        partition.committed(data.high_watermark)
        if data.log_start_offset > partition.log_start_offset:
            partition.delete_records(
                min(data.log_start_offset, partition.high_watermark), now_ms=self._now_ms()
            )

    def _parts_at(self, partition: Partition, diverging: Any) -> int:
        found = truncation(
            diverging.epoch,
            diverging.end_offset,
            lambda epoch: (-1, -1) if partition.log is None else partition.log.end_offset_for_epoch(epoch),
            log_end=partition.log_end_offset,
            high_watermark=partition.high_watermark,
        )
        if found.below_high_watermark:
            log.warning(
                "%s-%d is cut at %d, below its high watermark %d: records that were committed are gone, as "
                "after an unclean election",
                partition.topic.name,
                partition.index,
                found.offset,
                partition.high_watermark,
            )
        return found.offset

    async def _found_anew(
        self, connection: Connection, lost: list[tuple[Partition, FetchPartition]]
    ) -> list[tuple[Partition, int, bool]]:
        """Where to go on with partitions whose ends are not in their leaders' logs: at the leader's end if
        that is before the follower's, else at the leader's start, with nothing.
        """
        starts = await self._offsets(connection, [each for each, _ in lost], _EARLIEST)
        ends = await self._offsets(connection, [each for each, _ in lost], _LATEST)
        found = []
        for partition, position in lost:
            if partition not in starts or partition not in ends or not self._is_current(partition, position):
                self._later(partition)
            elif starts[partition] <= partition.log_start_offset and ends[partition] < position.fetch_offset:
                found.append((partition, ends[partition], False))
            else:
                found.append((partition, max(starts[partition], 0), True))
        return found

    async def _offsets(
        self, connection: Connection, partitions: Iterable[Partition], time: int
    ) -> dict[Partition, int]:
        places = {(each.topic.name, each.index): each for each in partitions}
        answer = await connection.request(
            ListOffsetsRequest(
                replica_id=self._cluster.node_id,
                topics=[
                    ListOffsetsTopic(
                        each.topic.name, [ListOffsetsPartition(each.index, each.leader_epoch, time)]
                    )
                    for each in places.values()
                ],
            ),
            timeout_ms=_ANSWER_MS,
        )
        return {
            places[topic.name, row.partition_index]: row.offset
            for topic in answer.topics
            for row in topic.partitions
            if not row.error_code and (topic.name, row.partition_index) in places
        }

    def _truncate(self, cut: list[tuple[Partition, int, bool]]) -> None:
        for partition, offset, restart in cut:
            where = partition.topic.name, partition.index
            log.info("%s-%d is cut from %d to %d", *where, partition.log_end_offset, offset)
            try:
                partition.truncate(offset, now_ms=self._now_ms(), restart=restart)
            except KafkaError as error:
                self._refuse(partition, error)
        if cut:
            # what is appended behind the cut is not on the disk, whatever was known of the former
            self._checkpoint()

    def _refuse(self, partition: Partition, error: KafkaError) -> None:
        where = partition.topic.name, partition.index
        self._refused.say("%s-%d is not copied from broker %d now: %s", *where, self._source, error)
        self._later(partition)

    def _later(self, partition: Partition) -> None:
        if partition in self._partitions:
            self._partitions[partition] = self._loop.time() + _REFUSED_S
