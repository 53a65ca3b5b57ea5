"""Transactions on a broker, request by request: both protocols, markers, fencing, offsets, restarts.

Covers: broker/apis/_transactions.py, broker/apis/add_offsets_to_txn.py.
Covers: broker/apis/add_partitions_to_txn.py, broker/apis/describe_producers.py.
Covers: broker/apis/describe_transactions.py, broker/apis/end_txn.py.
Covers: broker/apis/list_transactions.py, broker/apis/txn_offset_commit.py.
Covers: broker/apis/write_txn_markers.py.
"""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kohort.broker.apis.produce import _Writing
from kohort.broker.coordinators.transactions import Writer, end_unknown
from kohort.broker.partitions.unverified_writes import UnverifiedWrites
from kohort.log import decode_records
from kohort.protocol import ApiKey, ErrorCode, TopicPartition, iter_batches
from kohort.testing import running_broker
from tests.broker.apis.test_describe_configs import ask as describe_configs
from tests.broker.metadata.topic_requests import delete_topics, grow
from tests.broker.wire import Wire, batch, create_topic, fetch, offset_at, produce_fields
from tests.broker_process import BrokerProcess

NONE = ErrorCode.NONE


class Producer:
    """A transactional producer of one wire: ``new`` speaks KIP-890's protocol."""

    def __init__(self, wire: Wire, *, new: bool = True) -> None:
        self.wire, self.new = wire, new
        self.name = f"pay-{uuid.uuid4().hex[:8]}"
        assert wire.call(ApiKey.FIND_COORDINATOR, 3, key=self.name, key_type=1).error_code == NONE
        answer = self.initialize()
        assert answer.error_code == NONE
        self.id, self.epoch, self.sequence = answer.producer_id, answer.producer_epoch, 0

    def initialize(self, *given: int) -> Any:
        known = dict(zip(("producer_id", "producer_epoch"), given or (-1, -1), strict=True))
        fields = {"transactional_id": self.name, "transaction_timeout_ms": 60_000, **known}
        return self.wire.call(ApiKey.INIT_PRODUCER_ID, 4, **fields)

    def add(self, topic: str, *partitions: int) -> list[int]:
        answer = self.wire.call(
            ApiKey.ADD_PARTITIONS_TO_TXN,
            3,
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[(topic, list(partitions))],
        )
        (found,) = answer.results_by_topic_v3_and_below
        return [each.partition_error_code for each in found.results_by_partition]

    def produce(self, topic: str, *, version: int | None = None, epoch: int | None = None) -> Any:
        """One record; the answer of partition 0."""
        records = batch(
            1,
            # markers have the time of now: an old record would have a segment of its own
            timestamp_ms=time.time_ns() // 1_000_000,
            producer_id=self.id,
            producer_epoch=self.epoch if epoch is None else epoch,
            base_sequence=self.sequence,
            transactional=True,
        )
        version = version or (12 if self.new else 11)
        fields = produce_fields(topic, records, version=version) | {"transactional_id": self.name}
        answer = self.wire.call(ApiKey.PRODUCE, version, **fields).responses[0].partition_responses[0]
        self.sequence += answer.error_code == NONE
        return answer

    def commit_offset(self, group: str, topic: str, offset: int) -> int:
        partition = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
        answer = self.wire.call(
            ApiKey.TXN_OFFSET_COMMIT,
            5,
            **self._identity(),
            group_id=group,
            topics=[(topic, [partition])],
        )
        error: int = answer.topics[0].partitions[0].error_code
        return error

    def end(self, *, committed: bool) -> Any:
        version = 5 if self.new else 4
        answer = self.wire.call(ApiKey.END_TXN, version, **self._identity(), committed=committed)
        if self.new and answer.error_code == NONE:
            self.id, self.epoch, self.sequence = answer.producer_id, answer.producer_epoch, 0
        return answer

    def describe(self) -> Any:
        (found,) = self.wire.call(
            ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=[self.name]
        ).transaction_states
        return found

    def settle(self, state: str) -> None:
        """Wait until the coordinator is done."""
        deadline = time.monotonic() + 10
        while self.describe().transaction_state != state:
            assert time.monotonic() < deadline, self.describe()
            time.sleep(0.005)

    def _identity(self) -> dict[str, Any]:
        return {"transactional_id": self.name, "producer_id": self.id, "producer_epoch": self.epoch}


