"""One run of a cluster: brokers, clients, processors and the nemesis, from the first record to the verdict.

``python -m tests.torture.cluster_episode --faults 500 --seed 1`` makes one run after the other, each of
FAULTS_A_RUN faults with a seed of its own. Each leaves its counts in ``--folder``, where further runs go on
counting, and one with a violation everything else, too.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import multiprocessing
import os
import pickle
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import kafka

from kohort.client import Cluster
from kohort.client.requests import GROUP as GROUP_KEY
from kohort.client.requests import TRANSACTION as TRANSACTION_KEY
from kohort.log._records import decode_records
from kohort.protocol import iter_batches
from tests.reliability_report import write_section
from tests.torture.broken_machine import PLANTED
from tests.torture.checker import ANOMALIES, Anomaly, set_back
from tests.torture.cluster_machine import NODES, ClusterMachine, cluster_machine
from tests.torture.cluster_nemesis import FAULTS, LONG, may_overlap
from tests.torture.disk import SIZE_MIB
from tests.torture.episode import PARTITIONS, TOPIC, Crew, Outcome, counts, judged
from tests.torture.history import History
from tests.torture.load import create_topic
from tests.torture.nemesis import Nemesis
from tests.torture.network import problem
from tests.torture.packet_loss import loss_problem
from tests.torture.planted import bug_named
from tests.torture.processors import PARTITIONS as NUMBERED
from tests.torture.processors import (
    PROGRAMS,
    Processor,
    disorder,
    processors,
    read_committed,
    unfinished,
)
from tests.torture.test_kill_under_load import confluent_numbers
from tests.torture.totals import Totals
from tests.torture.workload import GROUP, SIMPLE_GROUP, GroupMember, read_all

FAULTS_A_RUN = 60
#: A group of the protocol of KIP-848, and one whose only member never has a reason to join again.
NEW_GROUP, STEADY_GROUP = "shipping", "archive"
#: Sessions of the latter's member last for longer than anything here.
PATIENCE_MS = 300_000
#: Transactions of processors that do not end in time are aborted; their sessions are twice as long.
TRANSACTION_MS = 4_000
#: Once everything is healed they have more time: on a machine that is busy beyond measure no transaction is
#: done in four seconds, and they would begin it for ever.
HEALED_TRANSACTION_MS = 16_000
#: Seconds without another number until they are taken to hang: longer than until such a process is ended.
SETTLE_S = 200.0
#: Seconds between two numbers of a partition.
PACE_S = 0.08
#: Seconds between two faults, and in which replicas have to be equal when nobody writes any more.
SHORTEST_S, LONGEST_S, EQUAL_S = 0.1, 1.2, 60.0

#: Room for each topic that nobody writes to, and how many are created in a request.
_TOPIC_KIB, _AT_ONCE = 32, 200

#: What is looked for besides what the history shows.
KINDS = ANOMALIES | {
    "exactly once": "the processors' output has a number twice or out of order, or lacks one before another",
    "stuck processors": "processors did not get to the end of the numbers",
    "stuck group": "a group did not get to the end of the log",
    "group stood still": "a group got there only when members of other makes were replaced",
    "given up": "a producer gave a record up",
    "not whole": "some replicas were not in sync again, or a partition had no leader, when all was healed",
    "replicas differ": "replicas in sync have different records",
    "two leaders": "two brokers led a partition in the same leader epoch",
    "files removed": "a broker removed a partition that nobody had deleted",
    "ended": "a broker ended, or did not serve again after a full disk, though nobody had stopped it",
    "stop": "a broker ended by SIGTERM with an error in the end",
    "broken off": "the run could not go on",
}

_INTRO = """
## A cluster of real processes

