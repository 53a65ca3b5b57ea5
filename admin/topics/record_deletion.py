"""``kohort topics delete-records``: what is below an offset or before a time goes; planned, then done."""

from __future__ import annotations

import argparse
import asyncio
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .. import notation
from ..commands import reader, whole
from ..screen import OK, REFUSED, Screen, ask_agreement, plain

if TYPE_CHECKING:
    from ...client import Cluster, ClusterMetadata
    from ...protocol import TopicPartition
    from ..errors import Outcome


@dataclass(frozen=True, slots=True)
class RecordDeletion:
    """What goes of a partition: all from ``start_offset`` up to ``new_start_offset``. ``note`` says why that
    differs from what was asked for; ``error_code`` and ``error`` are of the broker.
    """

    topic: str
    partition: int
    start_offset: int
    new_start_offset: int
    end_offset: int
    note: str = ""
    error_code: int = 0
    error: str | None = None

    @property
    def offsets(self) -> int:
        """The number of offsets that go; compaction and markers leave fewer records than that."""
        return self.new_start_offset - self.start_offset


def add_deletion_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``kohort topics delete-records``."""
    parser.add_argument(
        "topics",
        metavar="TOPIC[:P,...]",
        nargs="+",
        type=reader(_topic_name),
        help="a topic, or some partitions of it",
    )
    to = parser.add_argument_group("which records (one of these)").add_mutually_exclusive_group(required=True)
    to.add_argument(
        "--before-offset", metavar="N", type=lambda text: whole(text, 0), help="offsets below this one"
    )
    to.add_argument(
        "--before",
        metavar="ISO",
        type=reader(notation.datetime_ms),
        help="all before the first record of this time or later; UTC if no offset",
    )
    to.add_argument(
        "--older-than", metavar="7d", type=reader(notation.duration_ms), help="the same, so long ago"
    )
    to.add_argument("--all", action="store_true", help="every record there is now")
    parser.add_argument("--execute", action="store_true", help="delete them; asks first on a terminal")
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask")


def _topic_name(text: str) -> str:
    notation.topic_partitions([text])
    return text


async def delete_records(cluster: Cluster, options: argparse.Namespace, screen: Screen) -> int:
    """Run the command: show the plan, and with ``--execute`` do it; the exit code."""
    plan = await _plan_deletion(cluster, options)
    records = sum(each.offsets for each in plan)
    if not (options.execute and records):
        _show(screen, plan, executed=False)
        words = "--execute deletes them, for good" if records else "nothing to delete"
        screen.remark(f"nothing is changed: {words}" if records else words)
        return OK
    if not options.yes and not screen.as_json:
        _show(screen, plan, executed=False)
    topics = ", ".join(sorted({repr(each.topic) for each in plan if each.offsets}))
    if not (options.yes or ask_agreement(f"Delete {records:,} offsets of {topics} for good?")):
        screen.remark("nothing was deleted")
        return REFUSED
    done = await _delete(cluster, [each for each in plan if each.offsets])
    _show(screen, done, executed=True)
    return OK if all(not each.error_code for each in done) else REFUSED


async def _plan_deletion(cluster: Cluster, options: argparse.Namespace) -> list[RecordDeletion]:
    import time

    from ...protocol import TopicPartition
    from .requests import log_offsets, ranges, require_topics

    wanted = notation.topic_partitions(options.topics)
    known = await require_topics(cluster, wanted)
    places = [
        TopicPartition(topic, number)
        for topic, numbers in wanted.items()
        for number in sorted(set(numbers)) or sorted(p.partition for p in known.partitions(topic))
    ]
    _check_partitions(places, known)
    starts, ends = await ranges(cluster, places)
    at = options.before
    if options.older_than is not None:
        at = max(0, round(time.time() * 1_000) - options.older_than)
    found = ends if at is None else await log_offsets(cluster, places, at)
    plan = []
    for place in places:
        start, end = starts[place], ends[place]
        asked = found.get(place, start) if options.before_offset is None else options.before_offset
        to = max(start, min(asked, end))
        note = "the log ends before that offset" if asked > end else ""
        note = note or ("the log begins behind that offset" if asked < start else "")
        plan.append(RecordDeletion(place.topic, place.partition, start, to, end, note))
    return plan


def _check_partitions(places: Iterable[TopicPartition], known: ClusterMetadata) -> None:
    from ...protocol import ErrorCode, KafkaError

    for place in places:
        if place not in known.partitions(place.topic):
            words = f"topic {place.topic!r} has no partition {place.partition}"
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, words)


async def _delete(cluster: Cluster, plan: list[RecordDeletion]) -> list[RecordDeletion]:
    """Delete at the leaders; each partition with its outcome."""
    from ...client.requests import leader_or_raise
    from ...protocol import TopicPartition

    by_leader: dict[int, list[RecordDeletion]] = defaultdict(list)
    await cluster.metadata({each.topic for each in plan})
    for each in plan:
        by_leader[leader_or_raise(cluster, TopicPartition(each.topic, each.partition))].append(each)
    parts = await asyncio.gather(*(_ask_leader(cluster, node, part) for node, part in by_leader.items()))
    outcomes = {key: outcome for part in parts for key, outcome in part.items()}
    return [
        replace(each, error_code=found.error_code, error=found.error)
        for each in plan
        for found in (outcomes[each.topic, each.partition],)
    ]


async def _ask_leader(
    cluster: Cluster, node: int, plan: list[RecordDeletion]
) -> dict[tuple[str, int], Outcome]:
    from ...protocol import ApiKey
    from ...protocol.messages.delete_records import (
        DeleteRecordsPartition,
        DeleteRecordsRequest,
        DeleteRecordsTopic,
    )
    from ..errors import outcome_of

    by_topic: dict[str, list[DeleteRecordsPartition]] = defaultdict(list)
    for each in plan:
        by_topic[each.topic].append(DeleteRecordsPartition(each.partition, each.new_start_offset))
    rows = [DeleteRecordsTopic(topic, partitions) for topic, partitions in by_topic.items()]
    body = DeleteRecordsRequest(rows, cluster.request_timeout_ms)
    answer = await cluster.retrying(lambda: cluster.request(node, ApiKey.DELETE_RECORDS, body))
    return {
        (topic.name, each.partition_index): outcome_of(each.error_code)
        for topic in answer.topics
        for each in topic.partitions
    }


def _show(screen: Screen, plan: list[RecordDeletion], *, executed: bool) -> None:
    if screen.as_json:
        rows = [{**plain(each), "offsets": each.offsets} for each in plan]
        screen.document({"executed": executed, "partitions": rows})
        return
    from ..tables import table

    head = ["TOPIC", "PARTITION", "START", "NEW START", "END", "OFFSETS", "RESULT" if executed else "NOTE"]
    screen.show(
        table(
            head,
            (
                (
                    *(each.topic, each.partition, each.start_offset, each.new_start_offset),
                    *(each.end_offset, each.offsets),
                    (each.error or "deleted") if executed else each.note or None,
                )
                for each in plan
            ),
        )
    )
