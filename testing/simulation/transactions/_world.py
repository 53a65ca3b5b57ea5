"""One schedule of transactions: a broker, its processes, and what is looked at in its logs meanwhile."""

from __future__ import annotations

from typing import Final

from ....broker.partitions.partition import Partition
from ....broker.partitions.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from ....log import decode_records
from ....protocol import iter_batches
from ....statemachine import TRANSACTION_TRANSITIONS, TransactionState
from ....transactions import TransactionMetadata
from ....transactions.records import decode
from ..brokers._process import BrokerProcess, LoneProcess
from ..brokers._world import BrokerWorld
from ..engine._phases import Left
from ..workloads._record_ledger import RecordLedger
from ..workloads._records import Readers
from ..workloads._transactions import Transacting
from ._plan import INPUT, OUTPUT, TransactionPlan

#: More records than any schedule writes at once.
_MOST_BYTES: Final = 1 << 20
_AT_REST: Final = (TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
#: What may follow on each other in the log: the table's rows, and the fence, which is never in the log.
_ROWS: Final = {(row.source, row.target) for row in TRANSACTION_TRANSITIONS} | {
    (TransactionState.ONGOING, TransactionState.PREPARE_ABORT)
}


class TransactionWorld(BrokerWorld[TransactionPlan]):
    """A schedule that is about to run."""

    def __init__(self, plan: TransactionPlan, *, checked: bool = True, traced: bool = False) -> None:
        super().__init__(plan, LoneProcess, checked=checked, traced=traced)
        self.settle_ms = 2 * plan.timeout_ms + 15_000
        ends = [0] * plan.topics[INPUT]
        transactions = Transacting(self, plan.processors, ends, INPUT, OUTPUT, grows=True)
        self.workloads += [
            transactions,
            Readers(self, RecordLedger(self), [OUTPUT], transactions.ledger),
        ]
        self._stable: dict[int, int] = {}
        # how far each partition of __transaction_state was looked at, and what its ids were last
        self._looked: dict[int, int] = {}
        self._last: dict[str, TransactionMetadata] = {}

    # --- what is looked at --------------------------------------------------------------------------------

    def lost_disk(self) -> None:
        # a marker that was not flushed yet is written again: its end is decided
        self._stable.clear()

    def _look_at(self, broker: BrokerProcess) -> None:
        for partition in () if broker.parts is None else broker.parts.node.logs.partitions():
            if partition.log is None or partition.damage is not None or partition.log.offline:
                continue
            if partition.topic.name == TRANSACTIONS_TOPIC:
                self._look_at_records(partition)
            elif partition.topic.name == OUTPUT:
                self._look_at_stable(partition)

    def _look_at_stable(self, partition: Partition) -> None:
        stable, before = partition.last_stable_offset, self._stable.get(partition.index, 0)
        if stable < before:
            self.fail("T5", f"the last stable offset of {partition} goes from {before} to {stable}")
        self._stable[partition.index] = stable

    def _look_at_records(self, partition: Partition) -> None:
        """Each record that is new to us follows on the last one of its id."""
        log = partition.log
        assert log is not None
        at, end = self._looked.get(partition.index, 0), log.log_end_offset
        self._looked[partition.index] = end
        while at < end:
            data = log.read(at, _MOST_BYTES, to_log_end=True).records
            for position, header in iter_batches(data):
                for offset, _, key, value in decode_records(data, header, position):
                    record = decode(key, value)
                    if offset >= at and isinstance(record, TransactionMetadata):
                        self._look_at_record(record)
                behind = header.next_offset
            at = behind

    def _look_at_record(self, now: TransactionMetadata) -> None:
        name = now.transactional_id
        last, self._last[name] = self._last.get(name), now
        if last is None:
            return
        if (now.producer_id, now.producer_epoch) < (last.producer_id, last.producer_epoch):
            self.fail("T6", f"{last} is followed by {now}")
        if (last.state, now.state) not in _ROWS:
            self.fail("T6", f"{name} goes from {last.state} to {now.state}")

    # --- the end ------------------------------------------------------------------------------------------

    def _why_unsettled(self) -> Left:
        parts = self.brokers[1].parts
        if parts is None or not self.brokers[1].reachable:
            return "L6", "the broker does not serve"
        if left := super()._why_unsettled():
            return left
        found = parts.transactions.transactions()
        for each in found if not isinstance(found, int) else ():
            if each.state not in _AT_REST:
                return "L6", f"{each} is not over"
        for partition in parts.node.logs.partitions():
            stable = partition.last_stable_offset
            if partition.topic.name in (OUTPUT, OFFSETS_TOPIC) and stable != partition.log_end_offset:
                return "T5", f"the last stable offset of {partition} is {stable}"
        for runner in parts.coordinator._shards:
            if pending := runner.shard.state.durable.pending:
                return "T5", f"pending offsets are left: {pending}"
        return None

    def describe(self) -> dict[str, object]:
        plan = self.plan
        return super().describe() | {
            "timeout (ms)": plan.timeout_ms,
            "processors": plan.processors,
        }
