"""A topic that grows, and the share group that reads it, through whatever happens to the brokers."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from types import TracebackType
from typing import TypeAlias

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError as ClientError

from kohort.client.cluster import Cluster
from kohort.client.waiting import Backoff
from kohort.protocol import ApiKey, ErrorCode, KafkaError, KohortError
from kohort.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kohort.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from kohort.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.torture.share_consumer import DESCRIBE, ConsumerProcess
from tests.torture.share_described import describe_group
from tests.torture.share_ledger import Place, ShareLedger
from tests.torture.share_members import ConfluentMember, WireMember, accept_all

QUEUE, TOPIC = "queue", "jobs"
PARTITIONS = 3
_LIMIT = 5
_GROUP_RESOURCE, _SET = 32, 0
_PATIENCE_S = 60.0
#: How many records are produced at a time now and then, and how likely that is each time.
_BURST, _BURSTS = 300, 0.003
#: Seconds between two records of a partition; the second with ``--soak``.
PACE_S, SOAKED_PACE_S = 0.02, 0.005

Member: TypeAlias = WireMember | ConfluentMember | ConsumerProcess

#: Of brokers: heartbeats, locks and sessions are short.
SHARE_SETTINGS = {
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "200",
    "group.share.min.session.timeout.ms": "1000",
    "group.share.session.timeout.ms": "5000",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": "3000",
    "share.coordinator.state.topic.num.partitions": "3",
}


class ShareTraffic:
    """A producer of each partition, and members of the group: ``wire`` ones, ``confluent`` ones, and
    processes with the share consumer as it ships, ``consumers``. The topic has so many ``replicas``.
    """

    def __init__(
        self,
        bootstrap: str,
        *,
        wire: int = 3,
        confluent: int = 0,
        consumers: int = 0,
        replicas: int = 3,
        seed: int = 1,
        pace_s: float = PACE_S,
    ) -> None:
        self.ledger = ShareLedger(_LIMIT)
        self.produced: set[Place] = set()
        self._bootstrap = bootstrap
        self._counts = wire, confluent, consumers
        self._replicas = replicas
        self._pace_s = pace_s
        self._rng = random.Random(seed)
        self._members: list[Member] = []
        self._enough = asyncio.Event()

    async def __aenter__(self) -> ShareTraffic:
        self._cluster = Cluster(self._bootstrap, request_timeout_ms=10_000)
        await self._cluster.connect()
        await self._prepare()
        self._sender = AIOKafkaProducer(
            bootstrap_servers=self._bootstrap,
            # a batch that is given up would leave a gap in the sequence numbers
            acks="all",
            request_timeout_ms=10_000,
            retry_backoff_ms=50,
            metadata_max_age_ms=1_000,
        )
        await self._sender.start()
        self._tasks = [asyncio.create_task(self._send(index)) for index in range(PARTITIONS)]
        wire, confluent, consumers = self._counts
        self._members += [self._make(WireMember) for _ in range(wire)]
        self._members += [self._make(ConfluentMember) for _ in range(confluent)]
        self._members += [self._make(ConsumerProcess) for _ in range(consumers)]
        return self

    def _make(self, make: type[Member]) -> Member:
        return make(self._bootstrap, QUEUE, TOPIC, self.ledger, self._rng.getrandbits(32))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        for member in self._members:
            await member.end()
        await self._sender.stop()
        await self._cluster.close()

    async def _prepare(self) -> None:
        """Create the topic, and have the group begin with the first record."""
        cluster = self._cluster
        configs = [CreatableTopicConfig("min.insync.replicas", str(max(1, self._replicas - 1)))]
        topic = CreatableTopic(TOPIC, PARTITIONS, self._replicas, configs=configs)

        async def create() -> None:
            # the controller may not know of all brokers so far
            (made,) = (
                await cluster.request(None, ApiKey.CREATE_TOPICS, CreateTopicsRequest([topic], 10_000))
            ).topics
            if made.error_code == ErrorCode.INVALID_REPLICATION_FACTOR:
                raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, str(made))
            assert not made.error_code, made

        await cluster.retrying(create, timeout_ms=_PATIENCE_S * 1_000)
        row = AlterableConfig("share.auto.offset.reset", _SET, "earliest")
        change = IncrementalAlterConfigsRequest(
            [AlterConfigsResource(_GROUP_RESOURCE, QUEUE, [row])], validate_only=False
        )
        altered = await cluster.request(None, ApiKey.INCREMENTAL_ALTER_CONFIGS, change)
        assert [each.error_code for each in altered.responses] == [0], altered

    async def _send(self, partition: int) -> None:
        while not self._enough.is_set():
            # many at a time, so that members get more than they soon handle
            count = _BURST if self._rng.random() < _BURSTS else 1
            await asyncio.gather(*(self._send_one(partition) for _ in range(count)))
            await asyncio.sleep(self._pace_s)

    async def _send_one(self, partition: int) -> None:
        # one that is given up, when no broker was there for long, may be stored: it is not waited for
        with suppress(ClientError):
            sent = await self._sender.send_and_wait(TOPIC, b"x" * 100, partition=partition)
            self.produced.add(Place(sent.partition, sent.offset))

    async def replace_member(self, member: Member | None = None) -> None:
        """A member, or one of those of ours, ends as by kill -9, and another one comes."""
        ours = [each for each in self._members if not isinstance(each, ConfluentMember)]
        member = member or self._rng.choice(ours)
        await member.end()
        self._members.remove(member)
        self._members.append(self._make(type(member)))

    def consumers(self) -> list[ConsumerProcess]:
        """The processes with the share consumer."""
        return [each for each in self._members if isinstance(each, ConsumerProcess)]

    async def replace_closed(self, member: ConsumerProcess) -> None:
        """A process closes its consumer in good order, and another one comes."""
        await member.close()
        self._members.remove(member)
        self._members.append(self._make(ConsumerProcess))

    async def goes_on(self, count: int = 100, *, but: Collection[int] = ()) -> float:
        """Wait until so many more records are produced, and so many more are done, some of each partition
        ``but`` those that need not go on; the seconds it took.
        """
        begun, before = time.monotonic(), self._done()
        enough = len(self.produced) + count, sum(before) + count

        def is_met() -> bool:
            done = self._done()
            each = all(done[one] > before[one] for one in range(PARTITIONS) if one not in but)
            return each and len(self.produced) >= enough[0] and sum(done) >= enough[1]

        await self._until(is_met)
        return time.monotonic() - begun

    async def partition_goes_on(self, partition: int, count: int = 20) -> float:
        """Wait until so many more records of a partition are done; the seconds it took."""
        begun, enough = time.monotonic(), self._done()[partition] + count
        await self._until(lambda: self._done()[partition] >= enough)
        return time.monotonic() - begun

    def _done(self) -> list[int]:
        """How many records of each partition are answered as done."""
        return [self.ledger.done_of[partition] for partition in range(PARTITIONS)]

    def _produced(self) -> list[int]:
        """How many records of each partition were produced."""
        counts = Counter(place.partition for place in self.produced)
        return [counts[partition] for partition in range(PARTITIONS)]

    async def _until(self, is_met: Callable[[], bool]) -> None:
        begun, before = time.monotonic(), (self._produced(), self._done())
        while not is_met():
            self._check_members()
            if time.monotonic() - begun > _PATIENCE_S:
                now = self._produced(), self._done()
                raise AssertionError(f"{before} produced and done, now {now}\n{await self._describe()}")
            await asyncio.sleep(0.05)

    async def _describe(self) -> str:
        """What members and brokers have."""
        for member in self.consumers():
            member.tell(DESCRIBE)
        described = await describe_group(self._cluster, QUEUE, TOPIC)
        ours = "\n".join(map(str, self._members))
        return f"{described}\nours are:\n{ours}"

    def _check_members(self) -> None:
        assert not self.ledger.broken, self.ledger.broken[:10]
        for task in self._tasks:
            if task.done():
                task.result()
        for member in self._members:
            member.check()

    async def check(self) -> None:
        """Produce no more, and have everything accepted; nothing is left, nothing was lost or came back."""
        self._enough.set()
        await asyncio.gather(*self._tasks)
        for member in self._members:
            member.decide = accept_all
        backoff = Backoff(200, 500)
        lags: dict[int, int] = {}
        begun = time.monotonic()
        while lags != dict.fromkeys(range(PARTITIONS), 0):
            if time.monotonic() - begun > _PATIENCE_S:
                raise AssertionError(f"the group does not come to its end: {lags}; {await self._describe()}")
            self._check_members()
            await asyncio.sleep(backoff.delay_ms(3) / 1_000)
            lags = await self._read_lags()
        # the last answers may be on their way
        while self._is_open() and time.monotonic() - begun < _PATIENCE_S:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        self._check_members()
        twice = self.ledger.handled_twice()
        assert not twice, f"{len(twice)}: {twice[:5]}"
        lost = self.ledger.lost(self.produced)
        assert not lost, f"{len(lost)} records, as {[(one, self.ledger.fates.get(one)) for one in lost[:5]]}"

    def _is_open(self) -> bool:
        return bool(self.ledger.lost(self.produced) or self.ledger.handled_twice())

    async def _read_lags(self) -> dict[int, int]:
        """How many records of each partition are not done, as far as a broker tells."""
        asked = DescribeShareGroupOffsetsRequest([DescribeShareGroupOffsetsRequestGroup(QUEUE, None)])
        try:
            answer = await self._cluster.request_coordinator(QUEUE, asked)
        except KohortError:
            return {}
        (group,) = answer.groups
        if group.error_code:
            self._cluster.forget_coordinator(QUEUE)
        return {
            row.partition_index: row.lag
            for topic in group.topics
            for row in topic.partitions
            if not row.error_code
        }

    def summary(self) -> str:
        """What has happened, in numbers."""
        ledger = self.ledger
        unknown = sum(fate.done_at is None and fate.maybe_done for fate in ledger.fates.values())
        ends = Counter(str(handling.end) for handling in ledger.handlings())
        return (
            f"{len(self.produced)} records, {ledger.deliveries} deliveries, {ledger.done} answered as done, "
            f"{unknown} of which the answer did not come{f'; share consumers: {dict(ends)}' if ends else ''}"
        )
