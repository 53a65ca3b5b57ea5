"""What ShareFetch and ShareAcknowledge have in common: sessions, acknowledgements, leaders (KIP-932)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol
from uuid import UUID

from ...cluster import NO_LEADER
from ...protocol import ErrorCode, KafkaError
from ...share_partitions import (
    CLOSING_EPOCH,
    MOST_ID_CHARACTERS,
    OPENING_EPOCH,
    AcknowledgedRange,
    ShareSession,
    TopicPlace,
    check_ranges,
)
from ..authorizer import Operation, ResourceType, right
from ..event_loop.time_slices import in_slices
from ..node import Node
from ..partitions.partition import Partition
from ..share.led_partition import Stored, unread
from ..share.persister import ShareKey
from ..share.share_leader import ShareLink
from ._api import AnyRequest, T
from ._guards import by_handler, whole
from ._lookup import NO_EPOCH, brokers_of, find_topic, partition_of

GROUP_RIGHT: Final = right(Operation.READ, ResourceType.GROUP, "all of it")
TOPIC_RIGHT: Final = right(Operation.READ, ResourceType.TOPIC, "each topic")


class _Batch(Protocol):
    """A range of an acknowledgement, as both requests have it."""

    @property
    def first_offset(self) -> int: ...
    @property
    def last_offset(self) -> int: ...
    @property
    def acknowledge_types(self) -> Sequence[int]: ...


class _Place(Protocol):
    @property
    def partition_index(self) -> int: ...
    @property
    def acknowledgement_batches(self) -> Sequence[_Batch]: ...


class _NamedTopic(Protocol):
    @property
    def topic_id(self) -> UUID | None: ...
    @property
    def partitions(self) -> Sequence[_Place]: ...


class MemberRequest:
    """One request of a member, and what both APIs do with it."""

    def __init__(self, node: Node, request: AnyRequest) -> None:
        """Raises KafkaError INVALID_REQUEST without a group or a member, or for a long id of a member."""
        body = request.body
        if body.group_id is None or not body.member_id or len(body.member_id) > MOST_ID_CHARACTERS:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        self.node = node
        self.request = request
        self.group: str = body.group_id
        self.member: str = body.member_id
        self.epoch: int = body.share_session_epoch

    @property
    def link(self) -> ShareLink:
        """What this request's connection has of share sessions."""
        peer = self.request.peer
        if peer.share is None:
            peer.share = ShareLink(self.node.shares)
        return peer.share

    @property
    def closes(self) -> bool:
        return self.epoch == CLOSING_EPOCH

    def session(self) -> ShareSession:
        """Return the session of this request, begun by it or before. Raises KafkaError."""
        shares = self.node.shares
        if self.epoch == OPENING_EPOCH:
            most = self.node.settings.group_share_max_share_sessions
            return shares.open_session(self.group, self.member, most, self.link)
        return shares.resume_session(self.group, self.member, self.epoch, self.link)

    def find_partition(self, place: TopicPlace) -> Partition:
        """Return a partition that this broker leads and its client may read. Raises KafkaError."""
        topic = find_topic(self.node, "", place.topic_id, by_id=True)
        # a session has more topics than its requests name
        if not self.request.allows(TOPIC_RIGHT, topic.name):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        here = self.node.logs.topic(topic.name)
        return partition_of(topic, here, place.number, known_epoch=NO_EPOCH, any_replica=False)

    async def acknowledge(
        self, topics: Iterable[_NamedTopic], *, may_renew: bool
    ) -> dict[TopicPlace, KafkaError | None]:
        """Carry out the acknowledgements of a request, and wait until they are stored. Returns the outcome
        by partition. Of a partition that is named twice the last row counts, as in Apache Kafka.
        """
        told: dict[TopicPlace, KafkaError | None] = {}
        writes: dict[TopicPlace, Stored] = {}
        async for place, batches in in_slices(dict(_places_of(topics)).items()):
            if not batches:
                continue
            ranges = [
                AcknowledgedRange(each.first_offset, each.last_offset, each.acknowledge_types)
                for each in batches
            ]
            try:
                check_ranges(ranges, may_renew=may_renew)
                write = await self._acknowledge_one(place, ranges)
            except KafkaError as error:
                told[place] = error
                continue
            told[place] = None
            if write is not None:
                writes[place] = write
        for place, write in writes.items():
            told[place] = await write
        return told

    async def _acknowledge_one(self, place: TopicPlace, ranges: Sequence[AcknowledgedRange]) -> Stored | None:
        self.find_partition(place)
        led = self.node.shares.find(ShareKey(self.group, *place))
        if led is None:
            raise unread()
        return await led.acknowledge(self.member, ranges)

    async def close(self, session: ShareSession) -> None:
        """End the session: what the member has is free for others when this returns."""
        released = self.node.shares.close_session(session)
        if released:
            await asyncio.wait(released)

    def leader_of(self, place: TopicPlace) -> tuple[int, int]:
        """Return node id and epoch of a partition's leader; -1 and -1 if they are not known."""
        topic = self.node.image.topic_by_id(place.topic_id)
        if topic is None or place.number >= len(topic.partitions):
            return NO_LEADER, NO_EPOCH
        state = topic.partitions[place.number]
        return state.leader, state.leader_epoch

    def endpoints_of(self, leaders: Iterable[int]) -> list[tuple[int, str, int, str | None]]:
        """Return node id, host, port and rack of live brokers among these."""
        wanted = set(leaders)
        return [
            (broker.node_id, host, port, broker.rack)
            for broker, host, port in brokers_of(self.node, self.request)
            if broker.node_id in wanted
        ]


def _places_of(topics: Iterable[_NamedTopic]) -> Iterable[tuple[TopicPlace, Sequence[_Batch]]]:
    for topic in topics:
        for one in topic.partitions:
            yield TopicPlace(topic.topic_id or NO_TOPIC, one.partition_index), one.acknowledgement_batches


#: The id that no topic has, which a message has as null.
NO_TOPIC: Final = UUID(int=0)


def lock_ms(request: MemberRequest) -> int:
    """How long the locks of the request's group last, in ms."""
    return request.node.shares.rules_of(request.group).limits.lock_ms


def by_topic(rows: Mapping[TopicPlace, T]) -> dict[UUID, list[T]]:
    """Return the rows of a response by topic, in their order."""
    topics: dict[UUID, list[T]] = {}
    for place, row in rows.items():
        topics.setdefault(place.topic_id, []).append(row)
    return topics


GUARD: Final = whole(GROUP_RIGHT, field="group_id", then=by_handler(TOPIC_RIGHT))
