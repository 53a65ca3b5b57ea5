"""``python -m tests.foreign [SUITE...]``: the tests of other makers' clients, on kohort or an Apache Kafka.

Each suite runs on a broker of its own, kohort's unless ``--apache-kafka`` or ``--bootstrap`` says otherwise.
The suites are kept in ${XDG_CACHE_HOME:-~/.cache}/kohort/foreign, what they print in its folder ``logs``. The
exit code is 1 if a suite came to something else than measured.json says; one that cannot run here is named
and passed over.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

from tests.foreign import expectations
from tests.foreign.brokers import APACHE_KAFKA, KOHORT, Ports, Target, serve
from tests.foreign.expectations import Figures
from tests.foreign.results import Outcome, Results, count
from tests.foreign.suites import SUITES, Command, LeftOutError, Suite

PROGRESS_S = 15.0
_ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    arguments = _arguments()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kohort" / "foreign"
    (cache / "logs").mkdir(parents=True, exist_ok=True)
    name = APACHE_KAFKA if arguments.apache_kafka or arguments.bootstrap else KOHORT
    expected = expectations.load()
    measured: expectations.Measured = {}
    different = 0
    for suite in SUITES:
        if arguments.suites and suite.name not in arguments.suites:
            continue
        try:
            figures = _run(suite, name, arguments.bootstrap, cache)
        except LeftOutError as why:
            _say(suite, f"left out: {why}")
            continue
        recorded = expected.get(suite.name, {}).get(name)
        lines = expectations.differences(recorded, figures, same_size=not arguments.bootstrap)
        for line in lines:
            _say(suite, line)
        different += bool(lines)
        measured[suite.name] = {name: figures}
    if arguments.update_docs:
        # read again: others may have been recorded meanwhile
        expectations.store(expectations.merge(expectations.load(), measured))
        subprocess.run([sys.executable, str(_ROOT / "scripts" / "generated_docs.py")], check=True)
        return 0
    return 1 if different else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.foreign", description="Run the tests of other makers' clients."
    )
    parser.add_argument("suites", nargs="*", metavar="SUITE", help="all unless named")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--apache-kafka", action="store_true", help="on an Apache Kafka that scripts/apache-kafka starts"
    )
    where.add_argument(
        "--bootstrap", metavar="HOST:PORT", help="on a cluster that runs; tests that log in are left out"
    )
    parser.add_argument(
        "--update-docs", action="store_true", help="record the figures, and write them into docs/"
    )
    arguments = parser.parse_args()
    unknown = set(arguments.suites) - {suite.name for suite in SUITES}
    if unknown:
        parser.error(
            f"there is no suite {', '.join(sorted(unknown))}; there are "
            + ", ".join(suite.name for suite in SUITES)
        )
    if arguments.bootstrap and arguments.update_docs:
        parser.error("--update-docs records brokers with the settings of the suites: leave out --bootstrap")
    return arguments


def _run(suite: Suite, name: str, bootstrap: str | None, cache: Path) -> Figures:
    """Run it to its end, and what failed once more: many tests have time limits that a busy machine breaks.

    Raises LeftOutError where it cannot run.
    """
    if bootstrap and suite.ports:
        raise LeftOutError(f"it looks for a broker on port {suite.ports.plain} of localhost alone")
    folder = suite.prepare(suite, cache)
    log = cache / "logs" / f"{suite.name}.{name}"
    given = Target(name, bootstrap, None) if bootstrap else None
    with tempfile.TemporaryDirectory() as beside:
        ports = suite.ports or Ports.free()
        with nullcontext(given) if given else serve(name, ports, suite.settings, Path(beside)) as target:
            _say(suite, f"{suite.version} on {name}, {target.bootstrap}; its output is in {log}")
            results = _watch(suite, suite.command(suite, folder, target, ()), log)
            failed = [name for name, outcome in results.items() if outcome is Outcome.FAILED]
            if failed:
                _say(suite, f"{count(results)}; once more, by themselves: {', '.join(failed)}")
                again = _watch(
                    suite,
                    suite.command(suite, folder, target, failed),
                    log.with_suffix(f"{log.suffix}-again"),
                )
                results |= {name: again[name] for name in failed if again.get(name) is Outcome.PASSED}
    _say(suite, f"{count(results)} on {name}")
    return Figures.of(suite, results)


def _watch(suite: Suite, command: Command, log: Path) -> Results:
    """Run the command, say how far it is, and end it when its time is over."""
    deadline = time.monotonic() + suite.limit_s
    with log.open("wb") as output:
        process = subprocess.Popen(
            command.words,
            cwd=command.folder,
            env={**os.environ, **command.environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            said = ""
            while process.poll() is None and time.monotonic() < deadline:
                try:
                    process.wait(PROGRESS_S)
                except subprocess.TimeoutExpired:
                    said = _say_progress(suite, log, said)
            if process.poll() is None:
                _say(suite, f"ended after {suite.limit_s:.0f} s: what had not passed has failed")
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return expectations.complete(suite, suite.read(log.read_text(errors="replace")))


def _say_progress(suite: Suite, log: Path, said: str) -> str:
    """Print how far the suite is, unless that was said; return what was said."""
    # the last to begin are counted as failed until they end: of no interest yet
    now = count(suite.read(log.read_text(errors="replace")))
    if now != said:
        _say(suite, f"so far {now}, those under way included")
    return now


def _say(suite: Suite, text: str) -> None:
    print(f"{suite.name}: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
