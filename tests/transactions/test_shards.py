"""What a shard of transactions answers in each state, and what it has written.

Covers: transactions/moves.py, transactions/settings.py.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kohort.coordinator.engine.effects import Append, Request
from kohort.protocol import ApiKey, ErrorCode, RequestContext, TopicPartition, build_batch
from kohort.statemachine import TransactionState
from kohort.transactions import Add, Identity, TransactionMetadata, moves
from kohort.transactions.moves import LAST_EPOCH
from kohort.transactions.records import TransactionDeleted, decode, encode
from kohort.transactions.shards import AbortLate, abort_late, verify_partition
from tests.transactions.driver import ID, ONE, START_MS, TWO, Bottle

NONE = ErrorCode.NONE
FENCED = ErrorCode.PRODUCER_FENCED
MAPPING = ErrorCode.INVALID_PRODUCER_ID_MAPPING
CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS
INVALID_STATE = ErrorCode.INVALID_TXN_STATE


def empty() -> Bottle:
    bottle = Bottle()
    assert bottle.initialize() == (NONE, 100, 0)
    return bottle


def ongoing() -> Bottle:
    bottle = empty()
    assert bottle.add(ONE) == NONE
    return bottle


def prepared(*, committed: bool, version: int = 2) -> Bottle:
    bottle = ongoing()
    assert bottle.end(committed=committed, version=version).error == NONE
    return bottle


def complete(*, committed: bool, version: int = 2) -> Bottle:
    bottle = prepared(committed=committed, version=version)
    bottle.write_markers()
    return bottle


STATES: dict[str, Callable[[], Bottle]] = {
    "Empty": empty,
    "Ongoing": ongoing,
    "PrepareCommit": lambda: prepared(committed=True, version=1),
    "PrepareAbort": lambda: prepared(committed=False, version=1),
    "CompleteCommit": lambda: complete(committed=True, version=1),
    "CompleteAbort": lambda: complete(committed=False, version=1),
}
STATES_2: dict[str, Callable[[], Bottle]] = {
    "Empty": empty,
    "Ongoing": ongoing,
    "PrepareCommit": lambda: prepared(committed=True),
    "PrepareAbort": lambda: prepared(committed=False),
    "CompleteCommit": lambda: complete(committed=True),
    "CompleteAbort": lambda: complete(committed=False),
}


@pytest.mark.parametrize("state", STATES)
def test_the_states_are_reached(state: str) -> None:
    assert STATES[state]().state == STATES_2[state]().state == state


# --- InitProducerId -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "error"),
    [
        ("Empty", NONE),
        ("Ongoing", CONCURRENT),
        ("PrepareCommit", CONCURRENT),
        ("PrepareAbort", CONCURRENT),
        ("CompleteCommit", NONE),
        ("CompleteAbort", NONE),
    ],
)
def test_a_new_producer_raises_the_epoch_where_nothing_is_open(state: str, error: ErrorCode) -> None:
    bottle = STATES[state]()
    answer = bottle.initialize()
    assert answer == (Identity(NONE, 100, 1) if error == NONE else Identity(error))


def test_a_new_producer_aborts_what_is_open_and_gets_the_epoch_after_the_fence() -> None:
    bottle = ongoing()
    assert bottle.initialize().error == CONCURRENT
    (decided,) = bottle.markers
    assert (decided.state.value, decided.producer_epoch, decided.client_version) == ("PrepareAbort", 1, 2)
    bottle.write_markers()
    assert bottle.initialize() == (NONE, 100, 2)
    assert bottle.add(ONE, epoch=0) == FENCED


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_timeout_out_of_bounds_is_refused(timeout_ms: int) -> None:
    assert empty().initialize(timeout_ms=timeout_ms).error == ErrorCode.INVALID_TRANSACTION_TIMEOUT


def test_a_producer_that_says_who_it_is_gets_the_next_epoch_and_the_same_again() -> None:
    bottle = empty()
    assert bottle.initialize(100, 0) == (NONE, 100, 1)
    assert bottle.initialize(100, 0) == (NONE, 100, 1)
    assert bottle.initialize(100, 1) == (NONE, 100, 2)
    assert bottle.initialize(100, 0).error == FENCED
    assert bottle.initialize(100, 3).error == FENCED
    assert bottle.initialize(99, 2).error == FENCED


def test_an_epoch_that_was_not_given_is_not_answered_again() -> None:
    bottle = empty()
    bottle.initialize()
    assert bottle.initialize(100, 0).error == FENCED


def test_after_the_coordinators_abort_the_old_epoch_is_answered_with_that_of_the_fence() -> None:
    bottle = ongoing()
    assert bottle.initialize(100, 0).error == CONCURRENT
    bottle.write_markers()
    assert bottle.initialize(100, 0) == (NONE, 100, 1)
    assert bottle.initialize(100, 0) == (NONE, 100, 1)
    assert bottle.initialize(100, 1) == (NONE, 100, 2)


def test_an_unknown_id_gets_a_fresh_producer_id_whatever_it_says() -> None:
    assert Bottle().initialize(7, 7) == (NONE, 100, 0)


def used_up() -> Bottle:
    bottle = empty()
    bottle.shard.state.store([bottle.known._replace(producer_epoch=LAST_EPOCH)])
    return bottle


def test_epochs_that_are_used_up_are_followed_by_another_producer_id() -> None:
    bottle = used_up()
    assert bottle.initialize() == (NONE, 101, 0)
    assert bottle.known.previous_producer_id == 100


def test_a_repeat_finds_the_new_producer_id() -> None:
    bottle = used_up()
    assert bottle.initialize(100, LAST_EPOCH) == (NONE, 101, 0)
    assert bottle.initialize(100, LAST_EPOCH) == (NONE, 101, 0)


@pytest.mark.parametrize("given", [(), (100, LAST_EPOCH)])
def test_an_open_transaction_of_the_last_epoch_is_aborted_for_another_producer_id(
    given: tuple[int, ...],
) -> None:
    bottle = used_up()
    bottle.add(ONE)
    assert bottle.initialize(*given).error == CONCURRENT
    assert (bottle.known.producer_id, bottle.known.producer_epoch) == (100, LAST_EPOCH + 1)
    bottle.write_markers()
    assert (bottle.state, bottle.known.producer_id, bottle.known.producer_epoch) == ("CompleteAbort", 101, 0)
    assert bottle.initialize(*given) == (NONE, 101, 0 if given else 1)
    assert bottle.initialize(100, LAST_EPOCH + 1).error == ErrorCode.PRODUCER_FENCED


def test_one_that_is_open_for_too_long_waits_for_another_producer_id() -> None:
    bottle = used_up()
    bottle.add(ONE)
    bottle.advance(80_000)
    assert bottle.told
    assert {type(each) for each in bottle.told} == {AbortLate}
    for each in bottle.told:
        abort_late(bottle.shard, bottle.now, late=each.late, fresh_id=500)
        bottle._carry_out()
    bottle.write_markers()
    assert (bottle.state, bottle.known.producer_id, bottle.known.producer_epoch) == ("CompleteAbort", 500, 0)


# --- AddPartitionsToTxn -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "error"),
    [
        ("Empty", NONE),
        ("Ongoing", NONE),
        ("PrepareCommit", CONCURRENT),
        ("PrepareAbort", CONCURRENT),
        ("CompleteCommit", NONE),
        ("CompleteAbort", NONE),
    ],
)
def test_partitions_are_added_unless_the_end_is_being_written(state: str, error: ErrorCode) -> None:
    bottle = STATES[state]()
    assert bottle.add(TWO) == error
    if error == NONE:
        assert bottle.state == "Ongoing"
        assert bottle.known.partitions == ((ONE, TWO) if state == "Ongoing" else (TWO,))


@pytest.mark.parametrize("state", STATES)
def test_others_than_the_producer_are_refused(state: str) -> None:
    bottle = STATES[state]()
    epoch = bottle.known.producer_epoch
    waits = state.startswith("Prepare")
    for other in (epoch + 1, epoch - 1):
        assert bottle.add(ONE, epoch=other) == (CONCURRENT if waits else FENCED)
    assert bottle.add(ONE, producer_id=7, epoch=9) == (CONCURRENT if waits else MAPPING)
    assert Bottle().add(ONE) == MAPPING


def test_what_is_there_is_not_written_again() -> None:
    bottle = ongoing()
    written = len(bottle.log)
    assert bottle.add(ONE) == NONE
    assert len(bottle.log) == written


def test_the_start_is_that_of_the_first_partition() -> None:
    bottle = ongoing()
    start = bottle.known.start_ms
    bottle.advance(5)
    bottle.add(TWO)
    assert (bottle.known.start_ms, bottle.known.update_ms) == (start, start + 5)


def test_verification_looks_and_changes_nothing() -> None:
    bottle = ongoing()
    state = bottle.shard.state
    assert verify_partition(state, ID, 100, 0, ONE) == NONE
    assert verify_partition(state, ID, 100, 0, TWO) == ErrorCode.TRANSACTION_ABORTABLE
    assert verify_partition(state, ID, 100, 1, ONE) == FENCED
    assert verify_partition(state, ID, 7, 0, ONE) == verify_partition(state, "other", 100, 0, ONE) == MAPPING
    bottle.end(committed=True, version=1)
    assert verify_partition(state, ID, 100, 0, ONE) == CONCURRENT


# --- EndTxn -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "commit", "abort"),
    [
        ("Empty", INVALID_STATE, INVALID_STATE),
        ("Ongoing", NONE, NONE),
        ("PrepareCommit", CONCURRENT, CONCURRENT),
        ("PrepareAbort", CONCURRENT, CONCURRENT),
        ("CompleteCommit", NONE, INVALID_STATE),
        ("CompleteAbort", INVALID_STATE, NONE),
    ],
)
def test_the_end_by_the_first_protocol(state: str, commit: ErrorCode, abort: ErrorCode) -> None:
    for committed, error in ((True, commit), (False, abort)):
        bottle = STATES[state]()
        assert bottle.end(committed=committed, version=1).error == error
        assert bottle.known.producer_epoch == 0
        assert bottle.end(committed=committed, version=1, epoch=1).error == FENCED
        assert bottle.end(committed=committed, version=1, producer_id=7).error == MAPPING


@pytest.mark.parametrize(
    ("state", "commit", "abort"),
    [
        ("Empty", INVALID_STATE, NONE),
        ("Ongoing", NONE, NONE),
        ("PrepareCommit", CONCURRENT, CONCURRENT),
        ("PrepareAbort", CONCURRENT, CONCURRENT),
        ("CompleteCommit", INVALID_STATE, NONE),
        ("CompleteAbort", INVALID_STATE, NONE),
    ],
)
def test_the_end_with_the_epoch_of_now(state: str, commit: ErrorCode, abort: ErrorCode) -> None:
    for committed, error in ((True, commit), (False, abort)):
        bottle = STATES_2[state]()
        epoch = bottle.known.producer_epoch
        answer = bottle.end(committed=committed)
        assert answer == (Identity(NONE, 100, epoch + 1) if error == NONE else Identity(error))


@pytest.mark.parametrize(
    ("state", "commit", "abort"),
    [
        ("Empty", FENCED, FENCED),
        ("Ongoing", FENCED, FENCED),
        ("PrepareCommit", CONCURRENT, CONCURRENT),
        ("PrepareAbort", CONCURRENT, CONCURRENT),
        ("CompleteCommit", NONE, INVALID_STATE),
        ("CompleteAbort", INVALID_STATE, NONE),
    ],
)
def test_the_end_sent_again_with_the_epoch_before(state: str, commit: ErrorCode, abort: ErrorCode) -> None:
    for committed, error in ((True, commit), (False, abort)):
        bottle = STATES_2[state]()
        now = bottle.known
        answer = bottle.end(committed=committed, epoch=now.producer_epoch - 1)
        assert answer == (Identity(NONE, 100, 1) if error == NONE else Identity(error))
        assert bottle.known is now


@pytest.mark.parametrize("state", STATES_2)
def test_the_end_by_others_than_the_producer(state: str) -> None:
    bottle = STATES_2[state]()
    epoch = bottle.known.producer_epoch
    waits = state.startswith("Prepare")
    for other in (epoch + 1, epoch - 2):
        assert bottle.end(committed=True, epoch=other).error == (CONCURRENT if waits else FENCED)
    assert bottle.end(committed=True, producer_id=7).error == (CONCURRENT if waits else MAPPING)
    assert Bottle().end(committed=True).error == MAPPING


def test_the_epoch_rises_with_the_decision_and_the_start_stays() -> None:
    bottle = ongoing()
    start = bottle.known.start_ms
    bottle.advance(7)
    assert bottle.end(committed=True) == (NONE, 100, 1)
    (decided,) = bottle.markers
    assert (decided.state.value, decided.partitions, decided.producer_epoch) == ("PrepareCommit", (ONE,), 1)
    bottle.advance(7)
    bottle.write_markers()
    now = bottle.known
    assert (now.state.value, now.partitions, now.start_ms, now.update_ms) == (
        "CompleteCommit",
        (),
        start,
        start + 14,
    )


def test_each_end_decides_by_which_protocol_it_is() -> None:
    bottle = empty()
    bottle.add(ONE, version=0)
    assert bottle.end(committed=True) == (NONE, 100, 1)
    bottle.write_markers()
    bottle.add(ONE, version=2)
    assert bottle.end(committed=True, version=1).error == NONE
    assert bottle.known.producer_epoch == 1


def test_the_last_epoch_ends_with_another_producer_id() -> None:
    bottle = used_up()
    bottle.add(ONE)
    assert bottle.end(committed=True) == (NONE, 101, 0)
    (decided,) = bottle.markers
    assert (decided.producer_id, decided.producer_epoch, decided.next_producer_id) == (100, 32_767, 101)
    bottle.write_markers()
    assert bottle.end(committed=True, producer_id=100, epoch=LAST_EPOCH) == (NONE, 101, 0)
    assert bottle.end(committed=False, producer_id=100, epoch=LAST_EPOCH).error == INVALID_STATE
    assert bottle.add(ONE) == NONE
    assert bottle.known.previous_producer_id == 101


# --- the next transaction while the markers of the last are written -----------------------------------------


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("committed", [True, False])
def test_the_next_transaction_waits_for_the_markers_of_the_last(version: int, committed: bool) -> None:
    bottle = prepared(committed=True, version=version)
    before, epoch = bottle.known, bottle.known.producer_epoch
    assert bottle.add(TWO) == CONCURRENT
    assert bottle.initialize(100, epoch).error == CONCURRENT
    assert bottle.end(committed=committed, version=version).error == CONCURRENT
    assert bottle.known is before
    bottle.write_markers()
    if version == 1:
        assert bottle.end(committed=committed, version=1).error == (NONE if committed else INVALID_STATE)
    else:
        assert bottle.end(committed=committed) == (
            Identity(INVALID_STATE) if committed else Identity(NONE, 100, epoch + 1)
        )


def test_the_next_producer_id_waits_for_the_markers_that_the_last_one_still_writes() -> None:
    bottle = used_up()
    bottle.add(ONE)
    assert bottle.end(committed=True) == (NONE, 101, 0)
    fresh = {"producer_id": 101, "epoch": 0}
    assert bottle.add(TWO, **fresh) == CONCURRENT
    assert bottle.initialize(101, 0).error == CONCURRENT
    assert bottle.end(committed=False, **fresh).error == CONCURRENT
    bottle.write_markers()
    assert bottle.add(TWO, **fresh) == NONE


# --- limits -------------------------------------------------------------------------------------------------


def test_more_partitions_than_a_transaction_may_have_are_refused_and_none_is_added() -> None:
    bottle = Bottle(kohort_transaction_max_partitions=2)
    bottle.initialize()
    assert bottle.add(ONE) == NONE
    assert bottle.add(TWO, TopicPartition("orders", 2)) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert bottle.known.partitions == (ONE,)
    assert bottle.add(TWO) == NONE
    assert bottle.add(ONE, TWO) == NONE
    assert "kohort.transaction.max.partitions is 2" in bottle.told[0].cause
    assert bottle.end(committed=True).error == NONE


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("name", ["t", "topic-of-a-longer-name", "x" * 249])
def test_a_transaction_that_may_be_filled_can_be_ended_however_it_ends(name: str, version: int) -> None:
    bottle = Bottle(kohort_transaction_max_partitions=1_000_000)
    limit = 20_000
    bottle.shard.state.max_bytes = lambda: limit
    bottle.initialize()
    added, number, step = 0, 0, 2_000
    while step:
        places = [TopicPartition(f"{name[:-6]}{n:06}"[-249:], n) for n in range(number, number + step)]
        if bottle.add(*places, version=version) == NONE:
            added, number = added + step, number + step
        else:
            step //= 2
    open_ = bottle.known
    ends = [
        moves.fence_producer(open_, version, bottle.now),
        *(
            moves.end_transaction(open_, client, bottle.now, committed=committed, next_producer_id=2**62)
            for client in (0, 2)
            for committed in (True, False)
        ),
    ]
    sizes = [
        len(build_batch([encode(end, flexible=flexible)], timestamp_ms=bottle.now))
        for end in ends
        for flexible in (True, False)
    ]
    assert 0.5 * limit < max(sizes) <= limit


def test_very_many_that_time_out_are_aborted_a_few_at_a_time() -> None:
    bottle = Bottle()
    state = bottle.shard.state
    open_ = TransactionState.ONGOING
    for number in range(500):
        name = f"pay-{number}"
        state.store([TransactionMetadata(name, number, 0, 60_000, open_, (ONE,), START_MS, START_MS)])
    bottle.shard.activate(bottle.now)
    bottle.advance(69_999)
    most, aborted = 0, 0
    while aborted < 500:
        assert bottle.shard.next_deadline() is not None
        bottle.now = bottle.shard.next_deadline() or 0
        bottle.advance(0)
        most, aborted = max(most, len(bottle.markers) - aborted), len(bottle.markers)
        assert bottle.now < START_MS + 80_000
    assert most <= 4


def test_a_transaction_that_begins_while_the_abort_timer_fires_has_a_timer_of_its_own() -> None:
    bottle = ongoing()
    bottle.end(committed=True)
    bottle.write_markers()

    bottle.now += 9_999
    shard, name = bottle.shard, bottle.known
    request = Request(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        0,
        Add(name.transactional_id, name.producer_id, name.producer_epoch, [TWO], 2),
        RequestContext(),
        object(),
    )
    shard.handle(request, bottle.now)
    (append,) = [effect for effect in shard.take_effects() if isinstance(effect, Append)]
    shard.advance(bottle.now + 1)
    shard.on_appended(append.ticket, 5, bottle.now + 1)
    bottle.advance(80_000)
    assert bottle.state == "PrepareAbort"


# --- time ---------------------------------------------------------------------------------------------------


def test_what_takes_too_long_is_aborted_with_a_raised_epoch() -> None:
    bottle = ongoing()
    bottle.advance(60_000)
    assert bottle.state == "Ongoing"
    bottle.advance(10_000)
    (decided,) = bottle.markers
    assert (decided.state.value, decided.producer_epoch) == ("PrepareAbort", 1)
    assert bottle.end(committed=True, version=1, epoch=0).error == FENCED
    bottle.write_markers()
    assert bottle.end(committed=True, epoch=0).error == INVALID_STATE
    assert bottle.end(committed=False, epoch=0) == (NONE, 100, 1)
    assert bottle.add(ONE) == NONE


@pytest.mark.parametrize("state", [state for state in STATES if state != "Ongoing"])
def test_only_what_is_open_times_out(state: str) -> None:
    bottle = STATES[state]()
    now = bottle.known
    bottle.advance(200_000)
    assert bottle.known is now


@pytest.mark.parametrize(
    ("state", "forgotten"),
    [
        ("Empty", True),
        ("PrepareCommit", False),
        ("PrepareAbort", False),
        ("CompleteCommit", True),
        ("CompleteAbort", True),
    ],
)
def test_an_id_that_is_not_used_is_forgotten(state: str, *, forgotten: bool) -> None:
    bottle = STATES[state]()
    bottle.advance(604_800_000 - 1)
    assert ID in bottle.shard.state.by_id
    bottle.advance(3_600_001)
    assert (ID not in bottle.shard.state.by_id) is forgotten
    if forgotten:
        assert decode(*bottle.log[-1]) == TransactionDeleted(ID)


# --- failures and restarts ----------------------------------------------------------------------------------


def test_nothing_changes_where_the_log_refuses() -> None:
    bottle = ongoing()
    now = bottle.known
    bottle.failing = ErrorCode.NOT_ENOUGH_REPLICAS
    unavailable = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert bottle.add(TWO) == unavailable
    assert bottle.end(committed=True) == bottle.initialize() == Identity(unavailable)
    bottle.advance(100_000)
    assert bottle.known is now
    assert not bottle.markers
    bottle.failing = None
    bottle.advance(10_000)
    assert bottle.state == "PrepareAbort"


def test_markers_that_are_written_are_told_to_the_log_until_it_takes_it() -> None:
    bottle = prepared(committed=True)
    bottle.failing = ErrorCode.KAFKA_STORAGE_ERROR
    bottle.write_markers()
    assert bottle.state == "PrepareCommit"
    bottle.failing = None
    bottle.advance(1_000)
    assert bottle.state == "CompleteCommit"


@pytest.mark.parametrize("state", STATES_2)
def test_a_restart_knows_what_was_known(state: str) -> None:
    bottle = STATES_2[state]()
    before = bottle.known._replace(last_epoch=-1)
    bottle.restart()
    assert bottle.known == before
    assert len(bottle.markers) == state.startswith("Prepare")
    bottle.write_markers()
    if state.startswith("Prepare"):
        assert bottle.state == state.replace("Prepare", "Complete")


def test_what_was_open_times_out_after_a_restart() -> None:
    bottle = ongoing()
    bottle.restart()
    bottle.advance(70_001)
    assert bottle.state == "PrepareAbort"


def test_markers_of_a_coordinator_that_is_gone_complete_nothing() -> None:
    bottle = prepared(committed=True)
    bottle.shard.unload(bottle.now)
    bottle.write_markers()
    assert ID not in bottle.shard.state.by_id
