"""A shard of transactions in a bottle: virtual clock, a log in memory, commands and answers recorded."""

from __future__ import annotations

from typing import Any

from kohort.coordinator.engine.effects import Append, Reply, Request
from kohort.coordinator.engine.shard import Shard
from kohort.protocol import ApiKey, ErrorCode, RequestContext, TopicPartition
from kohort.transactions import (
    Add,
    Identity,
    Initialize,
    TransactionEnd,
    TransactionMetadata,
    TransactionSettings,
)
from kohort.transactions.records import decode, encode
from kohort.transactions.shards import (
    TRANSACTIONS_TOPIC,
    ShardTransactions,
    TransactionShard,
    WriteMarkers,
    markers_written,
)

START_MS = 1_700_000_000_000
ID = "pay"
ONE, TWO = TopicPartition("orders", 0), TopicPartition("orders", 1)


class Bottle:
    """One shard. Writes succeed unless ``failing`` is set; ``write_markers`` writes the markers."""

    def __init__(self, **settings: Any) -> None:
        self.settings = TransactionSettings(**settings)
        self.now = START_MS
        self.log: list[tuple[bytes, bytes | None]] = []
        self.markers: list[TransactionMetadata] = []
        self.failing: ErrorCode | None = None
        self.told: list[Any] = []
        self._answers: dict[int, Any] = {}
        self._next_id = 100
        self.shard = self._new()
        self.shard.activate(self.now)

    def restart(self) -> None:
        """Begin anew with what is in the log."""
        self.markers.clear()
        self.shard = self._new()
        for offset, (key, value) in enumerate(self.log):
            self.shard.apply((decode(key, value),), offset)
        self.shard.activate(self.now)
        self._carry_out()

    def advance(self, ms: int) -> None:
        end = self.now + ms
        while (deadline := self.shard.next_deadline()) is not None and deadline <= end:
            self.now = max(self.now, deadline)
            self.shard.advance(self.now)
            self._carry_out()
        self.now = end

    def write_markers(self) -> None:
        """Let everything that was decided be carried out."""
        while self.markers:
            decided = self.markers.pop(0)
            markers_written(self.shard, self.now, prepared=decided)
            self._carry_out()

    def initialize(self, producer_id: int = -1, epoch: int = -1, *, timeout_ms: int = 60_000) -> Identity:
        given = None if producer_id < 0 else (producer_id, epoch)
        answer: Identity = self._ask(ApiKey.INIT_PRODUCER_ID, Initialize(ID, timeout_ms, given))
        return answer

    def add(self, *partitions: TopicPartition, version: int = 2, **other: int) -> ErrorCode:
        """Add as the producer of now, or as another."""
        answer: ErrorCode = self._ask(
            ApiKey.ADD_PARTITIONS_TO_TXN, Add(ID, *self._identity(other), partitions, version)
        )
        return answer

    def end(self, *, committed: bool, version: int = 2, **other: int) -> Identity:
        answer: Identity = self._ask(
            ApiKey.END_TXN, TransactionEnd(ID, *self._identity(other), committed, version)
        )
        return answer

    @property
    def known(self) -> TransactionMetadata:
        return self.shard.state.by_id[ID]

    @property
    def state(self) -> str:
        return self.known.state.value

    def _identity(self, other: dict[str, int]) -> tuple[int, int]:
        now = self.shard.state.by_id.get(ID)
        known = (-1, -1) if now is None else (now.producer_id, now.producer_epoch)
        return other.get("producer_id", known[0]), other.get("epoch", known[1])

    def _ask(self, api_key: ApiKey, body: Any) -> Any:
        while True:
            request = Request(api_key, 0, body, RequestContext(), object())
            self.shard.handle(request, self.now)
            self._carry_out()
            answer = self._answers.pop(id(request.handle))
            if answer != Identity(ErrorCode.NONE):
                return answer
            if isinstance(body, TransactionEnd) and body.client_version < 2:
                return answer
            body.fresh_id, self._next_id = self._next_id, self._next_id + 1

    def _carry_out(self) -> None:
        effects = self.shard.take_effects()
        while effects:
            for effect in effects:
                if isinstance(effect, Reply):
                    self._answers[id(effect.handle)] = effect.body
                elif isinstance(effect, WriteMarkers):
                    self.markers.append(effect.transaction)
                elif isinstance(effect, Append):
                    self._write(effect)
                else:
                    self.told.append(effect)
            effects = self.shard.take_effects()

    def _write(self, append: Append) -> None:
        if self.failing is not None:
            self.shard.append_failed(append.ticket, self.failing, self.now)
            return
        self.log += (encode(record) for record in append.records)
        self.shard.on_appended(append.ticket, len(self.log) - 1, self.now)

    def _new(self) -> TransactionShard:
        return Shard(TRANSACTIONS_TOPIC, ShardTransactions(self.settings))
