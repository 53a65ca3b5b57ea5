"""The consumer's positions and the sink's offsets, kept together: the event loop's side of exactly once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from ...protocol import KohortError, TopicPartition
from ..errors import ConsumerError
from ..events import CallbackFailed, Event, LogTruncated, OffsetReset
from ._threads import DaemonThreads

if TYPE_CHECKING:
    from ..consumer import AsyncGroupConsumer
    from ..record import Record
    from ._exactly_once import Once

#: How long brokers are asked for the ids of topics; then those that are known are taken.
METADATA_TIMEOUT_S = 5.0

log = logging.getLogger("kohort.consumer.service")


class StoredOffsets:
    """``see`` every event, ``go_to`` at an assignment, ``begin_sessions`` before records are handled.

    ``fail`` gets what the database raises: without its offsets nothing can be handled.
    """

    def __init__(self, once: Once, consumer: AsyncGroupConsumer, fail: Callable[[Exception], None]) -> None:
        self._once = once
        self._consumer = consumer
        self._fail = fail
        self._threads = DaemonThreads(1, "kohort-offsets")
        self._sessions: dict[TopicPartition, int] = {}
        #: Partitions whose log is not the one that their rows are about, and from which offset on.
        self._other_log: dict[TopicPartition, int] = {}

    def close(self) -> None:
        """End the thread."""
        self._threads.close()

    def see(self, event: Event) -> None:
        """Going back to offsets that were handled means that there are other records under them now."""
        match event:
            case CallbackFailed("on_partitions_assigned", error):
                # "go_to" was out of time, or cancelled: reading goes on where the group is
                self._fail(error if isinstance(error, Exception) else ConsumerError(f"go_to: {error!r}"))
            case OffsetReset(partition, int(asked), offset=offset) if offset < asked:
                self._is_other(partition, offset)
            case LogTruncated(partition, int(asked), offset=offset) if offset < asked:
                self._is_other(partition, offset)

    def _is_other(self, partition: TopicPartition, offset: int) -> None:
        """From this offset on the log is not the one that was read."""
        self._other_log[partition] = min(offset, self._other_log.get(partition, offset))

    async def go_to(self, partitions: tuple[TopicPartition, ...]) -> None:
        """Read new partitions on where the sink says."""
        try:
            rows = await self._threads.call(partial(self._once.positions, partitions))
        except Exception as error:  # whatever the user's database raises
            # what the group has committed may be behind or ahead
            self._fail(error)
            return
        ids = await self._topic_ids({partition.topic for partition in rows})
        for partition in partitions:
            self._other_log.pop(partition, None)
            self._sessions.pop(partition, None)
        for partition, row in rows.items():
            topic_id = ids.get(partition.topic)
            if row.topic_id is not None and topic_id is not None and row.topic_id != topic_id:
                self._is_other(partition, 0)
                log.warning(
                    "group %s: topic %s was deleted and made anew: offset %d, stored for the one before, is "
                    "left alone, and partition %d starts as one that was never read",
                    self._once.group,
                    partition.topic,
                    row.next_offset,
                    partition.partition,
                )
                continue
            with suppress(KeyError):  # on its way to another member
                self._consumer.seek(partition, row.next_offset, leader_epoch=row.leader_epoch)

    async def begin_sessions(self, firsts: Iterable[Record]) -> None:
        """Before records are handled; of each partition the first one."""
        firsts = list(firsts)
        new = [first for first in firsts if self._sessions.get(first.topic_partition) != first.session_id]
        if new:
            ids = await self._topic_ids({first.topic for first in new})
        for first in new:
            partition = first.topic_partition
            self._sessions[partition] = first.session_id
            other_from = self._other_log.pop(partition, None)
            self._once.begin(partition, first.session_id, ids.get(partition.topic), other_from=other_from)
        tracker = self._consumer.parts.tracker
        for first in firsts:
            session = tracker.get(first.topic_partition)
            if session is not None and session.session_id == first.session_id:
                self._once.reached(first.topic_partition, first.session_id, session.leader_epoch)

    async def _topic_ids(self, topics: set[str]) -> dict[str, str]:
        """As the brokers know them now: a topic may be another one than the last time."""
        cluster = self._consumer.parts.cluster
        with suppress(KohortError, TimeoutError):
            # a stop is noticed no sooner
            async with asyncio.timeout(METADATA_TIMEOUT_S):
                await cluster.metadata(topics)
        known = {name: cluster.topic(name) for name in topics}
        return {name: str(topic.topic_id) for name, topic in known.items() if topic and topic.topic_id}
