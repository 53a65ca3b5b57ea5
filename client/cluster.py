"""A Kafka cluster as its client sees it: metadata, connections, coordinators, retries.

Consumers, Spark and tools send every request through :class:`Cluster`. It implements what each request needs;
the requests themselves are functions in ``offsets``, ``fetch`` and ``requests``, many of them its methods.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Self, TypeVar
from uuid import UUID

from ..protocol import (
    MAX_FRAME_BYTES,
    ApiKey,
    ErrorCode,
    KafkaError,
    RequestBody,
    TopicPartition,
    UnsupportedVersionError,
    api_key_of,
)
from ..protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from . import fetch, offsets, requests
from .connection import Connection
from .errors import (
    AuthenticationError,
    BrokerConnectionError,
    ConsumerClosedError,
    ResponseTooLargeError,
)
from .metadata import Address, ClusterMetadata, Node, TopicMetadata, parse_bootstrap
from .outages import Outages
from .pool import Channel, ConnectionPool
from .sasl import Sasl
from .surroundings import SURROUNDINGS
from .tokens import Tokens
from .waiting import Backoff

T = TypeVar("T")

_E = ErrorCode
_MOVED = (_E.COORDINATOR_NOT_AVAILABLE, _E.NOT_COORDINATOR, _E.REQUEST_TIMED_OUT)
_COORDINATOR_CODES = frozenset((_E.COORDINATOR_LOAD_IN_PROGRESS, *_MOVED))

#: With more leaders than this, connections for fetching are not opened in advance.
_MOST_PREPARED = 8


class Cluster:
    """An asyncio client for one cluster. ``async with Cluster("localhost:9092") as cluster: ...``

    ``request_timeout_ms`` limits one request, ``default_api_timeout_ms`` a call with all its retries. Calls
    raise BrokerConnectionError if no broker could be reached in that time, AuthenticationError if a broker
    refuses this client, and KafkaError for an error code that is not retriable. All times are in
    milliseconds.
    """

    def __init__(
        self,
        bootstrap: str | Iterable[str],
        client_id: str = "kohort",
        *,
        request_timeout_ms: int = 30_000,
        default_api_timeout_ms: int = 60_000,
        connect_timeout_ms: int = 10_000,
        retry_backoff_ms: int = 100,
        retry_backoff_max_ms: int = 1_000,
        reconnect_backoff_ms: int = 50,
        reconnect_backoff_max_ms: int = 1_000,
        ssl_context: ssl.SSLContext | None = None,
        sasl: Sasl | None = None,
        max_frame_bytes: int = MAX_FRAME_BYTES,
    ) -> None:
        self.client_id = client_id
        self.request_timeout_ms = request_timeout_ms
        self.default_api_timeout_ms = default_api_timeout_ms
        self._bootstrap = parse_bootstrap(bootstrap)
        self._state = ClusterMetadata()
        self._coordinators: dict[tuple[str, int], Node] = {}
        #: Finalized feature levels (KIP-584) by name, from the broker that was connected to last.
        self.features: dict[str, int] = {}
        around = SURROUNDINGS.get()
        self._rng = around.make_random()
        self._backoff = Backoff(retry_backoff_ms, retry_backoff_max_ms, rng=self._rng)
        provider = None if sasl is None else sasl.token_provider
        self._tokens = None if provider is None else Tokens(provider)

        async def open_connection(address: Address) -> Connection:
            with self._outages.connecting(address):
                connection = await around.open_connection(
                    address,
                    client_id=client_id,
                    timeout_ms=connect_timeout_ms,
                    ssl_context=ssl_context,
                    sasl=sasl,
                    ask_token=None if self._tokens is None else self._tokens.ask,
                    max_frame_bytes=max_frame_bytes,
                )
            self.features = connection.features
            return connection

        self._pool = ConnectionPool(
            open_connection, Backoff(reconnect_backoff_ms, reconnect_backoff_max_ms, rng=self._rng)
        )
        self._outages = Outages(client_id)
        self._closed = False
        #: Called with each AuthenticationError, after which a retry cannot help.
        self.refused: Callable[[AuthenticationError], None] = lambda _: None
        #: The error for which a request was last retried.
        self.last_failure: Exception | None = None

    def __repr__(self) -> str:
        known = f"{len(self._state.nodes)} nodes, {len(self._state.topics)} topics"
        return f"Cluster({','.join(map(str, self._bootstrap))}, {known}, {self._pool!r})"

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def connect(self, timeout_ms: float | None = None, topics: Iterable[str] = ()) -> None:
        """Connect to a bootstrap broker and request the list of brokers and the metadata of ``topics``.

        ``timeout_ms`` defaults to ``default_api_timeout_ms``; after it BrokerConnectionError is raised.
        """
        names = sorted(set(topics))
        await self.retrying(lambda: self._refresh_metadata(names), timeout_ms=timeout_ms)

    async def close(self) -> None:
        """Close every connection; pending requests fail. Safe to call again."""
        self._closed = True
        self._outages.close()
        self._pool.close()
        if self._tokens is not None:
            self._tokens.close()

    @property
    def outage_s(self) -> float:
        """Seconds for which a broker, or a call, that is still tried has had no success; 0 if all has."""
        return self._outages.lasts_s()

    def break_connections(self) -> None:
        """Close every connection, as if the network had failed."""
        self._pool.close()

    # metadata

    @property
    def known_metadata(self) -> ClusterMetadata:
        """The cached metadata; sends no request."""
        return self._state

    def leader(self, partition: TopicPartition) -> int | None:
        """Node id of the leader, from the cache; None while unknown."""
        return self._state.leader(partition)

    def topic(self, name: str) -> TopicMetadata | None:
        """A topic from the cache; None while unknown."""
        return self._state.topics.get(name)

    async def metadata(self, topics: Iterable[str] | None, *, create: bool = False) -> ClusterMetadata:
        """Request the metadata of these topics (None: all) and return the updated cache.

        A topic that does not exist is in ``errors`` of the result; nothing is raised for it. ``create``
        allows the broker to create missing topics, if ``auto.create.topics.enable`` is set there.
        """
        names = None if topics is None else sorted(set(topics))
        return await self.retrying(lambda: self._refresh_metadata(names, create=create))

    async def metadata_by_id(self, ids: Iterable[UUID]) -> ClusterMetadata:
        """As ``metadata``, for the topics with these ids. Ids of which no topic exists are ignored."""
        rows = [MetadataRequestTopic(topic_id, None) for topic_id in ids]
        return await self.retrying(lambda: self._ask_metadata(rows, frozenset(), create=False))

    async def _refresh_metadata(
        self, topics: Sequence[str] | None, *, create: bool = False
    ) -> ClusterMetadata:
        rows = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        return await self._ask_metadata(rows, None if topics is None else frozenset(topics), create=create)

    async def _ask_metadata(
        self, rows: list[MetadataRequestTopic] | None, names: frozenset[str] | None, *, create: bool
    ) -> ClusterMetadata:
        body = MetadataRequest(topics=rows, allow_auto_topic_creation=create)
        try:
            response = await self.request(None, ApiKey.METADATA, body)
        except BrokerConnectionError:
            # all brokers are away: they may come back as they were before, restored from a copy for example
            self._state = self._state.without_epochs()
            raise
        if response.error_code:
            raise KafkaError(response.error_code, "the broker refused Metadata")
        if not response.brokers:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "the cluster has no live broker yet")
        self._state = self._state.update_from(response, names)
        return self._state

    async def consumer_group_version(self) -> int:
        """Return the highest common version of ConsumerGroupHeartbeat; -1 if the brokers do not offer it."""

        async def attempt() -> int:
            failure: BrokerConnectionError | None = None
            for address in self._candidate_addresses():
                try:
                    connection = await self._connection_to(address, Channel.CONTROL)
                except BrokerConnectionError as error:
                    failure = error
                    continue
                if connection.features.get("group.version", 0) < 1:
                    return -1
                return connection.version_for(ApiKey.CONSUMER_GROUP_HEARTBEAT)
            assert failure is not None, "there is a bootstrap address"
            raise failure

        try:
            return await self.retrying(attempt)
        except UnsupportedVersionError:
            return -1

    # requests

    async def request(
        self,
        node_id: int | None,
        api_key: int,
        body: RequestBody[T],
        *,
        channel: Channel = Channel.CONTROL,
        timeout_ms: float | None = None,
        max_version: int | None = None,
        on_answer: Callable[[T], None] | None = None,
    ) -> T:
        """Send one request to a node (None: any reachable one) and return its response.

        ``body`` is a request of ``protocol.messages``, sent at the highest common version up to
        ``max_version``. The caller checks the error codes in the response. Makes one attempt, or for node
        None one at each known broker until one answers. Use ``retrying`` for more. ``on_answer``: see
        ``Connection.ask``.
        """
        assert api_key == api_key_of(body), "the body is of another API"
        how = channel, timeout_ms, max_version, on_answer
        if node_id is not None:
            return await self._ask_address(self._address_of(node_id), body, *how)
        failures: list[BrokerConnectionError] = []
        for address in self._candidate_addresses():
            try:
                return await self._ask_address(address, body, *how)
            except BrokerConnectionError as error:
                failures.append(error)
        tried = "; ".join(map(str, failures))
        raise BrokerConnectionError(failures[0].address, f"no broker could be reached ({tried})")

    def open_connection(self, node_id: int, channel: Channel) -> Connection | None:
        """Return the open connection to a node; None if there is none."""
        node = self._state.nodes.get(node_id)
        return None if node is None else self._pool.ready(node.address, channel)

    async def connect_to(self, node_id: int, channel: Channel) -> Connection:
        """Return the open connection to a node, or open one."""
        return await self._connection_to(self._address_of(node_id), channel)

    async def request_coordinator(
        self,
        key: str,
        body: RequestBody[T],
        *,
        key_type: int = requests.GROUP,
        channel: Channel = Channel.CONTROL,
        timeout_ms: float | None = None,
        max_version: int | None = None,
        sent: Callable[[], None] = lambda: None,
    ) -> T:
        """Send one request to the coordinator of the group (or, by ``key_type``, transactional id) ``key``.

        As ``request`` otherwise. If the connection fails, the coordinator is looked up again next time. Calls
        ``sent`` when the request is on its way, before anything else runs.
        """
        node = await self.coordinator(key, key_type)
        try:
            connection = await self._connection_to(node.address, channel)
            timeout_ms = self.request_timeout_ms if timeout_ms is None else timeout_ms
            answer = connection.ask(body, timeout_ms=timeout_ms, max_version=max_version)
            sent()
            return await answer
        except BrokerConnectionError:
            self.forget_coordinator(key, key_type)
            raise

    def ask_coordinator(
        self,
        key: str,
        body: RequestBody[T],
        *,
        channel: Channel = Channel.CONTROL,
        timeout_ms: float | None = None,
    ) -> asyncio.Future[T] | None:
        """Send one request to a group's coordinator before this returns, which is a future of the response;
        None if the coordinator has to be found or connected to first.
        """
        node = self._coordinators.get((key, requests.GROUP))
        connection = None if node is None else self._pool.ready(node.address, channel)
        if connection is None or self._closed:
            return None
        timeout_ms = self.request_timeout_ms if timeout_ms is None else timeout_ms
        return connection.ask(body, timeout_ms=timeout_ms)

    async def _ask_address(
        self,
        address: Address,
        body: RequestBody[T],
        channel: Channel,
        timeout_ms: float | None,
        max_version: int | None,
        on_answer: Callable[[T], None] | None,
    ) -> T:
        connection = None if self._closed else self._pool.ready(address, channel)
        if connection is None:
            connection = await self._connection_to(address, channel)
        timeout_ms = self.request_timeout_ms if timeout_ms is None else timeout_ms
        return await connection.ask(body, timeout_ms=timeout_ms, max_version=max_version, on_answer=on_answer)

    async def retrying(self, call: Callable[[], Awaitable[T]], *, timeout_ms: float | None = None) -> T:
        """Run ``call``, and repeat it with back-off after connection failures and retriable KafkaErrors.

        Raises the last error when ``timeout_ms`` (by default ``default_api_timeout_ms``) is up.
        """
        timeout_ms = self.default_api_timeout_ms if timeout_ms is None else timeout_ms
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        attempt, this_call = 0, object()
        try:
            while True:
                try:
                    answer = await call()
                    self._outages.on_succeeded(this_call)
                    return answer
                except (BrokerConnectionError, KafkaError) as error:
                    self.last_failure = error
                    delay = self._backoff.delay_ms(attempt) / 1000
                    if not _is_retriable(error) or self._closed or loop.time() + delay > deadline:
                        raise
                    if isinstance(error, KafkaError):
                        self._outages.on_refused(this_call, error)
                attempt += 1
                await asyncio.sleep(delay)
        finally:
            self._outages.on_given_up(this_call)

    async def prepare_fetches(self, topics: Iterable[str]) -> None:
        """Open the connections to the known leaders of these topics, which ``fetch`` will use.

        Opens none if there are more than 8 leaders, as most might never be fetched from.
        """
        known = [topic for name in topics if (topic := self.topic(name))]
        leaders = {row.leader for topic in known for row in topic.partitions.values()}
        leaders &= self._state.nodes.keys()
        if len(leaders) <= _MOST_PREPARED:
            opening = (self._connection_to(self._address_of(node), Channel.DATA) for node in leaders)
            await asyncio.gather(*opening, return_exceptions=True)

    def _address_of(self, node_id: int) -> Address:
        node = self._state.nodes.get(node_id)
        if node is None:
            raise BrokerConnectionError(f"node {node_id}", "not (or no longer) in the cluster's metadata")
        return node.address

    async def _connection_to(self, address: Address, channel: Channel) -> Connection:
        self._require_open()
        try:
            connection = await self._pool.get(address, channel)
        except AuthenticationError as error:
            self.refused(error)
            raise
        if self._closed:
            connection.close()
            self._require_open()
        return connection

    def _require_open(self) -> None:
        if self._closed:
            raise ConsumerClosedError("this cluster client has been closed")

    def _candidate_addresses(self) -> list[Address]:
        """Known brokers, connected ones first, failing ones last, then the bootstrap addresses (KIP-899)."""
        known = [node.address for node in self._state.nodes.values()]
        self._rng.shuffle(known)
        known.sort(key=lambda a: (self._pool.failing(a), not self._pool.is_connected(a)))
        return list(dict.fromkeys([*known, *self._bootstrap]))

    # coordinators

    async def coordinator(self, key: str, key_type: int = requests.GROUP) -> Node:
        """Return the coordinator, from the cache or by a request with retries; errors as in ``retrying``."""
        node = self._coordinators.get((key, key_type))
        if node is None:
            node = await self.retrying(lambda: requests.find_coordinator(self, key, key_type))
            self._coordinators[key, key_type] = node
        return node

    def forget_coordinator(self, key: str, key_type: int = requests.GROUP) -> None:
        """Remove the coordinator from the cache, because it has moved or its connection broke."""
        self._coordinators.pop((key, key_type), None)

    async def at_coordinator(
        self, key: str, call: Callable[[], Awaitable[T]], key_type: int = requests.GROUP
    ) -> T:
        """As ``retrying``, but forgets the coordinator after errors that say it has moved or is not ready."""

        async def attempt() -> T:
            try:
                return await call()
            except KafkaError as error:
                if error.code in _COORDINATOR_CODES:
                    self.forget_coordinator(key, key_type)
                raise

        return await self.retrying(attempt)

    # offsets, records, topics

    committed = offsets.committed
    commit = offsets.commit
    list_offsets = offsets.list_offsets
    epoch_ends = offsets.epoch_ends
    fetch = fetch.fetch
    create_topics = requests.create_topics
    delete_topics = requests.delete_topics


def _is_retriable(error: BrokerConnectionError | KafkaError) -> bool:
    if isinstance(error, BrokerConnectionError):
        return not isinstance(error, ResponseTooLargeError)
    return error.code.retriable or error.code is ErrorCode.BROKER_NOT_AVAILABLE
