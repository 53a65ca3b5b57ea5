"""Fetch (1), v4-18: record batches from an offset on; waits until there is enough (KIP-74, KIP-98, KIP-516).

Every answer says session 0: clients then name all their partitions in each request (KIP-227).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...log import FileRange
from ...protocol import ErrorCode, KafkaError
from .._requests import Request
from .._stopwatch import clock
from ._lookup import NO_EPOCH, check_leader_epoch, find_partition

if TYPE_CHECKING:
    from .._node import Node
    from .._partition import Partition

#: Records of this many bytes or more are not read here: they may go from the file to the socket.
RANGE_BYTES = 262_144

_TOPIC_IDS_FROM = 13
_SESSIONS_FROM = 7
_READ_COMMITTED = 1
_NO_SESSION = 0


@dataclass(slots=True)
class _Found:
    """What one partition gives; the numbers are -1 with an error."""

    index: int
    error: ErrorCode = ErrorCode.NONE
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    aborted: list[tuple[int, int]] | None = None
    diverging: tuple[int, int] | None = None
    records: bytes | FileRange = b""
    partition: Partition | None = None


@dataclass(slots=True)
class _Round:
    """One look at all partitions of a request."""

    topics: list[tuple[Any, list[_Found]]] = field(default_factory=list)
    partitions: list[Partition] = field(default_factory=list)
    size: int = 0
    urgent: bool = False


async def handle(node: Node, request: Request) -> Any:
    body = request.body
    if request.version >= _SESSIONS_FROM and body.session_id != _NO_SESSION:
        return request.answer(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    most = _most_bytes(node, request)
    # there may be no batches that come to so little: any will do
    min_bytes = body.min_bytes if body.min_bytes <= most else 1
    found = _look(node, request, most)
    if body.max_wait_ms > 0:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + body.max_wait_ms / 1000
        while found.partitions and not found.urgent and found.size < min_bytes:
            if not await _appended(found.partitions, deadline - loop.time()):
                found = _look(node, request, most)
                break
            found = _look(node, request, most)
    return _answer(request, found)


async def _appended(partitions: list[Partition], timeout_s: float) -> bool:
    """Wait for an append to any of the partitions; False when the time is up."""
    woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    for partition in partitions:
        partition.waiters.add(woken)
    try:
        async with asyncio.timeout(timeout_s):
            await woken
    except TimeoutError:
        return False
    finally:
        for partition in partitions:
            partition.waiters.discard(woken)
    return True


def _most_bytes(node: Node, request: Request) -> int:
    """How much the answer may hold: what the client asks for, the broker gives and the quota allows."""
    most: int = min(request.body.max_bytes, node.settings.fetch_max_bytes)
    limit = node.throttle.fetch_limit(request, clock())
    return most if limit is None else min(most, limit)


def _look(node: Node, request: Request, left: int) -> _Round:
    body = request.body
    found = _Round()
    seen: set[tuple[Any, int]] = set()
    for topic in body.topics:
        results = []
        for wanted in topic.partitions:
            # a partition that is named again is no other partition, and looking at it takes time
            name = (topic.topic or topic.topic_id, wanted.partition)
            if name in seen:
                continue
            seen.add(name)
            try:
                result = _read(node, request, topic, wanted, left, found)
            except KafkaError as error:
                result = _Found(wanted.partition, error.code)
                found.urgent = True
            size = len(result.records)
            found.size += size
            left -= size
            results.append(result)
        found.topics.append((topic, results))
    return found


def _read(node: Node, request: Request, topic: Any, wanted: Any, left: int, found: _Round) -> _Found:
    by_id = request.version >= _TOPIC_IDS_FROM
    partition = find_partition(node, topic.topic, topic.topic_id, wanted.partition, by_id=by_id)
    check_leader_epoch(partition, wanted.current_leader_epoch)
    committed = request.body.isolation_level == _READ_COMMITTED
    diverging = _diverging(partition, wanted)
    found.partitions.append(partition)
    if diverging is not None:
        found.urgent = True
        return _Found(
            wanted.partition,
            high_watermark=partition.high_watermark,
            last_stable_offset=partition.last_stable_offset,
            log_start_offset=partition.log_start_offset,
            diverging=diverging,
            partition=partition,
        )
    allowed = max(0, min(wanted.partition_max_bytes, left))
    # a batch over the limit is given only as the first of an answer, so that every client gets on (KIP-74)
    info = partition.read(
        wanted.fetch_offset,
        allowed,
        committed=committed,
        at_least_one=not found.size,
        range_bytes=RANGE_BYTES,
    )
    return _Found(
        wanted.partition,
        high_watermark=info.high_watermark,
        last_stable_offset=info.last_stable_offset,
        log_start_offset=info.log_start_offset,
        aborted=list(info.aborted) if committed else None,
        records=info.range or info.records,
        partition=partition,
    )


def _diverging(partition: Partition, wanted: Any) -> tuple[int, int] | None:
    """Where the client's log and ours part, if its last epoch did not reach as far as it reads (KIP-595)."""
    if wanted.last_fetched_epoch == NO_EPOCH:
        return None
    epoch, end_offset = partition.end_of_epoch(wanted.last_fetched_epoch)
    if epoch == NO_EPOCH or end_offset == -1:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE, f"nothing is known of leader epoch {wanted.last_fetched_epoch}"
        )
    parted = epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset
    return (epoch, end_offset) if parted else None


def _answer(request: Request, found: _Round) -> Any:
    make_topic = request.part("FetchableTopicResponse")
    make_partition = request.part("FetchableTopicResponse", "PartitionData")
    responses = [
        make_topic(
            topic=topic.topic,
            topic_id=topic.topic_id,
            partitions=[_partition(request, make_partition, result) for result in results],
        )
        for topic, results in found.topics
    ]
    _count(found)
    return request.answer(session_id=_NO_SESSION, responses=responses)


def _count(found: _Round) -> None:
    """What the topics give. Partitions with an error are not among them."""
    for _, results in found.topics:
        for result in results:
            if result.partition is not None:
                traffic = result.partition.topic.traffic
                traffic.fetch_requests += 1
                traffic.bytes_out += len(result.records)


def _partition(request: Request, make: Any, result: _Found) -> Any:
    answer = make(
        partition_index=result.index,
        error_code=result.error,
        high_watermark=result.high_watermark,
        last_stable_offset=result.last_stable_offset,
        log_start_offset=result.log_start_offset,
        aborted_transactions=_aborted(request, result),
        records=result.records,
    )
    if result.diverging is not None:
        parted = request.part("FetchableTopicResponse", "PartitionData", "EpochEndOffset")
        answer.diverging_epoch = parted(epoch=result.diverging[0], end_offset=result.diverging[1])
    return answer


def _aborted(request: Request, result: _Found) -> list[Any] | None:
    if not result.aborted:
        return None if result.aborted is None else []
    made = request.part("FetchableTopicResponse", "PartitionData", "AbortedTransaction")
    return [made(producer_id=producer, first_offset=first) for producer, first in result.aborted]
