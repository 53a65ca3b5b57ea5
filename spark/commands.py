"""``kohort spark``: what a Spark job has done, as its group tells; and a checkpoint's offsets for a group."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import os
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ..client import Cluster
    from ._status import JobStatus

#: Exit codes: all is well, refused or not there, wrong use, nobody answered.
OK, REFUSED, WRONG_USE, UNREACHABLE, INTERRUPTED = 0, 1, 2, 3, 130

_TIMEOUT_S: Final = 15.0

#: A pipe has no width: rows stay on one line, so that they can be searched and cut.
_PIPE_WIDTH: Final = 100_000

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
        command.add_argument(
            "--bootstrap", metavar="HOST:PORT", default="localhost:9092", help="(default: %(default)s)"
        )
        command.add_argument(
            "--timeout",
            metavar="SECONDS",
            type=_seconds,
            default=_TIMEOUT_S,
            help="longest time to wait for an answer, retries included (default: %(default)g)",
        )
        command.add_argument("--json", action="store_true", help="one JSON document instead of a table")


def run(options: argparse.Namespace) -> int:
    """Run a command that ``add_arguments`` has read; the exit code. Errors are one line on standard error."""
    from ..client import BrokerConnectionError
    from ..protocol import KohortError
    from ._status import CheckpointError

    try:
        return asyncio.run(_run(options))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokerConnectionError as error:
        return _say(f"cannot reach the cluster: {error}; is --bootstrap right?", UNREACHABLE)
    except (CheckpointError, OSError, ValueError) as error:
        return _say(str(error), WRONG_USE)
    except KohortError as error:
        return _say(str(error), REFUSED)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 86_400:
        raise argparse.ArgumentTypeError(f"{text!r}: give seconds, more than 0 and at most 86400")
    return seconds


def _say(words: str, code: int) -> int:
    print("kohort spark:", " ".join(words.split()), file=sys.stderr)
    return code


async def _run(options: argparse.Namespace) -> int:
    from ..client import Cluster

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
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

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
    narrow = sys.stdout.isatty() or "COLUMNS" in os.environ
    console = Console(highlight=False, width=None if narrow else _PIPE_WIDTH)
    with console.capture() as captured:
        console.print(table)
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))
    print(f"group {status.group}: {words}, lag {status.lag}")


async def _import(cluster: Cluster, options: argparse.Namespace) -> int:
    from ..client import CommittedOffset
    from ._offsets import format_offsets
    from ._status import read_checkpoint

    number, offsets = read_checkpoint(options.folder)
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
