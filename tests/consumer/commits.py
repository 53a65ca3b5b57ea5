"""A committer and a coordinator that answers by a script."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from kohort.assignors import CooperativeStickyAssignor
from kohort.client.waiting import Backoff, Signal
from kohort.consumer import Cluster, CommittedOffset, Record
from kohort.consumer.done.committer import Committer
from kohort.consumer.done.tracker import Tracker
from kohort.consumer.events import Event
from kohort.consumer.group.classic import Membership
from kohort.consumer.group.manual import ManualAssignment
from kohort.consumer.group.member import GroupMember
from kohort.protocol import ApiKey, ErrorCode, TopicPartition
from kohort.statemachine import MemberState
from tests.consumer.configs import config
from tests.messages import response_of

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)

#: Ids of topics of the name "orders", one after the other.
OLD, NEW = uuid.UUID(int=1), uuid.UUID(int=2)

#: What a script gives for one request: codes by partition number, or an error to raise.
Step = dict[int, ErrorCode] | Exception


def nothing() -> None:
    """Nothing happens meanwhile."""


class Coordinator:
    """Answers OffsetCommit by a script; afterwards everything succeeds."""

    def __init__(self, *script: Step) -> None:
        self.script = list(script)
        self.sent: list[tuple[int, dict[int, int]]] = []
        self.metadata_sent: list[str] = []
        self.leader_epochs: list[int] = []
        #: What is committed, by partition number.
        self.committed: dict[int, int] = {}
        self.answers_after_s = 0.0
        self.forgotten = 0
        self.members: set[str] = set()
        self.asked_about: set[str] = set()
        self.meanwhile: Callable[[], None] = nothing
        self.known_metadata = SimpleNamespace(topic_id=lambda _: NEW)
        #: For which topics commits were, and up to which version they were to go out.
        self.topic_ids: list[uuid.UUID | None] = []
        self.max_versions: list[int | None] = []

    def forget_coordinator(self, group: str) -> None:
        assert group == "billing"
        self.forgotten += 1

    async def metadata(self, topics: set[str]) -> None:
        self.asked_about |= topics

    async def request_coordinator(
        self,
        _group: str,
        body: Any,
        *,
        max_version: int | None = None,
        sent: Callable[[], None] = lambda: None,
    ) -> Any:
        self.max_versions.append(max_version)
        self.topic_ids += [topic.topic_id for topic in body.topics]
        self.members.add(body.member_id)
        rows = [row for topic in body.topics for row in topic.partitions]
        offsets = {row.partition_index: row.committed_offset for row in rows}
        self.sent.append((body.generation_id_or_member_epoch, offsets))
        self.metadata_sent += [row.committed_metadata for row in rows]
        self.leader_epochs += [row.committed_leader_epoch for row in rows]
        sent()
        await asyncio.sleep(self.answers_after_s)
        self.meanwhile()
        step = self.script.pop(0) if self.script else {}
        if isinstance(step, Exception):
            raise step
        self.committed |= {p: offset for p, offset in offsets.items() if not step.get(p)}
        make = response_of(ApiKey.OFFSET_COMMIT)
        topic = make.OffsetCommitResponseTopic
        partition = topic.OffsetCommitResponsePartition
        answers = [partition(partition_index=p, error_code=step.get(p, 0)) for p in offsets]
        return make(throttle_time_ms=0, topics=[topic(name="orders", partitions=answers)])


class Bench:
    """A committer of a member of two partitions, three records of each delivered."""

    def __init__(self, *script: Step, backoff: Backoff | None = None, manual: bool = False) -> None:
        self.coordinator = Coordinator(*script)
        rng = random.Random(1)
        self.membership: GroupMember = (
            ManualAssignment(config(), rng)
            if manual
            else Membership(config(), [CooperativeStickyAssignor()], rng)
        )
        self.membership.state = MemberState.STABLE
        self.membership.generation = 3
        self.membership.owned = frozenset({A, B})
        self.tracker = Tracker()
        self.events: list[Event] = []
        #: Partitions of topics that are others of the same name now.
        self.made_anew: set[TopicPartition] = set()
        self.settled = Signal()
        self.committer = Committer(
            config(),
            cast(Cluster, self.coordinator),
            self.membership,
            self.tracker,
            backoff=backoff or Backoff(1, 1),
            manual=manual,
            settled=self.settled,
            carry_out=self._carry_out,
            report=self.events.append,
            read_in=lambda partition: OLD if partition in self.made_anew else NEW,
        )
        for partition in (A, B):
            self.tracker.begin_session(partition, 0, committed=CommittedOffset(0)).delivered_all([0, 1, 2])

    def _carry_out(self) -> None:
        self.membership.take_effects()
        self.settled.fire()

    def begin(self, partition: TopicPartition, position: int) -> None:
        self.tracker.begin_session(partition, position)

    def done(self, partition: TopicPartition, *offsets: int) -> None:
        stay = self.tracker.get(partition)
        assert stay is not None
        for offset in offsets:
            self.tracker.done(Record(*partition, offset, 0, None, None, session_id=stay.session_id))

    async def commit(self, timeout_ms: float = 2_000) -> None:
        await self.committer.commit(None, timeout_ms)
