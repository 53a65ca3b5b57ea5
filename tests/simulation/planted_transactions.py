"""Bugs planted in the coordinator of transactions, and in what logs and groups know of them: see ``planted``.

``python -m tests.simulation.planted_transactions`` writes their table of docs/simulation.md.
"""

from __future__ import annotations

import sys
from functools import partial

from kohort.testing import simulate_transactions
from tests.simulation.planted import Bug, look_for

_Bug = partial(Bug, simulate=simulate_transactions)

TRANSACTION_BUGS = (
    _Bug(
        "an end is answered before it is written",
        "transactions.shards:handle_end",
        "return _append_record(shard, after, request, Identity(ErrorCode.NONE, *identity))",
        "shard.reply(request, Identity(ErrorCode.NONE, *identity))\n    return _append_record(shard, after)",
    ),
    _Bug(
        "a partition is added before that is written",
        "transactions.shards:handle_add",
        "return _append_record(shard, after, request, ErrorCode.NONE)",
        "shard.state.store((after,))\n    return shard.reply(request, ErrorCode.NONE)",
    ),
    _Bug(
        "what was decided is not carried out by the next start",
        "transactions.shards:_activate_shard",
        "if now.state in _PREPARED:",
        "if False:",
    ),
    _Bug(
        "the end of a transaction is carried out once, written or not",
        "transactions.coordinator:TransactionCoordinator._write_markers",
        "if not await self._is_written(each, marker)]",
        "if await self._is_written(each, marker) is None]",
    ),
    _Bug(
        "markers are written before the end is decided",
        "transactions.shards:_append_record",
        "answers = () if request is None else ((request, answer),)",
        "answers = () if request is None else ((request, answer),)\n"
        "    if record.state in _PREPARED:\n        shard.command(WriteMarkers(record))",
    ),
    _Bug(
        "an abort is told to partitions as a commit",
        "transactions.coordinator:TransactionCoordinator._write_markers",
        "committed = decided.state is TransactionState.PREPARE_COMMIT",
        "committed = True",
    ),
    _Bug(
        "a transaction whose time is over stays open",
        "transactions.shards:_on_abort_timer",
        "now_ms > now.start_ms + now.timeout_ms",
        "False",
    ),
    _Bug(
        "a new producer does not fence the old one",
        "transactions.moves:initialize",
        "producer_epoch=now.producer_epoch + 1,",
        "producer_epoch=max(now.producer_epoch, 0),",
    ),
    _Bug(
        "a new producer finds an open transaction and leaves it so",
        "transactions.shards:handle_initialize",
        "if now.state is _OPEN:",
        "if now.state is None:",
    ),
    _Bug(
        "an abort for the timeout does not raise the epoch",
        "transactions.moves:fence_producer",
        "after = end_transaction("
        "fencing, version, now_ms, committed=False, next_producer_id=next_producer_id)",
        "return end_transaction(fencing, 0, now_ms, committed=False)",
    ),
    _Bug(
        "whoever is not the newest producer may end the transaction",
        "transactions.shards:_fence_producer",
        "return ErrorCode.NONE if now.producer_epoch == producer_epoch else ErrorCode.PRODUCER_FENCED",
        "return ErrorCode.NONE",
    ),
    _Bug(
        "an end is decided twice",
        "transactions.shards:_end_error",
        "    if now.state in _PREPARED:\n"
        "        return ErrorCode.CONCURRENT_TRANSACTIONS\n"
        "    if now.state is _OPEN:",
        "    if now.state is _OPEN or now.state in _PREPARED:",
    ),
    _Bug(
        "a batch of a transaction that is not open is taken",
        "transactions.shards:verify_partition",
        "return ErrorCode.NONE if partition in added else ErrorCode.TRANSACTION_ABORTABLE",
        "return ErrorCode.NONE",
    ),
    _Bug(
        "nobody looks whether the transaction has ended while a batch was checked",
        "broker.coordinators.transactions:Writer.known_permission",
        "return None if found.transaction_start < 0 else ErrorCode.NONE",
        "return ErrorCode.NONE",
    ),
    _Bug(
        "a marker is not flushed where records are",
        "broker.coordinators.transactions:write_marker",
        "stored = partition.wait_stored(offset + 1, _ASK_MS)",
        "stored = None",
    ),
    _Bug(
        "readers of committed records read to the high watermark",
        "log._partition:PartitionLog.last_stable_offset",
        "if first_open is None:",
        "if True:",
    ),
    _Bug(
        "aborts are not in the transaction index",
        "log._producers:Producers.ended_by",
        "if start is None or marker.committed:",
        "if True:",
    ),
    _Bug(
        "a recovery finds aborts and does not note them",
        "log._recovery:Opening._replay_batch",
        "if aborted is not None:",
        "if False:",
    ),
    _Bug(
        "a snapshot does not know of open transactions",
        "log._producers:_encode_producer",
        "one.coordinator_epoch, one.transaction_start",
        "one.coordinator_epoch, -1",
    ),
    _Bug(
        "offsets of an open transaction count at once",
        "coordinator.groups.durable:Durable.commit",
        "record_offset, by_group, self._keys",
        "record_offset, self.offsets, self._keys",
    ),
    _Bug(
        "offsets of an aborted transaction stay",
        "coordinator.groups.durable:Durable.end_transaction",
        "if committed and entries:",
        "if entries:",
    ),
    _Bug(
        "nobody waits for the offsets of an open transaction",
        "coordinator.offsets.fetch:_fetch_offset",
        "if fetch.require_stable and",
        "if False and",
    ),
    _Bug(
        "a member that was put out of its group goes on in its transactions",
        "coordinator.offsets.commit:_unacceptable_in_transaction",
        "error = _commit_error(group, commit, _GROUP_NOT_FOUND_VERSION)",
        "return ErrorCode.NONE",
    ),
    _Bug(
        "a consumer that was put out of its group goes on in its transactions",
        "coordinator.consumer_groups.group:ConsumerGroup.check_commit",
        "return ErrorCode.UNKNOWN_MEMBER_ID",
        "return ErrorCode.NONE",
    ),
    _Bug(
        "a load leaves the offsets of a transaction pending",
        "coordinator.engine.loader:Loader._load_marker",
        "self._shard.end_transaction(producer_id, committed=kind == _COMMIT)",
        "pass",
    ),
)


if __name__ == "__main__":
    sys.exit(look_for(TRANSACTION_BUGS, " in transactions"))