Three brokers run in network namespaces of their own, each on a disk of its own, with three ZooKeeper
servers. The clients are those of a single broker's run (above), and a group of the consumer protocol
(KIP-848; librdkafka and kohort), a group with one member that never has a reason to join again, and three
processors that work in transactions (librdkafka or kohort). Topics have three replicas and
`min.insync.replicas=2`. A seed draws the faults; one or two are active at a time. At the end everything is
healed: all replicas must get in sync, all groups reach the end, and the replicas' files must be equal; then
all brokers are killed once more and everything is read again. The history is checked as above; offsets of
groups may not go back when their coordinator moves, no partition may have two owners in a generation, and
the processors' output must have each number once and in order. A run in which a group or the processors do
not get to the end counts as any other. `make torture-cluster`, `tests/torture/cluster_episode.py`
""".strip()


def run(folder: Path, seed: int, faults: int, tell: Callable[[str], object], more_topics: int = 0) -> Outcome:
    """Cause so many faults; then heal, let the clients finish, judge. ``folder`` stays. The cluster has
    ``more_topics`` that nobody writes to.
    """
    began = time.monotonic()
    for name in ("asyncio", "kafka", "aiokafka", "kohort", "kazoo"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    told = logging.getLogger("torture")
    told.handlers[:] = [logging.FileHandler(folder / "producers.log", delay=True)]
    told.handlers[0].setFormatter(logging.Formatter("%(asctime)s %(name)s %(message)s"))
    told.setLevel(logging.DEBUG)
    told.propagate = False
    # all that members of librdkafka do, for whoever has to find out why one does nothing any more
    _keep_standard_error(folder / "members.log")
    # proxies are in this process too, beside twenty threads
    sys.setswitchinterval(0.0005)
    history, rng = History(), random.Random(seed)
    history.group(GROUP)
    history.group(SIMPLE_GROUP, follows_records=False)
    history.group(NEW_GROUP, has_epochs=True)
    history.group(STEADY_GROUP, steady=True)
    program = rng.choice(list(PROGRAMS))
    disk_mib = SIZE_MIB + more_topics * _TOPIC_KIB // 1_024
    with cluster_machine(folder, seed, history, disk_mib) as broken:
        bootstrap = broken.bootstrap
        for topic, partitions in ((TOPIC, PARTITIONS), ("source", NUMBERED), ("target", NUMBERED)):
            _create(bootstrap, topic, partitions)
        _create_more(broken, more_topics, tell)
        asyncio.run(_find_coordinators(bootstrap))
        assert broken.become_whole(), broken.states()
        broken.keep_entries()
        broken.copy_metadata()
        tell(f"three brokers serve after {time.monotonic() - began:.0f} s; processors: {program}")
        nemesis = Nemesis(broken, seed, FAULTS, may_overlap, tell)
        place = (history, bootstrap, TOPIC)
        crew = Crew(
            history,
            bootstrap,
            [
                GroupMember("confluent-kafka", *place, NEW_GROUP, protocol="consumer"),
                GroupMember("kohort", *place, NEW_GROUP, protocol="consumer"),
                GroupMember("kohort", *place, STEADY_GROUP, patience_ms=PATIENCE_MS),
            ],
        )
        for worker in (*crew.producers, crew.committer):
            worker.pace_s = PACE_S
        feeders = [
            confluent_numbers(bootstrap, "source", each, "none", pause_s=PACE_S) for each in range(NUMBERED)
        ]
        anomalies: list[Anomaly] = []
        numbers: list[int] = []
        try:
            arguments = (bootstrap, "source", "target", "exactly-once", str(TRANSACTION_MS))
            with processors(folder / "processors", program, *arguments) as tended:
                crew.start()
                for feeder in feeders:
                    feeder.start()
                _rampage(broken, nemesis, rng, tended, faults)
                anomalies += _healed(broken)
                tell("healed")
                for feeder in feeders:
                    feeder.stop()
                numbers = [feeder.sent for feeder in feeders]
                for each in tended:
                    each.arguments = (*arguments[:-1], str(HEALED_TRANSACTION_MS))
                committed = read_committed(bootstrap, "target", numbers, tended, SETTLE_S)
                if stuck := unfinished(numbers, committed):
                    anomalies.append(Anomaly("stuck processors", f"{program}: {'; '.join(stuck)}"))
                    numbers = [len(each) for each in committed]
                anomalies += [Anomaly("exactly once", text) for text in disorder(numbers, committed)]
            tell(f"processors are done, {sum(each.begun for each in tended)} were begun")
            anomalies += _finished(broken, crew, history, tell)
            anomalies += judged(history, broken.nodes[1].disk.folder)
        except Exception:
            # there is nothing to judge by
            anomalies.append(Anomaly("broken off", traceback.format_exc()))
        anomalies += [
            Anomaly("given up", f"{times} records of {who}") for who, times in history.refused.items()
        ]
        anomalies += [Anomaly("two leaders", text) for text in broken.watch.conflicts]
        anomalies += [Anomaly("ended", text) for text in broken.ended]
        anomalies += [Anomaly("files removed", text) for text in broken.removed]
        nemesis.caused["SIGKILL of all brokers at once"] += 1
        outcome = Outcome(seed, time.monotonic() - began, broken.nodes[1].disk.kind, nemesis.caused)
        outcome.anomalies, outcome.story = anomalies, nemesis.story
        outcome.counts = counts(history, crew, [node.clients for node in broken.nodes.values()])
        outcome.counts["numbers processed, each committed once"] = sum(numbers)
        outcome.counts["terms of leaders of partitions"] = broken.watch.terms
        outcome.counts["commits that came late, below a later one, and were taken"] = len(set_back(history))
        outcome.failures = {f"{w.name}: {k}": n for w in crew.everyone for k, n in w.failures.items()}
        outcome.failures.update(history.refused)
        if anomalies:
            _keep(folder, broken, history, outcome)
    return outcome


def _keep_standard_error(path: Path) -> None:
    """What libraries in C print there goes to a file; Python's goes where it went."""
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1)
    with path.open("wb") as file:
        os.dup2(file.fileno(), 2)