@pytest.fixture
def topic(wire: Wire) -> str:
    name = f"orders-{uuid.uuid4().hex[:8]}"
    assert create_topic(wire, name, 2).error_code == NONE
    return name


def values(wire: Wire, topic: str, *, committed: bool) -> list[bytes | None]:
    """Records that a reader sees, aborted ones left out where it reads committed ones."""
    (found,) = fetch(wire, topic, 0, isolation_level=int(committed))
    data = bytes(found.records)
    gone = {each.producer_id: each.first_offset for each in found.aborted_transactions or ()}
    seen: list[bytes | None] = []
    for position, header in iter_batches(data):
        if header.control:
            gone.pop(header.producer_id, None)
        elif gone.get(header.producer_id, header.base_offset + 1) > header.base_offset:
            seen += (value for *_, value in decode_records(data, header, position))
    return seen


@pytest.mark.parametrize("new", [True, False])
@pytest.mark.parametrize("committed", [True, False])
def test_records_are_seen_once_their_transaction_is_committed(
    wire: Wire, topic: str, *, new: bool, committed: bool
) -> None:
    producer = Producer(wire, new=new)
    if not new:
        assert producer.add(topic, 0) == [NONE]
    assert producer.produce(topic).error_code == NONE
    assert values(wire, topic, committed=True) == []
    assert values(wire, topic, committed=False) == [b"v0"]
    assert offset_at(wire, topic, -1, isolation_level=1).offset == 0
    assert producer.end(committed=committed).error_code == NONE
    producer.settle("CompleteCommit" if committed else "CompleteAbort")
    assert values(wire, topic, committed=True) == ([b"v0"] if committed else [])
    assert offset_at(wire, topic, -1, isolation_level=1).offset == 2
    assert producer.epoch == int(new)


def test_transactions_follow_each_other_without_a_word_to_the_coordinator(wire: Wire, topic: str) -> None:
    producer = Producer(wire)
    for _ in range(20):
        assert producer.produce(topic).error_code == NONE
        assert producer.end(committed=True).error_code == NONE
    producer.settle("CompleteCommit")
    assert len(values(wire, topic, committed=True)) == 20
    assert producer.epoch == 20


@pytest.mark.parametrize(
    ("version", "error"),
    [
        (9, ErrorCode.INVALID_TXN_STATE),
        (10, ErrorCode.INVALID_TXN_STATE),
        (11, ErrorCode.TRANSACTION_ABORTABLE),
        (12, NONE),
    ],
)
def test_a_batch_of_a_transaction_that_does_not_have_the_partition(
    wire: Wire, topic: str, version: int, error: ErrorCode
) -> None:
    assert Producer(wire).produce(topic, version=version).error_code == error


def test_a_batch_behind_the_end_holds_no_reader_up(wire: Wire, topic: str) -> None:
    producer = Producer(wire, new=False)
    producer.add(topic, 0)
    producer.produce(topic)
    producer.end(committed=True)
    producer.settle("CompleteCommit")
    assert producer.produce(topic).error_code == ErrorCode.TRANSACTION_ABORTABLE
    (found,) = fetch(wire, topic, 0)
    assert found.last_stable_offset == found.high_watermark == 2


def test_what_was_refused_first_comes_first(wire: Wire, topic: str) -> None:
    """Those behind a batch that was refused are not taken for the first one."""
    producer = Producer(wire, new=False)
    assert producer.produce(topic).error_code == ErrorCode.TRANSACTION_ABORTABLE
    producer.add(topic, 0)
    producer.sequence = 1
    assert producer.produce(topic).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    producer.sequence = 0
    assert producer.produce(topic).error_code == NONE
    assert producer.produce(topic).error_code == NONE


def test_the_first_batch_of_the_new_protocol_begins_at_zero(wire: Wire, topic: str) -> None:
    producer = Producer(wire)
    producer.sequence = 1
    assert producer.produce(topic).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_second_producer_of_an_id_fences_the_first(wire: Wire, topic: str) -> None:
    producer = Producer(wire)
    producer.produce(topic)
    assert producer.initialize().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    producer.settle("CompleteAbort")
    assert producer.initialize().producer_epoch == 2
    assert producer.produce(topic).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert producer.end(committed=True).error_code == ErrorCode.PRODUCER_FENCED
    assert values(wire, topic, committed=True) == []


