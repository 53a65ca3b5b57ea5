"""Members of a share group that outlive whatever happens to brokers: one of kohort's requests, and
confluent-kafka's.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import groupby
from typing import Any
from uuid import UUID

from confluent_kafka import AcknowledgeType, KafkaException, ShareConsumer

from kohort.client.cluster import Cluster
from kohort.client.pool import Channel
from kohort.protocol import ApiKey, ErrorCode, KohortError, TopicPartition
from kohort.protocol.messages import share_acknowledge, share_fetch
from kohort.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.torture.share_ledger import ACCEPT, REJECT, RELEASE, Place, ShareLedger

_PAUSE_S = 0.05
_WAIT_MS = 500
_NODES = (1, 2, 3)
#: The longest time that a request of confluent-kafka's may be old when its records are given to the program.
_STALE_S = 15.0
_LEFT = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND)

#: What a member says of a record, by how often it was given; None: nothing, and its lock ends.
Decide = Callable[[random.Random, int], "int | None"]
#: Offsets with what is said of them, and their delivery counts.
_Said = dict[int, tuple[int, int]]


def decide_drawn(rng: random.Random, count: int) -> int | None:
    """Mostly accept; a record that was given often is accepted, so that few reach the limit."""
    draw = rng.random()
    if count > 2 or draw < 0.7:
        return ACCEPT
    return RELEASE if draw < 0.85 else REJECT if draw < 0.95 else None


def accept_all(_rng: random.Random, _count: int) -> int | None:
    return ACCEPT


class WireMember:
    """One task beats, one for each broker fetches and acknowledges."""

    def __init__(self, bootstrap: str, group: str, topic: str, ledger: ShareLedger, seed: int) -> None:
        self.decide: Decide = decide_drawn
        self._bootstrap, self._group, self._topic, self._ledger = bootstrap, group, topic, ledger
        self._rng = random.Random(seed)
        self._id = f"wire-{uuid.uuid4().hex[:8]}"
        self._assigned: frozenset[int] = frozenset()
        #: By broker: the epoch of the session there, and its partitions.
        self.sessions: dict[int, tuple[int, list[int]]] = {}
        self._task = asyncio.create_task(self._run())

    def __str__(self) -> str:
        return f"{self._id} {sorted(self._assigned)} {self.sessions}"

    async def end(self) -> None:
        """As kill -9: its connections break."""
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    def check(self) -> None:
        """Raise what has ended it."""
        if self._task.done():
            self._task.result()

    async def _run(self) -> None:
        async with (
            Cluster(
                self._bootstrap, request_timeout_ms=5_000, retry_backoff_ms=20, retry_backoff_max_ms=200
            ) as cluster,
            asyncio.TaskGroup() as tasks,
        ):
            tasks.create_task(self._beat(cluster))
            for node in _NODES:
                tasks.create_task(self._serve(cluster, node))

    async def _beat(self, cluster: Cluster) -> None:
        epoch, is_known = 0, False
        while True:
            topics = None if is_known else [self._topic]
            is_known = False
            try:
                answer = await cluster.request_coordinator(
                    self._group, ShareGroupHeartbeatRequest(self._group, self._id, epoch, None, topics)
                )
            except KohortError:
                cluster.forget_coordinator(self._group)
                await asyncio.sleep(_PAUSE_S)
                continue
            if answer.error_code in _LEFT:
                epoch, self._assigned = 0, frozenset()
            elif answer.error_code:
                cluster.forget_coordinator(self._group)
                await asyncio.sleep(_PAUSE_S)
            else:
                epoch, is_known = answer.member_epoch, True
                if answer.assignment is not None:
                    given = answer.assignment.topic_partitions
                    self._assigned = frozenset(index for topic in given for index in topic.partitions)
                await asyncio.sleep(answer.heartbeat_interval_ms / 1_000)

    async def _serve(self, cluster: Cluster, node: int) -> None:
        session = _Session()
        while True:
            self.sessions[node] = (session.epoch, sorted(session.partitions))
            topic = cluster.topic(self._topic)
            wanted = await self._led_by(cluster, node)
            if topic is None or topic.topic_id is None or not (wanted or session.partitions):
                await asyncio.sleep(_PAUSE_S)
                continue
            lost = await self._fetch(cluster, node, session, topic.topic_id, wanted)
            if not lost and session.said and self._rng.random() < 0.5:
                lost = await self._acknowledge(cluster, node, session, topic.topic_id)
            if lost:
                if lost is _BROKEN:
                    session = _Session()
                await self._refresh(cluster)
                await asyncio.sleep(_PAUSE_S)

    async def _led_by(self, cluster: Cluster, node: int) -> set[int]:
        if any(cluster.leader(TopicPartition(self._topic, index)) is None for index in self._assigned):
            await self._refresh(cluster)
        return {
            index for index in self._assigned if cluster.leader(TopicPartition(self._topic, index)) == node
        }

    async def _refresh(self, cluster: Cluster) -> None:
        try:
            await cluster.metadata([self._topic])
        except KohortError:
            await asyncio.sleep(_PAUSE_S)

    async def _fetch(
        self, cluster: Cluster, node: int, session: _Session, topic_id: UUID, wanted: set[int]
    ) -> str:
        said, session.said = session.said, {}
        named = sorted((wanted - session.partitions) | said.keys())
        forgotten = sorted(session.partitions - wanted)
        session.partitions = set(wanted)
        topics = [
            share_fetch.FetchPartition(index, _batches(said.get(index, {}), share_fetch)) for index in named
        ]
        body = share_fetch.ShareFetchRequest(
            self._group,
            self._id,
            session.next_epoch(),
            max_wait_ms=_WAIT_MS,
            min_bytes=1,
            max_records=self._rng.choice((1, 5, 500)),
            batch_size=500,
            share_acquire_mode=self._rng.choice((0, 1)),
            topics=[share_fetch.FetchTopic(topic_id, topics)] if topics else (),
            forgotten_topics_data=[share_fetch.ForgottenTopic(topic_id, forgotten)] if forgotten else (),
        )
        asked_at = time.monotonic()
        # it may be carried out, also if this member ends before its answer
        self._note(said, {})
        rows = await self._ask(cluster, node, body)
        self._note(said, {} if rows is None else {row.partition_index: row for row in rows})
        if rows is None:
            return _BROKEN
        for row in rows:
            if row.error_code:
                session.partitions.discard(row.partition_index)
            for acquired in row.acquired_records:
                self._take(session, row.partition_index, acquired, asked_at)
        return _MOVED if any(row.error_code or row.acknowledge_error_code for row in rows) else ""

    async def _acknowledge(self, cluster: Cluster, node: int, session: _Session, topic_id: UUID) -> str:
        said, session.said = session.said, {}
        topics = [
            share_acknowledge.AcknowledgePartition(index, _batches(some, share_acknowledge))
            for index, some in sorted(said.items())
        ]
        body = share_acknowledge.ShareAcknowledgeRequest(
            self._group,
            self._id,
            session.next_epoch(),
            topics=[share_acknowledge.AcknowledgeTopic(topic_id, topics)],
        )
        # it may be carried out, also if this member ends before its answer
        self._note(said, {})
        rows = await self._ask(cluster, node, body)
        self._note(said, {} if rows is None else {row.partition_index: row for row in rows})
        if rows is None:
            return _BROKEN
        return _MOVED if any(row.error_code for row in rows) else ""

    async def _ask(self, cluster: Cluster, node: int, body: Any) -> list[Any] | None:
        """The rows of an answer; None if there is none, or an error instead."""
        try:
            # heartbeats do not wait behind an acknowledgement that is long in coming
            answer = await cluster.request(node, ApiKey(body.API_KEY), body, channel=Channel.DATA)
        except KohortError:
            return None
        if answer.error_code:
            return None
        return [row for topic in answer.responses for row in topic.partitions]

    def _note(self, said: dict[int, _Said], rows: dict[int, Any]) -> None:
        """Note what became of acknowledgements."""
        for index, offsets in said.items():
            row = rows.get(index)
            code = -1 if row is None else getattr(row, "acknowledge_error_code", row.error_code)
            for offset, (kind, count) in offsets.items():
                self._ledger.say(Place(index, offset), kind, count, is_stored=code == 0)

    def _take(self, session: _Session, index: int, acquired: Any, asked_at: float) -> None:
        for offset in range(acquired.first_offset, acquired.last_offset + 1):
            self._ledger.give(self._id, Place(index, offset), acquired.delivery_count, asked_at)
            kind = self.decide(self._rng, acquired.delivery_count)
            if kind is not None:
                session.said.setdefault(index, {})[offset] = kind, acquired.delivery_count


#: Why a member has to ask where partitions are: its session is over, or one of them has moved.
_BROKEN, _MOVED = "broken", "moved"


class _Session:
    """A share session at one broker, and what is to be said there."""

    def __init__(self) -> None:
        self.epoch = -1
        self.partitions: set[int] = set()
        self.said: dict[int, _Said] = {}

    def next_epoch(self) -> int:
        self.epoch += 1
        return self.epoch


def _batches(said: _Said, messages: Any) -> list[Any]:
    return [
        messages.AcknowledgementBatch(offsets[0], offsets[-1], [said[offset][0] for offset in offsets])
        for offsets in _neighbours(sorted(said))
    ]


def _neighbours(offsets: Iterable[int]) -> Iterator[list[int]]:
    """Offsets that follow each other, together."""
    for _, some in groupby(enumerate(offsets), lambda pair: pair[1] - pair[0]):
        yield [offset for _, offset in some]


class ConfluentMember:
    """confluent-kafka's ShareConsumer in a thread; it says something of every record."""

    def __init__(self, bootstrap: str, group: str, topic: str, ledger: ShareLedger, seed: int) -> None:
        self.decide: Decide = decide_drawn
        self._ledger = ledger
        self._rng = random.Random(seed)
        self._topic = topic
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self._polled_at = time.monotonic()
        self._consumer = ShareConsumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "share.acknowledgement.mode": "explicit",
                "socket.timeout.ms": 10_000,
                "topic.metadata.refresh.interval.ms": 1_000,
                "log_level": 0,
            }
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __str__(self) -> str:
        return f"confluent's, which polled {time.monotonic() - self._polled_at:.1f} s ago"

    async def end(self) -> None:
        """Leave the group."""
        self._stopping.set()
        await asyncio.to_thread(self._thread.join)

    def check(self) -> None:
        """Raise what has ended it."""
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            self._consumer.subscribe([self._topic])
            while not self._stopping.is_set():
                self._poll()
            self._consumer.close()
        except BaseException as error:
            self._failure = error

    def _poll(self) -> None:
        said: dict[int, _Said] = {}
        self._polled_at = time.monotonic()
        for record in self._consumer.poll(0.5):
            if record.error() is not None:
                continue
            index, offset, count = record.partition(), record.offset(), record.delivery_count()
            self._ledger.give("confluent", Place(index, offset), count, time.monotonic() - _STALE_S)
            kind = self.decide(self._rng, count) or RELEASE
            self._consumer.acknowledge(record, AcknowledgeType(kind))
            said.setdefault(index, {})[offset] = kind, count
        if not said:
            return
        try:
            told = {place.partition: error for place, error in self._consumer.commit_sync(10.0).items()}
        except KafkaException:
            told = {}
        for index, offsets in said.items():
            is_stored = index in told and told[index] is None
            for offset, (kind, count) in offsets.items():
                self._ledger.say(Place(index, offset), kind, count, is_stored=is_stored)
