"""A member of a share group: one task beats, one for each broker fetches and acknowledges (KIP-932)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, Protocol, TypeAlias
from uuid import UUID

from ....client.cluster import Cluster
from ....client.errors import BrokerConnectionError
from ....log import decode_records
from ....protocol import (
    AcknowledgeType,
    ApiKey,
    ErrorCode,
    KafkaError,
    KohortError,
    TopicPartition,
    iter_batches,
)
from ....protocol.messages.share_acknowledge import AcknowledgementBatch as Acknowledged
from ....protocol.messages.share_acknowledge import (
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from ....protocol.messages.share_fetch import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ShareFetchRequest,
)
from ....protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from ....share_partitions import CLOSING_EPOCH, OPENING_EPOCH, TopicPlace
from ..brokers._clients import ClientProcess
from ..brokers._world import AnyWorld

_E = ErrorCode
_T = AcknowledgeType
#: The group does not know the member, which joins anew.
_LEFT: Final = frozenset({_E.UNKNOWN_MEMBER_ID, _E.FENCED_MEMBER_EPOCH, _E.GROUP_ID_NOT_FOUND})
_LEAVING: Final = -1
_WAIT_MS: Final = 200
_PAUSE_S: Final = 0.05
#: What a member does with a record while there are faults, and how likely. None: its lock ends.
_DECISIONS: Final = ((_T.ACCEPT, 0.7), (_T.RELEASE, 0.15), (_T.REJECT, 0.1), (None, 0.05))
#: How likely it is that a member takes longer than a lock lasts, and that it renews the lock then.
_SLOW: Final = 0.06
_RENEWS: Final = 0.6
#: How likely it is that a member asks with a heartbeat who leads what.
_REFRESHES: Final = 0.2
#: How likely it is that it subscribes anew with one, and that it wants all topics then.
_RESUBSCRIBES: Final = 0.1
_ALL_TOPICS: Final = 0.7
#: How likely it is that a fetch closes a session, and no acknowledgement does.
_CLOSES_BY_FETCH: Final = 0.3
#: What most fetches ask for, and what others do.
_MIN_BYTES: Final = (1, 1, 1, 300)
_MAX_BYTES: Final = (1 << 20, 1 << 20, 1 << 20, 200)

#: Offsets of a partition with what is said of them.
_Said: TypeAlias = "dict[int, AcknowledgeType]"


class MemberWork(Protocol):
    """What a member is told, and whom it tells: its group and the topics of that."""

    @property
    def group(self) -> str: ...
    @property
    def topics(self) -> Sequence[str]: ...

    async def configure(self, cluster: Cluster, /) -> None:
        """Set the configs of the group."""

    def on_records(self, place: TopicPlace, topic: str, records: Mapping[int, bytes], /) -> None:
        """A member has got these records, by offset."""


class SharingProcess(ClientProcess):
    """A member of the group of ``work``, whatever its client. ``assigned`` are the partitions that it was
    given.
    """

    def __init__(self, world: AnyWorld, work: MemberWork, name: str) -> None:
        self._work = work
        self.assigned: frozenset[TopicPlace] = frozenset()
        self.member_id = ""
        self.stalled_until_ms = 0
        self._leaves = False
        super().__init__(world, name)

    def leave(self) -> None:
        """Close its sessions, leave the group and end."""
        self._leaves = True

    def stall(self, until_ms: int) -> None:
        """Stand still until then."""
        self.stalled_until_ms = max(self.stalled_until_ms, until_ms)
        self.loop.freeze(until_ms)


class ShareMember(SharingProcess):
    """A member that does at any moment what the protocol allows."""

    async def run(self) -> None:
        while True:
            self.assigned, self.member_id = frozenset(), f"{self.name}-{self.rng.getrandbits(32):x}"
            try:
                await self._live()
            except KohortError as error:
                self.world.say(f"{self} begins anew: {error!r}")
                await asyncio.sleep(0.1)
            if self._leaves:
                return

    async def _live(self) -> None:
        async with Cluster(
            self.world.bootstrap,
            self.name,
            request_timeout_ms=1_000,
            retry_backoff_ms=20,
            retry_backoff_max_ms=200,
        ) as cluster:
            await cluster.retrying(lambda: self._work.configure(cluster))
            fetches = [
                asyncio.ensure_future(self._serve(cluster, node))
                for node in self.world.brokers  # type: ignore[attr-defined]
            ]
            try:
                await self._beat(cluster)
                await asyncio.wait(fetches)
                await self._tell_left(cluster)
            finally:
                for fetch in fetches:
                    fetch.cancel()
                await asyncio.gather(*fetches, return_exceptions=True)

    # --- membership ---------------------------------------------------------------------------------------

    async def _beat(self, cluster: Cluster) -> None:
        """Join, and beat until the member is to leave; one that the group does not know joins again."""
        epoch, is_known = 0, False
        subscribed = self._choose_topics()
        while not self._leaves:
            if self.rng.random() < _RESUBSCRIBES or self.world.healed:
                before, subscribed = subscribed, self._choose_topics()
                is_known = is_known and subscribed == before
            # after an answer that did not come, all is said again, and so all is answered
            topics = None if is_known else subscribed
            is_known = False
            interval_ms = 50
            answer = await self._ask_group(cluster, epoch, topics)
            if answer is not None and answer.error_code in _LEFT:
                epoch, self.assigned = 0, frozenset()
            elif answer is not None and not answer.error_code:
                is_known = True
                epoch, interval_ms = answer.member_epoch, answer.heartbeat_interval_ms
                if answer.assignment is not None:
                    self.assigned = frozenset(
                        TopicPlace(topic.topic_id, number)
                        for topic in answer.assignment.topic_partitions
                        if topic.topic_id is not None
                        for number in topic.partitions
                    )
            if self.rng.random() < _REFRESHES:
                # so it may know another leader before the former one does
                await self._refresh(cluster)
            await asyncio.sleep(interval_ms / 1_000)

    def _choose_topics(self) -> list[str]:
        """The topics of the group, or some of them."""
        topics = list(self._work.topics)
        if self.world.healed or self.rng.random() < _ALL_TOPICS:
            return topics
        return sorted(self.rng.sample(topics, self.rng.randint(1, len(topics))))

    async def _tell_left(self, cluster: Cluster) -> None:
        for _ in range(3):
            answer = await self._ask_group(cluster, _LEAVING, None)
            if answer is not None and (not answer.error_code or answer.error_code in _LEFT):
                return
            await asyncio.sleep(_PAUSE_S)

    async def _ask_group(
        self, cluster: Cluster, epoch: int, topics: list[str] | None
    ) -> ShareGroupHeartbeatResponse | None:
        """The coordinator's answer to a heartbeat; None if there is none yet."""
        group = self._work.group
        body = ShareGroupHeartbeatRequest(group, self.member_id, epoch, None, topics)
        try:
            answer = await cluster.request_coordinator(group, body)
        except (BrokerConnectionError, KafkaError):
            return None
        error = _E(answer.error_code)
        if error in (_E.NOT_COORDINATOR, _E.COORDINATOR_NOT_AVAILABLE):
            cluster.forget_coordinator(group)
        elif error and error not in _LEFT and not error.retriable and error != _E.UNSUPPORTED_VERSION:
            self.world.found("S0", f"{self} is refused {error.name}: {answer.error_message}")
        return answer

    # --- records ------------------------------------------------------------------------------------------

    async def _serve(self, cluster: Cluster, node: int) -> None:
        """Fetch from one broker the assigned partitions that it leads."""
        session = _Session()
        while not self._leaves:
            wanted = await self._led_by(cluster, node)
            if not (wanted or session.epoch):
                await asyncio.sleep(_PAUSE_S)
                continue
            try:
                await self._fetch(cluster, node, session, wanted)
            except (BrokerConnectionError, KafkaError):
                session = _Session()
                await asyncio.sleep(_PAUSE_S)
            else:
                if not wanted:
                    # a session without partitions is answered at once
                    await asyncio.sleep(_PAUSE_S)
        if session.epoch:
            session.epoch = CLOSING_EPOCH
            said = session.take_said()
            try:
                if self.rng.random() < _CLOSES_BY_FETCH:
                    body = self._make_fetch(session, said, said)
                    await cluster.request(node, ApiKey.SHARE_FETCH, body)
                else:
                    await self._acknowledge(cluster, node, session, said)
            except (BrokerConnectionError, KafkaError):
                self.world.say(f"{self} cannot close its session at broker {node}")

    async def _fetch(
        self, cluster: Cluster, node: int, session: _Session, wanted: frozenset[TopicPlace]
    ) -> None:
        # a fetch would take the partitions that it names into the session
        if session.said and (self.rng.random() < 0.3 or session.said.keys() - wanted):
            await self._acknowledge(cluster, node, session, session.take_said())
        body, told = self._next_fetch(session, wanted)
        answer = await cluster.request(node, ApiKey.SHARE_FETCH, body)
        if answer.error_code:
            raise KafkaError(_E(answer.error_code), answer.error_message or "")
        session.epoch += 1
        lost = False
        for topic in answer.responses:
            for row in topic.partitions:
                assert topic.topic_id is not None, "it is that of the request"
                place = TopicPlace(topic.topic_id, row.partition_index)
                if place not in session.places and place not in told:
                    self.world.found("Q7", f"{self} is told of {place}, which its session has forgotten")
                lost = lost or bool(row.error_code)
                await self._work_on(cluster, node, session, place, row)
        if lost:
            await self._refresh(cluster)
            await asyncio.sleep(_PAUSE_S)

    def _names(self, cluster: Cluster) -> dict[UUID, str]:
        found = {name: cluster.topic(name) for name in self._work.topics}
        return {
            topic.topic_id: name
            for name, topic in found.items()
            if topic is not None and topic.topic_id is not None
        }

    async def _led_by(self, cluster: Cluster, node: int) -> frozenset[TopicPlace]:
        leaders = self._leaders(cluster)
        if None in leaders.values():
            await self._refresh(cluster)
            leaders = self._leaders(cluster)
        return frozenset(place for place, leader in leaders.items() if leader == node)

    def _leaders(self, cluster: Cluster) -> dict[TopicPlace, int | None]:
        names = self._names(cluster)
        return {
            place: cluster.leader(TopicPartition(names.get(place.topic_id, ""), place.number))
            for place in self.assigned
        }

    async def _refresh(self, cluster: Cluster) -> None:
        try:
            await cluster.metadata(self._work.topics)
        except KohortError:
            await asyncio.sleep(_PAUSE_S)

    def _next_fetch(
        self, session: _Session, wanted: frozenset[TopicPlace]
    ) -> tuple[ShareFetchRequest, frozenset[TopicPlace]]:
        """The next request of a session, and the partitions that it is about: what is new in it, what is
        said of records.
        """
        said = session.take_said() if session.epoch != OPENING_EPOCH else {}
        named = (wanted - session.places) | said.keys()
        forgotten = session.places - wanted
        session.places = set(wanted)
        return self._make_fetch(session, named, said, forgotten), frozenset(named)

    def _make_fetch(
        self,
        session: _Session,
        named: Iterable[TopicPlace],
        said: Mapping[TopicPlace, _Said],
        forgotten: Iterable[TopicPlace] = (),
    ) -> ShareFetchRequest:
        return ShareFetchRequest(
            self._work.group,
            self.member_id,
            session.epoch,
            max_wait_ms=_WAIT_MS,
            min_bytes=self.rng.choice(_MIN_BYTES),
            max_bytes=self.rng.choice(_MAX_BYTES),
            max_records=self.rng.choice((1, 5, 500)),
            batch_size=500,
            share_acquire_mode=self.rng.choice((0, 0, 1)),
            topics=[
                FetchTopic(
                    topic_id,
                    [FetchPartition(place.number, _batches(said.get(place, {}))) for place in places],
                )
                for topic_id, places in _by_topic(named)
            ],
            forgotten_topics_data=[
                ForgottenTopic(topic_id, [place.number for place in places])
                for topic_id, places in _by_topic(forgotten)
            ],
        )

    async def _acknowledge(
        self,
        cluster: Cluster,
        node: int,
        session: _Session,
        said: Mapping[TopicPlace, _Said],
        *,
        renews: bool = False,
    ) -> None:
        body = ShareAcknowledgeRequest(
            self._work.group,
            self.member_id,
            session.epoch,
            is_renew_ack=renews,
            topics=[
                AcknowledgeTopic(
                    topic_id,
                    [
                        AcknowledgePartition(
                            place.number, [Acknowledged(*batch) for batch in _batches(said[place])]
                        )
                        for place in places
                    ],
                )
                for topic_id, places in _by_topic(said)
            ],
        )
        answer = await cluster.request(node, ApiKey.SHARE_ACKNOWLEDGE, body)
        if answer.error_code:
            raise KafkaError(_E(answer.error_code), answer.error_message or "")
        session.epoch += 1

    async def _work_on(
        self, cluster: Cluster, node: int, session: _Session, place: TopicPlace, row: PartitionData
    ) -> None:
        """Decide about what the member has got."""
        if not row.acquired_records:
            return
        taken = [
            offset
            for acquired in row.acquired_records
            for offset in range(acquired.first_offset, acquired.last_offset + 1)
        ]
        values, empty = _read_values(bytes(row.records or b""))
        if absent := [offset for offset in taken if offset not in values and offset not in empty]:
            self.world.found("Q7", f"{self} has {absent} of {place}, and their batches were not sent")
        mine = {offset: values[offset] for offset in taken if offset in values}
        self._work.on_records(place, self._names(cluster).get(place.topic_id, ""), mine)
        if not self.world.healed:
            await self._take_time(cluster, node, session, place, list(mine))
        said = session.said.setdefault(place, {})
        for offset in taken:
            decision = self._decide() if offset in mine else _T.GAP
            if decision is not None:
                said[offset] = decision

    async def _take_time(
        self, cluster: Cluster, node: int, session: _Session, place: TopicPlace, offsets: list[int]
    ) -> None:
        if self.rng.random() < 0.3:
            await asyncio.sleep(self.rng.choice((0.01, 0.1)))
        elif self.rng.random() < _SLOW:
            renews = self.rng.random() < _RENEWS
            for _ in range(2):
                await asyncio.sleep(0.7)
                if renews and offsets:
                    said = {place: dict.fromkeys(offsets, _T.RENEW)}
                    await self._acknowledge(cluster, node, session, said, renews=True)

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
        self.epoch = OPENING_EPOCH
        self.places: set[TopicPlace] = set()
        self.said: dict[TopicPlace, _Said] = {}

    def take_said(self) -> dict[TopicPlace, _Said]:
        """What is to be said of records, which is said then."""
        said, self.said = self.said, {}
        return {place: some for place, some in said.items() if some}


def _read_values(data: bytes) -> tuple[dict[int, bytes], set[int]]:
    """The records of batches by offset, and offsets without one: of markers."""
    values: dict[int, bytes] = {}
    empty: set[int] = set()
    for position, header in iter_batches(data):
        if header.control:
            empty.update(range(header.base_offset, header.last_offset + 1))
        else:
            for offset, _, _, value in decode_records(data, header, position):
                values[offset] = bytes(value or b"")
    return values, empty


def _by_topic(places: Iterable[TopicPlace]) -> Iterator[tuple[UUID, list[TopicPlace]]]:
    for topic_id, some in groupby(sorted(places), lambda place: place.topic_id):
        yield topic_id, list(some)


def _batches(said: _Said) -> list[AcknowledgementBatch]:
    return [
        AcknowledgementBatch(offsets[0], offsets[-1], [int(said[offset]) for offset in offsets])
        for offsets in _neighbours(sorted(said))
    ]


def _neighbours(offsets: Iterable[int]) -> Iterator[list[int]]:
    """Offsets that follow each other, together."""
    for _, some in groupby(enumerate(offsets), lambda pair: pair[1] - pair[0]):
        yield [offset for _, offset in some]