def test_old_versions_know_the_fence_by_another_name(wire: Wire) -> None:
    producer = Producer(wire)
    producer.epoch = 7
    names = []
    for version in (1, 2):
        answer = wire.call(ApiKey.END_TXN, version, **producer._identity(), committed=True)
        names.append(answer.error_code)
        answer = wire.call(ApiKey.ADD_OFFSETS_TO_TXN, version, **producer._identity(), group_id="g")
        names.append(answer.error_code)
    assert names == [ErrorCode.INVALID_PRODUCER_EPOCH] * 2 + [ErrorCode.PRODUCER_FENCED] * 2


def test_partitions_are_added_all_or_none(wire: Wire, topic: str) -> None:
    producer = Producer(wire)
    unknown, not_attempted = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED
    assert producer.add(topic, 0, 9) == [not_attempted, unknown]
    assert producer.add("__consumer_offsets", 0) == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    assert producer.describe().transaction_state == "Empty"


@pytest.mark.parametrize("committed", [True, False])
def test_offsets_are_committed_with_the_transaction(wire: Wire, topic: str, *, committed: bool) -> None:
    producer, group = Producer(wire), f"g-{uuid.uuid4().hex[:8]}"
    assert producer.produce(topic).error_code == NONE
    assert producer.commit_offset(group, topic, 7) == NONE

    def read(*, stable: bool) -> tuple[int, int]:
        answer = wire.call(
            ApiKey.OFFSET_FETCH, 7, group_id=group, topics=[(topic, [0])], require_stable=stable
        )
        (partition,) = answer.topics[0].partitions
        return partition.committed_offset, partition.error_code

    assert read(stable=True)[1] == ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert read(stable=False) == (-1, NONE)
    producer.end(committed=committed)
    producer.settle("CompleteCommit" if committed else "CompleteAbort")
    assert read(stable=True) == (7 if committed else -1, NONE)


def test_a_transaction_is_described_and_listed(wire: Wire, topic: str) -> None:
    producer = Producer(wire)
    producer.produce(topic)
    found = producer.describe()
    assert (found.transaction_state, found.producer_id, found.transaction_timeout_ms) == (
        "Ongoing",
        producer.id,
        60_000,
    )
    assert [(each.topic, list(each.partitions)) for each in found.topics] == [(topic, [0])]
    listed = wire.call(
        ApiKey.LIST_TRANSACTIONS, 1, state_filters=["Ongoing", "ongoing"], producer_id_filters=[producer.id]
    )
    assert listed.unknown_state_filters == ["ongoing"]
    assert [each.transactional_id for each in listed.transaction_states] == [producer.name]
    old = wire.call(ApiKey.LIST_TRANSACTIONS, 1, producer_id_filters=[producer.id], duration_filter=600_000)
    assert old.transaction_states == []
    (partition,) = wire.call(ApiKey.DESCRIBE_PRODUCERS, 0, topics=[(topic, [0])]).topics[0].partitions
    (state,) = partition.active_producers
    assert (state.producer_id, state.last_sequence, state.current_txn_start_offset) == (producer.id, 0, 0)


def test_a_hanging_transaction_can_be_ended_by_hand(wire: Wire, topic: str) -> None:
    producer = Producer(wire)
    producer.produce(topic)

    def write(version: int, epoch: int, producer_id: int = producer.id, **more: int) -> int:
        marker = {
            "producer_id": producer_id,
            "producer_epoch": epoch,
            "transaction_result": False,
            "topics": [(topic, [0])],
            "coordinator_epoch": 0,
            **more,
        }
        answer = wire.call(ApiKey.WRITE_TXN_MARKERS, version, markers=[marker])
        error: int = answer.markers[0].topics[0].partitions[0].error_code
        return error

    assert write(2, producer.epoch, transaction_version=2) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert write(1, 0, -1) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert write(1, producer.epoch) == NONE
    (found,) = fetch(wire, topic, 0)
    assert found.last_stable_offset == 2
    assert producer.describe().transaction_state == "Ongoing"


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("epoch", "error"), [(-1, ErrorCode.UNKNOWN_SERVER_ERROR), (-2, ErrorCode.INVALID_PRODUCER_EPOCH)]
)
def test_a_marker_without_a_producers_epoch_is_not_written(
    wire: Wire, topic: str, version: int, epoch: int, error: ErrorCode
) -> None:
    marker = {
        "producer_id": 4_711,
        "producer_epoch": epoch,
        "transaction_result": True,
        "topics": [(topic, [0])],
        "coordinator_epoch": 0,
    }
    (told,) = wire.call(ApiKey.WRITE_TXN_MARKERS, version, markers=[marker]).markers
    assert told.topics[0].partitions[0].error_code == error
    assert offset_at(wire, topic, -1).offset == 0


