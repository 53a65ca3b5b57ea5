"""The group consumer for asyncio. ``assembly`` builds its parts, ``handover`` runs its rebalances."""

from __future__ import annotations

import asyncio
import functools
import importlib
import operator
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ..client.errors import ConfigError, ConsumerClosedError
from ..client.offsets import EARLIEST, LATEST, CommittedOffset, OffsetAndTimestamp
from ..client.surroundings import SURROUNDINGS
from ..client.transactions import GroupMetadata
from ..client.waiting import Signal, now_ms
from ..protocol import ApiKey, TopicPartition, prepare_request
from ..statemachine import MemberState
from .config import ConsumerConfig, consumer_config
from .done.in_hand import POLLS, DoneWithNext, InHand
from .errors import ForkedError
from .event_lines import EventLines
from .events import ConsumerFailed, Event, EventLog, StateChanged
from .reading.delivery import POLL_BYTES, MakeBatches
from .reading.fetch_buffer import ArrowForm
from .reading.fetched_records import off_the_loop, prepare_checksum
from .reading.user_decoders import Decoder, decode_data, make_decoder
from .record import Record, RecordStream, Run
from .run.assembly import ConsumerAssembly
from .run.closing import CLOSE_TIMEOUT_MS, CLOSED, Caller, Closing
from .run.handover import Callbacks, PartitionsCallback
from .topic_selection import Selection

if TYPE_CHECKING:
    from typing import Unpack

    import pyarrow as pa

    from .typed_settings import ConsumerSettings

T = TypeVar("T")

#: Most rows of an Arrow batch; a fetched chunk makes one batch or several.
ROWS_PER_BATCH = 20_000
_TIMES = "a time is a whole number of milliseconds since 1970"
#: The largest int64.
_MOST = 2**63 - 1

#: Requests that are sent while a partition that moves has no reader.
_OF_A_MOVE = (
    ApiKey.OFFSET_COMMIT,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.OFFSET_FETCH,
    ApiKey.FETCH,
)

#: A reader that never has to wait lets other tasks run after this long. asyncio takes 256 KiB from a socket
#: in a turn, so this also bounds how fast data comes while records are read.
TURN_S = 0.002


@dataclass(frozen=True, slots=True)
class ConsumerStatus:
    """State of the member, its reason, and since when (milliseconds of the event loop's clock).

    ``assigned`` counts partitions owned now, ``undone`` records delivered and not done.
    """

    state: MemberState
    reason: str
    since_ms: float
    generation: int
    member_id: str
    assigned: int
    undone: int


