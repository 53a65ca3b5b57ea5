"""Follower fetching: copies the partitions that one other broker leads, in a fetch session (KIP-227).

A follower fetches from the end of its log, and names the epoch of its last record. If the leader's log
diverges from there, the leader returns the point instead of records, and the follower truncates its log
(KIP-595).

A newly followed partition must not wait for records of the others. So while a request waits at the leader,
another may be sent over a second connection; the leader then answers the first at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from uuid import UUID

from ...client.connection import Connection
from ...client.fetch import SESSION_ERRORS
from ...protocol import ErrorCode, KafkaError, KohortError
from ...protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, ReplicaState
from ...protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ...protocol.named_tuples import NamedTuple
from ...replication import truncation_for
from ..event_loop.stopwatch import clock
from ..metadata.cluster_node import ClusterNode
from ..partitions.partition import Partition
from ..reporting.log_lines import RateLimitedLog
from ..security._between_brokers import broker_refusal
from ..settings import BrokerSettings

if TYPE_CHECKING:
    from ...protocol.messages.fetch import EpochEndOffset, FetchResponse, PartitionData

log = logging.getLogger("kohort.broker")

#: Pause before a partition that its leader refused is fetched again, and before a broker is reached for
#: again.
_REFUSED_S: Final = 0.05
_UNREACHABLE_S: Final = 0.1

#: Interval at which throttled partitions are checked.
_HELD_BACK_S: Final = 0.1

#: Time that a response may take in addition to its wait for records, in milliseconds.
_ANSWER_MS: Final = 5_000

#: Interval at which all partitions are named in a request, even if nothing was fetched.
_ALL_AGAIN_S: Final = 5.0

_NO_EPOCH: Final = -1
_LAST_EPOCH: Final = 2**31 - 1
_LATEST, _EARLIEST = -1, -2


class _Asked(NamedTuple):
    """A request without a response so far."""

    connection: Connection
    answer: asyncio.Future[FetchResponse]
    #: Number of requests sent before it, and of sessions begun before its own.
    serial: int
    session: int
    #: It begins the session.
    begins: bool


class ReplicaFetcher:
    """Follows the partitions that ``source`` leads, from the first ``add`` to ``stop``. ``checkpoint`` makes
    the ends of truncated logs durable; ``read_again`` is called with each whose cut a full disk interrupted.
    """

    def __init__(
        self,
        source: int,
        cluster: ClusterNode,
        settings: BrokerSettings,
        now_ms: Callable[[], int],
        checkpoint: Callable[[], None],
        read_again: Callable[[Partition], None],
    ) -> None:
        self._source = source
        self._cluster = cluster
        self._settings = settings
        self._now_ms = now_ms
        self._checkpoint = checkpoint
        self._read_again = read_again
        self._partitions: dict[tuple[UUID | None, int], Partition] = {}
        # partitions that may not be fetched before a time of the loop's clock
        self._paused: dict[Partition, float] = {}
        # partitions that lack committed records, as far as is known
        self._lagging: set[Partition] = set()
        # the leader's state: its session, the offset for each partition, and the partitions that it has to
        # drop
        self._session_id = self._epoch = 0
        self._has_sessions = True
        self._named: dict[Partition, FetchPartition] = {}
        self._forgotten: dict[tuple[UUID, int], str] = {}
        # partitions whose offsets may have changed
        self._moved: dict[Partition, None] = {}
        self._turn = 0
        self._serial = self._sessions = 0
        self._looked = 0.0
        self._under_way: list[_Asked] = []
        self._connections: list[Connection] = []
        # a partition was added that should be fetched at once; something has happened
        self._added = False
        self._happened = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        # no response since the last failure
        self._failing = False
        self._refused = RateLimitedLog(logging.INFO)
        # why those are not copied now of which that was told
        self._told: dict[Partition, ErrorCode] = {}
        self._task = self._loop.create_task(self._run())

    def __repr__(self) -> str:
        return f"Fetcher(from {self._source}, {len(self._partitions)} partitions)"

    def add(self, partition: Partition) -> None:
        """Follow another partition, or one under its new leader epoch."""
        named = self._named.get(partition)
        if named is not None and named.current_leader_epoch == partition.leader_epoch:
            return
        self._partitions[partition.topic.id, partition.index] = partition
        self._paused.pop(partition, None)
        self._lagging.add(partition)
        self._moved[partition] = None
        self._added = True
        self._happened.set()

    def remove(self, partition: Partition) -> None:
        """Stop following a partition. Safe to call for one that is not followed."""
        if self._is_followed(partition):
            del self._partitions[partition.topic.id, partition.index]
        self._lagging.discard(partition)
        self._paused.pop(partition, None)
        self._told.pop(partition, None)
        self._forget_partition(partition)

    def stop(self) -> asyncio.Task[None]:
        """Stop following; return the task to wait for."""
        self._task.cancel()
        self._close()
        return self._task

    def _is_followed(self, partition: Partition) -> bool:
        return self._partitions.get((partition.topic.id, partition.index)) is partition

    def _forget_partition(self, partition: Partition) -> None:
        """Have the leader drop a partition from the session."""
        self._moved.pop(partition, None)
        if self._named.pop(partition, None) is not None:
            self._forgotten[partition.topic.id, partition.index] = partition.topic.name

    def _close(self) -> None:
        for asked in self._under_way:
            asked.answer.cancel()
        for connection in self._connections:
            connection.close("following begins anew")
        self._under_way, self._connections = [], []
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Let the next request begin a new session with all partitions."""
        self._sessions += 1
        self._epoch = 0
        self._named, self._forgotten = {}, {}
        self._moved = dict.fromkeys(self._partitions.values())

    async def _run(self) -> None:
        while True:
            try:
                await self._fetch_round()
            except (KohortError, OSError) as error:
                self._close()
                if not self._failing:
                    log.warning("broker %d cannot be followed: %s; tried again", self._source, error)
                self._failing = True
                await asyncio.sleep(_UNREACHABLE_S)
            except Exception:
                log.exception("following broker %d failed: it is tried again", self._source)
                self._close()
                await asyncio.sleep(_UNREACHABLE_S)

    async def _fetch_round(self) -> None:
        """Send a request, if one is due, and process the responses that have come."""
        self._happened.clear()
        for asked in [each for each in self._under_way if each.answer.done()]:
            self._under_way.remove(asked)
            await self._take_response(asked)
        pause_s = None
        # a request that begins a session does not wait for records
        may_ask = (
            len(self._under_way) < 2 and self._added and not any(each.begins for each in self._under_way)
        )
        if may_ask or not self._under_way:
            self._added = False
            pause_s = await self._send_request()
        with suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await self._happened.wait()

    async def _send_request(self) -> float | None:
        """Send a request, if anything is followed; else return the time to wait in seconds, None: until
        something happens.
        """
        now = self._loop.time()
        self._hold_back(now)
        for partition in [each for each, time in self._paused.items() if time <= now]:
            del self._paused[partition]
            self._moved[partition] = None
        if now - self._looked >= _ALL_AGAIN_S:
            # to tell the leader where logs begin
            self._looked = now
            self._moved |= dict.fromkeys(self._named)
        if not self._partitions:
            return None
        connection = await self._free_connection()
        named = self._partitions_to_name()
        pause_s = min((max(time - now, 0.001) for time in self._paused.values()), default=None)
        if not self._named:
            return pause_s
        begins = self._epoch == 0
        wait_ms = self._settings.replica_fetch_wait_max_ms
        if pause_s is not None:
            # until the first refused one is due again, at the latest
            wait_ms = min(wait_ms, int(pause_s * 1_000) + 1)
        if begins and self._has_sessions:
            wait_ms = 0  # no other request can be sent before its response
        answer = connection.ask(self._make_request(named, wait_ms), timeout_ms=wait_ms + _ANSWER_MS)
        answer.add_done_callback(lambda _: self._happened.set())
        self._serial += 1
        self._under_way.append(_Asked(connection, answer, self._serial, self._sessions, begins))
        self._forgotten = {}
        self._epoch = 1 if self._epoch == _LAST_EPOCH else self._epoch + 1
        return None

    async def _free_connection(self) -> Connection:
        busy = {id(each.connection) for each in self._under_way}
        self._connections = [each for each in self._connections if not each.is_closed]
        for connection in self._connections:
            if id(connection) not in busy:
                return connection
        self._connections.append(await self._cluster.connect(self._source))
        return self._connections[-1]

    def _partitions_to_name(self) -> dict[Partition, FetchPartition]:
        """The partitions that the next request has to name: those whose offset the leader does not know."""
        named = {}
        moved = [each for each in self._moved if each not in self._paused]
        self._moved = {}
        # only the first partition of a response may exceed the limit: they take turns
        self._turn += 1
        first = self._turn % max(len(moved), 1)
        for partition in moved[first:] + moved[:first]:
            try:
                position = self._fetch_position(partition)
            except KafkaError as error:
                self._on_refusal(partition, error)
                continue
            if self._named.get(partition) != position:
                self._named[partition] = named[partition] = position
                self._forgotten.pop((partition.topic.id, partition.index), None)
        return named

    def _hold_back(self, now: float) -> None:
        """Pause throttled partitions that have to catch up, if the rate is used up (KIP-73)."""
        throttle = self._cluster.follower_throttle
        if self._lagging and throttle.is_exceeded(clock()):
            for partition in list(self._lagging):
                if self._is_throttled(partition):
                    self._pause_partition(partition, now + _HELD_BACK_S)

    def _is_throttled(self, partition: Partition) -> bool:
        replicas = partition.topic.config.follower_replication_throttled_replicas
        return self._cluster.follower_throttle.concerns(replicas, partition.index)

    def _fetch_position(self, partition: Partition) -> FetchPartition:
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

    def _make_request(self, named: Mapping[Partition, FetchPartition], wait_ms: int) -> FetchRequest:
        topics: dict[UUID, tuple[str, list[FetchPartition]]] = {}
        for partition, position in named.items():
            topics.setdefault(partition.topic.id, (partition.topic.name, []))[1].append(position)
        return FetchRequest(
            replica_state=ReplicaState(self._cluster.node_id, self._cluster.epoch),
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=self._settings.replica_fetch_response_max_bytes,
            session_id=self._session_id,
            session_epoch=self._epoch,
            topics=[
                FetchTopic(topic=name, topic_id=topic_id, partitions=positions)
                for topic_id, (name, positions) in topics.items()
            ],
            forgotten_topics_data=[
                ForgottenTopic(topic=name, topic_id=topic_id, partitions=[index])
                for (topic_id, index), name in self._forgotten.items()
            ],
        )

    # -- answers ---------------------------------------------------------------------------------------------

    async def _take_response(self, asked: _Asked) -> None:
        answer = asked.answer.result()
        if asked.session != self._sessions:
            return
        if asked.serial != self._serial:
            # another request has followed it: the leader says so, unless the two crossed
            if not answer.error_code:
                self._begin_anew()
            return
        if answer.error_code in SESSION_ERRORS:
            self._begin_anew()
            return
        if answer.error_code:
            raise broker_refusal(answer.error_code, f"broker {self._source} refuses Fetch")
        self._failing = False
        self._session_id = answer.session_id
        self._has_sessions = self._session_id != 0
        cut: list[tuple[Partition, int, bool]] = []
        lost: list[tuple[Partition, FetchPartition]] = []
        for topic in answer.responses:
            for data in topic.partitions:
                partition = self._partitions.get((topic.topic_id, data.partition_index))
                position = None if partition is None else self._named.get(partition)
                if partition is None or position is None or not self._is_current(partition, position):
                    continue
                self._moved[partition] = None
                try:
                    if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                        lost.append((partition, position))
                    elif data.error_code:
                        raise broker_refusal(data.error_code, f"broker {self._source} refuses it")
                    elif data.diverging_epoch is not None and data.diverging_epoch.epoch >= 0:
                        cut.append((partition, self._log_slices_at(partition, data.diverging_epoch), False))
                    else:
                        self._append_records(partition, data)
                except KafkaError as error:
                    self._on_refusal(partition, error)
        if not self._has_sessions:
            self._begin_anew()
        if lost:
            cut += await self._find_again(asked.connection, lost)
        self._truncate_logs(cut)

    def _is_current(self, partition: Partition, position: FetchPartition) -> bool:
        """Return whether a response still fits the partition's state."""
        return (
            self._is_followed(partition)
            and partition.leadership is None
            and not partition.gone
            and partition.leader_epoch == position.current_leader_epoch
            and partition.log_end_offset == position.fetch_offset
        )

    def _append_records(self, partition: Partition, data: PartitionData) -> None:
        if data.records:
            records = bytes(data.records)
            # where records were deleted the leader's log may begin in the middle of a batch, whose first 8
            # bytes are its base offset: what this log has from there on may be other records, as the leader
            # knows no epoch that ended before its log begins. An empty log may begin there, too, as that of
            # a former leader did
            first, end = int.from_bytes(records[:8]), partition.log_end_offset
            if first < end and (first < data.log_start_offset or end == partition.log_start_offset):
                self._truncate_logs([(partition, first, first <= partition.log_start_offset)])
            partition.append_copied(records, now_ms=self._now_ms())
            if self._is_throttled(partition):
                self._cluster.follower_throttle.record(len(records), clock())
        if self._told:
            self._told.pop(partition, None)
        if partition.log_end_offset < data.high_watermark:
            self._lagging.add(partition)
        else:
            self._lagging.discard(partition)
        partition.commit_up_to(data.high_watermark)
        if data.log_start_offset > partition.log_start_offset:
            partition.delete_records(
                min(data.log_start_offset, partition.high_watermark), now_ms=self._now_ms()
            )

    def _log_slices_at(self, partition: Partition, diverging: EpochEndOffset) -> int:
        found = truncation_for(
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

    async def _find_again(
        self, connection: Connection, lost: list[tuple[Partition, FetchPartition]]
    ) -> list[tuple[Partition, int, bool]]:
        """Where to continue partitions whose ends are not in their leaders' logs: at the leader's end if that
        is before the follower's, else, with an empty log, at the leader's start.
        """
        starts = await self._ask_offsets(connection, [each for each, _ in lost], _EARLIEST)
        ends = await self._ask_offsets(connection, [each for each, _ in lost], _LATEST)
        found = []
        for partition, position in lost:
            if partition not in starts or partition not in ends or not self._is_current(partition, position):
                self._retry_later(partition)
            elif starts[partition] <= partition.log_start_offset and ends[partition] < position.fetch_offset:
                found.append((partition, ends[partition], False))
            else:
                found.append((partition, max(starts[partition], 0), True))
        return found

    async def _ask_offsets(
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

    def _truncate_logs(self, cut: list[tuple[Partition, int, bool]]) -> None:
        for partition, offset, restart in cut:
            where = partition.topic.name, partition.index, partition.log_end_offset, offset
            anew = "%s-%d, which ended at %d, begins anew at %d, as its leader does"
            log.info(anew if restart else "%s-%d is cut from %d to %d", *where)
            try:
                partition.truncate(offset, now_ms=self._now_ms(), restart=restart)
                # if that found damage: later, the leader would count on what was copied behind it
                partition.cut_damage("copied from its leader", now_ms=self._now_ms())
            except KafkaError as error:
                self._on_refusal(partition, error)
                if partition.is_unread:
                    self._read_again(partition)
        if cut:
            # records appended after the cut are not on the disk, whatever was known about the former ones
            self._checkpoint()

    def _on_refusal(self, partition: Partition, error: KafkaError) -> None:
        # it is asked for again every few moments
        if self._told.get(partition) != error.code:
            self._told[partition] = error.code
            where = partition.topic.name, partition.index
            self._refused.say("%s-%d is not copied from broker %d now: %s", *where, self._source, error)
        self._retry_later(partition)

    def _retry_later(self, partition: Partition) -> None:
        self._pause_partition(partition, self._loop.time() + _REFUSED_S)

    def _pause_partition(self, partition: Partition, until: float) -> None:
        if self._is_followed(partition):
            self._paused[partition] = until
            self._forget_partition(partition)