def test_a_plain_batch_behind_a_refused_one_of_the_transaction_waits_for_its_turn(
    wire: Wire, topic: str
) -> None:
    producer = Producer(wire)
    old = producer.epoch
    assert producer.initialize().error_code == NONE
    assert producer.produce(topic, epoch=old).error_code == ErrorCode.INVALID_PRODUCER_EPOCH

    def plain(sequence: int) -> int:
        records = batch(1, producer_id=producer.id, producer_epoch=old + 1, base_sequence=sequence)
        fields = produce_fields(topic, records, version=12) | {"transactional_id": None}
        answer = wire.call(ApiKey.PRODUCE, 12, **fields).responses[0].partition_responses[0]
        return int(answer.error_code)

    assert plain(5) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert plain(0) == NONE


def test_brokers_may_ask_whether_a_partition_is_in_the_transaction(wire: Wire, topic: str) -> None:
    producer = Producer(wire)
    producer.produce(topic)
    row = (producer.name, producer.id, producer.epoch, True, [(topic, [0, 1])])
    answer = wire.call(ApiKey.ADD_PARTITIONS_TO_TXN, 5, transactions=[row])
    (found,) = answer.results_by_transaction[0].topic_results
    errors = [each.partition_error_code for each in found.results_by_partition]
    assert errors == [NONE, ErrorCode.TRANSACTION_ABORTABLE]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [(None, 2), ("", 2), ("{0}", 1), ("{0}|{1}", 2), (".*", 2), ("pay", 0), ("p.*", 2), ("(?i)P.*", 2)],
)
def test_ids_are_listed_by_a_pattern_of_the_whole_id(wire: Wire, pattern: str | None, found: int) -> None:
    producers = [Producer(wire), Producer(wire)]
    if pattern is not None:
        pattern = pattern.format(*(each.name for each in producers))
    answer = wire.call(
        ApiKey.LIST_TRANSACTIONS,
        2,
        state_filters=[],
        producer_id_filters=[each.id for each in producers],
        transactional_id_pattern=pattern,
    )
    assert (answer.error_code, len(answer.transaction_states)) == (NONE, found)


@pytest.mark.parametrize("pattern", ["[", "(?=a)", "*"])
def test_a_pattern_that_is_none_is_refused(wire: Wire, pattern: str) -> None:
    answer = wire.call(ApiKey.LIST_TRANSACTIONS, 2, transactional_id_pattern=pattern)
    assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_a_few_repeats_of_an_id_are_described_and_no_more(wire: Wire) -> None:
    producer = Producer(wire)
    answer = wire.call(ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=[producer.name] * 20)
    codes = [each.error_code for each in answer.transaction_states]
    assert codes == [NONE] * 11 + [ErrorCode.INVALID_REQUEST] * 9


def test_a_marker_that_is_sent_again_is_taken(wire: Wire, topic: str) -> None:
    """It is refused only where it would end a transaction by the epoch that its records have (KIP-890)."""
    producer = Producer(wire)
    assert producer.produce(topic).error_code == NONE

    def mark(epoch: int) -> int:
        marker = {
            "producer_id": producer.id,
            "producer_epoch": epoch,
            "transaction_result": False,
            "topics": [(topic, [0])],
            "coordinator_epoch": 0,
            "transaction_version": 2,
        }
        (told,) = wire.call(ApiKey.WRITE_TXN_MARKERS, 2, markers=[marker]).markers
        return int(told.topics[0].partitions[0].error_code)

    assert mark(0) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert [mark(1), mark(1), mark(0)] == [NONE, NONE, ErrorCode.INVALID_PRODUCER_EPOCH]


