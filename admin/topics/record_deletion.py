"""``kohort topics delete-records``: what is below an offset or before a time goes; planned, then done."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from .. import notation
from ..commands import reader, whole
from ..screen import OK, REFUSED, Screen, ask_agreement, plain

if TYPE_CHECKING:
    from ...client import Cluster
    from .deletion import RecordDeletion


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
    from .deletion import carry_out_deletion, plan_deletion

    wanted = notation.topic_partitions(options.topics)
    before_ms = options.before
    if options.older_than is not None:
        before_ms = max(0, round(time.time() * 1_000) - options.older_than)
    plan = await plan_deletion(
        cluster, wanted, before_offset=options.before_offset, before_ms=before_ms, every=options.all
    )
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
    done = await carry_out_deletion(cluster, plan)
    _show(screen, done, executed=True)
    return OK if all(not each.error_code for each in done) else REFUSED


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