def _healed(broken: ClusterMachine) -> list[Anomaly]:
    if broken.become_whole():
        return []
    return [Anomaly("not whole", broken.states())]


def _finished(
    broken: ClusterMachine, crew: Crew, history: History, tell: Callable[[str], object]
) -> list[Anomaly]:
    """Let the clients finish, read everything; kill all brokers, and read everything again."""
    found = []
    ends, caught_up = crew.finish()
    if not caught_up:
        found.append(Anomaly("stuck group", f"offsets do not reach {ends}: {crew.holdings()}"))
    elif crew.stood_still:
        found.append(Anomaly("group stood still", f"replaced, with what they held: {crew.stood_still}"))
    tell("groups are done")
    history.final = read_all(broken.bootstrap, TOPIC, PARTITIONS)
    found += [Anomaly("replicas differ", text) for text in _differences(broken)]
    for node in broken.nodes.values():
        node.kill()
    for node in broken.nodes.values():
        node.start()
    found += _healed(broken)
    if read_all(broken.bootstrap, TOPIC, PARTITIONS) != history.final:
        found.append(Anomaly("lost write", "a last SIGKILL of all changed what is in the log"))
    for group in (GROUP, SIMPLE_GROUP, NEW_GROUP, STEADY_GROUP):
        crew.observer.ask_once(group)
    for node in broken.nodes.values():
        node.busy = True
        if node.broker.stop() != 0:
            found.append(Anomaly("stop", node.broker.log[-2_000:]))
    return found


async def _find_coordinators(bootstrap: str) -> None:
    """Have the coordinators' topics made: a copy of the metadata without them is of no use to groups."""
    async with Cluster(bootstrap, default_api_timeout_ms=int(EQUAL_S * 1_000)) as client:
        for key_type in (GROUP_KEY, TRANSACTION_KEY):
            await client.coordinator("first", key_type)


def _create(bootstrap: str, topic: str, partitions: int) -> None:
    """Create a topic; on a busy machine a broker may be missed for a moment before anything is broken."""
    deadline = time.monotonic() + EQUAL_S
    while True:
        try:
            create_topic(bootstrap, topic, partitions, len(NODES))
            return
        except kafka.errors.TopicAlreadyExistsError:
            return
        except kafka.errors.KafkaError:
            assert time.monotonic() < deadline, f"{topic} cannot be created"
            time.sleep(0.5)


def _create_more(broken: ClusterMachine, count: int, tell: Callable[[str], object]) -> None:
    """Create topics of one partition each."""
    began = time.monotonic()
    with contextlib.closing(kafka.KafkaAdminClient(bootstrap_servers=broken.bootstrap)) as admin:
        for first in range(0, count, _AT_ONCE):
            rows: dict[str, dict[str, int]] = {
                f"quiet-{number}": {} for number in range(first, min(first + _AT_ONCE, count))
            }
            admin.create_topics(rows, timeout_ms=1_000 * int(EQUAL_S))
    if count:
        tell(f"{count} more topics are there after {time.monotonic() - began:.0f} s")


def _rampage(
    broken: ClusterMachine,
    nemesis: Nemesis[ClusterMachine],
    rng: random.Random,
    tended: Sequence[Processor],
    faults: int,
) -> None:
    long_at = rng.randrange(3 * faults)
    while nemesis.caused.total() < faults:
        if nemesis.caused.total() >= long_at and not nemesis.caused[LONG.name]:
            nemesis.cause([LONG])
        elif rng.random() < 0.1:
            rng.choice(tended).kill(forget=rng.random() < 0.3)
            nemesis.caused["SIGKILL of a processor"] += 1
        else:
            nemesis.once()
        end = time.monotonic() + rng.uniform(SHORTEST_S, LONGEST_S)
        while time.monotonic() < end:
            broken.tend()
            for each in tended:
                each.tend()
            time.sleep(0.05)


