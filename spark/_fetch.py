"""Reads planned ranges on executors and on the driver. The next Fetch is in flight while records are decoded.

Nothing here imports pyspark: a task gets a :class:`ReadTask`, which is plain data, and returns Arrow batches.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Self

from ..client import EARLIEST, BrokerConnectionError, Cluster, FetchedPartition
from ..protocol import ErrorCode, KafkaError, KohortError, TopicPartition
from ._client import Client, ConnectionOptions, process_client
from ._offsets import OffsetRange
from ._plan import DataLossError

if TYPE_CHECKING:
    import pyarrow as pa

    from ._options import ReadingOptions

log = logging.getLogger(__name__)

#: Size of the first Fetch in bytes, before the size of the records is known.
FIRST_FETCH_BYTES = 1024 * 1024

#: Largest size of one Fetch in bytes. A larger record batch still arrives whole (KIP-74).
MAX_FETCH_BYTES = 4 * 1024 * 1024

#: Number of ranges that have a Fetch in flight at the same time.
RANGES_AHEAD = 4

#: Records of a range exist, as it ends below the high watermark. So a Fetch waits only after a change of
#: leader.
_MAX_WAIT_MS = 100


@dataclass(frozen=True, slots=True)
class ReadTask:
    """The ranges that one task reads, and options for reading them."""

    connection: ConnectionOptions
    ranges: tuple[OffsetRange, ...]
    include_headers: bool = False
    read_committed: bool = False
    fail_on_data_loss: bool = True
    client_rack: str = ""

    @classmethod
    def from_options(
        cls, options: ReadingOptions, connection: ConnectionOptions, ranges: tuple[OffsetRange, ...]
    ) -> Self:
        """The task to read ``ranges`` as ``options`` say."""
        return cls(
            connection,
            ranges,
            include_headers=options.include_headers,
            read_committed=options.isolation_level == "read_committed",
            fail_on_data_loss=options.fail_on_data_loss,
            client_rack=options.client_rack,
        )


#: Partitions that were read, each with the timestamp of its newest record, in ms since 1970.
Newest = tuple[tuple[TopicPartition, int], ...]


class TaskFigures(NamedTuple):
    """What a task has read: rows, seconds, newest records, and what retention took before it was read."""

    rows: int
    seconds: float
    newest: Newest = ()
    lost: tuple[OffsetRange, ...] = ()


#: Begins a rack that is the value of an environment variable on the machine that reads.
FROM_VARIABLE = "env:"


def rack_here(given: str) -> str:
    """Return the rack of this machine: ``given``, or the variable that it names; empty if that is not set."""
    return os.environ.get(given.removeprefix(FROM_VARIABLE), "") if given.startswith(FROM_VARIABLE) else given


class Replica:
    """The replica from which a range is read: the leader, or one in this rack that it names (KIP-392)."""

    def __init__(self, rack: str = "") -> None:
        #: Given to the leader; empty once its records are to come from itself.
        self.rack = rack
        #: Node that the leader has named.
        self.node: int | None = None

    def follow(self, cluster: Cluster, named: int) -> None:
        """Read from the replica that the leader named, if its broker is known."""
        if named in cluster.known_metadata.nodes:
            self.node = named
        else:
            self.return_to_leader()

    def return_to_leader(self) -> None:
        """Read from the leader from now on."""
        self.rack, self.node = "", None


class UnreadableRangeError(KohortError):
    """The broker did not return a whole record batch of a range."""


def read_task(task: ReadTask, client: Client | None = None) -> Iterator[pa.RecordBatch]:
    """Iterate over the records of the task's ranges, range by range, with the columns of
    kohort.consumer.reading.arrow.

    ``client`` defaults to this process's shared one. Raises DataLossError if retention has removed records of
    a range (and ``fail_on_data_loss`` is set), BrokerConnectionError or KafkaError after retries,
    UnreadableRangeError, and CorruptBatchError.
    """
    yield from TaskReading(task, client).batches()


class TaskReading:
    """Reads a task. The constructor sends the first Fetch requests. See ``read_task``."""

    def __init__(self, task: ReadTask, client: Client | None = None) -> None:
        self._client = process_client(task.connection) if client is None else client
        self._task = task
        self._waiting = iter(task.ranges)
        self._started: deque[_RangeReader] = deque()
        #: What retention took before it was read, so far. See ``fail_on_data_loss``.
        self.lost: list[OffsetRange] = []
        self._send_fetches()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Iterate over the records. Call it once."""
        while self._started:
            yield from self._started.popleft().batches()
            self._send_fetches()

    def _send_fetches(self) -> None:
        for span in islice(self._waiting, RANGES_AHEAD - len(self._started)):
            self._started.append(_RangeReader(self._client, self._task, span, self.lost))


