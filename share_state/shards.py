"""A shard of ``__share_group_state``: the state of its share partitions, requests, snapshots and pruning.

Requests are rows of the APIs' messages, one for each share partition. Requests about a share partition wait
for its pending writes, so that each is decided by the content of the log.

Two epochs fence. The *state epoch* is given by the group's coordinator, and rises when the state is replaced;
the *leader epoch* is that of the partition's leader, which reads the state when it takes over.

The log is a snapshot of each share partition, and updates. It is not compacted but cut: everything below the
oldest snapshot that is needed may go. A share partition that is not used would hold that up, so its snapshot
is written anew when others have written much since.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias
from uuid import UUID

from ..coordinator.engine.effects import Command, Request
from ..coordinator.engine.events import CoordinatorEvent
from ..coordinator.engine.loader import LoadedBatch
from ..coordinator.engine.readiness import append_error
from ..coordinator.engine.shard import Api, CoordinatorTopic, Kind, LoadedRecord, Shard, Waits
from ..coordinator.engine.timers import TimerKey
from ..protocol import ApiKey, ErrorCode, SharePartitionKey, messages_of
from ..protocol.messages import initialize_share_group_state as initialize
from ..protocol.messages import read_share_group_state as read
from ..protocol.messages import read_share_group_state_summary as summary
from ..protocol.messages import write_share_group_state as write
from ..protocol.named_tuples import NamedTuple
from .merging import merge_batches
from .records import (
    BATCH_BYTES,
    NONE,
    REST_BYTES,
    ShareSnapshot,
    ShareStateDeleted,
    ShareUpdate,
    decode,
    encode_all,
)
from .settings import ShareCoordinatorSettings

#: Timers: write the snapshots of unused share partitions anew, and cut the log.
_COLD: Final = "cold"
_PRUNE: Final = "prune"

#: Kafka's default for max.message.bytes.
MAX_BYTES: Final = 1_048_588

#: Most share partitions that a timer looks at and writes at a time; it continues a millisecond later.
_SLICE: Final = 1_000
_WRITTEN_SLICE: Final = 16

_NO_TOPIC: Final = UUID(int=0)
#: States of records that are stored: available, acknowledged, archived.
_STORED_STATES: Final = frozenset({0, 2, 4})
_DONE_STATES: Final = frozenset({2, 4})

#: Apache Kafka's words.
_WORDS: Final = {
    ErrorCode.FENCED_STATE_EPOCH: (
        "The share coordinator rejected the request because the share-group state epoch did not match."
    ),
    ErrorCode.FENCED_LEADER_EPOCH: "The leader epoch in the request is older than the epoch on the broker.",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
}
_NEGATIVE: Final = "The partition id cannot be a negative number."
_READ_FIRST: Final = "Read operation on uninitialized share partition not allowed."
_WRITE_FIRST: Final = "Write operation on uninitialized share partition not allowed."
_OTHER_STATE: Final = (
    "The state was deleted, and another one begun: it is not the one that the leader has read."
)


class ShareRequest(NamedTuple):
    """A share partition, and its row in a request. ``text`` is the key in writing, which takes a while."""

    key: SharePartitionKey
    row: object
    text: str


@dataclass(slots=True)
class PruneLog(Command):
    """Delete the records below an offset, which are needed no more as soon as all replicas have those below
    ``end_offset``: snapshots in place of older ones are among them. Whoever has done so tells the state;
    otherwise it is asked for again.
    """

    before_offset: int
    end_offset: int


@dataclass(slots=True, eq=False, repr=False)
class StateWriteRefused(CoordinatorEvent):
    """The record of a share partition was refused by the log, or is too large for it."""

    name = "StateWriteRefused"
    level = "warning"

    share_partition: str
    cause: str


@dataclass(slots=True, eq=False)
class Kept:
    """The state of a share partition, the offset of its last snapshot, and the updates since.

    ``leader_epoch`` is the highest that has read the state, or one before it. It outlives a state that is
    replaced, which is written without: as in Apache Kafka, that is at -1 or 0 until a leader reads it.
    """

    now: ShareSnapshot
    snapshot_offset: int
    leader_epoch: int
    updates: int = 0


@dataclass(slots=True, eq=False)
class ShareStates:
    """State of a shard. ``max_bytes`` returns the largest batch of its topic, in bytes, ``partitions_of`` the
    number of partitions of a topic, 0 if there is none. ``is_replicated``: other brokers may take over.
    """

    settings: ShareCoordinatorSettings
    max_bytes: Callable[[], int] = lambda: MAX_BYTES
    partitions_of: Callable[[UUID], int] = lambda _: 1
    is_replicated: bool = False
    by_key: dict[SharePartitionKey, Kept] = field(default_factory=dict)
    #: The time of creation of the newest state that was deleted.
    newest_deleted_ms: int = NONE
    #: Offset behind the last record, below which the log was last cut, and the cut that is to follow.
    end_offset: int = 0
    pruned_offset: int = 0
    cut: PruneLog | None = None
    #: Share partitions that the timer for unused ones still has to look at.
    queue: list[SharePartitionKey] = field(default_factory=list)

    def store(self, records: Sequence[ShareSnapshot], offset: int) -> None:
        """Apply snapshots."""
        for at, record in enumerate(records, offset):
            before = self.by_key.get(record.key)
            known = NONE if before is None else before.leader_epoch
            self.by_key[record.key] = Kept(record, at, max(record.leader_epoch, known))
        self.end_offset = offset + len(records)

    def update(self, records: Sequence[ShareUpdate], offset: int) -> None:
        """Apply updates. One without a snapshot is left of a state that was deleted."""
        for record in records:
            kept = self.by_key.get(record.key)
            if kept is not None:
                kept.now = apply_update(kept.now, record)
                kept.leader_epoch = max(kept.leader_epoch, record.leader_epoch)
                kept.updates += 1
        self.end_offset = offset + len(records)

    def remove(self, records: Sequence[ShareStateDeleted], offset: int) -> None:
        """Apply tombstones."""
        for record in records:
            gone = self.by_key.pop(record.key, None)
            if gone is not None:
                self.newest_deleted_ms = max(self.newest_deleted_ms, gone.now.create_ms)
        self.end_offset = offset + len(records)

    def was_cut(self, cut: PruneLog) -> None:
        """Called when the log was cut."""
        self.pruned_offset, self.cut = cut.before_offset, None

    @property
    def needed_from(self) -> int:
        """The offset of the oldest snapshot that is needed."""
        return min((kept.snapshot_offset for kept in self.by_key.values()), default=self.end_offset)


def apply_update(now: ShareSnapshot, update: ShareUpdate) -> ShareSnapshot:
    """The state with an update on top."""
    start = now.start_offset if update.start_offset == NONE else update.start_offset
    return now._replace(
        leader_epoch=update.leader_epoch,
        start_offset=start,
        batches=merge_batches(now.batches, update.batches, start),
        delivery_complete_count=update.delivery_complete_count,
    )


#: A shard of ``__share_group_state``.
ShareShard: TypeAlias = Shard[ShareStates]


# --- requests -----------------------------------------------------------------------------------------------


def handle_initialize(shard: ShareShard, request: Request, now_ms: int) -> None:
    """Begin a state, or replace it, with a state epoch that is not lower.

    A state that begins where its group's rule says (start offset -1) and is used already is not replaced by
    one of the same epoch: that is the request of before, come late, and would give again what is done. Nor is
    it where the group's coordinator says that it knows of none: the one before was lost before it had noted
    that the state is there. Apache Kafka replaces it.
    """
    key, row, text = request.body
    assert isinstance(row, initialize.PartitionData), "the row of this API"
    kept = shard.state.by_key.get(key)
    if kept is not None and NONE != row.state_epoch < kept.now.state_epoch:
        return _refuse(shard, request, ErrorCode.FENCED_STATE_EPOCH)
    if key.partition < 0:
        return _refuse(shard, request, ErrorCode.INVALID_REQUEST, _NEGATIVE)
    if key.partition >= shard.state.partitions_of(key.topic_id):
        return _refuse(shard, request, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if row.start_offset < NONE:
        return _refuse(shard, request, ErrorCode.INVALID_REQUEST, "a start offset is 0 or more, or -1")
    if kept is not None and _is_repeated(kept.now, row):
        return shard.reply(request, initialize.PartitionResult(row.partition))
    # by its time it is told from one that was deleted, whatever the clock does
    created_ms = max(now_ms, shard.state.newest_deleted_ms + 1)
    if kept is not None and kept.now.state_epoch == row.state_epoch:
        # whoever has read it goes on
        created_ms = kept.now.create_ms
    snapshot = ShareSnapshot(
        key,
        0 if kept is None else kept.now.snapshot_epoch + 1,
        row.state_epoch,
        0,
        row.start_offset,
        created_ms,
        now_ms,
        delivery_complete_count=NONE if row.start_offset == NONE else 0,
    )
    answer = initialize.PartitionResult(row.partition)
    return shard.append(text, (snapshot,), answers=((request, answer),))


def _is_repeated(now: ShareSnapshot, row: initialize.PartitionData) -> bool:
    is_used = now.start_offset != NONE or bool(now.batches)
    is_of_before = row.state_epoch == now.state_epoch or row.keeps_state
    return row.start_offset == NONE and is_of_before and is_used


def handle_read(shard: ShareShard, request: Request, now_ms: int) -> None:
    """Answer the whole state. A higher leader epoch is written first: it fences those before. In a cluster
    something is written in any case: another broker may have taken over, and the state here be old, without
    this one knowing. No replica takes its writes then. Apache Kafka answers with the old state.
    """
    key, row, _ = request.body
    assert isinstance(row, read.PartitionData), "the row of this API"
    kept = shard.state.by_key.get(key)
    if kept is None:
        return _refuse(shard, request, ErrorCode.INVALID_REQUEST, _READ_FIRST)
    now = kept.now
    if NONE != row.leader_epoch < kept.leader_epoch:
        return _refuse(shard, request, ErrorCode.FENCED_LEADER_EPOCH)
    answer = read.PartitionResult(
        row.partition, 0, None, now.state_epoch, now.start_offset, now.batches, now.create_ms
    )
    epoch = max(row.leader_epoch, now.leader_epoch)
    if epoch == now.leader_epoch and not shard.state.is_replicated:
        return shard.reply(request, answer)
    count = now.delivery_complete_count
    update = ShareUpdate(key, now.snapshot_epoch, epoch, now.start_offset, (), count)
    return _append(shard, kept, update, request, answer, now_ms)


def handle_summary(shard: ShareShard, request: Request, now_ms: int) -> None:
    """Answer epochs, start offset and the number of offsets above it that are done. What is not initialized
    is no error here.
    """
    del now_ms
    key, row, _ = request.body
    assert isinstance(row, summary.PartitionData), "the row of this API"
    kept = shard.state.by_key.get(key)
    if kept is None:
        return shard.reply(request, summary.PartitionResult(row.partition, start_offset=NONE))
    now = kept.now
    epochs = now.state_epoch, now.leader_epoch
    return shard.reply(
        request,
        summary.PartitionResult(
            row.partition, 0, None, *epochs, now.start_offset, now.delivery_complete_count
        ),
    )


def handle_write(shard: ShareShard, request: Request, now_ms: int) -> None:
    """Put a leader's changes on top of the state. One that comes late takes nothing back: its batches have
    lower delivery counts, and its start offset and its count of what is done are passed over, which Apache
    Kafka takes. One into the state of a group that was deleted, whose name is in use again, is refused.
    """
    key, row, text = request.body
    assert isinstance(row, write.PartitionData), "the row of this API"
    kept = shard.state.by_key.get(key)
    if kept is None:
        return _refuse(shard, request, ErrorCode.INVALID_REQUEST, _WRITE_FIRST)
    now = kept.now
    if NONE != row.leader_epoch < kept.leader_epoch:
        return _refuse(shard, request, ErrorCode.FENCED_LEADER_EPOCH)
    if NONE != row.state_epoch < now.state_epoch:
        return _refuse(shard, request, ErrorCode.FENCED_STATE_EPOCH)
    if row.created_ms not in (NONE, now.create_ms):
        return _refuse(shard, request, ErrorCode.FENCED_STATE_EPOCH, _OTHER_STATE)
    if row.start_offset < NONE or not all(map(_is_sound, row.state_batches)):
        # Apache Kafka takes them, and gives them to the next leader
        return _refuse(shard, request, ErrorCode.INVALID_REQUEST, "no range of offsets, or no state")
    written = (read.StateBatch(*batch) for batch in row.state_batches)
    start, count = row.start_offset, row.delivery_complete_count
    if NONE != start < now.start_offset:
        start, count = now.start_offset, now.delivery_complete_count
    batches = merge_batches((), written, start)
    if start in (NONE, now.start_offset) and NONE != count < now.delivery_complete_count:
        # it comes late, or what failed for its sender is stored: no less is done than is stored
        count = _count_done(merge_batches(now.batches, batches, now.start_offset))
    update = ShareUpdate(key, now.snapshot_epoch, now.leader_epoch, start, batches, count)
    if why := _too_large(shard.state, now, update):
        shard.tell(StateWriteRefused("", text, why))
        return _refuse(shard, request, ErrorCode.UNKNOWN_SERVER_ERROR, why)
    return _append(shard, kept, update, request, write.PartitionResult(row.partition), now_ms)


def handle_delete(shard: ShareShard, request: Request, now_ms: int) -> None:
    """Delete a state. It is no error if there is none."""
    del now_ms
    key, _, text = request.body
    answer = messages_of(request.api_key).PartitionResult(key.partition)
    if key not in shard.state.by_key:
        return shard.reply(request, answer)
    return shard.append(text, (ShareStateDeleted(key),), answers=((request, answer),))


def _count_done(batches: Iterable[read.StateBatch]) -> int:
    done = (batch for batch in batches if batch.delivery_state in _DONE_STATES)
    return sum(batch.last_offset - batch.first_offset + 1 for batch in done)


def _is_sound(batch: write.StateBatch) -> bool:
    return 0 <= batch.first_offset <= batch.last_offset and batch.delivery_state in _STORED_STATES


def _too_large(state: ShareStates, now: ShareSnapshot, update: ShareUpdate) -> str:
    """Return why an update must be refused, or "": a snapshot of the state must fit into a batch."""
    room = state.max_bytes() - REST_BYTES - len(now.key.group_id.encode())
    # each written batch adds itself, and may cut one in two
    if BATCH_BYTES * (len(now.batches) + 2 * len(update.batches)) <= room:
        return ""
    count = len(apply_update(now, update).batches)
    if BATCH_BYTES * count <= room:
        return ""
    return f"{count} batches in flight: the record with its state would be over max.message.bytes"


def _append(
    shard: ShareShard, kept: Kept, update: ShareUpdate, request: Request, answer: object, now_ms: int
) -> None:
    """Write an update, or the whole state if there were many since it was written last."""
    record: ShareUpdate | ShareSnapshot = update
    if kept.updates >= shard.state.settings.share_coordinator_snapshot_update_records_per_snapshot:
        record = _next_snapshot(apply_update(kept.now, update), now_ms)
    shard.append(request.body.text, (record,), answers=((request, answer),))


def _next_snapshot(now: ShareSnapshot, now_ms: int) -> ShareSnapshot:
    return now._replace(snapshot_epoch=now.snapshot_epoch + 1, write_ms=now_ms)


def _refuse(shard: ShareShard, request: Request, error: ErrorCode, words: str = "") -> None:
    result = messages_of(request.api_key).PartitionResult
    shard.reply(request, result(request.body.key.partition, error, words or _WORDS[error]))


def _refusal(request: Request, error: int) -> object:
    words = f"the share coordinator cannot answer: {ErrorCode(error).name}"
    if error == ErrorCode.KAFKA_STORAGE_ERROR:
        words = "the disk of the share coordinator takes no writes"
    return messages_of(request.api_key).PartitionResult(request.body.key.partition, error, words)


# --- timers, loads ------------------------------------------------------------------------------------------


def delete_topics(shard: ShareShard, _now_ms: int, *, topic_ids: Collection[UUID]) -> None:
    """Delete the state of topics that are gone."""
    for key in [key for key in shard.state.by_key if key.topic_id in topic_ids]:
        shard.append(str(key), (ShareStateDeleted(key),))


def _on_prune_timer(shard: ShareShard, key: TimerKey, now_ms: int) -> None:
    state = shard.state
    if state.cut is None and state.needed_from > state.pruned_offset:
        state.cut = PruneLog(state.needed_from, state.end_offset)
    if state.cut is not None:
        shard.command(state.cut)
    shard.timers.start(key, now_ms + state.settings.share_coordinator_state_topic_prune_interval_ms)


def _on_cold_timer(shard: ShareShard, key: TimerKey, now_ms: int) -> None:
    """Write anew the snapshots that hold up the cut of the log, and delete states without a topic.

    A state of a topic that was deleted while nobody led this shard is found here and not at the load: a
    broker that has just taken over may not know all topics yet.
    """
    state, settings = shard.state, shard.state.settings
    written, at = 0, 0
    queue = state.queue or list(state.by_key)
    while at < len(queue) and at < _SLICE and written < _WRITTEN_SLICE:
        kept = state.by_key.get(queue[at])
        text = str(queue[at])
        if kept is not None and not shard.is_busy(text):
            if not state.partitions_of(queue[at].topic_id):
                shard.append(text, (ShareStateDeleted(queue[at]),))
                written += 1
            elif _is_cold(state, kept):
                shard.append(text, (_next_snapshot(kept.now, now_ms),))
                written += 1
        at += 1
    state.queue = queue[at:]
    pause_ms = 1 if state.queue else settings.share_coordinator_cold_partition_snapshot_interval_ms
    shard.timers.start(key, now_ms + pause_ms)


def _is_cold(state: ShareStates, kept: Kept) -> bool:
    """Return whether a snapshot holds up the cut of the log: more was written since than all share partitions
    need. So nothing is written where nothing is used.
    """
    return state.end_offset - kept.snapshot_offset > 2 * len(state.by_key)


def _activate(shard: ShareShard, now_ms: int) -> None:
    settings = shard.state.settings
    shard.timers.start((_PRUNE,), now_ms + settings.share_coordinator_state_topic_prune_interval_ms)
    shard.timers.start((_COLD,), now_ms + settings.share_coordinator_cold_partition_snapshot_interval_ms)


def _unload(shard: ShareShard, _now_ms: int) -> None:
    shard.state.by_key.clear()
    shard.state.queue.clear()


def _records(_state: ShareStates, batch: LoadedBatch) -> Iterator[LoadedRecord]:
    return (LoadedRecord(offset, key, value) for offset, _, key, value in batch.records)


def _append_error(code: int) -> ErrorCode:
    """A disk that is full or fails is told as it is: whoever asked can say at once that nothing is stored,
    where others would go on asking for another coordinator.
    """
    return ErrorCode.KAFKA_STORAGE_ERROR if code == ErrorCode.KAFKA_STORAGE_ERROR else append_error(code)


def _refusal_event(text: str, error: ErrorCode) -> StateWriteRefused:
    return StateWriteRefused("", text, f"the log did not take its record: {error.name}")


#: The share coordinator's part of a shard: its APIs, records and timers.
_SHARE_STATES: Final[Kind[ShareStates]] = Kind(
    apis={
        ApiKey.INITIALIZE_SHARE_GROUP_STATE: Api(handle_initialize, _refusal, Waits.WRITES),
        ApiKey.READ_SHARE_GROUP_STATE: Api(handle_read, _refusal, Waits.WRITES),
        ApiKey.WRITE_SHARE_GROUP_STATE: Api(handle_write, _refusal, Waits.WRITES),
        ApiKey.DELETE_SHARE_GROUP_STATE: Api(handle_delete, _refusal, Waits.WRITES),
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: Api(handle_summary, _refusal, Waits.WRITES),
    },
    applies={
        ShareSnapshot: lambda state, run, at, _producer_id: state.store(run, at),
        ShareUpdate: lambda state, run, at, _producer_id: state.update(run, at),
        ShareStateDeleted: lambda state, run, at, _producer_id: state.remove(run, at),
    },
    timers={_PRUNE: _on_prune_timer, _COLD: _on_cold_timer},
    activate=_activate,
    unload=_unload,
)

SHARE_STATE_TOPIC: Final[CoordinatorTopic[ShareStates]] = CoordinatorTopic(
    "__share_group_state",
    (_SHARE_STATES,),
    key_of=lambda body: body.text,
    encode=encode_all,
    decode=decode,
    append_refused=_refusal_event,
    load=_records,
    count=lambda state: len(state.by_key),
    append_error=_append_error,
)
