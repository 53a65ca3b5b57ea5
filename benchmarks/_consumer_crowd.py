"""A consumer group (KIP-848) of many members in one process, who do as Apache Kafka's client: a heartbeat at
once when their partitions have changed, else at the interval.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from kohort.protocol import ApiKey, decode_response, encode_request
from kohort.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

from ._connection import Connection, must
from ._peers import Doing, Peer, Peers

VERSION = 1
REBALANCE_TIMEOUT_MS = 300_000
_LEAVING = -1


class ConsumerPeer(Peer):
    """One member: its epoch, the partitions it has, and whether it has yet to say that it has them."""

    __slots__ = ("epoch", "has", "tells")

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.epoch = 0
        self.has: Sequence[TopicPartitions] = ()
        self.tells = False

    @property
    def load(self) -> int:
        """Its number of partitions."""
        return sum(len(topic.partitions) for topic in self.has)


class ConsumerCrowd(Peers[ConsumerPeer]):
    """The members of one group that reads one topic."""

    def __init__(
        self,
        bootstrap: str,
        group: bytes,
        topic: bytes,
        partitions: int,
        heartbeat_s: float,
        patience_s: float,
    ) -> None:
        super().__init__(bootstrap, heartbeat_s, patience_s)
        self._group, self._topic, self._partitions = group.decode(), topic.decode(), partitions
        #: What the group's epoch is after all joins and leaves: it begins at 1, and each is one more.
        self._epoch = 1
        self._names = 0
        self._told: set[int] = set()
        self._loads = 0
        self._arrived: set[ConsumerPeer] = set()

    @property
    def rounds(self) -> int:
        """How many epochs members were told: each is an assignment."""
        return len(self._told)

    def _all_assigned(self) -> bool:
        return len(self._arrived) == len(self._active) and self._loads == self._partitions

    def _new_peer(self, connection: Connection) -> ConsumerPeer:
        return ConsumerPeer(connection)

    def _join(self, peer: ConsumerPeer) -> None:
        if not peer.member_id:
            self._names += 1
            self._change_epoch()
            peer.member_id = b"m%07d" % self._names
        request = self._request(peer, REBALANCE_TIMEOUT_MS, [self._topic], [])
        self._send(peer, Doing.JOINING, request)

    def _leave(self, peer: ConsumerPeer) -> None:
        self._active.remove(peer)
        self._change_epoch()
        self._loads -= peer.load
        peer.epoch = _LEAVING
        self._send(peer, Doing.LEAVING, self._request(peer))

    def _beat(self, peer: ConsumerPeer, now: float) -> None:
        peer.late = False
        self._schedule(peer, now)
        has = peer.has if peer.tells else None
        peer.tells = False
        self._send(peer, Doing.BEATING, self._request(peer, has=has))

    def _answered(self, peer: ConsumerPeer, data: bytes) -> None:
        _, told = decode_response(ApiKey.CONSUMER_GROUP_HEARTBEAT, VERSION, data[4:])
        assert isinstance(told, ConsumerGroupHeartbeatResponse)
        must("ConsumerGroupHeartbeat", told.error_code)
        if peer.doing is Doing.LEAVING:
            self._replace(peer)
            return
        self._learn(peer, told)
        if peer.ends:
            self._leave(peer)
            return
        now = time.perf_counter()
        if peer.tells or peer.late:
            self._beat(peer, now)
        else:
            if peer.doing is Doing.JOINING:
                self._schedule(peer, now)
            peer.doing = Doing.IDLE

    def _learn(self, peer: ConsumerPeer, told: ConsumerGroupHeartbeatResponse) -> None:
        if told.assignment is not None:
            self._loads -= peer.load
            peer.has, peer.tells = told.assignment.topic_partitions, True
            self._loads += peer.load
            self._settled_s = time.perf_counter()
        if told.member_epoch != peer.epoch:
            peer.epoch = told.member_epoch
            self._told.add(told.member_epoch)
            if peer.epoch == self._epoch:
                self._arrived.add(peer)
                self._settled_s = time.perf_counter()

    def _change_epoch(self) -> None:
        self._epoch += 1
        self._arrived.clear()

    def _request(
        self,
        peer: ConsumerPeer,
        timeout_ms: int = -1,
        topics: list[str] | None = None,
        has: Sequence[TopicPartitions] | None = None,
    ) -> bytes:
        request = ConsumerGroupHeartbeatRequest(
            self._group,
            peer.member_id.decode(),
            peer.epoch,
            rebalance_timeout_ms=timeout_ms,
            subscribed_topic_names=topics,
            topic_partitions=has,
        )
        return bytes(encode_request(VERSION, 0, "benchmark", request))
