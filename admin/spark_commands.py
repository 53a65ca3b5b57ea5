"""``kohort spark``: progress of a Spark job, read from its group; and a checkpoint's offsets for a group."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from . import notation
from .commands import add_common, add_looks, run_program
from .screen import OK, REFUSED, Screen

if TYPE_CHECKING:
    from ..spark.status import BatchHistory, JobStatus

#: Columns of a job's batches, for tables of commands and pages.
BATCH_HEADINGS: Final = (
    *("BATCH", "STARTED", "RUN", "OFFSETS", "PARTITIONS", "LARGEST", "ROWS"),
    *("PLAN", "READ", "SINK", "COMMIT", "LAG", "BEHIND", "REPLAYS", "APPLICATION"),
)

#: Moves the cursor to the top of the terminal and clears what is below.
_CLEAR: Final = "\x1b[H\x1b[J"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give ``kohort spark`` its commands."""
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    def command(name: str, words: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=words, description=f"{words[0].upper()}{words[1:]}.")
        made.add_argument("--group", required=True)
        add_common(made)
        return made

    status = command("status", "batches and lag of a group's Spark job, from its commits")
    status.add_argument("--watch", action="store_true", help="look again and again, until Ctrl-C")
    add_looks(status)
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
    import asyncio

    from ..client import BrokerConnectionError
    from ..protocol import KafkaError
    from ..spark.status import job_status
    from .connection import open_cluster

    async with open_cluster(options, "kohort-spark") as cluster:
        looks = 1
        code = _print_status(await job_status(cluster, options.group), options, screen)
        while options.watch and looks != options.count:
            await asyncio.sleep(options.interval)
            try:
                code = _print_status(await job_status(cluster, options.group), options, screen)
            except (BrokerConnectionError, KafkaError) as error:
                if isinstance(error, KafkaError) and not error.retriable:
                    raise
                screen.remark(str(error))
            looks += 1
        return code


def _print_status(status: JobStatus, options: argparse.Namespace, screen: Screen) -> int:
    """Print a job's state; return the exit code. Raises KohortError if the group has no commits."""
    from ..protocol import KohortError, TopicPartition
    from ..spark import format_offsets
    from .tables import table

    if screen.as_json:
        rows = [dataclasses.asdict(row) | {"lag": row.lag} for row in status.partitions]
        offsets = {TopicPartition(row.topic, row.partition): row.committed for row in status.partitions}
        more = {"partitions": rows, "offsets": json.loads(format_offsets(offsets))}
        screen.document(dataclasses.asdict(status) | more, one_line=options.watch)
        return OK if rows else REFUSED
    if not status.partitions:
        raise KohortError(
            f"group {status.group!r} has committed nothing, or only for topics that are gone or that you may "
            "not DESCRIBE"
        )
    if options.watch and screen.live:
        screen.write(_CLEAR)
    headings = ["TOPIC", "PARTITION", "BATCH", "STATE", "COMMITTED", "PLANNED END", "LOG END", "LAG"]
    cells = (
        (one.topic, one.partition, one.batch, one.state, one.committed, one.planned_end, one.log_end, one.lag)
        for one in status.partitions
    )
    parts = [table(headings, cells)]
    if status.history.batches:
        parts.append(table(BATCH_HEADINGS, batch_cells(status.history)))
    screen.show(*parts)
    if status.history.unknown:
        screen.write(f"batches so far: unknown, {status.history.unknown}\n")
    screen.write(f"group {status.group}: {_describe_batch(status)}, lag {status.lag}\n")
    return OK


def _describe_batch(status: JobStatus) -> str:
    if status.batch < 0:
        return "no batch of a Spark job"
    if not status.under_way:
        return f"batch {status.batch} is done"
    return f"batch {status.batch} is under way{describe_announced(status.history)}"


def describe_announced(history: BatchHistory) -> str:
    """What is known of the batch under way, to be added to words about it; "" if that is nothing."""
    if history.announced is None:
        return ""
    replays = history.announced.replays
    again = f", announced again {replays} {'time' if replays == 1 else 'times'}" if replays else ""
    return f" since {notation.utc(history.announced.started_ms)} UTC{again}"


def batch_cells(history: BatchHistory) -> Iterator[tuple[str | int | None, ...]]:
    """A row of BATCH_HEADINGS for each of the log's, oldest first. Sums tell how many batches they have."""
    for row in history.batches:
        yield (
            row.number if row.batches == 1 else f"{row.first} to {row.number} ({row.batches})",
            f"{notation.utc(row.started_ms)[: -len('.000')]} UTC",
            row.run,
            row.offsets,
            row.partitions,
            f"{row.largest_part / 10:.1f} %",
            row.rows,
            *(_span(each) for each in (row.plan_ms, row.read_ms, row.sink_ms, row.commit_ms)),
            row.lag,
            _span(row.lag_ms),
            row.replays,
            history.applications.get(row.run or 0),
        )


def _span(duration_ms: int | None) -> str | None:
    return None if duration_ms is None else notation.span(duration_ms)


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