@pytest.mark.parametrize("ended", [True, False])
def test_a_group_that_a_transaction_made_outlives_its_abort(wire: Wire, topic: str, *, ended: bool) -> None:
    producer, group = Producer(wire), f"g-{uuid.uuid4().hex[:8]}"

    def states() -> list[str]:
        listed = wire.call(ApiKey.LIST_GROUPS, 4, states_filter=[]).groups
        return [each.group_state for each in listed if each.group_id == group]

    assert producer.commit_offset(group, topic, 3) == NONE
    if ended:
        assert producer.end(committed=False).error_code == NONE
        producer.settle("CompleteAbort")
    assert states() == ["Empty"]
    assert wire.call(ApiKey.DELETE_GROUPS, 2, groups_names=[group]).results[0].error_code == NONE
    assert states() == []
    if not ended:
        assert producer.end(committed=True).error_code == NONE
        producer.settle("CompleteCommit")
        assert states() == []


def test_the_coordinators_topic_stays_as_it_was_made(wire: Wire) -> None:
    Producer(wire)
    assert delete_topics(wire, "__transaction_state") == [ErrorCode.INVALID_TOPIC_EXCEPTION]
    assert grow(wire, "__transaction_state", 60).error_code == ErrorCode.INVALID_PARTITIONS


def test_the_coordinators_topic_is_compacted_whoever_makes_it() -> None:
    with running_broker() as broker, Wire(broker.bootstrap) as wire:
        assert create_topic(wire, "__transaction_state", 2).error_code == NONE
        told = describe_configs(wire, 2, "__transaction_state", ["cleanup.policy"])
        assert told.configs[0].value == "compact"
        producer = Producer(wire)
        assert producer.describe().transaction_state == "Empty"


@pytest.mark.parametrize(
    ("topic", "told"), [("__consumer_offsets", ErrorCode.CONCURRENT_TRANSACTIONS), ("orders", NONE)]
)
def test_offsets_are_refused_once_the_end_is_decided_though_their_log_has_no_marker(
    topic: str, told: ErrorCode
) -> None:
    """It may be on its way: what came behind it would be pending for good."""
    partition = SimpleNamespace(
        producer=lambda _id: SimpleNamespace(epoch=0, transaction_start=7), unverified=UnverifiedWrites()
    )
    ending = SimpleNamespace(verify=lambda *_: ErrorCode.CONCURRENT_TRANSACTIONS)
    node: Any = SimpleNamespace(logs=SimpleNamespace(led=lambda *_: partition), transactions=ending)
    assert Writer("pay", 5, 0, True).verify(node, TopicPartition(topic, 0)) == told


@pytest.mark.parametrize(
    ("adds", "told"), [(True, ErrorCode.CONCURRENT_TRANSACTIONS), (False, ErrorCode.NOT_ENOUGH_REPLICAS)]
)
def test_a_first_record_during_the_last_markers_is_told_to_come_again_in_words_its_version_knows(
    adds: bool, told: ErrorCode
) -> None:
    place = TopicPartition("orders", 0)
    node: Any = SimpleNamespace()
    partition: Any = SimpleNamespace(topic=SimpleNamespace(name="orders"), index=0)
    errors = {place: ErrorCode.CONCURRENT_TRANSACTIONS}
    refused = _Writing(Writer("pay", 5, 1, adds), errors, knows_abortable=True).refusal(node, partition)
    assert refused is not None
    assert refused.code == told


def test_producers_of_what_does_not_exist_are_refused_in_words(wire: Wire) -> None:
    answer = wire.call(ApiKey.DESCRIBE_PRODUCERS, 0, topics=[("no-such-topic", [0])])
    (found,) = answer.topics[0].partitions
    assert found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert found.error_message


