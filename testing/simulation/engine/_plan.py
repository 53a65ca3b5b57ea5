"""The plan of a schedule: its faults, and incidents with their times; kinds of schedules have more."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, Self

#: What may go wrong on the network, by name: (what it is, how likely it is for each message when it is on).
NETWORK: Final[dict[str, tuple[str, float]]] = {
    "drop": ("a request is lost, and its connection breaks some time later", 0.03),
    "delay": ("a request is late by up to a session timeout; what is behind it waits", 0.05),
    "duplicate": ("a request arrives once more, up to three session timeouts later", 0.08),
    "reset": ("a connection breaks, before or after the request has arrived; what was in it is cut", 0.03),
    "early-commit": ("a member commits between its JoinGroup and its SyncGroup", 0.0),
    "lost-answer": ("a request is carried out, and the connection breaks before its answer", 0.03),
}

#: After a power loss, bits of unsynced data may be wrong.
BIT_FLIPS: Final = "bit-flips"


@dataclass(slots=True)
class Incident:
    """Something that happens at one moment; ``who`` and ``draw`` select among what exists at that time."""

    name: str
    at_ms: int
    kind: str
    who: int
    draw: float
    length_ms: int


@dataclass(slots=True)
class SchedulePlan:
    """Everything of a schedule that is drawn beforehand; ``run_seed`` seeds the draws while it runs."""

    seed: int
    run_seed: int
    faults_ms: int
    session_ms: int
    fsync: bool
    topics: dict[str, int]
    network: dict[str, float]
    incidents: list[Incident]
    flips: int = 0

    def names(self) -> list[str]:
        """Return the names of everything that can be left out, the coarsest first."""
        kinds = dict.fromkeys(incident.kind for incident in self.incidents)
        flips = [BIT_FLIPS] if self.flips else []
        return [*self.network, *kinds, *flips, *(i.name for i in self.incidents), *self._who()]

    def _who(self) -> list[str]:
        """Return the processes that can be left out."""
        return []

    def leave_out(self, names: Collection[str]) -> Self:
        """Return the plan without these faults and incidents."""
        self.network = {name: chance for name, chance in self.network.items() if name not in names}
        self.incidents = [i for i in self.incidents if i.name not in names and i.kind not in names]
        if BIT_FLIPS in names:
            self.flips = 0
        return self


def show_faults(
    faults: Mapping[str, tuple[str, float]], above: Mapping[str, tuple[str, float]] | None = None
) -> str:
    """A Markdown table of faults and what happens; of those in a table ``above`` only names, before it."""
    known = [name for name in faults if above and faults[name] == above.get(name)]
    lines = [f"As in groups: {', '.join(f'`{name}`' for name in known)}.", ""] if known else []
    lines += ["| fault | what happens |", "| --- | --- |"]
    lines += [f"| `{name}` | {what} |" for name, (what, _) in faults.items() if name not in known]
    return "\n".join(lines) + "\n"
