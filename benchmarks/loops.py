"""Would more event loops serve more? One broker, two in threads of a process, two in processes of their own.

``python -m benchmarks.loops [--rounds 5] [--seconds 3]``

Eight connections keep 64 heartbeats each under way, of groups of one member. Two brokers share nothing, so
they are the most that two event loops of one broker could reach, which would have to hand requests over.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from ._connection import lone_members
from ._load import pump
from ._rows import TOPIC, heartbeat_stream

CONNECTIONS, UNDER_WAY = 8, 64

#: So many brokers, each on a loop in a thread of its own; says where they listen and ends with its input.
SERVE = """
import sys
from contextlib import ExitStack
from kohort.testing import running_broker
with ExitStack() as stack:
    brokers = [stack.enter_context(running_broker()) for _ in range(int(sys.argv[1]))]
    print(*(broker.bootstrap for broker in brokers), flush=True)
    sys.stdin.read()
"""

#: How many brokers each process has.
ARRANGEMENTS = {"one loop": (1,), "two, in threads": (2,), "two, in processes": (1, 1)}


@contextmanager
def brokers(counts: Sequence[int]) -> Iterator[list[str]]:
    """The addresses of that many brokers, process by process."""
    with ExitStack() as stack:
        addresses: list[str] = []
        for count in counts:
            command = [sys.executable, "-c", SERVE, str(count)]
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            stack.enter_context(process)
            assert process.stdout is not None
            addresses += process.stdout.readline().split()
        yield addresses


def heartbeats(counts: Sequence[int], seconds: float) -> float:
    """Answers a second over all connections."""
    with ExitStack() as stack:
        addresses = stack.enter_context(brokers(counts))
        members = [
            member
            for address in addresses
            for member in stack.enter_context(lone_members(address, CONNECTIONS // len(addresses), TOPIC))
        ]
        streams = [heartbeat_stream(member) for member in members]
        pump(streams, UNDER_WAY, seconds / 3)
        return pump(streams, UNDER_WAY, seconds).per_second


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5, help="of which the median counts (default: 5)")
    parser.add_argument("--seconds", type=float, default=3.0, help="each arrangement (default: 3)")
    options = parser.parse_args(argv)
    rates: dict[str, list[float]] = {name: [] for name in ARRANGEMENTS}
    for _ in range(options.rounds):
        for name, counts in ARRANGEMENTS.items():
            rates[name].append(heartbeats(counts, options.seconds))
            print(f"{name:<18} {rates[name][-1]:9,.0f}/s", flush=True)
    alone = statistics.median(rates["one loop"])
    print("\n| event loops | heartbeats/s | beside one |\n| --- | --- | --- |")
    for name, found in rates.items():
        middle = statistics.median(found)
        print(f"| {name} | {middle:,.0f} | {middle / alone:.2f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
