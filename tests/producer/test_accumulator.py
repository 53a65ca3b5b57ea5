"""Batches, their numbers and what becomes of them, against a model of Kafka's broker that loses things."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.client.transactions import ProducerId
from kohort.client.waiting import Backoff
from kohort.consumer.reading.fetched_records import ChunkReader
from kohort.producer import DeliveryTimeoutError
from kohort.producer.accumulator import (
    BATCH_BYTES,
    HELD_BYTES,
    Accumulator,
    ProducerBatch,
    Queue,
    record_size,
)
from kohort.protocol import (
    BATCH_OVERHEAD,
    Codec,
    ErrorCode,
    KafkaError,
    TimedRecord,
    TopicPartition,
    decompress,
    encode_records,
    parse_batch_header,
    verify_batch,
)
from kohort.protocol.rows import EncodedRecords

PLACE = TopicPartition("orders", 0)
NODE = 1
LOST = ValueError("the line is dead")
E = ErrorCode


class Answer:
    """As a future."""

    def __init__(self) -> None:
        self.result: Any = None
        self.error: BaseException | None = None
        self.ended = False
        #: Whether somebody has looked at the error: asyncio logs those that nobody sees.
        self.seen = False

    def done(self) -> bool:
        return self.ended

    def set_result(self, result: Any) -> None:
        assert not self.ended
        self.ended, self.result = True, result

    def set_exception(self, error: BaseException) -> None:
        assert not self.ended
        self.ended, self.error = True, error

    def exception(self) -> BaseException | None:
        self.seen = True
        return self.error


def accumulator(**changes: Any) -> Accumulator:
    defaults: dict[str, Any] = {
        "now_ms": lambda: 0.0,
        "batch_size": 300,
        "linger_ms": 0,
        "max_request_size": 10_000,
        "max_in_flight": 5,
        "delivery_timeout_ms": 10_000,
        "idempotent": True,
        "producer": ProducerId(7, 0),
        "backoff": Backoff(jitter=0),
    }
    return Accumulator(Answer, **{**defaults, **changes})


def add(waiting: Accumulator, value: bytes, now_ms: float = 0, place: TopicPartition = PLACE) -> Answer:
    size = record_size(None, value, ())
    waiting.now_ms = lambda: now_ms
    answer: Answer = waiting.add(waiting.queue(place), (None, value, (), 1_000), size)[0]
    return answer


def take(waiting: Accumulator, now_ms: float = 0, busy: int = 0) -> list[list[ProducerBatch]]:
    """The requests that are sent; the node has ``busy`` under way."""
    return [batches for _, batches in waiting.take(now_ms, lambda _: NODE, lambda _: 5 - busy)]


def values(batch: ProducerBatch) -> list[bytes | None]:
    return [record[1] for record in batch.records]


def numbers(batches: list[list[ProducerBatch]]) -> list[int]:
    return [batch.sequence for (batch,) in batches]


def known(waiting: Accumulator) -> Queue:
    """A partition whose leader has acknowledged one batch, of one record."""
    add(waiting, b"first")
    ((batch,),) = take(waiting)
    waiting.on_success(batch, 0)
    return waiting.queue(PLACE)


def test_records_share_a_batch_until_it_is_full() -> None:
    waiting = accumulator(linger_ms=100)
    for value in (b"a", b"b", b"c" * 250):
        add(waiting, value)
    assert [values(batch) for (batch,) in take(waiting)] == [[b"a", b"b"]], (
        "the newer one is not due, and first is alone"
    )


def test_a_batch_that_is_not_full_waits_for_linger() -> None:
    waiting = accumulator(linger_ms=100)
    add(waiting, b"a", 50)
    assert take(waiting, 149) == []
    assert waiting.next_ms == 150
    assert len(take(waiting, 150)) == 1


def test_what_waits_goes_with_what_is_due_to_the_same_node() -> None:
    waiting = accumulator(linger_ms=100)
    add(waiting, b"a", 0)
    add(waiting, b"b", 90, TopicPartition("orders", 1))
    ((one, other),) = take(waiting, 100)
    assert (values(one), values(other)) == ([b"a"], [b"b"])


def test_a_flush_does_not_wait() -> None:
    waiting = accumulator(linger_ms=100)
    add(waiting, b"a")
    waiting.hurry = 1
    assert len(take(waiting)) == 1


def test_a_request_is_no_larger_than_allowed() -> None:
    waiting = accumulator(max_request_size=500)
    for number in range(4):
        add(waiting, b"x" * 200, 0, TopicPartition("orders", number))
    assert [len(batches) for batches in take(waiting)] == [1, 1, 1, 1]


def test_a_node_gets_no_more_requests_than_allowed() -> None:
    waiting = accumulator()
    known(waiting)
    for _ in range(7):
        add(waiting, b"x" * 300)
    assert len(take(waiting, busy=3)) == 2


def test_a_partition_has_one_batch_under_way_until_its_leader_has_acknowledged_one() -> None:
    waiting = accumulator()
    for _ in range(3):
        add(waiting, b"x" * 300)
    ((first,),) = take(waiting)
    assert take(waiting) == []
    waiting.on_success(first, 0)
    assert numbers(take(waiting)) == [1, 2]


def test_a_batch_on_the_wire_is_what_was_sent() -> None:
    waiting = accumulator(codec=Codec.LZ4)
    for _ in range(5):
        add(waiting, b"the same again and again")
    ((batch,),) = take(waiting)
    sealed = batch.seal(transactional=True)
    header = parse_batch_header(sealed)
    verify_batch(sealed, header)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 0, 0)
    assert (header.record_count, header.codec, header.transactional) == (5, Codec.LZ4, True)
    assert bytes(decompress(Codec.LZ4, bytes(sealed[BATCH_OVERHEAD:]))).count(b"the same again") == 5


@pytest.mark.parametrize("codec", list(Codec))
def test_a_batch_has_the_records_as_they_were_sent(codec: Codec) -> None:
    records: list[TimedRecord] = [
        (b"k", b"v" * 300, [("a", b"1"), ("b", None)], 2_000),
        (None, None, [], 1_000),
        (b"", b"", [], 3_000_000),
        (b"x" * 2_000, b"y" * 2_000, [("ä" * 1_000, b"z" * 1_000)], 2_000),
    ]
    waiting = accumulator(codec=codec)
    waiting.add_all(waiting.queue(PLACE), records, sum(record_size(*record[:3]) for record in records))
    ((batch,),) = take(waiting)
    sealed = batch.seal(transactional=False)
    header = parse_batch_header(sealed)
    verify_batch(sealed, header)
    assert (header.base_timestamp_ms, header.max_timestamp_ms) == (2_000, 3_000_000)
    assert header.size <= batch.size
    found = ChunkReader(PLACE, bytes(sealed), 0).read()
    assert [(r.key, r.value, list(r.headers), r.timestamp_ms) for r in found] == records


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_records_that_come_encoded_are_a_batch_like_others(codec: Codec) -> None:
    records: list[TimedRecord] = [(b"k", b"v" * 300, [], 2_000), (None, None, [], 3_000)]
    plain, encoded = accumulator(codec=codec), accumulator(codec=codec)
    plain.add_all(plain.queue(PLACE), records, sum(record_size(*record[:3]) for record in records))
    given = EncodedRecords(encode_records(records, 2_000), 2, 2_000, 3_000)
    answers = [encoded.add_encoded(encoded.queue(PLACE), given) for _ in range(2)]
    ((expected,),), ((batch,),) = take(plain), take(encoded)
    assert batch.seal(transactional=True) == expected.seal(transactional=True)
    assert encoded.used == 2 * (BATCH_BYTES + len(given.data))
    encoded.on_success(batch, 10)
    assert answers[0].result == ("orders", 0, 10, 2_000)
    ((second,),) = take(encoded)
    assert (second.sequence, second.count) == (2, 2)
    encoded.on_refused(second, KafkaError(E.MESSAGE_TOO_LARGE), 0)
    assert isinstance(answers[1].error, KafkaError)
    assert encoded.used == 0


def test_numbers_of_a_refused_batch_that_may_have_been_written_before_are_not_used_again() -> None:
    waiting = accumulator()
    known(waiting)
    add(waiting, b"a")
    ((batch,),) = take(waiting)
    waiting.on_lost(batch, LOST, 0)
    ((batch,),) = take(waiting, 1_000)
    waiting.on_refused(batch, KafkaError(E.TOPIC_AUTHORIZATION_FAILED), 1_000)
    add(waiting, b"b", 1_000)
    assert numbers(take(waiting, 1_000)) == [2], "with 1 a broker would take it for the one before"


def test_each_record_learns_its_offset() -> None:
    waiting = accumulator()
    answers = [add(waiting, b"a"), add(waiting, b"b")]
    ((batch,),) = take(waiting)
    waiting.on_success(batch, 10)
    assert [answer.result for answer in answers] == [("orders", 0, 10, 1_000), ("orders", 0, 11, 1_000)]
    assert waiting.used == 0


def test_a_lost_batch_is_sent_again_with_its_number_after_a_pause_and_in_front() -> None:
    waiting = accumulator()
    known(waiting)
    add(waiting, b"a" * 300)
    add(waiting, b"b" * 300)
    (one,), (other,) = take(waiting)
    waiting.on_lost(one, LOST, 0)
    waiting.on_lost(other, LOST, 0)
    assert take(waiting) == []
    ((again,),) = take(waiting, waiting.next_ms)
    assert (again, again.sequence) == (one, 1)
    assert take(waiting, 5_000) == [], "alone until it is there"


def test_a_batch_behind_a_lost_one_comes_back_out_of_order_and_goes_again() -> None:
    waiting = accumulator()
    known(waiting)
    add(waiting, b"a" * 300)
    add(waiting, b"b" * 300)
    (one,), (other,) = take(waiting)
    waiting.on_lost(one, LOST, 0)
    assert not waiting.on_refused(other, KafkaError(E.OUT_OF_ORDER_SEQUENCE_NUMBER), 0)
    ((again,),) = take(waiting, 1_000)
    assert again is one
    waiting.on_success(again, 1)
    ((last,),) = take(waiting, 1_000)
    assert (last is other, last.sequence) == (True, 2)


def test_behind_a_gap_numbers_begin_anew_in_the_next_epoch() -> None:
    waiting = accumulator()
    queue = known(waiting)
    gone = add(waiting, b"a" * 300)
    ((one,),) = take(waiting)
    waiting.on_lost(one, LOST, 0)
    take(waiting, 20_000)
    assert isinstance(gone.error, DeliveryTimeoutError)
    assert str(gone.error).endswith("the last of 1 tries: the line is dead")
    add(waiting, b"b", 20_000)
    ((other,),) = take(waiting, 20_000)
    waiting.on_refused(other, KafkaError(E.OUT_OF_ORDER_SEQUENCE_NUMBER), 20_000)
    ((again,),) = take(waiting, 20_000)
    assert (again.sequence, queue.producer) == (0, ProducerId(7, 1))


def test_in_a_transaction_a_gap_is_an_error() -> None:
    failed: list[Exception] = []
    waiting = accumulator(transactional=True, failed=failed.append)
    answer = add(waiting, b"a")
    ((batch,),) = take(waiting)
    error = KafkaError(E.OUT_OF_ORDER_SEQUENCE_NUMBER)
    waiting.on_refused(batch, error, 0)
    assert (failed, answer.error) == ([error], error)


def test_after_the_last_epoch_another_id_is_asked_for() -> None:
    waiting = accumulator(producer=ProducerId(7, 32_767))
    add(waiting, b"a")
    ((batch,),) = take(waiting)
    waiting.on_refused(batch, KafkaError(E.OUT_OF_ORDER_SEQUENCE_NUMBER), 0)
    assert take(waiting) == []
    assert waiting.producer is None
    waiting.producer = ProducerId(8, 0)
    ((again,),) = take(waiting)
    assert (again.sequence, again.queue.producer) == (0, ProducerId(8, 0))


def test_a_record_that_is_refused_leaves_no_gap() -> None:
    waiting = accumulator()
    known(waiting)
    answer = add(waiting, b"a")
    ((batch,),) = take(waiting)
    waiting.on_refused(batch, KafkaError(E.TOPIC_AUTHORIZATION_FAILED), 0)
    assert isinstance(answer.error, KafkaError)
    add(waiting, b"b")
    assert numbers(take(waiting)) == [1]


def test_a_duplicate_was_written() -> None:
    waiting = accumulator()
    answer = add(waiting, b"a")
    ((batch,),) = take(waiting)
    waiting.on_refused(batch, KafkaError(E.DUPLICATE_SEQUENCE_NUMBER), 0)
    assert answer.result.offset == -1


def test_a_batch_too_large_for_its_topic_is_split() -> None:
    waiting = accumulator()
    answers = [add(waiting, b"%d" % number) for number in range(3)]
    ((batch,),) = take(waiting)
    waiting.on_refused(batch, KafkaError(E.MESSAGE_TOO_LARGE), 0)
    ((one,),) = take(waiting)
    assert (values(one), one.sequence) == ([b"0"], 0)
    waiting.on_success(one, 0)
    ((two,),) = take(waiting)
    assert (values(two), two.sequence) == ([b"1", b"2"], 1)
    waiting.on_refused(two, KafkaError(E.MESSAGE_TOO_LARGE), 0)
    (three,), _ = take(waiting)
    waiting.on_refused(three, KafkaError(E.MESSAGE_TOO_LARGE), 0)
    assert [answer.ended for answer in answers] == [True, True, False]
    assert isinstance(answers[1].error, KafkaError)


def test_without_idempotence_a_partition_has_one_batch_under_way_and_no_numbers() -> None:
    waiting = accumulator(idempotent=False, producer=None)
    for _ in range(3):
        add(waiting, b"x" * 300)
    ((batch,),) = take(waiting)
    assert (batch.sequence, take(waiting)) == (-1, [])
    header = parse_batch_header(batch.seal(transactional=False))
    assert (header.producer_id, header.base_sequence) == (-1, -1)


def test_nothing_is_sent_before_there_is_a_producer_id() -> None:
    waiting = accumulator(producer=None)
    add(waiting, b"a")
    assert take(waiting) == []
    waiting.producer = ProducerId(7, 0)
    assert len(take(waiting)) == 1


def test_topics_without_a_leader_are_told() -> None:
    waiting = accumulator()
    add(waiting, b"a")
    assert waiting.take(0, lambda _: None, lambda _: 5) == []
    assert waiting.leaderless == {"orders"}


def test_a_node_without_room_gets_nothing_and_what_waits_ends_in_time() -> None:
    waiting = accumulator()
    answer = add(waiting, b"a")
    assert take(waiting, busy=5) == []
    assert waiting.next_ms == 10_000
    assert waiting.held_up(LOST, lambda partition: partition == PLACE) == {"orders"}
    assert take(waiting, 10_000, busy=5) == []
    assert isinstance(answer.error, DeliveryTimeoutError)
    assert str(answer.error).endswith("within delivery_timeout_ms (10000): the line is dead")


def test_records_of_a_topic_that_is_gone_say_so_in_the_end() -> None:
    waiting = accumulator()
    answer, other = add(waiting, b"a"), add(waiting, b"a", place=TopicPartition("bills", 0))
    gone = KafkaError(E.UNKNOWN_TOPIC_OR_PARTITION)
    assert waiting.held_up(gone, lambda partition: partition == PLACE) == {"orders"}
    waiting.take(10_000, lambda _: None, lambda _: 5)
    assert isinstance(answer.error, KafkaError)
    assert (answer.error.code, isinstance(other.error, DeliveryTimeoutError)) == (gone.code, True)


def test_what_would_wait_in_vain_is_given_up() -> None:
    failed: list[Exception] = []
    waiting = accumulator(failed=failed.append)
    answers = [add(waiting, b"a" * 300), add(waiting, b"b" * 300)]
    may_not = KafkaError(E.TOPIC_AUTHORIZATION_FAILED)
    waiting.held_up(may_not, lambda _: True)
    assert [answer.error for answer in answers] == [may_not] * 2 == failed
    assert (take(waiting), waiting.used) == ([], 0)


def test_records_under_way_fail_in_time_and_their_batch_is_known_until_its_answer() -> None:
    failed: list[Exception] = []
    waiting = accumulator(failed=failed.append)
    queue = known(waiting)
    answer, later = add(waiting, b"a" * 300), add(waiting, b"b" * 300, 5_000)
    (batch,), (behind,) = take(waiting, 5_000)
    assert not waiting.overdue(batch, 9_999)
    assert waiting.overdue(batch, 10_000)
    assert waiting.overdue(batch, 10_001)
    assert not waiting.overdue(behind, 10_001)
    assert isinstance(answer.error, DeliveryTimeoutError)
    assert (failed, waiting.unfinished_batches(), waiting.at_rest) == ([answer.error], [behind], False)
    waiting.on_success(batch, 1)
    waiting.on_success(behind, 2)
    assert (later.result.offset, waiting.at_rest, waiting.used) == (2, True, 0)
    assert queue.next_sequence == 3


def test_an_overdue_batch_that_is_lost_is_not_sent_again() -> None:
    waiting = accumulator()
    known(waiting)
    add(waiting, b"a")
    ((batch,),) = take(waiting)
    waiting.overdue(batch, 10_000)
    waiting.on_lost(batch, LOST, 10_000)
    assert take(waiting, 20_000) == []
    assert waiting.used == 0


def test_large_batches_are_packed_elsewhere_first() -> None:
    waiting = accumulator(batch_size=200_000, codec=Codec.GZIP)
    add(waiting, b"x" * 150_000)
    assert take(waiting) == []
    (batch,) = waiting.to_pack
    assert take(waiting) == []
    assert waiting.to_pack == []
    batch.pack()
    waiting.on_packed(batch)
    assert take(waiting) == [[batch]]


def test_memory_of_records_is_counted_until_their_outcome() -> None:
    waiting = accumulator()
    add(waiting, b"a" * 10)
    assert waiting.used == BATCH_BYTES + HELD_BYTES + 31
    waiting.drop_waiting(ValueError())
    assert waiting.used == 0


def test_a_batch_given_at_once_stays_apart() -> None:
    waiting = accumulator()
    queue = known(waiting)
    waiting.linger_ms = 100
    add(waiting, b"x" * 300)
    add(waiting, b"before")
    records: list[TimedRecord] = [(None, b"%d" % number, [], 1_000) for number in range(3)]
    size, used = sum(record_size(*record[:3]) for record in records), waiting.used
    waiting.add_all(queue, records, size)
    assert waiting.used == used + BATCH_BYTES + size + 3 * HELD_BYTES
    add(waiting, b"after")
    sent = [batch for (batch,) in take(waiting)]
    assert [values(batch) for batch in sent] == [[b"x" * 300], [b"before"], [b"0", b"1", b"2"]]
    assert [values(batch) for (batch,) in take(waiting, 100)] == [[b"after"]]


def test_a_batch_that_cannot_be_sent_is_given_up() -> None:
    failed: list[Exception] = []
    waiting = accumulator(failed=failed.append)
    answer = add(waiting, b"a")
    ((batch,),) = take(waiting)
    waiting.given_up(batch, LOST)
    assert (failed, answer.error, waiting.at_rest, waiting.used) == ([LOST], LOST, True, 0)


def test_behind_a_gap_the_leader_is_to_acknowledge_one_batch_before_others_follow() -> None:
    waiting = accumulator()
    known(waiting)
    for value in (b"a" * 300, b"b" * 300):
        add(waiting, value)
    (one,), (other,) = take(waiting)
    for batch in (one, other):
        assert not waiting.on_refused(batch, KafkaError(E.OUT_OF_ORDER_SEQUENCE_NUMBER), 0)
    ((again,),) = take(waiting)
    assert (again, again.sequence, other.sequence) == (one, 0, -1)


def test_partitions_that_are_through_their_epochs_share_the_next_id() -> None:
    waiting = accumulator(producer=ProducerId(7, 32_767))
    places = [PLACE, TopicPartition("orders", 1)]
    for place in places:
        add(waiting, b"a", place=place)
    ((one, other),) = take(waiting)
    for batch in (one, other):
        waiting.on_refused(batch, KafkaError(E.OUT_OF_ORDER_SEQUENCE_NUMBER), 0)
    assert take(waiting) == []
    waiting.producer = ProducerId(8, 0)
    assert [batch.sequence for batch in take(waiting)[0]] == [0, 0]
    assert {waiting.queue(place).producer for place in places} == {ProducerId(8, 0)}


def test_the_end_of_the_transaction_before_is_waited_for_a_moment() -> None:
    waiting = accumulator(transactional=True)
    add(waiting, b"a")
    ((batch,),) = take(waiting)
    assert not waiting.on_refused(batch, KafkaError(E.CONCURRENT_TRANSACTIONS), 100)
    assert take(waiting, 104) == []
    assert waiting.next_ms == 105
    assert take(waiting, 105) == [[batch]]


@pytest.mark.parametrize(
    ("code", "asks"),
    [
        (E.DUPLICATE_SEQUENCE_NUMBER, False),
        (E.OUT_OF_ORDER_SEQUENCE_NUMBER, False),
        (E.MESSAGE_TOO_LARGE, False),
        (E.TOPIC_AUTHORIZATION_FAILED, False),
        (E.NOT_LEADER_OR_FOLLOWER, True),
        (E.UNKNOWN_TOPIC_OR_PARTITION, True),
    ],
)
def test_which_refusals_ask_for_metadata(code: ErrorCode, asks: bool) -> None:
    waiting = accumulator()
    answers = [add(waiting, b"a"), add(waiting, b"b")]
    ((batch,),) = take(waiting)
    assert waiting.on_refused(batch, KafkaError(code), 0) is asks
    if asks:
        take(waiting, 10_000)
        assert code.name in str(answers[0].error)
    if code is E.DUPLICATE_SEQUENCE_NUMBER:
        assert [answer.result.offset for answer in answers] == [-1, -1]


@pytest.mark.parametrize("idempotent", [True, False])
def test_the_parts_of_a_batch_are_in_its_place_and_hold_what_it_held(idempotent: bool) -> None:
    waiting = accumulator(idempotent=idempotent)
    for value in (b"a", b"b", b"c"):
        add(waiting, value)
    add(waiting, b"d" * 300)
    ((batch,),) = take(waiting)
    used = waiting.used
    waiting.on_refused(batch, KafkaError(E.MESSAGE_TOO_LARGE), 0)
    assert waiting.used == used + BATCH_BYTES
    found: list[tuple[list[bytes | None], int]] = []
    while requests := take(waiting):
        for (part,) in requests:
            assert part.size == BATCH_BYTES + sum(record_size(*record[:3]) for record in part.records)
            found.append((values(part), part.sequence))
            waiting.on_success(part, 0)
    wanted = [([b"a"], 0), ([b"b", b"c"], 1), ([b"d" * 300], 3)]
    assert found == (wanted if idempotent else [(some, -1) for some, _ in wanted])
    assert waiting.used == 0


def test_errors_of_what_is_dropped_are_not_logged() -> None:
    waiting = accumulator()
    answers = [add(waiting, b"a"), add(waiting, b"b" * 300)]
    waiting.drop_waiting(LOST)
    assert [(answer.error, answer.seen) for answer in answers] == [(LOST, True)] * 2


def test_of_a_batch_that_fails_one_error_is_left_for_asyncio_to_log() -> None:
    waiting = accumulator()
    answers = [add(waiting, b"a"), add(waiting, b"b")]
    ((batch,),) = take(waiting)
    waiting.on_refused(batch, KafkaError(E.TOPIC_AUTHORIZATION_FAILED), 0)
    assert [answer.seen for answer in answers] == [False, True]


def test_a_batch_that_was_packed_can_be_out_of_time() -> None:
    waiting = accumulator(batch_size=200_000, codec=Codec.GZIP)
    answer = add(waiting, b"x" * 150_000)
    take(waiting)
    (batch,) = waiting.to_pack
    take(waiting, 10_000)
    assert not answer.ended, "a thread is at it"
    batch.pack()
    waiting.on_packed(batch)
    take(waiting, 10_000)
    assert isinstance(answer.error, DeliveryTimeoutError)


@pytest.mark.parametrize(("transactional", "idempotent"), [(True, True), (False, True), (False, False)])
def test_the_head_of_a_batch_is_what_brokers_ask_for(transactional: bool, idempotent: bool) -> None:
    waiting = accumulator(idempotent=idempotent)
    for value in (b"a", b"b", b"c"):
        add(waiting, value)
    ((batch,),) = take(waiting)
    header = parse_batch_header(batch.seal(transactional=transactional))
    assert (header.base_offset, header.leader_epoch, header.magic) == (0, -1, 2)
    assert (header.record_count, header.last_offset_delta, header.codec) == (3, 2, Codec.NONE)
    assert header.transactional is transactional
    producer = (7, 0, 0) if idempotent else (-1, -1, -1)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == producer


@pytest.mark.parametrize(("append_ms", "time_ms"), [(-1, 1_000), (0, 0), (5, 5)])
def test_where_the_broker_gives_the_time_records_have_that(append_ms: int, time_ms: int) -> None:
    waiting = accumulator()
    answers = [add(waiting, b"a"), add(waiting, b"b")]
    ((batch,),) = take(waiting)
    waiting.on_success(batch, 0, append_ms)
    assert [answer.result for answer in answers] == [("orders", 0, 0, time_ms), ("orders", 0, 1, time_ms)]


def test_the_first_batch_of_an_epoch_goes_again_before_those_behind_it() -> None:
    waiting = accumulator(from_zero=True, transactional=True)
    add(waiting, b"a" * 300)
    add(waiting, b"b" * 300)
    (one,), (other,) = take(waiting)
    waiting.on_lost(one, LOST, 0)
    assert not waiting.on_refused(other, KafkaError(E.OUT_OF_ORDER_SEQUENCE_NUMBER), 0)
    assert list(waiting.queue(PLACE).waiting) == [one, other]


def test_a_batch_that_is_sent_again_takes_no_more_records() -> None:
    waiting = accumulator()
    add(waiting, b"a")
    ((batch,),) = take(waiting)
    waiting.on_lost(batch, LOST, 0)
    add(waiting, b"b")
    assert [values(each) for each in waiting.queue(PLACE).waiting] == [[b"a"], [b"b"]]


def test_the_first_number_is_used_again_when_its_batch_was_refused() -> None:
    waiting = accumulator()
    add(waiting, b"a")
    ((batch,),) = take(waiting)
    waiting.on_refused(batch, KafkaError(E.TOPIC_AUTHORIZATION_FAILED), 0)
    add(waiting, b"b")
    assert numbers(take(waiting)) == [0]


def test_an_error_in_the_end_counts_the_tries() -> None:
    waiting = accumulator()
    answer = add(waiting, b"a")
    for _ in range(3):
        ((batch,),) = take(waiting, waiting.next_ms if waiting.next_ms < math.inf else 0)
        waiting.on_lost(batch, LOST, 0)
        take(waiting)
    take(waiting, 10_000)
    assert str(answer.error).endswith("the last of 3 tries: the line is dead")


def test_batches_and_requests_may_be_filled_to_the_byte() -> None:
    waiting = accumulator(
        linger_ms=100, batch_size=BATCH_BYTES + 2 * 31, max_request_size=2 * (BATCH_BYTES + 62)
    )
    for number in range(3):
        place = TopicPartition("orders", number)
        assert add(waiting, b"x" * 10, place=place) is not None
        assert waiting.queue(place).waiting[0].full is False
        add(waiting, b"x" * 10, place=place)
        assert [batch.full for batch in waiting.queue(place).waiting] == [True]
    assert [len(batches) for batches in take(waiting)] == [2, 1]


def test_a_batchs_worth_of_bytes_is_told_since_the_last_look() -> None:
    waiting = accumulator(linger_ms=100)
    size = record_size(None, b"x" * 79, ())

    def full(number: int) -> bool:
        record: TimedRecord = (None, b"x" * 79, (), 1_000)
        return waiting.add(waiting.queue(TopicPartition("orders", number)), record, size)[2]

    for _ in range(2):
        assert [full(number) for number in range(4)] == [False, False, True, True]
        take(waiting)


def test_each_node_gets_what_it_leads() -> None:
    waiting = accumulator()
    places = [TopicPartition("orders", number) for number in range(4)]
    for place in places:
        add(waiting, b"a", place=place)
    sent = waiting.take(0, lambda place: place.partition % 2, lambda _: 5)
    assert sorted((node, [batch.queue.partition for batch in batches]) for node, batches in sent) == [
        (0, [places[0], places[2]]),
        (1, [places[1], places[3]]),
    ]


def test_the_size_of_a_record_counts_all_of_it() -> None:
    headers = [("name", b"xyz"), ("n", None)]
    assert record_size(b"key", b"value", headers) == 21 + 3 + 5 + (10 + 4 * 4 + 3) + (10 + 4 * 1)
    assert record_size(None, None, ()) == 21


class Broker:
    """One partition's leader as Kafka's: it knows the last five batches of the producer's epoch."""

    def __init__(self) -> None:
        self.log: list[bytes | None] = []
        self.epoch = -1
        self.next = -1
        self.last: dict[int, int] = {}

    def append(self, batch: ProducerBatch) -> int:
        """The offset. Raises KafkaError."""
        producer = batch.queue.producer
        assert producer is not None
        if producer.epoch < self.epoch:
            raise KafkaError(E.INVALID_PRODUCER_EPOCH)
        if producer.epoch > self.epoch:
            if self.epoch >= 0 and batch.sequence:
                raise KafkaError(E.OUT_OF_ORDER_SEQUENCE_NUMBER)
            self.epoch, self.next, self.last = producer.epoch, batch.sequence, {}
        if batch.sequence in self.last:
            return self.last[batch.sequence]
        if batch.sequence != self.next:
            raise KafkaError(E.OUT_OF_ORDER_SEQUENCE_NUMBER)
        offset = self.last[batch.sequence] = len(self.log)
        for old in list(self.last)[:-5]:
            del self.last[old]
        self.log += values(batch)
        self.next += len(batch.records)
        return offset

    def lose_state(self) -> None:
        self.epoch, self.last = -1, {}


