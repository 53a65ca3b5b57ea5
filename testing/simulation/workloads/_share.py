"""A share group: its members get records of a topic, accept, release or reject them, or keep them too long.
Some are killed, and others follow (KIP-932).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, Final, TypeAlias
from uuid import UUID

from ....broker.partitions.partition import Partition
from ....client.cluster import Cluster
from ....client.errors import BrokerConnectionError
from ....protocol import ApiKey, ErrorCode, KafkaError, KohortError, TopicPartition
from ....protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ....protocol.messages.share_fetch import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ShareFetchRequest,
)
from ....protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from ....protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from ....share_partitions import AcknowledgeType
from ..brokers._clients import ClientProcess
from ..brokers._process import BrokerProcess
from ..brokers._world import AnyWorld
from ..engine._network import SimulatedCall
from ..engine._phases import Left
from ..engine._plan import Incident
from ._share_ledger import ShareLedger, ShareView
from ._workload import Workload

QUEUE: Final = "queue"

_E = ErrorCode
_T = AcknowledgeType
#: The group does not know the member, which joins anew.
_LEFT: Final = frozenset({_E.UNKNOWN_MEMBER_ID, _E.FENCED_MEMBER_EPOCH, _E.GROUP_ID_NOT_FOUND})
_GROUP_RESOURCE: Final = 32
_SET: Final = 0
_WAIT_MS: Final = 200
_PAUSE_S: Final = 0.05
#: What a member does with a record while there are faults, and how likely. None: its lock ends.
_DECISIONS: Final = ((_T.ACCEPT, 0.7), (_T.RELEASE, 0.15), (_T.REJECT, 0.1), (None, 0.05))

#: Offsets of a partition with what is said of them.
_Said: TypeAlias = "dict[int, AcknowledgeType]"


class Sharing(Workload):
    """``count`` members of the share group read a topic."""

    def __init__(self, world: AnyWorld, view: ShareView, topic: str, count: int) -> None:
        self._world = world
        self._topic = topic
        self._count = count
        self._members: list[ShareMember] = []
        self.ledger = ShareLedger(world, view, QUEUE, topic)

    def start(self) -> None:
        for _ in range(self._count):
            self._join()

    def _join(self) -> None:
        member = ShareMember(self._world, self._topic, f"q{len(self._world.clients)}")
        self._members.append(member)
        self._world.clients.append(member)

    def meet(self, incident: Incident) -> bool:
        if incident.kind != "client-kill" or not self._members:
            return False
        member = self._members.pop(incident.who % len(self._members))
        member.kill()
        self._world.heap.at(self._world.heap.now + incident.length_ms, self._join)
        return True

    def on_request(self, broker: BrokerProcess, call: SimulatedCall) -> None:
        if call.api_key == ApiKey.SHARE_FETCH:
            self.ledger.on_request(broker, call)

    def on_answer(self, broker: BrokerProcess, call: SimulatedCall, body: Any) -> None:
        if call.api_key == ApiKey.SHARE_FETCH:
            self.ledger.on_answer(broker, call, body)

    def on_led(self, broker: BrokerProcess, partition: Partition) -> None:
        self.ledger.on_led(broker, partition)

    def unsettled(self) -> Left:
        for index in range(self._world.plan.topics[self._topic] if self._members else 0):
            end = self._world.partition_at(TopicPartition(self._topic, index)).log_end_offset
            if (left := self.ledger.first_open(index, end)) is not None:
                return "B8", f"of {self._topic}-{index} {left} of {end} is not done"
        return None


class ShareMember(ClientProcess):
    """A member of the share group: one task beats, one for each broker fetches and acknowledges."""

    def __init__(self, world: AnyWorld, topic: str, name: str) -> None:
        self._topic = topic
        #: Partitions that it was given.
        self._assigned: frozenset[int] = frozenset()
        self._member_id = ""
        super().__init__(world, name)

    async def run(self) -> None:
        while True:
            self._assigned, self._member_id = frozenset(), f"{self.name}-{self.rng.getrandbits(32):x}"
            try:
                await self._live()
            except KohortError as error:
                self.world.say(f"{self} begins anew: {error!r}")
                await asyncio.sleep(0.1)

    async def _live(self) -> None:
        async with Cluster(
            self.world.bootstrap,
            self.name,
            request_timeout_ms=1_000,
            retry_backoff_ms=20,
            retry_backoff_max_ms=200,
        ) as cluster:
            await cluster.retrying(lambda: self._configure(cluster))
            fetches = [
                asyncio.ensure_future(self._serve(cluster, node))
                for node in self.world.brokers  # type: ignore[attr-defined]
            ]
            try:
                await self._beat(cluster)
            finally:
                for fetch in fetches:
                    fetch.cancel()
                await asyncio.gather(*fetches, return_exceptions=True)

    async def _configure(self, cluster: Cluster) -> None:
        update = UpdateFeaturesRequest(1_000, [FeatureUpdateKey("share.version", 1)])
        told = await cluster.request(None, ApiKey.UPDATE_FEATURES, update)
        if told.error_code:
            raise KafkaError(_E(told.error_code), told.error_message or "")
        rows = [AlterableConfig("share.auto.offset.reset", _SET, "earliest")]
        resources = [AlterConfigsResource(_GROUP_RESOURCE, QUEUE, rows)]
        body = IncrementalAlterConfigsRequest(resources, validate_only=False)
        answer = await cluster.request(None, ApiKey.INCREMENTAL_ALTER_CONFIGS, body)
        for row in answer.responses:
            if row.error_code:
                raise KafkaError(_E(row.error_code), row.error_message or "")

    # --- membership ---------------------------------------------------------------------------------------

    async def _beat(self, cluster: Cluster) -> None:
        """Join, and beat until the group does not know the member."""
        epoch, is_known = 0, False
        while True:
            # after an answer that did not come, all is said again, and so all is answered
            topics = None if is_known else [self._topic]
            is_known = False
            body = ShareGroupHeartbeatRequest(QUEUE, self._member_id, epoch, None, topics)
            interval_ms = 50
            try:
                answer = await cluster.request_coordinator(QUEUE, body)
                if answer.error_code in (_E.NOT_COORDINATOR, _E.COORDINATOR_NOT_AVAILABLE):
                    cluster.forget_coordinator(QUEUE)
                elif answer.error_code in (
                    _E.UNKNOWN_MEMBER_ID,
                    _E.FENCED_MEMBER_EPOCH,
                    _E.GROUP_ID_NOT_FOUND,
                ):
                    epoch, self._assigned = 0, frozenset()
                elif not answer.error_code:
                    is_known = True
                    epoch, interval_ms = answer.member_epoch, answer.heartbeat_interval_ms
                    if answer.assignment is not None:
                        given = answer.assignment.topic_partitions
                        self._assigned = frozenset(index for topic in given for index in topic.partitions)
                elif not (_E(answer.error_code).retriable or answer.error_code == _E.UNSUPPORTED_VERSION):
                    self.world.found(
                        "S0", f"{self} is refused {_E(answer.error_code).name}: {answer.error_message}"
                    )
            except (BrokerConnectionError, KafkaError):
                pass
            await asyncio.sleep(interval_ms / 1_000)

    # --- records ------------------------------------------------------------------------------------------

    async def _serve(self, cluster: Cluster, node: int) -> None:
        """Fetch from one broker the assigned partitions that it leads."""
        session = _Session()
        while True:
            wanted = await self._led_by(cluster, node)
            topic = cluster.topic(self._topic)
            if topic is None or topic.topic_id is None or not (wanted or session.epoch):
                await asyncio.sleep(_PAUSE_S)
                continue
            body = self._next_fetch(session, topic.topic_id, wanted)
            try:
                answer = await cluster.request(node, ApiKey.SHARE_FETCH, body)
            except (BrokerConnectionError, KafkaError):
                session = _Session()
                await asyncio.sleep(_PAUSE_S)
                continue
            if answer.error_code:
                session = _Session()
                await asyncio.sleep(_PAUSE_S)
                continue
            session.on_answer()
            lost = False
            for row in (row for topic in answer.responses for row in topic.partitions):
                if row.error_code:
                    session.partitions.discard(row.partition_index)
                    lost = True
                await self._work(session, row)
            if lost:
                await self._refresh(cluster)
                await asyncio.sleep(_PAUSE_S)

    async def _led_by(self, cluster: Cluster, node: int) -> frozenset[int]:
        if any(cluster.leader(TopicPartition(self._topic, index)) is None for index in self._assigned):
            await self._refresh(cluster)
        return frozenset(
            index for index in self._assigned if cluster.leader(TopicPartition(self._topic, index)) == node
        )

    async def _refresh(self, cluster: Cluster) -> None:
        try:
            await cluster.metadata([self._topic])
        except KohortError:
            await asyncio.sleep(_PAUSE_S)

    def _next_fetch(self, session: _Session, topic_id: UUID, wanted: frozenset[int]) -> ShareFetchRequest:
        """The next request of a session: what is new in it, what is forgotten, what is said of records."""
        said = session.said if session.epoch else {}
        named = sorted((wanted - session.partitions) | said.keys())
        forgotten = sorted(session.partitions - wanted)
        session.partitions = set(wanted)
        session.said = {}
        return ShareFetchRequest(
            QUEUE,
            self._member_id,
            session.epoch,
            max_wait_ms=_WAIT_MS,
            min_bytes=1,
            max_records=self.rng.choice((1, 5, 500)),
            batch_size=500,
            share_acquire_mode=self.rng.choice((0, 0, 1)),
            topics=[
                FetchTopic(
                    topic_id, [FetchPartition(index, _batches(said.get(index, {}))) for index in named]
                )
            ]
            if named
            else (),
            forgotten_topics_data=[ForgottenTopic(topic_id, forgotten)] if forgotten else (),
        )

    async def _work(self, session: _Session, row: PartitionData) -> None:
        """Decide about what the member has got."""
        if not row.acquired_records:
            return
        if self.rng.random() < 0.3:
            await asyncio.sleep(self.rng.choice((0.01, 0.1)))
        said = session.said.setdefault(row.partition_index, {})
        for acquired in row.acquired_records:
            for offset in range(acquired.first_offset, acquired.last_offset + 1):
                decision = self._decide()
                if decision is not None:
                    said[offset] = decision

    def _decide(self) -> AcknowledgeType | None:
        if self.world.healed:
            return _T.ACCEPT
        draw = self.rng.random()
        for decision, share in _DECISIONS:
            draw -= share
            if draw < 0:
                return decision
        return _T.ACCEPT


class _Session:
    """A share session at one broker: its next epoch, its partitions, and what is to be said of records."""

    def __init__(self) -> None:
        self.epoch = 0
        self.partitions: set[int] = set()
        self.said: dict[int, _Said] = {}

    def on_answer(self) -> None:
        self.epoch += 1


def _batches(said: _Said) -> list[AcknowledgementBatch]:
    return [
        AcknowledgementBatch(offsets[0], offsets[-1], [int(said[offset]) for offset in offsets])
        for offsets in _neighbours(sorted(said))
    ]


def _neighbours(offsets: Iterable[int]) -> Iterator[list[int]]:
    """Offsets that follow each other, together."""
    for _, some in groupby(enumerate(offsets), lambda pair: pair[1] - pair[0]):
        yield [offset for _, offset in some]
