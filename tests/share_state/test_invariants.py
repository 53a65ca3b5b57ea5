"""A shard of the share coordinator against a model of single offsets, with restarts and cuts of its log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.protocol import ErrorCode, SharePartitionKey
from tests.share_state.driver import KEY, Bottle

KEYS = [KEY._replace(partition=each) for each in range(2)]


@dataclass
class Model:
    """What must be known of one share partition: for each offset its delivery count and state."""

    state_epoch: int
    start: int
    leader: int
    offsets: dict[int, tuple[int, int]] = field(default_factory=dict)

    def write(self, batches: list[tuple[int, int, int, int]], start: int) -> None:
        # a write that comes late takes nothing back
        self.start = max(self.start, start)
        for first, last, state, count in batches:
            for offset in range(first, last + 1):
                known = self.offsets.get(offset, (count, state))
                self.offsets[offset] = max(known, (count, state))
        # what the coordinator has dropped comes back with no later start
        self.offsets = {offset: value for offset, value in self.offsets.items() if offset >= self.start}


_batches = st.lists(
    st.builds(
        lambda first, length, state, count: (first, first + length, state, count),
        st.integers(0, 8),
        st.integers(0, 5),
        st.sampled_from([0, 2, 4]),
        st.integers(1, 3),
    ),
    min_size=1,
    max_size=3,
)
_keys = st.sampled_from(KEYS)
# most writes are of who may write, and most have no start
_epochs = st.sampled_from([3, 3, 3, 3, 4, 2])
_write = st.tuples(st.just("write"), _keys, _epochs, _epochs, st.sampled_from([-1, -1, -1, 2, 5]), _batches)
_steps = st.one_of(
    _write,
    _write,
    _write,
    st.tuples(st.just("initialize"), _keys, st.integers(1, 3), st.integers(-1, 4)),
    st.tuples(st.just("read"), _keys, st.integers(0, 3)),
    st.tuples(st.just("delete"), _keys),
    st.tuples(st.just("restart")),
    st.tuples(st.just("fail"), _keys, _batches),
    st.tuples(st.just("wait"), st.integers(1, 5_000)),
)


@settings(max_examples=200)
@given(st.lists(_steps, min_size=5, max_size=40), st.integers(0, 3))
def test_every_answer_is_that_of_a_model(steps: list[tuple[Any, ...]], updates: int) -> None:
    bottle = Bottle(
        share_coordinator_snapshot_update_records_per_snapshot=updates,
        share_coordinator_state_topic_prune_interval_ms=1_000,
        share_coordinator_cold_partition_snapshot_interval_ms=2_000,
    )
    models: dict[SharePartitionKey, Model] = {}
    for key in KEYS:
        initialize(bottle, models, key, 1, 0)
    for step in steps:
        take_step(bottle, models, *step)
    bottle.restart()
    check_all(bottle, models)


def take_step(bottle: Bottle, models: dict[SharePartitionKey, Model], name: str, *given_: Any) -> None:
    if name == "wait":
        bottle.advance(given_[0])
    elif name == "restart":
        bottle.restart()
        check_all(bottle, models)
    else:
        key, *rest = given_
        _STEPS[name](bottle, models, key, *rest)


def initialize(
    bottle: Bottle, models: dict[SharePartitionKey, Model], key: Any, epoch: int, start: int
) -> None:
    error = bottle.initialize(epoch, start, key).error_code
    known = models.get(key)
    if known is not None and epoch < known.state_epoch:
        assert error == ErrorCode.FENCED_STATE_EPOCH
    else:
        assert error == ErrorCode.NONE
        # every leader reads a state before it writes it
        bottle.read(0 if known is None else known.leader, key)
        # a start of -1 at the same epoch is the request of before: it does not replace what is used
        used = known is not None and (known.start != -1 or bool(known.offsets))
        if known is None or start != -1 or epoch > known.state_epoch or not used:
            models[key] = Model(epoch, start, 0 if known is None else known.leader)


def write(
    bottle: Bottle,
    models: dict[SharePartitionKey, Model],
    key: Any,
    epoch: int,
    leader: int,
    start: int,
    some: Any,
) -> None:
    error = bottle.write(epoch, leader, *some, start=start, key=key).error_code
    known = models.get(key)
    if known is None:
        assert error == ErrorCode.INVALID_REQUEST
    elif leader < known.leader:
        assert error == ErrorCode.FENCED_LEADER_EPOCH
    elif epoch < known.state_epoch:
        assert error == ErrorCode.FENCED_STATE_EPOCH
    else:
        assert error == ErrorCode.NONE
        known.write(some, start)


def read(bottle: Bottle, models: dict[SharePartitionKey, Model], key: Any, leader: int) -> None:
    told = bottle.read(leader, key)
    known = models.get(key)
    if known is None:
        assert told.error_code == ErrorCode.INVALID_REQUEST
    elif leader < known.leader:
        assert told.error_code == ErrorCode.FENCED_LEADER_EPOCH
    else:
        known.leader = leader
        check_state(told, known)


def delete(bottle: Bottle, models: dict[SharePartitionKey, Model], key: Any) -> None:
    assert bottle.delete(key).error_code == ErrorCode.NONE
    models.pop(key, None)


def fail(bottle: Bottle, models: dict[SharePartitionKey, Model], key: Any, some: Any) -> None:
    """The log takes nothing, and the model stays as it is."""
    before = models.get(key)
    bottle.failing = ErrorCode.NOT_ENOUGH_REPLICAS
    assert bottle.write(9, 9, *some, key=key).error_code != ErrorCode.NONE
    assert bottle.initialize(9, 9, key).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    bottle.failing = None
    if before is not None:
        check_state(bottle.read(before.leader, key), before)


_STEPS: dict[str, Callable[..., None]] = {
    "initialize": initialize,
    "write": write,
    "read": read,
    "delete": delete,
    "fail": fail,
}


def check_all(bottle: Bottle, models: dict[SharePartitionKey, Model]) -> None:
    assert bottle.shard.state.by_key.keys() == models.keys()
    for key, known in models.items():
        check_state(bottle.read(known.leader, key), known)
        if known.leader:
            assert bottle.read(known.leader - 1, key).error_code == ErrorCode.FENCED_LEADER_EPOCH


def check_state(told: Any, known: Model) -> None:
    assert (told.error_code, told.state_epoch, told.start_offset) == (0, known.state_epoch, known.start)
    found = {
        offset: (batch.delivery_count, batch.delivery_state)
        for batch in told.state_batches
        for offset in range(batch.first_offset, batch.last_offset + 1)
    }
    assert found == known.offsets