FATES = ["written", "written", "written", "refused", "request lost", "answer lost", "may not"]


@settings(max_examples=240)
@given(st.data())
def test_whatever_is_lost_records_are_written_once_and_in_order(data: st.DataObject) -> None:
    waiting = accumulator(batch_size=120, delivery_timeout_ms=2_000)
    broker = Broker()
    sent: list[Answer] = []
    line: list[ProducerBatch] = []
    now_ms = 0.0

    def serve() -> None:
        batch = line.pop(0)
        fate = data.draw(st.sampled_from(FATES)) if now_ms < 20_000 else "written"
        if fate == "refused":
            waiting.on_refused(batch, KafkaError(E.NOT_ENOUGH_REPLICAS), now_ms)
        elif fate == "request lost":
            waiting.on_lost(batch, LOST, now_ms)
        elif fate == "may not":
            waiting.on_refused(batch, KafkaError(E.TOPIC_AUTHORIZATION_FAILED), now_ms)
        else:
            try:
                offset = broker.append(batch)
            except KafkaError as error:
                if fate == "answer lost":
                    waiting.on_lost(batch, LOST, now_ms)
                else:
                    waiting.on_refused(batch, error, now_ms)
                return
            if fate == "answer lost":
                waiting.on_lost(batch, LOST, now_ms)
            else:
                waiting.on_success(batch, offset)

    for _ in range(data.draw(st.integers(1, 40))):
        for _ in range(data.draw(st.integers(0, 5))):
            sent.append(add(waiting, b"%04d" % len(sent), now_ms))
        now_ms += data.draw(st.sampled_from([0, 0, 50, 300, 1_500]))
        for batches in take(waiting, now_ms, len(line)):
            line += batches
        for batch in line:
            waiting.overdue(batch, now_ms)
        for _ in range(data.draw(st.integers(0, len(line)))):
            serve()
    now_ms = max(now_ms, 20_000)
    while waiting.used:
        for batches in take(waiting, now_ms, len(line)):
            line += batches
        while line:
            serve()
        if waiting.next_ms < math.inf:
            now_ms = max(now_ms, waiting.next_ms)
    written = list(filter(None, broker.log))
    assert written == sorted(set(written)), "once and in order"
    for number, answer in enumerate(sent):
        assert answer.ended
        if answer.error is None and answer.result.offset >= 0:
            assert broker.log[answer.result.offset] == b"%04d" % number
        elif answer.error is None:
            assert b"%04d" % number in broker.log


@pytest.mark.parametrize("sequence", [2**31 - 2, 2**31 - 1])
def test_numbers_wrap(sequence: int) -> None:
    waiting = accumulator()
    known(waiting).next_sequence = sequence
    for value in (b"a" * 300, b"b" * 300, b"c" * 300):
        add(waiting, value)
    batches = [batch for (batch,) in take(waiting)]
    assert [batch.sequence for batch in batches] == [(sequence + more) % 2**31 for more in range(3)]
    for batch in reversed(batches):
        waiting.on_lost(batch, LOST, 0)
    ((again,),) = take(waiting, 5_000)
    assert again is batches[0]
