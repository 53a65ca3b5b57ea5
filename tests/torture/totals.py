"""What several runs come to, as a section of the report."""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.reliability_report import table
from tests.torture.checker import ANOMALIES, Anomaly
from tests.torture.episode import Outcome

INTRO = """
## Real processes

A broker runs in its own process behind a proxy. Its clients are three idempotent producers (two librdkafka,
one kafka-python), a group with one consumer each of kohort, librdkafka, kafka-python and aiokafka, two
readers without a group, a client that commits offsets without being a member, and a client that keeps asking
for committed offsets. A seed draws the faults; one or two are active at a time. At the end all faults are
healed, the group must reach the end of the log, and everything is read; then the broker is killed once more
and everything is read again. The history is checked as Jepsen checks its Kafka workload, and commits are
checked against what the proxy saw on the wire. `tests/torture/test_everything_breaks.py`
""".strip()


@dataclass(slots=True)
class Totals:
    """Sums over runs. ``kinds`` of anomalies have a row each, with what they mean."""

    intro: str
    kinds: Mapping[str, str] = field(default_factory=lambda: ANOMALIES)
    runs: int = 0
    seconds: float = 0.0
    first_seed: int | None = None
    faults: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    anomalies: list[tuple[int, Anomaly]] = field(default_factory=list)
    disks: set[str] = field(default_factory=set)

    def add(self, outcome: Outcome) -> None:
        if self.first_seed is None:
            self.first_seed = outcome.seed
        self.runs += 1
        self.seconds += outcome.seconds
        self.faults += outcome.faults
        self.counts += outcome.counts
        self.disks.add(outcome.disk)
        self.anomalies += [(outcome.seed, anomaly) for anomaly in outcome.anomalies]

    def report(self) -> str:
        """The section."""
        found = Counter(anomaly.kind for _, anomaly in self.anomalies)
        machine = f"{os.cpu_count()} processors, Python {platform.python_version()}, {platform.system()}"
        length = f"{self.runs} runs from seed {self.first_seed} on, {self.seconds / 60:.0f} minutes together"
        disks = ", ".join(sorted(self.disks))
        parts = [
            self.intro,
            f"{length}, {self.faults.total()} faults, {machine}; the data folder: {disks}.",
            table(("fault", "times"), sorted(self.faults.items())),
            table(("what was done and looked at", "times"), list(self.counts.items())),
            table(
                ("anomaly", "what it would mean", "found"),
                [(kind, meaning, found.pop(kind, 0)) for kind, meaning in self.kinds.items()],
            ),
        ]
        if found:
            parts.append(table(("other", "found"), list(found.items())))
        if self.anomalies:
            parts.append("\n".join(f"- seed {seed}: {anomaly}" for seed, anomaly in self.anomalies[:50]))
        return "\n\n".join(parts)
