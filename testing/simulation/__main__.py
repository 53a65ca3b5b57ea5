"""``python -m kohort.testing.simulation``: run schedules, or replay one with its trace."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from . import SimulationFailed, SimulationReport, simulate, trace
from .cluster import simulate_cluster, trace_cluster
from .services import simulate_service, trace_service
from .share_consumers import (
    simulate_share_consumers,
    simulate_share_services,
    trace_share_consumers,
    trace_share_services,
)
from .share_groups import simulate_share_groups, trace_share_groups
from .transactions import simulate_transactions, trace_transactions

#: What runs the schedules of an option, and what shows one of them.
KINDS: Final[dict[str, tuple[Callable[..., SimulationReport], Callable[..., Any]]]] = {
    "services": (simulate_service, trace_service),
    "transactions": (simulate_transactions, trace_transactions),
    "cluster": (simulate_cluster, trace_cluster),
    "share_consumers": (simulate_share_consumers, trace_share_consumers),
    "share_services": (simulate_share_services, trace_share_services),
    "share_groups": (simulate_share_groups, trace_share_groups),
}


def main() -> int:
    """0 if nothing failed, 1 otherwise."""
    parser = argparse.ArgumentParser(
        prog="python -m kohort.testing.simulation", description="Run groups through drawn faults."
    )
    parser.add_argument("--seed", type=int, help="run this schedule alone, and show what happens in it")
    parser.add_argument("--seeds", type=int, default=500, help="run so many schedules (default: 500)")
    parser.add_argument("--first", type=int, default=0, help="the first of them (default: 0)")
    parser.add_argument("--crashes", type=int, default=0, help="so many more crashes in each (default: 0)")
    parser.add_argument("--without", default="", help="faults, incidents and members to leave out: a,b,c")
    parser.add_argument(
        "--go-on", action="store_true", help="count failures instead of stopping at the first"
    )
    parser.add_argument("--services", action="store_true", help="schedules of whole services")
    parser.add_argument(
        "--protocol",
        choices=("classic", "consumer", "mixed", "registry"),
        default="classic",
        help="of the members: consumer and registry (by ZooKeeper) are for services, mixed for light ones",
    )
    parser.add_argument("--transactions", action="store_true", help="schedules of transactions")
    parser.add_argument("--cluster", action="store_true", help="schedules of several brokers")
    parser.add_argument("--share-groups", action="store_true", help="the same with a share group")
    parser.add_argument("--share-consumers", action="store_true", help="of the consumer of share groups")
    parser.add_argument("--share-services", action="store_true", help="of services on share groups")
    given = parser.parse_args()
    if given.crashes and any(getattr(given, kind) for kind in KINDS):
        parser.error("--crashes are of the coordinator's schedules: give no other kind")
    if given.protocol in (("mixed",) if given.services else ("consumer", "registry")):
        parser.error("--protocol consumer and registry go with --services, mixed goes without")
    left_out = [name for name in given.without.split(",") if name]
    run, show = next((KINDS[name] for name in KINDS if getattr(given, name)), (simulate, trace))
    options: dict[str, Any] = {"protocol": given.protocol} if run in (simulate, simulate_service) else {}
    if given.crashes:
        options["crashes"] = given.crashes
    if given.seed is not None:
        lines, violation = show(given.seed, left_out=left_out, **options)
        print("\n".join(lines))
        print("every invariant holds" if violation is None else violation)
        return 0 if violation is None else 1
    began = time.process_time()
    try:
        seeds = _report_progress(range(given.first, given.first + given.seeds))
        report = run(seeds, left_out=left_out, go_on=given.go_on, **options)
    except SimulationFailed as failure:
        print(failure)
        return 1
    seconds = time.process_time() - began
    print(f"{report}\n{given.seeds / seconds:.0f} schedules a second")
    for seed, name in report.failed.items():
        print(f"seed {seed}: {name}")
    return 1 if report.failed else 0


def _report_progress(seeds: range) -> Iterator[int]:
    """The seeds, with a line about how far they are on standard error every ten seconds."""
    told = time.monotonic()
    for number, seed in enumerate(seeds):
        if time.monotonic() - told > 10:
            told = time.monotonic()
            print(f"{number:,} of {len(seeds):,} schedules, at seed {seed}", file=sys.stderr, flush=True)
        yield seed


if __name__ == "__main__":
    sys.exit(main())
