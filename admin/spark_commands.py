"""``kohort spark``: progress of a Spark job, read from its group; and a checkpoint's offsets for a group."""

from __future__ import annotations

import argparse
import dataclasses
import json

from .commands import add_common, run_program
from .screen import OK, REFUSED, Screen


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give ``kohort spark`` its commands."""
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    def command(name: str, words: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=words, description=f"{words[0].upper()}{words[1:]}.")
        made.add_argument("--group", required=True)
        add_common(made)
        return made

    command("status", "batches and lag of a group's Spark job, from its commits")
    words = "commit to a group where a checkpoint of Spark's Kafka source has come to; --execute does it"
    moved = command("import-checkpoint", words)
    moved.add_argument("folder", metavar="DIR", help="the query's checkpointLocation, on this machine")
    moved.add_argument("--execute", action="store_true", help="commit; without it nothing is changed")


def run(options: argparse.Namespace) -> int:
    """Run a command that ``add_arguments`` has read; the exit code. Errors are one line on standard error."""
    import asyncio

    action = _show_status if options.action == "status" else _import_offsets
    screen = Screen(as_json=options.json)
    return run_program("kohort spark", lambda: asyncio.run(action(options, screen)))


async def _show_status(options: argparse.Namespace, screen: Screen) -> int:
    from ..protocol import KohortError, TopicPartition
    from ..spark import format_offsets
    from ..spark.status import job_status
    from .connection import open_cluster
    from .tables import table

    async with open_cluster(options, "kohort-spark") as cluster:
        status = await job_status(cluster, options.group)
    if screen.as_json:
        rows = [dataclasses.asdict(row) | {"lag": row.lag} for row in status.partitions]
        offsets = {TopicPartition(row.topic, row.partition): row.committed for row in status.partitions}
        more = {"partitions": rows, "offsets": json.loads(format_offsets(offsets))}
        screen.document(dataclasses.asdict(status) | more)
        return OK if rows else REFUSED
    if not status.partitions:
        raise KohortError(f"group {options.group!r} has committed nothing")
    headings = ["TOPIC", "PARTITION", "BATCH", "STATE", "COMMITTED", "PLANNED END", "LOG END", "LAG"]
    cells = (
        (one.topic, one.partition, one.batch, one.state, one.committed, one.planned_end, one.log_end, one.lag)
        for one in status.partitions
    )
    screen.show(table(headings, cells))
    state = "under way" if status.under_way else "done"
    words = "no batch of a Spark job" if status.batch < 0 else f"batch {status.batch} is {state}"
    screen.write(f"group {status.group}: {words}, lag {status.lag}\n")
    return OK


async def _import_offsets(options: argparse.Namespace, screen: Screen) -> int:
    from ..client import CommittedOffset, ConfigError
    from ..spark import format_offsets
    from ..spark.status import CheckpointError, read_checkpoint
    from .connection import open_cluster

    try:
        number, offsets = read_checkpoint(options.folder)
    except (CheckpointError, OSError, ValueError) as error:
        raise ConfigError(str(error)) from error
    if options.execute:
        async with open_cluster(options, "kohort-spark") as cluster:
            await cluster.commit(options.group, {p: CommittedOffset(at) for p, at in offsets.items()})
    text = format_offsets(offsets)
    if screen.as_json:
        found = {"batch": number, "offsets": json.loads(text), "committed": options.execute}
        screen.document(found, one_line=True)
        return OK
    done = f"committed to group {options.group}"
    screen.write(f"batch {number} of the checkpoint ended at {text}\n")
    screen.write(f"{done if options.execute else 'nothing is changed: --execute commits it'}\n")
    return OK
