"""ShareFetch (78), v1-2: gives a member of a share group records that nobody else has (KIP-932, KIP-1206,
KIP-1222).

Acknowledgements in a request come first. A fetch then waits until there are records for the member: it is
woken when records are written, when others lose or give back records, and when the start offset moves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from ...coordinator.share_groups import SHARE_VERSION
from ...protocol import ApiKey, ErrorCode, KafkaError
from ...protocol.messages.share_fetch import (
    AcquiredRecords,
    FetchTopic,
    ForgottenTopic,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from ...share_partitions import OPENING_EPOCH, ShareSession, TopicPlace
from ..event_loop.stopwatch import clock
from ..event_loop.time_slices import Slices, in_slices
from ..node import Node
from ..partitions.partition import Waiter
from ..share.led_partition import Asking, Given, LedPartition
from ..share.persister import ShareKey
from ._api import Request, ServedApi
from ._errors import AT_TOP
from ._share import (
    GUARD,
    NO_TOPIC,
    MemberRequest,
    by_topic,
    lock_ms,
)

_BATCH_OPTIMIZED, _RECORD_LIMIT = 0, 1

#: Partitions that are added to a session, or forgotten, in one go.
_PART = 1_000


class _MemberFetch:
    """One fetch in progress."""

    def __init__(self, asked: MemberRequest, body: ShareFetchRequest, session: ShareSession) -> None:
        self.asked = asked
        self.body = body
        self.shares = asked.node.shares
        self.session = session
        self.places = session.in_turn(asked.epoch)
        self.most_bytes = _most_bytes(asked)
        self.waiter: Waiter[LedPartition] = Waiter()
        self.led: dict[TopicPlace, LedPartition] = {}
        self.errors: dict[TopicPlace, KafkaError] = {}
        #: Share partitions that were loaded when the fetch looked at them.
        self.loaded: set[TopicPlace] = set()
        self.begun_s = clock()

    @property
    def asks_records(self) -> bool:
        return bool(self.places) and self.body.max_records > 0 and self.most_bytes > 0

    async def wait(self) -> None:
        """Wait until there are enough records, or the time is up, and find the errors of partitions."""
        if not self.asks_records:
            await self._find_errors()
            return
        deadline = asyncio.get_running_loop().time() + max(self.body.max_wait_ms, 0) / 1000
        try:
            if not await self._is_due(self.places):
                async with asyncio.timeout_at(deadline):
                    await self._wait()
        except TimeoutError:
            self.shares.counters.expired_fetches += 1

    def leave(self) -> None:
        """Wait no more: what is left is for others."""
        for led in self.led.values():
            led.leave(self.waiter)

    async def _find_errors(self) -> None:
        """Find what cannot be read, without loading anything."""
        async for place in in_slices(self.places):
            try:
                self.asked.find_partition(place)
            except KafkaError as error:
                self.errors[place] = error

    async def _wait(self) -> None:
        places = {led: place for place, led in self.led.items()}
        while True:
            # a share partition that has been loaded, or lost, too
            for led in await self.waiter.wait_changed():
                if await self._is_due([places[led]]):
                    return

    async def _is_due(self, places: list[TopicPlace]) -> bool:
        """Look at partitions: return whether the request can be answered; they are watched otherwise."""
        slices = Slices()
        few = min(max(self.body.min_bytes, 1), self.most_bytes)
        due = False
        # all of them, as records of all are acquired
        for place in places:
            await slices.end_if_due()
            try:
                led = self.led.get(place) or self._lead(place)
                # before it is looked at: what changes from here on is told
                led.watch(self.waiter)
                if led.records is not None:
                    self.loaded.add(place)
                if not due and led.has_news():
                    due = few == 1 or self._size(few) >= few
                    if not due:
                        # one that waits for less may take it
                        led.offer(after=self.waiter)
            except KafkaError as error:
                self.errors[place] = error
        # if none is left that could get records, there is nothing to wait for
        return due or len(self.errors) == len(self.places)

    def _lead(self, place: TopicPlace) -> LedPartition:
        led = self.shares.lead(ShareKey(self.asked.group, *place), self.asked.find_partition(place))
        self.led[place] = led
        return led

    def _size(self, enough: int) -> int:
        """Bytes that the fetch could be given, up to ``enough`` or so. Raises KafkaError."""
        size = 0
        for place, led in self.led.items():
            if place not in self.errors and size < enough:
                size += led.measure(enough - size)
        return size

    def acquire(self) -> Iterator[tuple[TopicPlace, Given | None]]:
        """Acquire records; yield partitions with what they gave, or None if they have an error now. Raises
        KafkaError SHARE_SESSION_NOT_FOUND if the session has ended: nobody would give back what it gets.
        """
        self.shares.sessions.check_open(self.session)
        body = self.body
        ready = []
        for place, led in self.led.items():
            # the first that is loaded answers the fetch, as in Apache Kafka: others may go to other members
            if place in self.errors or place not in self.loaded:
                continue
            try:
                led.check_lead()
                if led.has_news():
                    ready.append((place, led))
            except KafkaError as error:
                self.errors[place] = error
                yield place, None
        left_bytes, left_records = min(self.most_bytes, self.shares.room_bytes), body.max_records
        given_by = 0
        for nth, (place, led) in enumerate(ready):
            if left_records <= 0 or left_bytes <= 0:
                break
            asking = Asking(
                self.asked.member,
                left_records,
                # an even share of what those before have left
                max(left_bytes // (len(ready) - nth), 1),
                max(body.batch_size, 0),
                strict=body.share_acquire_mode == _RECORD_LIMIT,
                at_least_one=not given_by,
            )
            try:
                given = led.acquire(asking)
            except KafkaError as error:
                self.errors[place] = error
                yield place, None
                continue
            if given is not None:
                given_by += 1
                self.asked.link.gave(led, self.asked.member, given.ranges, len(given.records))
                led.partition.topic.traffic.bytes_out += len(given.records)
                left_bytes -= len(given.records)
                left_records -= given.record_count
                yield place, given
        self.shares.counters.acquire_times.record(clock() - self.begun_s)
        self.shares.counters.count_fetch(self.asked.group, given_by, len(self.places))


def _most_bytes(asked: MemberRequest) -> int:
    """Most bytes of the response: the least that the client, the broker and the quota allow."""
    node, request = asked.node, asked.request
    most: int = min(request.body.max_bytes, node.settings.fetch_max_bytes)
    limit = node.throttle.fetch_limit(request, clock())
    return most if limit is None else min(most, limit)


async def handle(node: Node, request: Request[ShareFetchRequest]) -> ShareFetchResponse:
    body = request.body
    try:
        asked = MemberRequest(node, request)
        _check(asked, body)
        session = asked.session()
    except KafkaError as error:
        if error.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            # whoever is refused at once would be here again at once
            await asyncio.sleep(max(body.max_wait_ms, 0) / 1000)
        return ShareFetchResponse(error_code=error.code, error_message=error.message)
    told = await asked.acknowledge(body.topics, may_renew=body.is_renew_ack)
    rows = _Rows(asked, told)
    if asked.closes:
        await asked.close(session)
        await rows.put_all(told, {})
        return rows.response()
    try:
        await _update_session(node, session, body)
    except KafkaError as error:
        return ShareFetchResponse(error_code=error.code, error_message=error.message)
    fetch = _MemberFetch(asked, body, session)
    try:
        await fetch.wait()
        # who opens a session is told of all its partitions, later only of those with news
        tells_all = asked.epoch == OPENING_EPOCH and fetch.asks_records
        named = fetch.places if tells_all else ()
        await rows.put_all(dict.fromkeys((*named, *told, *fetch.errors)), fetch.errors)
        if fetch.asks_records:
            # no other request runs from here to the response: what is given is in it
            for place, given in fetch.acquire():
                rows.put(place, fetch.errors.get(place), given)
    except KafkaError as error:
        return ShareFetchResponse(error_code=error.code, error_message=error.message)
    finally:
        fetch.leave()
    return rows.response()


def _check(asked: MemberRequest, body: ShareFetchRequest) -> None:
    """Raise KafkaError INVALID_REQUEST for what no session can ask for."""
    if body.share_acquire_mode not in (_BATCH_OPTIMIZED, _RECORD_LIMIT):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"acquire mode {body.share_acquire_mode}")
    if asked.epoch == OPENING_EPOCH and any(
        one.acknowledgement_batches for topic in body.topics for one in topic.partitions
    ):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if body.is_renew_ack and (body.max_bytes or body.min_bytes or body.max_records or body.max_wait_ms):
        raise KafkaError(ErrorCode.INVALID_REQUEST)


async def _update_session(node: Node, session: ShareSession, body: ShareFetchRequest) -> None:
    """Add partitions to a session and forget others, as a request says. Raises KafkaError."""
    sessions, slices = node.shares.sessions, Slices()
    for some in _in_parts(_forgotten(body.forgotten_topics_data)):
        sessions.update(session, (), some)
        await slices.end_if_due()
    for some in _in_parts(_named(body.topics)):
        sessions.update(session, some, ())
        await slices.end_if_due()


def _in_parts(places: Iterator[TopicPlace]) -> Iterator[Sequence[TopicPlace]]:
    while some := tuple(islice(places, _PART)):
        yield some


def _named(topics: Sequence[FetchTopic]) -> Iterator[TopicPlace]:
    return (
        TopicPlace(topic.topic_id or NO_TOPIC, one.partition_index)
        for topic in topics
        for one in topic.partitions
    )


def _forgotten(topics: Sequence[ForgottenTopic]) -> Iterator[TopicPlace]:
    return (TopicPlace(topic.topic_id or NO_TOPIC, number) for topic in topics for number in topic.partitions)


class _Rows:
    """The partitions of a response; ``told`` is what became of the acknowledgements."""

    def __init__(self, asked: MemberRequest, told: Mapping[TopicPlace, KafkaError | None]) -> None:
        self._asked = asked
        self._told = told
        self._rows: dict[TopicPlace, PartitionData] = {}
        self._leaders: set[int] = set()

    async def put_all(self, places: Iterable[TopicPlace], errors: Mapping[TopicPlace, KafkaError]) -> None:
        """Make the rows of partitions that give nothing, which may be very many."""
        async for place in in_slices(places):
            self.put(place, errors.get(place), None)

    def put(self, place: TopicPlace, error: KafkaError | None, given: Given | None) -> None:
        """Make the row of a partition."""
        refused = self._told.get(place)
        leader = LeaderIdAndEpoch()
        if any(one is not None and one.code is _NOT_LEADER for one in (error, refused)):
            leader = LeaderIdAndEpoch(*self._asked.leader_of(place))
            self._leaders.add(leader.leader_id)
        self._rows[place] = PartitionData(
            place.number,
            ErrorCode.NONE if error is None else error.code,
            None if error is None else error.message,
            ErrorCode.NONE if refused is None else refused.code,
            None if refused is None else refused.message,
            leader,
            b"" if given is None else given.records,
            [] if given is None else [AcquiredRecords(*each) for each in given.ranges],
        )

    def response(self) -> ShareFetchResponse:
        """Return the response."""
        topics = by_topic(self._rows).items()
        leaders = self._asked.endpoints_of(self._leaders) if self._leaders else ()
        return ShareFetchResponse(
            acquisition_lock_timeout_ms=lock_ms(self._asked),
            responses=[ShareFetchableTopicResponse(topic_id, some) for topic_id, some in topics],
            node_endpoints=[NodeEndpoint(*each) for each in leaders],
        )


_NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER

API = ServedApi(
    key=ApiKey.SHARE_FETCH,
    versions=(1, 2),
    handler=handle,
    guard=GUARD,
    errors=AT_TOP,
    parks=True,
    fetches=True,
    acquires=True,
    feature=SHARE_VERSION,
)
