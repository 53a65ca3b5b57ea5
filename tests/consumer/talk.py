"""Conversations of a member with its coordinator, which the test plays, on a clock of the test's own."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar
from uuid import UUID

from kohort.assignors import (
    Assignor,
    CooperativeStickyAssignor,
    TopicInfo,
)
from kohort.consumer.config import ConsumerConfig
from kohort.consumer.events import (
    Event,
)
from kohort.consumer.group.classic import Membership
from kohort.consumer.group.effects import Assign, Effect, ReportEvent, Send
from kohort.consumer.group.member import GroupMember
from kohort.protocol import (
    ApiKey,
    ErrorCode,
    Subscription,
    TopicPartition,
    decode_subscription,
    encode_assignment,
)
from kohort.statemachine import MemberState
from tests.consumer.configs import config
from tests.messages import response_of

E = TypeVar("E", bound=Effect)

P0, P1, P2 = (TopicPartition("orders", number) for number in range(3))
ORDERS = {"orders": TopicInfo(3)}
SETTINGS = config(session_timeout_ms=10_000, heartbeat_interval_ms=1_000, rebalance_timeout_ms=60_000)


M = TypeVar("M", bound=GroupMember)


class AnyTalk(Generic[M]):
    """A membership of either protocol, and the coordinator as the test plays it."""

    def __init__(self, membership: M, topics: Iterable[str]) -> None:
        self.now = 0.0
        self.membership = membership
        self.effects: list[Effect] = []
        self.events: list[Event] = []
        self.membership.subscribe(topics, self.now)
        self.take()

    def take(self) -> None:
        for effect in self.membership.take_effects():
            if isinstance(effect, ReportEvent):
                self.events.append(effect.event)
            else:
                self.effects.append(effect)

    def next(self, kind: type[E]) -> E:
        """The next effect, which must be of this kind."""
        assert self.effects, f"no effect where {kind.__name__} was expected"
        effect = self.effects.pop(0)
        assert isinstance(effect, kind), f"{effect} where {kind.__name__} was expected"
        return effect

    def sent(self, api_key: ApiKey) -> Send:
        """The next effect, which must be a request of this API."""
        send = self.next(Send)
        assert send.api_key is api_key
        return send

    def quiet(self) -> bool:
        return not self.effects

    def advance(self, ms: float) -> None:
        self.now += ms
        self.membership.do_due(self.now)
        self.take()

    def advance_to_deadline(self) -> None:
        deadline = self.membership.next_deadline()
        assert deadline is not None, "nothing is due"
        self.advance(max(0.0, deadline - self.now))

    def answer(self, send: Send, **fields: Any) -> None:
        body = response_of(send.api_key)(**{"error_code": 0, **fields})
        self.membership.on_answer(send, body, self.now)
        self.take()

    def fail(self, send: Send) -> None:
        self.membership.on_failure(send, ConnectionError("gone"), self.now)
        self.take()

    def released(self) -> None:
        self.membership.revocation_done(self.now)
        self.take()

    def topics(self, topics: Mapping[str, TopicInfo], ids: Mapping[UUID, str] | None = None) -> None:
        self.membership.on_topics(topics, self.now, ids=ids)
        self.take()


class Talk(AnyTalk[Membership]):
    """A membership in a classic group."""

    def __init__(
        self,
        *assignors: Assignor,
        settings: ConsumerConfig = SETTINGS,
        topics: Iterable[str] = ("orders",),
    ) -> None:
        offered = assignors or (CooperativeStickyAssignor(),)
        super().__init__(Membership(settings, offered, random.Random(1)), topics)

    def joined(
        self, send: Send, *, generation: int = 1, me: str = "m1", leader: str = "m1", **more: Any
    ) -> None:
        name = send.body.protocols[0].name
        rows = more.pop("members", None)
        if rows is None:
            rows = [(me, send.body.protocols[0].metadata)] if leader == me else []
        make = response_of(ApiKey.JOIN_GROUP)
        self.answer(
            send,
            **{
                "generation_id": generation,
                "protocol_type": "consumer",
                "protocol_name": name,
                "leader": leader,
                "member_id": me,
                "skip_assignment": False,
                "members": [
                    make.JoinGroupResponseMember(member_id=m, group_instance_id=None, metadata=data)
                    for m, data in rows
                ],
                **more,
            },
        )

    def synced(self, send: Send, *partitions: TopicPartition) -> None:
        self.answer(send, assignment=encode_assignment(partitions))

    def follow(self, *partitions: TopicPartition, generation: int = 1) -> None:
        """One whole round as a follower, from a JoinGroup that has been sent."""
        self.joined(self.sent(ApiKey.JOIN_GROUP), generation=generation, leader="other")
        self.synced(self.sent(ApiKey.SYNC_GROUP), *partitions)

    def told_to_rejoin(self) -> None:
        """A heartbeat is answered with REBALANCE_IN_PROGRESS."""
        self.advance(1_000)
        self.answer(self.sent(ApiKey.HEARTBEAT), error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        self.advance(20)


def subscription_in(send: Send, index: int = 0) -> Subscription:
    return decode_subscription(send.body.protocols[index].metadata)


def stable(*partitions: TopicPartition, assignors: Sequence[Assignor] = (), **settings: Any) -> Talk:
    """A follower in generation 1."""
    talk = Talk(*assignors, **settings)
    talk.follow(*partitions)
    assert talk.next(Assign).added == tuple(sorted(partitions))
    assert talk.membership.state is MemberState.STABLE
    return talk
