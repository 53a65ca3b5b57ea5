"""Fetch sessions: what is said to a broker, and what it then knows.

Covers: client/fetch.py.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from kohort.client import FetchFrom, FetchSession
from kohort.client.fetch import FetchPlan
from kohort.protocol import ErrorCode, TopicPartition

A, B = (TopicPartition("orders", number) for number in range(2))
C = TopicPartition("payments", 0)


@dataclass
class _Broker:
    """The server's side of KIP-227: one session at a time."""

    keeps_sessions: bool = True
    session_id: int = 0
    epoch: int = 0
    reads: dict[tuple[object, int], FetchFrom] = field(default_factory=dict)
    made: int = 0

    def take(self, plan: FetchPlan) -> tuple[ErrorCode, int]:
        if plan.epoch == 0:
            assert not plan.forgotten, "a whole list has nothing to take back"
            self.reads = _by_id(plan.named, plan.ids)
            if not self.keeps_sessions:
                return ErrorCode.NONE, 0
            self.made += 1
            self.session_id, self.epoch = 100 + self.made, 1
            return ErrorCode.NONE, self.session_id
        if plan.session_id != self.session_id:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0
        if plan.epoch != self.epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0
        for topic, number in plan.forgotten:
            # as brokers do: what it does not name rightly stays, and is sent on and on
            self.reads.pop((plan.ids.get(topic, topic), number), None)
        self.reads.update(_by_id(plan.named, plan.ids))
        self.epoch += 1
        return ErrorCode.NONE, self.session_id


def _by_id(
    named: Mapping[TopicPartition, FetchFrom], ids: Mapping[str, uuid.UUID]
) -> dict[tuple[object, int], FetchFrom]:
    return {(ids.get(topic, topic), number): where for (topic, number), where in named.items()}


_WANTED = st.dictionaries(
    st.sampled_from([A, B, C]), st.integers(0, 3).map(lambda offset: FetchFrom(offset, 1)), min_size=1
)


@given(
    st.lists(st.tuples(_WANTED, st.sampled_from(["", "", "", "lost", "lost unheard", "evicted", "new id"])))
)
def test_the_broker_always_reads_what_is_wanted(
    steps: list[tuple[dict[TopicPartition, FetchFrom], str]],
) -> None:
    session, broker = FetchSession(), _Broker()
    every = {"orders": uuid.UUID(int=1), "payments": uuid.UUID(int=2)}
    for wanted, fate in steps:
        if fate == "evicted":
            broker.session_id = 0
        if fate == "new id":
            every["orders"] = uuid.uuid4()
        ids = {topic: every[topic] for topic, _ in wanted}
        plan = session.plan(wanted, ids)
        if fate == "lost unheard":
            session.on_lost_answer()
            continue
        error, session_id = broker.take(plan)
        if fate == "lost":
            session.on_lost_answer()
            continue
        session.on_answer(error, session_id)
        if error is not ErrorCode.NONE:
            error, session_id = broker.take(session.plan(wanted, ids))
            session.on_answer(error, session_id)
        assert error is ErrorCode.NONE
        assert broker.reads == _by_id(wanted, ids)


def test_only_what_changed_is_said_again() -> None:
    session, broker = FetchSession(), _Broker()
    session.on_answer(*broker.take(session.plan({A: FetchFrom(0), B: FetchFrom(0)}, {})))
    assert session.plan({A: FetchFrom(0), B: FetchFrom(5), C: FetchFrom(9)}, {}) == FetchPlan(
        101, 1, {B: FetchFrom(5), C: FetchFrom(9)}
    )
    session.on_answer(ErrorCode.NONE, 101)
    assert session.plan({B: FetchFrom(5)}, {}) == FetchPlan(101, 2, {}, (A, C))


def test_a_broker_without_sessions_gets_the_whole_list_each_time() -> None:
    session, broker = FetchSession(), _Broker(keeps_sessions=False)
    for offset in range(3):
        plan = session.plan({A: FetchFrom(offset), B: FetchFrom(0)}, {})
        assert plan == FetchPlan(0, 0, {A: FetchFrom(offset), B: FetchFrom(0)})
        session.on_answer(*broker.take(plan))


def test_the_epoch_wraps_to_one() -> None:
    session = FetchSession(7, 2_147_483_647)
    session.on_answer(ErrorCode.NONE, 7)
    assert session.epoch == 1