def _differences(broken: ClusterMachine) -> list[str]:
    """Which replicas differ though nobody writes any more."""
    end = time.monotonic() + EQUAL_S
    while True:
        found = []
        for topic in broken.watch.image.topics():
            for number in range(len(topic.partitions)):
                name = f"{topic.name}-{number}"
                logs = [_content(node.disk.folder / name, topic.internal) for node in broken.nodes.values()]
                if any(log != logs[0] for log in logs):
                    found.append(f"{name}: {[len(log) for log in logs]}")
        if not found or time.monotonic() > end:
            return found
        time.sleep(0.5)


def _content(folder: Path, compacted: bool) -> Any:
    """The bytes of a partition; the last value of each key where others may be gone."""
    data = [path.read_bytes() for path in sorted(folder.glob("*.log"))]
    if not compacted:
        return b"".join(data)
    last: dict[bytes | None, bytes | None] = {}
    for each in data:
        for position, header in iter_batches(each):
            if not header.control:
                last.update((found[2], found[3]) for found in decode_records(each, header, position))
    return {key: value for key, value in last.items() if value is not None}


def _keep(folder: Path, broken: ClusterMachine, history: History, outcome: Outcome) -> None:
    """Keep everything that says what happened: the disks are gone afterwards."""
    for node in broken.nodes.values():
        shutil.copytree(node.disk.folder, folder / str(node.node_id) / "kept")
    shutil.copytree(broken.ensemble.folder, folder / "zookeeper")
    (folder / "history.pickle").write_bytes(pickle.dumps(vars(history) | {"_ticks": None}))
    lines = [outcome.summary(), *outcome.story, *map(str, outcome.failures.items())]
    (folder / "story").write_text("\n".join([*lines, *map(str, outcome.anomalies)]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1, help="of the first run; the next have the next ones")
    parser.add_argument(
        "--folder", type=Path, help="where counts and what a violation leaves are kept (a temporary one)"
    )
    parser.add_argument("--report", type=Path, help="what gets the counts (docs/reports/reliability.md)")
    parser.add_argument(
        "--topics", type=int, default=0, help="so many more that nobody writes to (0); 10,000 need 20 GB"
    )
    parser.add_argument(
        "--plant", metavar="BUG", help="a bug of tests/torture/planted.py, or the simulator's: is it found?"
    )
    given = parser.parse_args()
    if given.plant is not None:
        try:
            bug_named(given.plant)
        except ValueError as error:
            parser.error(str(error))
        os.environ[PLANTED] = given.plant
    reason = problem() or loss_problem()
    if reason is not None:
        parser.error(reason)
    # the run goes with it
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    home = given.folder or Path(tempfile.mkdtemp(prefix="torture-cluster-"))
    home.mkdir(parents=True, exist_ok=True)
    seed, fresh = given.seed, multiprocessing.get_context("spawn")
    while (done := _totals(home).faults.total()) < given.faults:
        arguments = (
            home,
            seed,
            min(FAULTS_A_RUN, given.faults - done),
            f"{done}/{given.faults}",
            given.topics,
        )
        # clients that do not end would take the next run's time
        process = fresh.Process(target=_run_seed, args=arguments, daemon=True)
        process.start()
        process.join()
        if process.exitcode:
            return process.exitcode
        if given.report is not None:
            write_section(given.report, "cluster of real processes", _totals(home).report())
        seed += 1
    return bool(_totals(home).anomalies)


def _run_seed(home: Path, seed: int, faults: int, done: str, more_topics: int) -> None:
    """Make one run in a process of its own, which leaves its outcome in ``home``."""
    # namespaces, disks and processes go with it
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    folder, began = home / f"seed-{seed}", time.monotonic()

    def tell(text: str) -> None:
        print(f"[{done} and on, {time.monotonic() - began:4.0f} s] {text}", flush=True)

    print(f"seed {seed}, {faults} faults, {folder}", flush=True)
    outcome = run(folder, seed, faults, tell, more_topics)
    print(outcome.summary(), *outcome.anomalies, sep="\n", flush=True)
    (home / f"seed-{seed}.outcome").write_bytes(pickle.dumps(outcome))
    if outcome.anomalies:
        print(f"what it left is in {folder}; again: make torture-cluster SEED={seed} FAULTS={faults}")
    else:
        shutil.rmtree(folder)
    sys.stdout.flush()
    os._exit(0)


def _totals(home: Path) -> Totals:
    """What all runs came to that have left their counts there."""
    totals = Totals(_INTRO, KINDS)
    for path in sorted(home.glob("*.outcome")):
        totals.add(pickle.loads(path.read_bytes()))
    return totals


if __name__ == "__main__":
    sys.exit(main())
