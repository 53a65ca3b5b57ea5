"""Groups under load: rates, latencies and rebalances of any broker, kohort beside Apache Kafka.

``python -m benchmarks.coordinator --bootstrap HOST:PORT [--only ROW,...] [--rounds 3] [--json FILE]``
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import time

from ._connection import prepare
from ._load import ceiling
from ._rows import CONNECTIONS, PARTITIONS, ROWS, TOPIC, Effort, Figures, Row


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def warm(row: Row, bootstrap: str, effort: Effort, limit_s: float) -> None:
    """Run the row in small pieces until its first figure stays within a tenth, or the time is up."""
    give_up = time.monotonic() + limit_s
    seen: list[float] = []
    while time.monotonic() < give_up:
        seen.append(row.run(bootstrap, effort.scaled(0.25))[row.metrics[0].key])
        last = seen[-4:]
        if len(last) == 4 and max(last) <= 1.1 * min(last):
            return


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coordinator", description=__doc__)
    parser.add_argument("--bootstrap", metavar="HOST:PORT", required=True)
    names = [row.name for row in ROWS]
    parser.add_argument("--only", metavar="ROW,...", help=f"of {', '.join(names)}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="of a rate in a round")
    parser.add_argument("--warm", type=float, default=8.0, help="most seconds to warm a row")
    parser.add_argument("--json", metavar="FILE", nargs="?", const="-")
    options = parser.parse_args()
    wanted = options.only.split(",") if options.only else names
    if unknown := sorted(set(wanted) - set(names)):
        parser.error(f"no row is named {', '.join(unknown)}; there are {', '.join(names)}")
    gc.disable()
    limit = ceiling(CONNECTIONS, 64, 1.0)
    say(f"generator against an echo: {limit.per_second:,.0f}/s; one at a time {limit.p50_us:.0f} µs")
    prepare(options.bootstrap, TOPIC, PARTITIONS)
    effort = Effort(seconds=options.seconds)
    measured: dict[str, list[Figures]] = {}
    for row in (row for row in ROWS if row.name in wanted):
        warm(row, options.bootstrap, effort, options.warm)
        measured[row.name] = [row.run(options.bootstrap, effort) for _ in range(options.rounds)]
        for metric in row.metrics:
            values = [figures[metric.key] for figures in measured[row.name]]
            print(f"{metric.title:50} {statistics.median(values):>12,.0f} {metric.unit}", flush=True)
    if options.json == "-":
        print(json.dumps(measured))
    elif options.json:
        with open(options.json, "w") as file:
            json.dump(measured, file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
