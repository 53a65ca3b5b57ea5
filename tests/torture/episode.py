"""One run: a broker, its clients and the nemesis, from the first record to the verdict."""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from kohort.protocol import BatchHeader, iter_batches
from tests.broker_process import QUICK_SETTINGS, BrokerProcess
from tests.torture.broken_machine import Control
from tests.torture.checker import Anomaly, check, set_back
from tests.torture.clients import MEMBERS, READERS
from tests.torture.disk import data_disk
from tests.torture.history import History
from tests.torture.load import create_topic
from tests.torture.nemesis import FAULTS, Machine, Nemesis, may_overlap
from tests.torture.proxy import Proxy
from tests.torture.tap import Tap
from tests.torture.workload import (
    GROUP,
    SIMPLE_GROUP,
    ConfluentProducer,
    GroupMember,
    KafkaPythonProducer,
    Observer,
    Reader,
    SimpleCommitter,
    Worker,
    end_offsets,
    read_all,
)

TOPIC, PARTITIONS = "orders", 4
#: Healed, the group has to reach the end of every partition; after so long without a step the members of
#: other makes are replaced, once (some hang now and then, with any broker); after that the group is stuck.
SETTLE_S = 60.0
SETTINGS = {**QUICK_SETTINGS, "offsets.topic.num.partitions": "5", "log.segment.bytes": "262144"}


@dataclass(slots=True)
class Outcome:
    """What a run did and what is wrong with it."""

    seed: int
    seconds: float
    disk: str
    faults: Counter[str]
    counts: Counter[str] = field(default_factory=Counter)
    anomalies: list[Anomaly] = field(default_factory=list)
    story: list[str] = field(default_factory=list)
    failures: dict[str, int] = field(default_factory=dict)

    def summary(self) -> str:
        """One line for people."""
        done = ", ".join(f"{count} {what}" for what, count in self.counts.items())
        caused = ", ".join(f"{name} {count}" for name, count in sorted(self.faults.items()))
        return f"seed {self.seed}, {self.seconds:.0f} s: {len(self.anomalies)} anomalies; {done}; {caused}"


@contextmanager
def machine(
    folder: Path, seed: int, history: History, settings: Mapping[str, str] = SETTINGS
) -> Iterator[Machine]:
    """A broker behind a proxy, on a machine that can be broken."""
    folder.mkdir(parents=True)
    tap = Tap(history)
    control = Control(folder / "control")
    with data_disk(folder / "data") as disk:
        proxy = Proxy(lambda: broker.port, tap=tap, seed=seed)
        advertised = f"PLAINTEXT://127.0.0.1:{proxy.port}"
        broker = BrokerProcess(
            folder,
            data=disk.folder,
            settings={**settings, "advertised.listeners": advertised},
            program=(str(Path(__file__).with_name("broken_machine.py")), str(control.path)),
        )
        try:
            broker.start()
            yield Machine(broker, proxy, disk, control, tap)
        finally:
            if broker.alive:
                broker.kill()
            proxy.close()


def run(folder: Path, seed: int, *, rampage_s: float | None = None) -> Outcome:
    """Break everything for ``rampage_s``, or each thing once; then heal, let the clients finish, judge."""
    began = time.monotonic()
    for name in ("kafka", "aiokafka", "kohort", "torture"):
        # thousands of lines about a broker that cannot be reached, which is as it should be
        logging.getLogger(name).setLevel(logging.CRITICAL)
    history = History()
    with machine(folder, seed, history) as broken:
        bootstrap = f"127.0.0.1:{broken.proxy.port}"
        create_topic(bootstrap, TOPIC, PARTITIONS)
        nemesis = Nemesis(broken, seed, FAULTS, may_overlap)
        crew = Crew(history, bootstrap)
        crew.start()
        time.sleep(1.0)
        if rampage_s is None:
            nemesis.each_once(longest_s=0.6)
        else:
            nemesis.rampage(rampage_s)
        ends, caught_up = crew.finish()
        history.final = read_all(bootstrap, TOPIC, PARTITIONS)
        broken.kill()
        broken.broker.start()
        again = read_all(bootstrap, TOPIC, PARTITIONS)
        for group in (GROUP, SIMPLE_GROUP):
            crew.observer.ask_once(group)
        anomalies = judged(history, broken.disk.folder)
        if again != history.final:
            anomalies.append(Anomaly("lost write", "a last SIGKILL changed what is in the log"))
        if not caught_up:
            anomalies.append(Anomaly("stuck group", f"offsets do not reach {ends}: {crew.holdings()}"))
        exit_code = broken.broker.stop()
        if exit_code:
            anomalies.append(Anomaly("stop", f"exit code {exit_code}\n{broken.broker.log[-2000:]}"))
        nemesis.caused["SIGKILL"] += 1
        outcome = Outcome(seed, time.monotonic() - began, broken.disk.kind, nemesis.caused)
        outcome.anomalies, outcome.story = anomalies, nemesis.story
        outcome.counts = counts(history, crew, [broken.proxy])
        outcome.failures = {f"{w.name}: {k}": n for w in crew.everyone for k, n in w.failures.items()}
        outcome.failures.update(history.refused)
        back = set_back(history)
        outcome.story += [f"taken back: {text}" for text in back]
        outcome.counts["commits that came late, below a later one, and were taken"] = len(back)
        replaced = sum(n for what, n in outcome.failures.items() if "replaced" in what)
        outcome.counts["times that hanging clients of other makes had to be replaced"] = replaced
    return outcome