def test_batches_of_two_producers_in_a_request_are_refused(wire: Wire, topic: str) -> None:
    producer = Producer(wire)
    fields = produce_fields(topic, None, version=12)
    one, two = (
        batch(1, producer_id=number, producer_epoch=0, base_sequence=0, transactional=True)
        for number in (1, 2)
    )
    first = fields["topic_data"][0].partition_data[0]
    data = [first._replace(index=0, records=one), first._replace(index=1, records=two)]
    fields["topic_data"][0] = fields["topic_data"][0]._replace(partition_data=data)
    answer = wire.call(ApiKey.PRODUCE, 12, **(fields | {"transactional_id": producer.name}))
    errors = {each.error_code for each in answer.responses[0].partition_responses}
    assert errors == {ErrorCode.INVALID_PRODUCER_ID_MAPPING}


def test_the_feature_is_told_to_clients_that_can_read_it(wire: Wire) -> None:
    answer = wire.call(ApiKey.API_VERSIONS, 4, client_software_name="x", client_software_version="1")
    assert ("transaction.version", 0, 2) in answer.supported_features
    assert ("transaction.version", 2, 2) in answer.finalized_features
    assert answer.finalized_features_epoch >= 0


@pytest.mark.slow(3)
@pytest.mark.parametrize("lost", [True, False])
def test_what_no_coordinator_knows_of_after_a_crash_holds_no_reader_up(tmp_path: Path, *, lost: bool) -> None:
    """The record of the transaction may be lost with the machine's power, and its records not."""
    data = tmp_path / "data"
    broker = BrokerProcess(tmp_path, data=data)
    broker.start()
    try:
        with Wire(broker.bootstrap) as wire:
            assert create_topic(wire, "orders", 1).error_code == NONE
            producer = Producer(wire)
            assert producer.produce("orders").error_code == NONE
            assert producer.commit_offset("g", "orders", 3) == NONE
        broker.kill()
        if lost:
            for file in data.glob("__transaction_state-*/*.log"):
                file.write_bytes(b"")
        broker.start()
        with Wire(broker.bootstrap) as wire:
            ends = [offset_at(wire, "orders", -1, isolation_level=level).offset for level in (1, 0)]
            assert ends == ([2, 2] if lost else [0, 1])
            assert values(wire, "orders", committed=True) == []
            assert len(values(wire, "orders", committed=False)) == 1
            answer = wire.call(
                ApiKey.OFFSET_FETCH, 7, group_id="g", topics=[("orders", [0])], require_stable=True
            )
            error = answer.topics[0].partitions[0].error_code
            assert error == (NONE if lost else ErrorCode.UNSTABLE_OFFSET_COMMIT)
    finally:
        broker.stop()


@pytest.mark.slow(3)
@pytest.mark.parametrize("end", ["kill", "stop"])
def test_a_restart_goes_on_with_what_was_open(tmp_path: Path, end: str) -> None:
    broker = BrokerProcess(tmp_path, data=tmp_path / "data")
    broker.start()
    try:
        with Wire(broker.bootstrap) as wire:
            assert create_topic(wire, "orders", 1).error_code == NONE
            producer = Producer(wire)
            producer.produce("orders")
            assert producer.commit_offset("g", "orders", 3) == NONE
        getattr(broker, end)()
        broker.start()
        with Wire(broker.bootstrap) as wire:
            producer.wire = wire
            assert producer.describe().transaction_state == "Ongoing"
            assert values(wire, "orders", committed=True) == []
            assert producer.produce("orders").error_code == NONE
            assert producer.end(committed=True).error_code == NONE
            producer.settle("CompleteCommit")
            assert len(values(wire, "orders", committed=True)) == 2
            assert Producer(wire).id > producer.id
    finally:
        broker.stop()


def test_what_begins_while_unknown_transactions_are_looked_for_is_not_one_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After a crash producers are served at once, while the partitions are looked through."""
    with running_broker() as broker, Wire(broker.bootstrap) as wire:
        create_topic(wire, "orders", 1)
        producer = Producer(wire)
        assert producer.produce("orders").error_code == NONE
        parts = broker._broker._parts
        assert parts is not None
        coordinator = parts.node.transactions
        answers = [coordinator.transactions, list]
        monkeypatch.setattr(
            coordinator, "transactions", lambda: (answers.pop() if len(answers) > 1 else answers[0])()
        )
        broker._wait(end_unknown(parts.node))
        assert producer.end(committed=True).error_code == NONE
        producer.settle("CompleteCommit")
        assert values(wire, "orders", committed=True) == [b"v0"]
