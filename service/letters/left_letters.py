"""Letters that nobody reads: those of retry stages that a handler does not have any more."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from ...client.cluster import Cluster
from ...client.offsets import EARLIEST, LATEST, Errors
from ...protocol import KohortError, TopicPartition

log = logging.getLogger("kohort.service")


async def tell_left_letters(cluster: Cluster, group: str, topics: Iterable[str], read: Iterable[str]) -> None:
    """Warn about each retry topic of these topics, among those that exist and are not ``read``, with records
    that the group has not handled. What cannot be looked up is left out.
    """
    known, stages = frozenset(read), dict.fromkeys(topics, 1)
    while stages:
        for topic in stages:
            while _topic_name(topic, stages[topic]) in known:
                stages[topic] += 1
        names = {_topic_name(topic, nth): topic for topic, nth in stages.items()}
        try:
            found = (await cluster.metadata(names)).topics
            for name in sorted(names.keys() & found.keys()):
                partitions = [TopicPartition(name, number) for number in found[name].partitions]
                await _warn_of_left(cluster, group, names[name], partitions)
        except KohortError as error:
            log.debug("group %s: letters of earlier retry stages were not looked for: %s", group, error)
            return
        # the next one, if this one was there
        stages = {topic: stages[topic] + 1 for name, topic in names.items() if name in found}


async def _warn_of_left(cluster: Cluster, group: str, topic: str, partitions: list[TopicPartition]) -> None:
    errors: Errors = {}
    starts = await cluster.list_offsets(dict.fromkeys(partitions, EARLIEST), errors=errors)
    ends = await cluster.list_offsets(dict.fromkeys(partitions, LATEST), errors=errors)
    committed = await cluster.committed(group, partitions, errors=errors)
    left = 0
    for partition in starts.keys() & ends.keys():
        commit = committed.get(partition)
        begin = max(starts[partition].offset, -1 if commit is None else commit.offset)
        left += max(0, ends[partition].offset - begin)
    if left:
        log.warning(
            "group %s: %d records of %s are not read: letters of a retry stage that the handler of %s has "
            "not. Unless they are other groups', give it as many delays in retry_after_ms as before, until "
            "they are handled",
            group,
            left,
            partitions[0].topic,
            topic,
        )


def _topic_name(topic: str, nth: int) -> str:
    return f"{topic}.retry.{nth}"
