"""How long from the start of the process until a broker serves; Apache Kafka beside it where it is installed.

``python -m benchmarks.startup [--runs 10] [--kafka-runs 3]``

*ready* is the ready line on standard output (for Apache Kafka: the first connection accepted), *answered* the
answer to a first ApiVersions request on a new connection.
"""

from __future__ import annotations

import argparse
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from ._brokers import ENVIRONMENT, SCRIPT, first_answer

KAFKA_PORT = 19392


def kohort_once() -> tuple[float, float]:
    """Seconds to the ready line and to the first answer of one start on an empty data folder."""
    with tempfile.TemporaryDirectory() as data:
        command = [sys.executable, "-m", "kohort", "broker", "--port", "0", "--data", data]
        start = time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
            assert process.stdout is not None
            line = next(line for line in process.stdout if line.startswith("kohort broker ready on "))
            ready = time.perf_counter() - start
            first_answer(int(line.rsplit(":", 1)[1]), ended=lambda: process.poll() is not None)
            first = time.perf_counter() - start
            process.send_signal(signal.SIGTERM)
            process.wait(30)
    return ready, first


def kafka_once() -> tuple[float, float]:
    """The same for Apache Kafka, from formatting its folder on, as the project's script starts it."""
    start = time.perf_counter()
    subprocess.run([SCRIPT, "start", str(KAFKA_PORT)], check=True, capture_output=True)
    ready = time.perf_counter() - start
    first_answer(KAFKA_PORT, ended=lambda: False)
    first = time.perf_counter() - start
    subprocess.run([SCRIPT, "stop", str(KAFKA_PORT)], check=True, capture_output=True)
    return ready, first


def show(name: str, times: list[tuple[float, float]]) -> None:
    for label, values in zip(("ready", "answered"), zip(*times, strict=True), strict=True):
        low, middle, high = min(values), statistics.median(values), max(values)
        print(f"{name:<22} {label:<9} {low:8.3f} {middle:8.3f} {high:8.3f}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--kafka-runs", type=int, default=0, help="starts of Apache Kafka; needs Java, Maven")
    options = parser.parse_args()
    print(f"{'seconds':<32} {'min':>8} {'median':>8} {'max':>8}")
    kohort_once()  # the first start of all compiles the byte code
    show("kohort broker", [kohort_once() for _ in range(options.runs)])
    if options.kafka_runs:
        show("Apache Kafka (script)", [kafka_once() for _ in range(options.kafka_runs)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
