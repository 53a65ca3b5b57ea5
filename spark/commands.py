"""``kohort spark``: what a Spark job has done, as its group tells; and a checkpoint's offsets for a group."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final

from ..admin.commands import OK, REFUSED, TIMEOUT_S, WRONG_USE, add_common, run_program

if TYPE_CHECKING:
    from ..consumer import Cluster
    from ._status import JobStatus

#: A broker that is there takes a connection at once.
_CONNECT_WITHIN_MS: Final = 1_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give ``kohort spark`` its commands."""
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    words = "batches and lag of a group's Spark job, from its commits"
    status = commands.add_parser("status", help=words, description=f"{words[0].upper()}{words[1:]}.")
    words = "commit to a group where a checkpoint of Spark's Kafka source has come to; --execute does it"
    moved = commands.add_parser(
        "import-checkpoint", help=words, description=f"{words[0].upper()}{words[1:]}."
    )
    moved.add_argument("folder", metavar="DIR", help="the query's checkpointLocation, on this machine")
    moved.add_argument("--execute", action="store_true", help="commit; without it nothing is changed")
    for command in (status, moved):
        command.add_argument("--group", required=True)
        add_common(command, "localhost:9092", TIMEOUT_S, False)


def run(options: argparse.Namespace) -> int:
    """Run a command that ``add_arguments`` has read; the exit code. Errors are one line on standard error."""
    return run_program("kohort spark", _perform, options)


def _perform(options: argparse.Namespace) -> Coroutine[Any, Any, int]:
    return _run(options)


def _say(words: str, code: int) -> int:
    print("kohort spark:", " ".join(words.split()), file=sys.stderr)
    return code


async def _run(options: argparse.Namespace) -> int:
    from ..consumer import Cluster

    timeout_ms = max(1, round(options.timeout * 1_000))
    cluster = Cluster(
        options.bootstrap,
        "kohort-spark",
        request_timeout_ms=timeout_ms,
        default_api_timeout_ms=timeout_ms,
        connect_timeout_ms=timeout_ms,
    )
    try:
        if options.action == "status":
            return await _status(cluster, options)
        return await _import(cluster, options)
    finally:
        await cluster.close()


async def _connect(cluster: Cluster, options: argparse.Namespace) -> None:
    """Nobody there is an error soon: what comes after it would try for the whole time."""
    await cluster.connect(min(_CONNECT_WITHIN_MS, options.timeout * 1_000))


async def _status(cluster: Cluster, options: argparse.Namespace) -> int:
    from ..protocol import TopicPartition
    from ._offsets import format_offsets
    from ._status import job_status

    await _connect(cluster, options)
    status = await job_status(cluster, options.group)
    if options.json:
        rows = [dataclasses.asdict(row) | {"lag": row.lag} for row in status.partitions]
        offsets = {TopicPartition(row.topic, row.partition): row.committed for row in status.partitions}
        more = {"partitions": rows, "offsets": json.loads(format_offsets(offsets))}
        print(json.dumps(dataclasses.asdict(status) | more, indent=2))
        return OK if rows else REFUSED
    if not status.partitions:
        return _say(f"group {options.group!r} has committed nothing", REFUSED)
    _show(status)
    return OK


def _show(status: JobStatus) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from ..admin._screen import Screen

    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("TOPIC", "PARTITION", "BATCH", "STATE", "COMMITTED", "PLANNED END", "LOG END", "LAG"):
        table.add_column(heading, justify="left" if heading in ("TOPIC", "STATE") else "right")
    for row in status.partitions:
        cells = (
            row.topic,
            row.partition,
            row.batch,
            row.state,
            row.committed,
            row.planned_end,
            row.log_end,
            row.lag,
        )
        table.add_row(*(Text("-" if cell is None else str(cell)) for cell in cells))
    if status.batch < 0:
        words = "no batch of a Spark job"
    else:
        words = f"batch {status.batch} is {'under way' if status.under_way else 'done'}"
    Screen(as_json=False).show(table, Text(f"group {status.group}: {words}, lag {status.lag}"))


async def _import(cluster: Cluster, options: argparse.Namespace) -> int:
    from ..consumer import CommittedOffset
    from ._checkpoint import CheckpointError, read_checkpoint
    from ._offsets import format_offsets

    try:
        number, offsets = read_checkpoint(options.folder)
    except (CheckpointError, OSError) as error:
        return _say(str(error), WRONG_USE)
    if options.execute:
        await _connect(cluster, options)
        await cluster.commit(options.group, {p: CommittedOffset(at) for p, at in offsets.items()})
    if options.json:
        print(
            json.dumps(
                {
                    "batch": number,
                    "offsets": json.loads(format_offsets(offsets)),
                    "committed": options.execute,
                }
            )
        )
        return OK
    print(f"batch {number} of the checkpoint ended at {format_offsets(offsets)}")
    done = (
        f"committed to group {options.group}"
        if options.execute
        else "nothing is changed: --execute commits it"
    )
    print(done)
    return OK
