"""A broker that has something of everything, and requests to it as bytes."""

from __future__ import annotations

import asyncio
import struct
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

from kohort.broker import Broker
from kohort.broker.assembly import BrokerAssembly
from kohort.broker.authorizer import Acl, Operation, PatternType, Permission, ResourceType
from kohort.broker.node import Node
from kohort.cluster import MetadataStore
from kohort.protocol import ApiKey, ErrorCode, decode_response, encode_request
from kohort.protocol.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from kohort.testing.memory_store import MemoryHome
from tests.broker.wire import batch, creatable, produce_fields
from tests.limits.full_requests import KNOWN, KNOWN_NEXT
from tests.messages import request_of

PARTITIONS: Final = 20
PRODUCERS: Final = 50
RULES: Final = 100

#: How long a request may go unanswered until its client leaves, in seconds.
PATIENCE_S: Final = 60.0

_SETTINGS: Final[dict[str, Any]] = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
    "auto.create.topics.enable": False,
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.num.partitions": 1,
    "transaction.state.log.replication.factor": 1,
}

#: While the coordinators begin.
_NOT_YET: Final = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)


class PreparedBroker:
    """``port`` is where it listens, ``topic_id`` the id of its topic."""

    def __init__(self, broker: Broker) -> None:
        self.port = broker.port
        self.parts: BrokerAssembly = broker._require_running()
        self.node: Node = self.parts.node
        self.topic_id: uuid.UUID | None = None

    async def ask(self, frame: bytes) -> bytes:
        """The answer to a request on a connection of its own, empty if there is none."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(frame)
        try:
            async with asyncio.timeout(PATIENCE_S):
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                return await reader.readexactly(size)
        except (TimeoutError, asyncio.IncompleteReadError, ConnectionError):
            return b""
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def call(self, key: ApiKey, version: int, /, **fields: Any) -> Any:
        """The body of the answer to a request."""
        frame = encode_request(version, 7, KNOWN, request_of(key)(version=version, **fields))
        return decode_response(key, version, await self.ask(bytes(frame)))[1]

    async def fill(self) -> None:
        """Make what there is not: rules, a topic with producers, groups, a transactional id."""
        await self._add_rules()
        created = await self.call(
            ApiKey.CREATE_TOPICS, 7, topics=[creatable(KNOWN, PARTITIONS)], timeout_ms=1_000
        )
        if not created.topics[0].error_code:
            for number in range(PRODUCERS):
                records = batch(producer_id=1_000 + number, producer_epoch=0, base_sequence=0)
                await self._until_done(ApiKey.PRODUCE, 9, **produce_fields(KNOWN, records))
        (known,) = (await self.call(ApiKey.METADATA, 12, topics=[{"name": KNOWN}])).topics
        self.topic_id = known.topic_id
        for kind in (0, 1):
            await self.call(ApiKey.FIND_COORDINATOR, 4, key_type=kind, coordinator_keys=[KNOWN])
        await self._until_done(
            ApiKey.INIT_PRODUCER_ID,
            4,
            transactional_id=KNOWN,
            transaction_timeout_ms=10_000,
            producer_id=-1,
            producer_epoch=-1,
        )
        rows = [OffsetCommitRequestPartition(number, 1) for number in range(PARTITIONS)]
        await self._until_done(
            ApiKey.OFFSET_COMMIT,
            8,
            group_id=KNOWN,
            generation_id_or_member_epoch=-1,
            topics=[OffsetCommitRequestTopic(KNOWN, partitions=rows)],
        )
        await self._until_done(
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            1,
            group_id=KNOWN_NEXT,
            member_id=KNOWN_NEXT,
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=[KNOWN],
            topic_partitions=[],
        )

    async def _add_rules(self) -> None:
        """Everybody may do everything with what begins with the known name, and with the cluster."""
        assert self.node.authorizer is not None
        anyone = ("User:ANONYMOUS", "*", Operation.ALL, Permission.ALLOW)
        kinds = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
        rules = [Acl(kind, KNOWN, PatternType.PREFIXED, *anyone) for kind in kinds]
        cluster = Acl(ResourceType.CLUSTER, "kafka-cluster", PatternType.LITERAL, *anyone)
        others = [
            cluster._replace(resource_type=ResourceType.TOPIC, name=f"t{number}", principal="User:bob")
            for number in range(RULES)
        ]
        await self.node.authorizer.create([*rules, cluster, *others])

    async def _until_done(self, key: ApiKey, version: int, **fields: Any) -> None:
        for _ in range(500):
            answer = await self.call(key, version, **fields)
            if not (_errors(answer) & set(_NOT_YET)):
                assert _errors(answer) <= {0}, answer
                return
            await asyncio.sleep(0.01)
        raise AssertionError(answer)


def _errors(message: Any) -> set[int]:
    """All error codes in an answer."""
    if isinstance(message, list):
        return set().union(*map(_errors, message))
    if not hasattr(message, "_fields"):
        return set()
    own = {int(message.error_code)} if hasattr(message, "error_code") else set()
    return own.union(*map(_errors, message))


@asynccontextmanager
async def prepared_broker(
    data: Path,
    *,
    filled: bool = True,
    in_cluster: bool = False,
    settings: Mapping[str, Any] | None = None,
) -> AsyncIterator[PreparedBroker]:
    """A running broker with access rules; ``in_cluster``: with metadata that could be shared."""
    home = MemoryHome()

    async def open_store() -> MetadataStore:
        return home.open()

    broker = Broker(
        port=0,
        data=data,
        settings={**_SETTINGS, **(settings or {})},
        open_store=open_store if in_cluster else None,
    )
    async with broker:
        made = PreparedBroker(broker)
        if filled:
            await made.fill()
        yield made
