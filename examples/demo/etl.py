"""Stage: a Spark job that is killed after writing a batch and before committing it, and started again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from children import Child, Children
from screen import Screen, Update

#: Batches of a whole run, and the one (counted from 0) before whose commit the job is killed.
BATCHES = 6
KILLED_BATCH = 2


async def run_etl(screen: Screen, children: Children, bootstrap: str, folder: Path, flights: int) -> None:
    """Run the stage. Raises ChildFailedError, also if the job does not replay the interrupted batch."""
    output, scratch = folder / "parquet", folder / "spark"
    size = max(1, -(-flights // BATCHES))
    args = ("spark_job.py", bootstrap, output, scratch, "--batch-size", size)
    with screen.progress("flights in Parquet", flights) as update:
        first = await children.start("etl", *args, "--wait-before-commit-of", KILLED_BATCH)
        written = await _until(first, KILLED_BATCH, screen, update, flights)
        if written is None:
            raise first.failure(f"never came to batch {KILLED_BATCH}")
        first.kill()
        screen.line(f"killed with SIGKILL: batch {KILLED_BATCH} is written and not committed; started again")
        second = await children.start("etl-again", *args)
        replayed = await _until(second, KILLED_BATCH, screen, update, flights)
        if replayed is None or not replayed["replayed"] or replayed["rows"] != written["rows"]:
            raise second.failure(f"replayed {replayed}, but {written} was planned")
        await _until(second, None, screen, update, flights)
        await second.ended()


async def _until(
    child: Child, number: int | None, screen: Screen, update: Update, flights: int
) -> dict[str, Any] | None:
    """Show batches until the one of this number (None: until the process ends); return its report."""
    async for event in child.events():
        if "spark" in event:
            screen.line(f"Spark {event['spark']} started, on {event['java']}")
        if "batch" not in event:
            continue
        update(flights - event["lag"])
        again = ", the planned range again" if event["replayed"] else ""
        screen.line(
            f"batch {event['batch']}: {event['rows']:,} flights written{again}, {event['lag']:,} to go"
        )
        if event["batch"] == number:
            return event
    return None