class _RangeReader:
    """Reads one range. The constructor sends the first Fetch. What is lost of it is added to ``losses``."""

    def __init__(self, client: Client, task: ReadTask, span: OffsetRange, losses: list[OffsetRange]) -> None:
        self._losses = losses
        self._client = client
        self._task = task
        self._span = span
        self._fetch_bytes = FIRST_FETCH_BYTES
        self._replica = Replica(rack_here(task.client_rack))
        self._under_way = self._start(span.start)

    def batches(self) -> Iterator[pa.RecordBatch]:
        from ..consumer.reading import arrow

        span = self._span
        offset = span.start
        while offset < span.end:
            fetched = self._under_way.result()
            if fetched.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                offset = self._behind_loss(offset)
                continue
            behind = arrow.next_offset(fetched.records, offset)
            if behind <= offset:
                raise UnreadableRangeError(
                    f"no whole record batch at offset {offset} of {span}: is a batch larger than "
                    "fetch.max.bytes of the broker?"
                )
            self._size_up(len(fetched.records), behind - offset, span.end - behind)
            if behind < span.end:
                self._under_way = self._start(behind)
            yield from arrow.decode(
                fetched.records,
                topic=span.topic,
                partition=span.partition,
                start=offset,
                end=span.end,
                aborted=fetched.aborted,
                include_headers=self._task.include_headers,
            )
            offset = behind

    def _start(self, offset: int) -> Future[FetchedPartition]:
        partition, size, replica = self._span.topic_partition, self._fetch_bytes, self._replica
        read_committed = self._task.read_committed
        return self._client.submit(
            lambda cluster: fetch_records(cluster, partition, offset, size, read_committed, replica)
        )

    def _size_up(self, size: int, offsets: int, left: int) -> None:
        """Adapt the next Fetch to what is left of the range, by the bytes per offset of this response."""
        wanted = size * left // max(offsets, 1) * 5 // 4 + 1024
        self._fetch_bytes = min(max(wanted, 1024), MAX_FETCH_BYTES)

    def _behind_loss(self, offset: int) -> int:
        span = self._span
        earliest = self._client.run(lambda cluster: _earliest_offset(cluster, span.topic_partition))
        lost = OffsetRange(span.topic, span.partition, offset, min(max(earliest, offset + 1), span.end))
        if self._task.fail_on_data_loss or earliest <= offset:
            raise DataLossError(
                [lost], f"offsets that were planned are no longer in the log: {lost}; retention took them"
            )
        log.warning("lost while reading: %s; going on behind it", lost)
        self._losses.append(lost)
        if earliest < span.end:
            self._under_way = self._start(earliest)
        return earliest


async def fetch_records(
    cluster: Cluster,
    partition: TopicPartition,
    offset: int,
    size: int,
    read_committed: bool,
    replica: Replica | None = None,
) -> FetchedPartition:
    """Fetch up to ``size`` bytes of record batches from ``offset`` on, with retries.

    OFFSET_OUT_OF_RANGE is in the result; other errors are raised as KafkaError or BrokerConnectionError.
    What ``replica`` does not give, its leader does.
    """
    replica = replica or Replica()

    async def ask() -> FetchedPartition | None:
        answers = await cluster.fetch(
            {partition: offset},
            node_id=replica.node,
            max_bytes=size,
            partition_max_bytes=size,
            max_wait_ms=_MAX_WAIT_MS,
            read_committed=read_committed,
            rack=replica.rack,
        )
        return answers.get(partition)

    async def ask_nearest() -> FetchedPartition | None:
        """Ask the leader, or the replica that it names."""
        if replica.node is None:
            row = await ask()
            if row is None or row.error_code or row.preferred_replica < 0:
                return row
            replica.follow(cluster, row.preferred_replica)
        try:
            row = await ask()
        except (KafkaError, BrokerConnectionError):
            if replica.node is None:
                raise
            row = None
        if replica.node is not None and (row is None or row.error_code or not row.records):
            # it is away, or behind the leader
            replica.return_to_leader()
            row = await ask()
        return row

    async def attempt() -> FetchedPartition:
        row = await ask_nearest()
        code = ErrorCode.LEADER_NOT_AVAILABLE if row is None else row.error_code
        if row is not None and code == ErrorCode.OFFSET_OUT_OF_RANGE:
            return row
        if row is not None and not code and row.records:
            return row
        # an empty answer below the end of the range: a new leader does not have the records yet
        await cluster.metadata([partition.topic])
        raise KafkaError(code or ErrorCode.OFFSET_NOT_AVAILABLE, f"reading {partition} at offset {offset}")

    return await cluster.retrying(attempt)


async def _earliest_offset(cluster: Cluster, partition: TopicPartition) -> int:
    return (await cluster.list_offsets({partition: EARLIEST}))[partition].offset
