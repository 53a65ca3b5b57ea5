"""Transactions on this broker's partitions: the check of writes, and the markers that end transactions.

A batch of a transaction is appended only while the coordinator knows the transaction as open and the
partition as part of it (KIP-890): a late batch after the marker would hold up ``read_committed`` consumers
for ever. Check and append are one step of the event loop; nothing comes between them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from ...cluster import NO_LEADER, ProducerIds
from ...coordinator import EndMarker
from ...offsets_topic import OffsetsStore
from ...protocol import ApiKey, ErrorCode, KafkaError, KohortError, TopicPartition, messages_of
from ...protocol.named_tuples import NamedTuple
from ...transactions import EPOCH_BUMP_VERSION, Add, TransactionMarker
from ..node import Node
from ..partitions.disk_watch import DiskWatch
from ..partitions.local_logs import LocalLogs
from ..partitions.partition import Partition
from ..partitions.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from ..reporting.log_lines import RateLimitedLog

if TYPE_CHECKING:
    from ...protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
    from ..metadata.cluster_node import ClusterNode

log = logging.getLogger("kohort.broker")
_no_marker = RateLimitedLog()

#: How long a producer's first write waits for the markers of its last transaction, and the time between two
#: checks, in seconds (Kafka's defaults of add.partitions.to.txn.retry.backoff.max.ms and ...ms are 100 and
#: 20 ms).
_CONCURRENT_S: Final = 0.1
_LOOK_S: Final = 0.002

#: How long another broker may take to answer, in milliseconds.
_ASK_MS: Final = 10_000

#: Errors of the coordinator that count, whatever the log of a group's partition says.
_UNSURE: Final = frozenset({ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_COORDINATOR})

#: Final errors of a marker: the partition is gone, or knows a newer producer.
_FINAL: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    }
)


class Writer(NamedTuple):
    """A producer that writes in a transaction; with ``adds`` its first write adds the partition."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    adds: bool

    def known_permission(self, partition: Partition) -> ErrorCode | None:
        """Return whether it may write, as far as the partition knows; None if it has no transaction open
        there, and the coordinator has to be asked.
        """
        found = partition.producer(self.producer_id)
        if found is None or found.epoch < self.producer_epoch:
            return None
        if found.epoch > self.producer_epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        return None if found.transaction_start < 0 else ErrorCode.NONE

    def verify(self, node: Node, place: TopicPartition) -> ErrorCode:
        """Return whether it may write to a partition of this broker now."""
        partition = node.logs.led(*place)
        if partition is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        known = self.known_permission(partition)
        if known is not None and (known or place.topic != OFFSETS_TOPIC):
            return known
        if partition.unverified.is_verified(self.producer_id, self.producer_epoch):
            return ErrorCode.NONE
        told = node.transactions.verify(self.transactional_id, self.producer_id, self.producer_epoch, place)
        # groups' writes are collected: the marker may not have reached the log yet
        return told if known is None or told in _UNSURE else known

    async def admit(self, node: Node, places: Iterable[TopicPartition]) -> dict[TopicPartition, ErrorCode]:
        """As ``verify``, for several partitions; missing ones are added if this writer ``adds``."""
        errors = {place: self.verify(node, place) for place in places}
        if node.cluster is not None:
            elsewhere = [place for place, error in errors.items() if error is ErrorCode.NOT_COORDINATOR]
            if elsewhere:
                return errors | await self._ask_coordinators(node, node.cluster, elsewhere)
        fenced = ErrorCode.INVALID_PRODUCER_EPOCH
        missing = [place for place, error in errors.items() if error and error is not fenced]
        if self.adds and missing:
            error = await self._add_partitions(node, missing)
            # the transaction may have ended while this waited
            errors.update((place, error or self.verify(node, place)) for place in missing)
        return errors

    async def _ask_coordinators(
        self, node: Node, cluster: ClusterNode, places: list[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """As ``admit``, when another broker has the transaction's coordinator."""
        asked = {
            place: partition.unverified.ask(self.producer_id)
            for place in places
            if (partition := node.logs.led(*place)) is not None
        }
        by_topic: dict[str, list[int]] = {}
        for place in asked:
            by_topic.setdefault(place.topic, []).append(place.partition)
        messages = messages_of(ApiKey.ADD_PARTITIONS_TO_TXN)
        topics = [messages.AddPartitionsToTxnTopic(*item) for item in by_topic.items()]
        wanted = messages.AddPartitionsToTxnTransaction(*self[:3], not self.adds, topics)
        body = messages.AddPartitionsToTxnRequest(transactions=[wanted])
        told = dict.fromkeys(places, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _CONCURRENT_S
        while asked:
            told |= await _told_by_coordinator(node, cluster, self.transactional_id, body, asked)
            if ErrorCode.CONCURRENT_TRANSACTIONS not in told.values() or loop.time() >= deadline:
                break
            await asyncio.sleep(_LOOK_S)
        for place, ticket in asked.items():
            partition = node.logs.led(*place)
            if not told[place] and (
                partition is None
                or not partition.unverified.on_verified(self.producer_id, self.producer_epoch, ticket)
            ):
                # the transaction may have ended since: the client tries again
                told[place] = ErrorCode.CONCURRENT_TRANSACTIONS
        return told

    async def _add_partitions(self, node: Node, places: list[TopicPartition]) -> ErrorCode:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _CONCURRENT_S
        add = Add(*self[:3], places, EPOCH_BUMP_VERSION)
        while True:
            error = await node.transactions.add(add)
            if error is not ErrorCode.CONCURRENT_TRANSACTIONS or loop.time() >= deadline:
                return error
            await asyncio.sleep(_LOOK_S)


async def _told_by_coordinator(
    node: Node,
    cluster: ClusterNode,
    transactional_id: str,
    body: AddPartitionsToTxnRequest,
    places: Iterable[TopicPartition],
) -> dict[TopicPartition, ErrorCode]:
    """The coordinator's result for each partition; NOT_COORDINATOR if it cannot be reached."""
    coordinator = TopicPartition(TRANSACTIONS_TOPIC, node.transactions.partition_of(transactional_id))
    try:
        answer = await cluster.ask_leader(coordinator, body, timeout_ms=_ASK_MS)
    except (KohortError, OSError) as error:
        log.info("the coordinator of a transaction, %s-%d, cannot be asked: %s", *coordinator, error)
        return dict.fromkeys(places, ErrorCode.NOT_COORDINATOR)
    if answer.error_code:
        return dict.fromkeys(places, ErrorCode(answer.error_code))
    return {
        TopicPartition(topic.name, each.partition_index): ErrorCode(each.partition_error_code)
        for result in answer.results_by_transaction
        for topic in result.topic_results
        for each in topic.results_by_partition
    }


async def take_producer_id(ids: ProducerIds, disk: DiskWatch) -> int:
    """Take an unused producer id. Raises KafkaError COORDINATOR_LOAD_IN_PROGRESS when none can be
    reserved, and reports that to ``disk``.
    """
    try:
        return await ids.take()
    except OSError as failure:
        # as Apache Kafka answers without a block of ids: other errors would make a producer give up
        disk.on_refused(failure)
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, str(failure)) from failure


async def start_transactions(node: Node) -> None:
    """Create the coordinator's topic if necessary, and start the coordinator. Raises KafkaError
    KAFKA_STORAGE_ERROR.
    """
    if node.topics.get(TRANSACTIONS_TOPIC) is None:
        await node.control.create_internal(TRANSACTIONS_TOPIC)
    topic = node.logs.topic(TRANSACTIONS_TOPIC)
    assert topic is not None, "it was made just now, if it was not there"
    await node.transactions.start(
        OffsetsStore(
            topic.partitions,
            load_bytes=node.settings.offsets_load_buffer_size,
        )
    )


async def end_unknown(node: Node) -> None:
    """Abort transactions that are open in partitions but unknown to the coordinator, because their record was
    lost in a power failure: nothing else would ever end them. For a start after an unclean stop.

    Producers are served meanwhile. The coordinator knows their new transactions before these are open in a
    partition, so a transaction that was unknown at first is looked up again before it is aborted.
    """
    found = node.transactions.transactions()
    if node.transactions.unread or isinstance(found, ErrorCode):
        log.warning("transactions whose records cannot be read may hang: end them by WriteTxnMarkers")
        return
    known = {(each.producer_id, place) for each in found for place in each.partitions}
    for partition in node.logs.partitions():
        place = TopicPartition(partition.topic.name, partition.index)
        try:
            producers = list(partition.producers())
        except KafkaError as error:
            log.warning("%s-%d cannot be opened, transactions may hang in it: %s", *place, error)
            continue
        for producer in producers:
            if producer.transaction_start < 0 or (producer.producer_id, place) in known:
                continue
            if _is_known(node, producer.producer_id, place):
                continue
            log.warning(
                "%s-%d: an open transaction of producer %d that no coordinator knows is aborted",
                *place,
                producer.producer_id,
            )
            epoch = max(producer.coordinator_epoch, 0)
            await end_in(node, place, TransactionMarker(producer.producer_id, producer.epoch, False, epoch))
        await asyncio.sleep(0)


def _is_known(node: Node, producer_id: int, place: TopicPartition) -> bool:
    found = node.transactions.transactions()
    if isinstance(found, ErrorCode):
        return True
    return any(each.producer_id == producer_id and place in each.partitions for each in found)


def largest_record(logs: LocalLogs) -> int:
    """Size in bytes of the largest batch that the coordinator's topic accepts."""
    topic = logs.topic(TRANSACTIONS_TOPIC)
    assert topic is not None, "the coordinator has started"
    return min(topic.config.max_message_bytes, topic.config.segment_bytes)


async def write_marker(node: Node, place: TopicPartition, marker: TransactionMarker) -> ErrorCode:
    """End a producer's transaction in a partition of this broker."""
    topic = node.image.topic(place.topic)
    if topic is None or not 0 <= place.partition < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    producer_id, epoch, committed, coordinator_epoch, _ = marker
    partition = node.logs.led(*place)
    if partition is None:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if not partition.marker_order.admit(marker):
        # its sender has given it up, and sent it again
        return ErrorCode.INVALID_TXN_STATE
    partition.unverified.on_marker(producer_id)
    if place.topic == OFFSETS_TOPIC:
        told = EndMarker(committed, coordinator_epoch)
        return await node.coordinator.write_marker(place.partition, producer_id, epoch, told)
    try:
        offset = OffsetsStore({0: partition}).append(
            0,
            (),
            node.now_ms(),
            producer_id=producer_id,
            producer_epoch=epoch,
            marker=(committed, coordinator_epoch),
        )
        # if records wait for the disk so does their marker: it is not written a second time
        stored = partition.wait_stored(offset + 1, _ASK_MS)
        if stored is not None:
            await stored
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


async def end_in(node: Node, place: TopicPartition, marker: TransactionMarker) -> bool:
    """As ``write_marker``; returns whether the coordinator is done with this partition."""
    cluster = node.cluster
    if cluster is None:
        error = await write_marker(node, place, marker)
    else:
        error = await _written_by_leader(node, cluster, place, marker)
    if error and error is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        _no_marker.say("no marker in %s-%d for producer %d: %s", *place, marker.producer_id, error.name)
    return not error or error in _FINAL


async def _written_by_leader(
    node: Node, cluster: ClusterNode, place: TopicPartition, marker: TransactionMarker
) -> ErrorCode:
    """End a producer's transaction in a partition, whoever leads it: if that changes meanwhile, the next
    leader writes the marker.
    """
    while True:
        leader = cluster.leader_of(*place)
        if leader == node.node_id or node.image.topic(place.topic) is None:
            return await write_marker(node, place, marker)
        error = await _written_by_other(cluster, place, marker)
        if not error or error in _FINAL or cluster.leader_of(*place) in (leader, NO_LEADER):
            return error


async def _written_by_other(
    cluster: ClusterNode, place: TopicPartition, marker: TransactionMarker
) -> ErrorCode:
    """End a producer's transaction in a partition that another broker leads."""
    producer_id, epoch, committed, coordinator_epoch, attempt = marker
    messages = messages_of(ApiKey.WRITE_TXN_MARKERS)
    topics = [
        messages.WritableTxnMarkerTopic(place.topic, [place.partition], [cluster.leader_epoch_of(*place)])
    ]
    asked = messages.WritableTxnMarker(
        producer_id, epoch, committed, topics, coordinator_epoch, attempt=attempt
    )
    body = messages.WriteTxnMarkersRequest(markers=[asked])
    try:
        answer = await cluster.ask_leader(place, body, timeout_ms=_ASK_MS)
    except (KohortError, OSError) as error:
        return error.code if isinstance(error, KafkaError) else ErrorCode.NETWORK_EXCEPTION
    told = ErrorCode(answer.markers[0].topics[0].partitions[0].error_code)
    if told is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        # not final: that broker may have just started, and know no topics yet. When the topic is gone this
        # broker's own image shows it
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return told
