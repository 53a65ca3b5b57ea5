"""A shard of share partitions in a bottle: virtual clock, a log in memory, answers recorded."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from kohort.coordinator.engine.effects import Append, Reply, Request
from kohort.coordinator.engine.shard import Shard
from kohort.protocol import ApiKey, ErrorCode, RequestContext, SharePartitionKey
from kohort.protocol.messages import delete_share_group_state as delete
from kohort.protocol.messages import initialize_share_group_state as initialize
from kohort.protocol.messages import read_share_group_state as read
from kohort.protocol.messages import read_share_group_state_summary as summary
from kohort.protocol.messages import write_share_group_state as write
from kohort.share_state.records import decode, encode
from kohort.share_state.settings import ShareCoordinatorSettings
from kohort.share_state.shards import (
    MAX_BYTES,
    SHARE_STATE_TOPIC,
    PruneLog,
    ShareRequest,
    ShareShard,
    ShareStates,
    delete_topics,
)

START_MS = 1_700_000_000_000
TOPIC, OTHER_TOPIC = UUID(int=1), UUID(int=2)
KEY = SharePartitionKey("orders", TOPIC, 0)


class Bottle:
    """One shard. Writes succeed unless ``failing`` is set; ``log`` is the topic from ``log_start`` on."""

    def __init__(self, **settings: Any) -> None:
        self.settings = ShareCoordinatorSettings(**settings)
        self.now = START_MS
        self.log: list[tuple[bytes, bytes | None]] = []
        self.log_start = 0
        self.topics = {TOPIC, OTHER_TOPIC}
        self.max_bytes = MAX_BYTES
        self.failing: ErrorCode | None = None
        self.told: list[Any] = []
        self.cuts: list[int] = []
        #: All replicas have all of the log.
        self.may_cut = True
        self._answers: dict[int, Any] = {}
        self.shard = self._new()
        self.shard.activate(self.now)

    def restart(self) -> None:
        """Begin anew with what is in the log."""
        self.shard = self._new()
        for offset in range(self.log_start, len(self.log)):
            record = decode(*self.log[offset])
            assert record is not None
            self.shard.apply((record,), offset)
        self.shard.activate(self.now)
        self._carry_out()

    def advance(self, ms: int) -> None:
        end = self.now + ms
        while (deadline := self.shard.next_deadline()) is not None and deadline <= end:
            self.now = max(self.now, deadline)
            self.shard.advance(self.now)
            self._carry_out()
        self.now = end

    def initialize(
        self,
        state_epoch: int,
        start_offset: int = -1,
        key: SharePartitionKey = KEY,
        *,
        keeps_state: bool = False,
    ) -> Any:
        row = initialize.PartitionData(key.partition, state_epoch, start_offset, keeps_state=keeps_state)
        return self._ask(ApiKey.INITIALIZE_SHARE_GROUP_STATE, key, row)

    def read(self, leader_epoch: int, key: SharePartitionKey = KEY) -> Any:
        row = read.PartitionData(key.partition, leader_epoch)
        return self._ask(ApiKey.READ_SHARE_GROUP_STATE, key, row)

    def summarize(self, key: SharePartitionKey = KEY) -> Any:
        row = summary.PartitionData(key.partition, 0)
        return self._ask(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, key, row)

    def write(
        self,
        state_epoch: int,
        leader_epoch: int,
        *batches: tuple[int, int, int, int],
        start: int = -1,
        done: int = -1,
        created_ms: int = -1,
        key: SharePartitionKey = KEY,
    ) -> Any:
        rows = [write.StateBatch(*batch) for batch in batches]
        row = write.PartitionData(key.partition, state_epoch, leader_epoch, start, done, rows, created_ms)
        return self._ask(ApiKey.WRITE_SHARE_GROUP_STATE, key, row)

    def delete(self, key: SharePartitionKey = KEY) -> Any:
        return self._ask(ApiKey.DELETE_SHARE_GROUP_STATE, key, delete.PartitionData(key.partition))

    def delete_topics(self, *topic_ids: UUID) -> None:
        self.topics -= set(topic_ids)
        delete_topics(self.shard, self.now, topic_ids=topic_ids)
        self._carry_out()

    def _ask(self, api_key: ApiKey, key: SharePartitionKey, row: object) -> Any:
        request = Request(api_key, 0, ShareRequest(key, row, str(key)), RequestContext(), object())
        self.shard.handle(request, self.now)
        self._carry_out()
        return self._answers.pop(id(request.handle))

    def _carry_out(self) -> None:
        while effects := self.shard.take_effects():
            for effect in effects:
                if isinstance(effect, Reply):
                    self._answers[id(effect.handle)] = effect.body
                elif isinstance(effect, Append):
                    self._write(effect)
                elif isinstance(effect, PruneLog):
                    self.cuts.append(effect.before_offset)
                    if self.may_cut:
                        self.log_start = effect.before_offset
                        self.shard.state.was_cut(effect)
                else:
                    self.told.append(effect)

    def _write(self, append: Append) -> None:
        if self.failing is not None:
            self.shard.append_failed(append.ticket, self.failing, self.now)
            return
        offset = len(self.log)
        self.log += (encode(record) for record in append.records)
        self.shard.on_appended(append.ticket, offset, self.now)

    def _new(self) -> ShareShard:
        return Shard(
            SHARE_STATE_TOPIC,
            ShareStates(
                self.settings, lambda: self.max_bytes, lambda topic_id: 50 * (topic_id in self.topics)
            ),
        )