def judged(history: History, folder: Path) -> list[Anomaly]:
    """Everything that is wrong, with what producers said of the batches in the data ``folder``."""
    return [
        anomaly._replace(text="; ".join([anomaly.text, *map(str, _batches(anomaly, folder))]))
        for anomaly in check(history)
    ]


def _batches(anomaly: Anomaly, folder: Path) -> list[BatchHeader]:
    """The headers of the batches that it is about."""
    headers = []
    for partition, offset in anomaly.places:
        for path in sorted((folder / f"{TOPIC}-{partition}").glob("*.log")):
            batches = [header for _, header in iter_batches(path.read_bytes())]
            headers += [header for header in batches if header.base_offset <= offset <= header.last_offset]
    return headers


class Crew:
    """All the clients of a run; ``others`` are members of other groups."""

    def __init__(self, history: History, bootstrap: str, others: Sequence[GroupMember] = ()) -> None:
        place = (history, bootstrap, TOPIC)
        self.history, self.bootstrap = history, bootstrap
        self._groups = sorted({GROUP, *(other.group for other in others)})
        self.producers: list[Worker] = [
            ConfluentProducer("confluent-1", *place, PARTITIONS),
            ConfluentProducer("confluent-2", *place, PARTITIONS),
            KafkaPythonProducer("kafka-python", *place, PARTITIONS),
        ]
        self.members = [*(GroupMember(make, *place) for make in MEMBERS), *others]
        self.readers = [Reader(make, *place, PARTITIONS) for make in READERS]
        self.committer = SimpleCommitter(*place)
        self.observer = Observer(history, bootstrap)
        #: What members of other makes held that had to be replaced, because their groups stood still.
        self.stood_still: dict[str, str] = {}
        self.everyone: list[Worker] = [
            *self.producers,
            *self.members,
            *self.readers,
            self.committer,
            self.observer,
        ]

    def start(self) -> None:
        for worker in self.everyone:
            worker.start()

    def holdings(self) -> dict[str, str]:
        """The partitions that each member holds, and the call that it is in."""
        return {member.name: f"{sorted(member.held)} in {member.call}" for member in self.members}

    def finish(self) -> tuple[dict[int, int], bool]:
        """End the writing, wait until the group has everything, end the rest; where the partitions end and
        whether the group got there.
        """
        _end(self.producers)
        ends = end_offsets(self.bootstrap, TOPIC, PARTITIONS)
        caught_up = self._catch_up(ends)
        if not caught_up:
            held = self.holdings()
            for member in self.members:
                if member.name != "member kohort":
                    self.stood_still[member.name] = held[member.name]
                    member.failures[f"replaced, it held {sorted(member.held)}"] += 1
                    member.renew.set()
            caught_up = self._catch_up(ends)
        _end([*self.members, *self.readers, self.committer, self.observer])
        return ends, caught_up

    def _catch_up(self, ends: dict[int, int]) -> bool:
        reached: list[dict[int, int]] = []
        deadline = time.monotonic() + SETTLE_S
        while time.monotonic() < deadline:
            before, reached = reached, [self.observer.ask_once(group) for group in self._groups]
            if all(found.get(number, 0) >= end for found in reached for number, end in ends.items()):
                return True
            if reached != before:
                deadline = time.monotonic() + SETTLE_S
            time.sleep(0.2)
        return False


def _end(workers: list[Worker]) -> None:
    for worker in workers:
        worker.stop()
    for worker in workers:
        worker.join()


def counts(history: History, crew: Crew, proxies: Sequence[Proxy]) -> Counter[str]:
    groups = history.groups.values()
    return Counter(
        {
            "records acknowledged": sum(len(sent) for sent in history.sent.values()),
            "records read": sum(len(got) for s in history.sessions for got in s.got.values()),
            "records given to the group": sum(len(got) for g in groups for got in g.handled.values()),
            "commits acknowledged": sum(len(group.acknowledged) for group in groups),
            "commits on the wire": sum(len(group.wire) for group in groups),
            "offsets looked at": sum(len(group.seen) for group in groups),
            "clients begun anew": sum(sum(w.failures.values()) for w in crew.everyone)
            + len(history.sessions),
            "connections": sum(proxy.connections for proxy in proxies),
            "connections cut": sum(proxy.cuts for proxy in proxies),
        }
    )


if __name__ == "__main__":
    for found in (run(Path(sys.argv[1]) / sys.argv[2], int(sys.argv[2]), rampage_s=float(sys.argv[3])),):
        print(found.summary(), *found.story, found.failures, *found.anomalies, sep="\n")