class AsyncGroupConsumer:
    """Reads topics as a member of a consumer group.

    ``async with AsyncGroupConsumer("orders", bootstrap="localhost:9092", group="billing") as consumer:``,
    then ``async for record in consumer`` or ``getmany``; call ``done(record)`` for each record that has been
    dealt with, in any order. What is done is committed by itself, and nothing else is. Settings are Kafka's
    in snake case: see ConsumerConfig. Wrong ones raise ConfigError here, before anything connects.

    Instead of topics, ``pattern`` subscribes to all that match a regular expression, and ``partitions`` reads
    just these, in no group (without ``group``, nothing is committed either). Only one of the three.

    The callbacks get a tuple of partitions and may be async: ``on_partitions_assigned`` before the first
    record; ``on_partitions_revoking`` when delivery of partitions has stopped; ``on_partitions_revoked`` when
    what was delivered of them is done or out of time, just before the commit; ``on_partitions_lost`` instead,
    when the group has gone on without this member.

    ``decode`` and ``key_decode`` are for the calls of these names: a type that pydantic reads from JSON, a
    function from bytes, or a decoder of a SchemaRegistry.

    Use it on one event loop. Handlers may run for long, but must not block the loop: heartbeats are sent
    there.
    """

    def __init__(
        self,
        *topics: str,
        pattern: str | re.Pattern[str] | None = None,
        partitions: Iterable[TopicPartition] | None = None,
        on_partitions_assigned: PartitionsCallback | None = None,
        on_partitions_revoking: PartitionsCallback | None = None,
        on_partitions_revoked: PartitionsCallback | None = None,
        on_partitions_lost: PartitionsCallback | None = None,
        decode: object = None,
        key_decode: object = None,
        **config: Unpack[ConsumerSettings],
    ) -> None:
        self._selection = Selection.of(topics, pattern, partitions)
        self.config: ConsumerConfig = consumer_config(**config)
        if not self.config.group and not self._selection.manual:
            raise ConfigError("'group' is missing: name one, or give partitions to read without a group")
        self._decode, self._key_decode = make_decoder(decode, "value"), make_decoder(key_decode, "key")
        #: Typed events: iterate it, or give it a listener.
        self.events = EventLog()
        lines = EventLines(self.config.group, lambda: self._time())
        #: Whether events are written to the logger ``kohort.consumer``.
        self.logged = True
        self.events.listen(lambda event: lines.write_event(event) if self.logged else None)
        self._callbacks = Callbacks(
            on_partitions_assigned, on_partitions_revoking, on_partitions_revoked, on_partitions_lost
        )
        self._more = Signal()
        self._status = (MemberState.UNJOINED, "not started", 0.0)
        self._error: Exception | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._closed = False
        self._process = os.getpid()
        self._time: Callable[[], float] = lambda: 0.0
        self._turn_ends = 0.0
        #: What was given last; only with auto_done there is any.
        self.in_hand = InHand(self._deliver_again)
        self._parts: ConsumerAssembly | None = None
        self._built = ConsumerAssembly(
            self.config,
            self._callbacks,
            manual=self._selection.manual,
            wake=self._more.fire,
            report=self._publish_event,
            failed=self._on_failure,
        )
        self._closing = Closing(
            self._built,
            self.config.notice_ms,
            tasks=lambda: None if self._parts is None else self._tasks,
            silenced=self._silence_logs,
            over=self.events.close,
        )
        self._tracker = self._built.tracker
        self._sessions = self._tracker.sessions

    def __repr__(self) -> str:
        status = self.state
        return (
            f"AsyncGroupConsumer({self.config.group!r}, {status.state.value}, "
            f"generation {status.generation}, {status.assigned} partitions, {status.undone} records undone)"
        )

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        # a close in progress may have time for records that other tasks handle
        await self.close_by(asyncio.current_task(), 0, CLOSE_TIMEOUT_MS, hurry=False)

    # life

    async def start(self) -> None:
        """Connect and join the group; records come after the rebalance.

        Raises BrokerConnectionError if no broker answers within default_api_timeout_ms.
        """
        if self._parts is not None or self._closed:
            raise ConsumerClosedError("a consumer starts once: make a new one")
        parts = self._built
        # loading aiokafka takes a quarter of a second, for which connecting need not wait
        loading = asyncio.create_task(off_the_loop(_load_modules))
        try:
            await parts.cluster.connect()
            await parts.choose_protocol()
            await loading
            if self._closed:
                raise ConsumerClosedError("this consumer was closed before it had started")
        except BaseException:
            self._closed = True
            await asyncio.gather(loading, return_exceptions=True)
            await parts.close()
            raise
        self._parts = parts
        parts.cluster.refused = self._on_failure
        self._time = asyncio.get_running_loop().time
        parts.watch.note_poll(now_ms())
        jobs = [
            parts.driver.run(),
            parts.driver.watch_topics(),
            parts.handover.run(),
            parts.fetcher.run(),
        ]
        if SURROUNDINGS.get().in_thread is None:
            jobs.append(parts.loop_watch.run())
        if self.config.commits:
            jobs.append(parts.committer.run(self.config.auto_commit_interval_ms))
        for job in jobs:
            task = asyncio.create_task(job, name=f"kohort consumer {self.config.group}")
            task.add_done_callback(self._task_ended)
            self._tasks.append(task)
        parts.driver.select(self._selection)

    async def close(self, *, drain_timeout_ms: float = 0, timeout_ms: float = CLOSE_TIMEOUT_MS) -> None:
        """Commit what is done, call the callbacks, leave the group; returns when all of that is over.

        Waits up to ``drain_timeout_ms`` for records that are delivered and not done (other tasks may be at
        them), and up to ``timeout_ms`` in all, beyond which only LeaveGroup has up to two seconds. A static
        member stays in the group until its session ends.

        While another task reads, records go on coming to it until the other members are ready to take over,
        for up to ``leave_notice_ms``: see ``announce_leave``. Called again meanwhile, or cancelled, it waits
        for neither, commits what is done and leaves. In a callback it returns at once, and closing goes on.
        """
        await self.close_by(asyncio.current_task(), drain_timeout_ms, timeout_ms)

    async def close_by(
        self, caller: Caller, drain_ms: float, timeout_ms: float, *, hurry: bool = True
    ) -> None:
        """As ``close``, for a task, or for the thread with this id; ``hurry`` speeds up one in progress."""
        await self._closing.close(caller, drain_ms, timeout_ms, hurry=hurry)

    def _silence_logs(self) -> None:
        self._closed = True
        self._more.fire()

    async def announce_leave(self, timeout_ms: float | None = None) -> None:
        """Tell the group that this consumer is about to close, and wait until the others are ready for that.

        Records keep coming meanwhile: have another task go on with them, and call ``close`` afterwards. So
        partitions rest only while they are handed over, and not until the others hear of it by a heartbeat.
        Waits up to ``timeout_ms`` (default ``leave_notice_ms``); not at all for a static member, under an
        eager assignor, alone in the group, or when the group's leader is another client that cannot know.
        """
        parts = self._require_running()
        notice_ms = self.config.notice_ms if timeout_ms is None else timeout_ms
        await parts.driver.announce_leave(CLOSED, notice_ms)

    def subscribe(self, *topics: str) -> None:
        """Subscribe to these topics instead; partitions of others are revoked."""
        self._change_selection(Selection.of(topics, None, None))

    def subscribe_pattern(self, pattern: str | re.Pattern[str]) -> None:
        """Subscribe to the topics whose whole names match, new ones included.

        Internal topics never match. Topics are looked for every ``metadata_max_age_ms``, or about every ten
        seconds where the brokers match the pattern (protocol 'consumer').
        """
        self._change_selection(Selection.of((), pattern, None))

    def assign(self, *partitions: TopicPartition) -> None:
        """Read these partitions instead, in no group; others are given up."""
        self._change_selection(Selection.of((), None, partitions))

    def unsubscribe(self) -> None:
        """Read nothing, until ``subscribe``, ``subscribe_pattern`` or ``assign``.

        Partitions are revoked in order: what is done is committed first. The member stays in its group.
        """
        self._change_selection(self._selection.nothing)

    def _change_selection(self, new: Selection) -> None:
        selection = new if new == self._selection.nothing else self._selection.change_to(new)
        self._require_running().driver.select(selection)
        self._selection = selection

    # records

    def __aiter__(self) -> AsyncIterator[Record]:
        stream = RecordStream(self._give_way, self._run_now, self.next_run)
        return DoneWithNext(stream, self.in_hand, self.done) if self.config.auto_done else stream

    def _deliver_again(self) -> None:
        """A loop was left before it was done with its last records: they come again."""
        if self._parts is not None and not self._closed:
            self._parts.delivery.deliver_again()
            self._parts.handover.record_done()

    async def __anext__(self) -> Record:
        """The next record; waits for it. Ends when the consumer is closed."""
        while not self._closed:
            if some := await self.getmany(1, None):
                return some[0]
        raise StopAsyncIteration

    async def getmany(
        self,
        max_records: int | None = None,
        timeout_ms: float | None = 1_000,
        max_bytes: int | None = POLL_BYTES,
    ) -> list[Record]:
        """Available records, up to ``max_records`` (default max_poll_records), in order within each
        partition. No more batches are decoded once these have ``max_bytes``, decompressed (None: without
        limit).

        Waits for the first one up to ``timeout_ms`` (None: without limit). Empty when time is up or the
        consumer is closed meanwhile. Raises FatalGroupError when the group does not take this member, and the
        error of a partition that cannot be read (NoOffsetError, CorruptBatchError, KafkaError).
        """
        # before anything is raised: a close may wait for these
        self.in_hand.on_asked(POLLS)
        taken = await self.next_records(max_records, timeout_ms, max_bytes)
        if self.config.auto_done and taken:
            self.in_hand.note_given(POLLS, functools.partial(self.done_all, taken.copy()))
        return taken

    def arrow_batches(
        self, *, include_headers: bool = False, max_rows: int = ROWS_PER_BATCH
    ) -> AsyncIterator[pa.RecordBatch]:
        """Arrow batches, each of one partition, until the consumer is closed; ``done_batch`` for each.

        Columns: key, value, topic, partition, offset, timestamp, timestampType (0: the producer's, 1: the
        broker's), and headers if wanted. Raises what ``getmany`` raises, and ConfigError without pyarrow.
        """
        if max_rows < 1:
            raise ValueError(f"max_rows is {max_rows}: ask for 1 or more")
        batches = _ArrowBatches(self._next_made, ArrowForm(include_headers, max_rows))
        return DoneWithNext(batches, self.in_hand, self.done_batch) if self.config.auto_done else batches

    async def _next_made(self, form: ArrowForm, make: MakeBatches) -> list[pa.RecordBatch]:
        """The next Arrow batch; none when the consumer is closed."""
        if self._closed:
            return []
        return await self._poll_until(lambda parts: parts.delivery.take_made(form, make), None)

    async def next_records(
        self,
        max_records: int | None = None,
        timeout_ms: float | None = None,
        max_bytes: int | None = POLL_BYTES,
    ) -> list[Record]:
        """As ``getmany``, for a loop, which itself tells when it asks for more."""
        limit = self.config.max_poll_records if max_records is None else max_records
        if limit < 1:
            raise ValueError(f"max_records is {limit}: ask for 1 or more")
        return await self._poll_until(lambda parts: parts.delivery.take(limit, max_bytes), timeout_ms)

    async def next_run(self) -> Run | None:
        """Records to be taken one by one, in any thread; waits for them. None when the consumer is closed."""
        if self._closed:
            return None
        runs = await self._poll_until(lambda parts: [run] if (run := parts.delivery.run()) else [], None)
        return runs[0] if runs else None

    async def _poll_until(
        self, take: Callable[[ConsumerAssembly], list[T]], timeout_ms: float | None
    ) -> list[T]:
        """Wait until ``take`` returns something."""
        parts = self._require_running()
        now = now_ms()
        deadline = None if timeout_ms is None else now + timeout_ms
        parts.watch.polling(now)
        if not isinstance(parts.watch.poller, int):
            parts.watch.poller = asyncio.current_task()
        if parts.membership.paused:
            parts.driver.polled_again()
        try:
            await self._give_way()
            while not self._closed:
                if error := self._error or parts.driver.topic_error or parts.positions.first_error():
                    raise error
                taken = take(parts)
                if taken:
                    return taken
                left_ms = None if deadline is None else deadline - now_ms()
                if left_ms is not None and left_ms <= 0:
                    break
                parts.fetcher.made_room()
                await self._more.wait(left_ms)
                # others have run meanwhile
                self._turn_ends = self._time() + TURN_S
            return []
        finally:
            parts.watch.on_poll(now_ms())

    async def _give_way(self) -> bool:
        """Let heartbeats and commits run if due, and return whether they did. A reader may never wait."""
        due = self._time() >= self._turn_ends
        if due:
            await asyncio.sleep(0)
            self._turn_ends = self._time() + TURN_S
        return due

    def _run_now(self) -> Run | None:
        """Records to be taken one by one, if there are any now."""
        parts = self._parts
        if parts is None or self._closed or self._error is not None:
            return None
        parts.watch.note_poll(self._time() * 1000)
        if parts.membership.paused:
            parts.driver.polled_again()
        return parts.delivery.run()

    async def decode(self, record: Record) -> Any:
        """The record's value, decoded by the consumer's ``decode``; None for a null.

        Raises InvalidRecordError, whose record will never be decoded: set it aside, and mark it done. Raises
        RegistryError if a schema registry has to be asked and does not answer.
        """
        return await decode_data(self.decoder(), record.value)

    async def decode_key(self, record: Record) -> Any:
        """As ``decode``, the record's key, by ``key_decode``."""
        return await decode_data(self.decoder(key=True), record.key)

    def decoder(self, *, key: bool = False) -> Decoder:
        """The decoder of values, or of keys. Raises ConfigError if this consumer has none."""
        decoder, name = (self._key_decode, "key_decode") if key else (self._decode, "decode")
        if decoder is None:
            raise ConfigError(f"this consumer has no {name}: give it one, {name}=Order")
        return decoder

    # done and committed

    def done(self, record: Record) -> None:
        """Mark a record done: it may be committed once everything before it is done, too.

        Raises StaleRecordError if its partition has been given up since: the record will be delivered
        elsewhere.
        """
        try:
            session, offset = self._sessions[record.session_id], record.offset
        except KeyError:
            session = (self._parts or self._require_running(closing=True)).tracker.session_of(record)
        if session.first == offset < session.limit:
            # the usual case in few steps: the first record that is not done
            session.first = offset + 1
        else:
            session.done(offset)
        if self._tracker.awaited:
            self._was_done(self._parts or self._require_running(closing=True))

    def _was_done(self, parts: ConsumerAssembly) -> None:
        if parts.tracker.awaited:
            parts.delivery.made_room()
            parts.handover.record_done()

    def done_all(self, records: Iterable[Record]) -> None:
        """Mark records done. Raises StaleRecordError, after marking the others, if some partitions were
        given up.
        """
        parts = self._parts or self._require_running(closing=True)
        records = records if isinstance(records, list) else list(records)
        taken = parts.delivery.last_taken
        # records equal only themselves: these are the ones delivered together last
        if records == taken.records and all(s.session_id in self._sessions for s, _, _ in taken.parts):
            for session, start, end in taken.parts:
                session.done_range(start, end)
            self._was_done(parts)
        else:
            stale = parts.tracker.done_all(records)
            self._was_done(parts)
            if stale is not None:
                parts.tracker.session_of(stale)

    def done_marked(self) -> None:
        """Process records that other threads have marked done; their partitions may have been given up
        since.
        """
        self._tracker.done_marked()
        if self._tracker.awaited:
            self._was_done(self._parts or self._require_running(closing=True))

    def done_batch(self, batch: pa.RecordBatch) -> None:
        """Mark all records of a batch from ``arrow_batches`` done.

        The batch may have been sliced, filtered or cast, as long as it has its schema's metadata: all records
        that were delivered in it are done. Raises StaleRecordError as ``done`` does.
        """
        parts = self._require_running(closing=True)
        parts.tracker.done_batch(*_import_arrow().covered_offsets(batch))
        self._was_done(parts)

    async def commit(
        self,
        offsets: Mapping[TopicPartition, int | CommittedOffset] | None = None,
        *,
        timeout_ms: float | None = None,
    ) -> None:
        """Commit what is done, or these offsets (the next ones to read); what is before them counts as done.

        Waits out a rebalance, up to ``timeout_ms`` (default_api_timeout_ms). Raises CommitFailedError, which
        names the partitions this member has lost, and FatalGroupError.
        """
        parts = self._require_running(closing=True)
        self._require_group("commit")
        if self._error is not None:
            raise self._error
        timeout_ms = self.config.default_api_timeout_ms if timeout_ms is None else timeout_ms
        parts.delivery.recall()
        await parts.committer.commit(offsets, timeout_ms)
        parts.handover.record_done()

    async def committed(self, *partitions: TopicPartition) -> dict[TopicPartition, CommittedOffset]:
        """The group's committed offsets, of these partitions or the assigned ones."""
        self._require_group("committed")
        wanted = partitions or self.assignment()
        parts = self._require_running()
        stored = {} if parts.registry is None else await parts.registry.stored_offsets(wanted)
        if left := [partition for partition in wanted if partition not in stored]:
            stored |= await parts.cluster.committed(self.config.group, left)
        return stored

    def _require_group(self, call: str) -> None:
        if not self.config.group:
            raise ConfigError(f"{call}: this consumer has no group, so nothing is committed; give it one")

    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset of each partition, assigned or not. Raises KafkaError after
        default_api_timeout_ms, as the next two calls do.
        """
        return await self._offsets_at(dict.fromkeys(partitions, EARLIEST))

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset after the last record of each partition; with isolation_level="read_committed" after the
        last one that no open transaction holds back.
        """
        return await self._offsets_at(dict.fromkeys(partitions, LATEST))

    async def offsets_for_times(
        self, timestamps_ms: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Offset and time of the first record that is not older, by partition; None if all are older.

        Raises ValueError for anything but a time in milliseconds since 1970.
        """
        times = {partition: _require_whole(time, 0, _TIMES) for partition, time in timestamps_ms.items()}
        found = await self._require_running().cluster.list_offsets(times)
        return {partition: row if row.offset >= 0 else None for partition, row in found.items()}

    async def _offsets_at(self, at: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        committed = self.config.reads_committed
        found = await self._require_running().cluster.list_offsets(at, read_committed=committed)
        return {partition: row.offset for partition, row in found.items()}

    async def drain(self, timeout_ms: float, *partitions: TopicPartition) -> bool:
        """Wait until delivered records (of these partitions, or all) are done; return whether that was in
        time.
        """
        parts = self._require_running()
        parts.delivery.recall()
        return await parts.handover.drain(partitions or self.assignment(), timeout_ms)

    # where to read

    def pause(self, *partitions: TopicPartition) -> None:
        """Pause delivery of these partitions until ``resume``; membership goes on. Raises KeyError if not
        owned.
        """
        self._require_running().positions.pause(partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        """Deliver them again."""
        parts = self._require_running()
        parts.positions.resume(partitions)
        parts.fetcher.wake()
        self._more.fire()

    def paused(self) -> frozenset[TopicPartition]:
        """The partitions that ``pause`` holds back."""
        return self._built.positions.paused()

    def seek(self, partition: TopicPartition, offset: int, *, leader_epoch: int = -1) -> None:
        """Continue at ``offset``; earlier records can no longer be marked done. Raises KeyError if not owned.

        With the ``leader_epoch`` of the record before it, the leader is first asked whether its log still has
        that record. Raises ValueError for anything but a whole number from 0 on, EARLIEST (-2) or LATEST
        (-1).
        """
        offset = _require_whole(offset, EARLIEST, f"seek {partition}: an offset is a whole number, 0 or more")
        parts = self._require_running()
        parts.positions.seek(partition, offset, leader_epoch)
        if offset not in (EARLIEST, LATEST):
            position = parts.positions.get(partition)
            assert position is not None, "seek has just found it"
            parts.delivery.start(position)
        else:
            parts.delivery.drop([partition])
        parts.fetcher.wake()

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Continue at the first record of each of these partitions."""
        for partition in partitions:
            self.seek(partition, EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Continue behind the last record of each of these partitions."""
        for partition in partitions:
            self.seek(partition, LATEST)

    def seek_to_time(self, partition: TopicPartition, timestamp_ms: int) -> None:
        """Continue at the first record that is not older than this; at the end if there is none.

        Raises ValueError for anything but a time in milliseconds since 1970.
        """
        timestamp_ms = _require_whole(timestamp_ms, 0, _TIMES)
        parts = self._require_running()
        parts.positions.seek_to_time(partition, timestamp_ms)
        parts.delivery.drop([partition])
        parts.fetcher.wake()

    def rewind(self, timestamp_ms: int) -> None:
        """``seek_to_time`` for every partition that this consumer has now."""
        for partition in self._built.membership.owned:
            self.seek_to_time(partition, timestamp_ms)

    # state

    @property
    def state(self) -> ConsumerStatus:
        """State of the member, its reason and since when."""
        built = self._built
        state, reason, since_ms = self._status
        return ConsumerStatus(
            state,
            reason,
            since_ms,
            built.membership.generation,
            built.membership.member_id,
            len(built.membership.owned),
            built.tracker.undone() - built.delivery.not_taken,
        )

    def group_metadata(self) -> GroupMetadata:
        """Identity of this member now, for ``Producer.send_offsets``. A member that was removed, and has not
        joined again, has generation -1 and its last id: the coordinator refuses what it still works on.

        Raises ConfigError in a group without a coordinator: its offsets are not the brokers' to commit.
        """
        if self.config.zookeeper is not None:
            raise ConfigError(
                "transactions commit offsets to a group that brokers coordinate, and ZooKeeper coordinates "
                "this one: leave coordination out"
            )
        config, membership = self.config, self._built.membership
        # a commit without an id would be taken as that of a client that knows no members
        member_id = membership.member_id or membership.last_member_id
        return GroupMetadata(config.group, membership.generation, member_id, config.group_instance_id)

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions this member owns now."""
        return self._built.membership.owned

    def subscription(self) -> frozenset[str]:
        """The topics subscribed to: those named, or those that the pattern matches; none with ``assign``."""
        return self._selection.topics or self._built.membership.subscription

    def position(self, partition: TopicPartition) -> int | None:
        """Offset of the next record to be delivered; None while unknown."""
        session = self._built.tracker.get(partition)
        return self._built.delivery.next_offset(session) if session is not None else None

    @property
    def outage_s(self) -> float:
        """Seconds for which a broker, or a request, that is still tried has had no success; 0 if all has."""
        return self._built.cluster.outage_s

    def lag(self) -> dict[TopicPartition, int]:
        """Number of records up to the high watermark, as of the last fetch, by partition; unknown ones are
        left out.
        """
        lags = {}
        for position in self._built.positions:
            session = self._built.tracker.get(position.partition)
            if session is not None and position.high_watermark >= 0:
                lags[position.partition] = max(
                    0, position.high_watermark - self._built.delivery.next_offset(session)
                )
        return lags

    # inside

    @property
    def parts(self) -> ConsumerAssembly:
        """The parts of this consumer, for the blocking consumer and for tests; not a stable API."""
        return self._built

    def _require_running(self, *, closing: bool = False) -> ConsumerAssembly:
        if self._parts is None or (self._closed and not closing):
            state = "has been closed" if self._closed else "was not started: use it in 'async with'"
            raise ConsumerClosedError(f"this consumer {state}")
        if os.getpid() != self._process:
            raise ForkedError
        return self._parts

    def _publish_event(self, event: Event) -> None:
        if isinstance(event, StateChanged):
            self._status = (event.state, event.reason, now_ms())
        self.events.publish(event)

    def _on_failure(self, error: Exception) -> None:
        if self._error is None:
            self._error = error
            self._publish_event(ConsumerFailed(error))
            self._more.fire()

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            assert isinstance(error, Exception), "others are not kept in tasks"
            self._on_failure(error)


@dataclass(slots=True, eq=False)
class _ArrowBatches:
    """The iterator of ``arrow_batches``. No async generator, because a cancelled one has ended."""

    next_made: Callable[[ArrowForm, MakeBatches], Awaitable[list[pa.RecordBatch]]]
    form: ArrowForm
    _make: MakeBatches | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        if self._make is None:
            self._make = (await off_the_loop(_prepare_arrow)).batches_of
        for batch in await self.next_made(self.form, self._make):
            return batch
        raise StopAsyncIteration


def _load_modules() -> None:
    """Load what the first partitions would otherwise wait for."""
    prepare_checksum()
    for api_key in _OF_A_MOVE:
        prepare_request(api_key)


def _prepare_arrow() -> ModuleType:
    arrow = _import_arrow()
    arrow.prepare_pyarrow()
    return arrow


def _import_arrow() -> ModuleType:
    try:
        return importlib.import_module(".reading.arrow_batches", __package__)
    except ImportError as error:
        raise ConfigError(
            f"Arrow batches need numpy and pyarrow ({error}): pip install 'kohort[arrow]'"
        ) from error


def _require_whole(given: object, least: int, what: str) -> int:
    try:
        number = operator.index(given)  # type: ignore[arg-type]
    except TypeError:
        number = least - 1
    if not least <= number <= _MOST:
        raise ValueError(f"{what}, and not {given!r}")
    return number
