"""The faults, and who causes them: by a seed, one at a time or two at once, each healed before the next."""

from __future__ import annotations

import random
import signal
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from tests.broker_process import BrokerProcess
from tests.torture.broken_machine import Control
from tests.torture.disk import DataDisk
from tests.torture.proxy import Proxy
from tests.torture.tap import Tap

#: Share of turns in which two faults overlap.
OVERLAP = 0.3


@dataclass(slots=True)
class Machine:
    """What can be broken."""

    broker: BrokerProcess
    proxy: Proxy
    disk: DataDisk
    control: Control
    tap: Tap

    def kill(self) -> None:
        """SIGKILL for the broker."""
        self.broker.kill()
        self.tap.broker_died()

    @property
    def process_id(self) -> int:
        assert self.broker.process is not None, "the broker was never started"
        return self.broker.process.pid


M = TypeVar("M")


class Fault(ABC, Generic[M]):
    """Begins, lasts from ``shortest_s`` to ``longest_s``, ends. ``M`` is what it breaks."""

    name: str
    shortest_s: float = 0.2
    longest_s: float = 2.0

    def __str__(self) -> str:
        return self.name

    @abstractmethod
    def begin(self, machine: M, rng: random.Random) -> None: ...

    @abstractmethod
    def end(self, machine: M) -> None: ...


class Kill(Fault[Machine]):
    """SIGKILL; started again afterwards."""

    name = "SIGKILL"
    shortest_s, longest_s = 0.0, 0.5

    def begin(self, machine: Machine, rng: random.Random) -> None:  # noqa: ARG002
        machine.kill()

    def end(self, machine: Machine) -> None:
        machine.broker.start()


class Pause(Fault[Machine]):
    """SIGSTOP, in some cases for longer than sessions last; SIGCONT."""

    name = "SIGSTOP"
    longest_s = 4.5

    def begin(self, machine: Machine, rng: random.Random) -> None:  # noqa: ARG002
        machine.broker.send(signal.SIGSTOP)

    def end(self, machine: Machine) -> None:
        machine.broker.send(signal.SIGCONT)


class Cut(Fault[Machine]):
    """Every connection is reset, in the middle of whatever it carries; twice."""

    name = "connections cut"
    longest_s = 1.0

    def begin(self, machine: Machine, rng: random.Random) -> None:  # noqa: ARG002
        machine.proxy.cut()

    def end(self, machine: Machine) -> None:
        machine.proxy.cut()


class Hold(Fault[Machine]):
    """Nothing passes, either way."""

    name = "nothing passes"
    longest_s = 4.0

    def begin(self, machine: Machine, rng: random.Random) -> None:  # noqa: ARG002
        machine.proxy.hold(True)

    def end(self, machine: Machine) -> None:
        machine.proxy.hold(False)


class Delay(Fault[Machine]):
    """All that passes takes up to 50-400 ms longer."""

    name = "messages delayed"
    longest_s = 3.0

    def begin(self, machine: Machine, rng: random.Random) -> None:
        machine.proxy.delay_s = rng.uniform(0.05, 0.4)

    def end(self, machine: Machine) -> None:
        machine.proxy.delay_s = 0.0


class FullDisk(Fault[Machine]):
    """No room for anything."""

    name = "disk full"

    def begin(self, machine: Machine, rng: random.Random) -> None:  # noqa: ARG002
        machine.disk.fill(machine.process_id)

    def end(self, machine: Machine) -> None:
        machine.disk.clear(machine.process_id)


class Slow(Fault[Machine]):
    """Each write takes 1-30 ms longer."""

    name = "disk slow"
    longest_s = 3.0

    def begin(self, machine: Machine, rng: random.Random) -> None:
        machine.control.slow_disk(rng.choice((1, 5, 30)))

    def end(self, machine: Machine) -> None:
        machine.control.slow_disk(0)


class ClockJump(Fault[Machine]):
    """The broker's wall clock jumps by up to an hour, and back. Its monotonic clock does not."""

    name = "clock jump"
    longest_s = 3.0

    def begin(self, machine: Machine, rng: random.Random) -> None:
        # an hour back, and records of now would lie further ahead than a broker takes
        machine.control.set_clock(rng.choice((-3000, -60, 60, 3600)))

    def end(self, machine: Machine) -> None:
        machine.control.set_clock(0)


FAULTS: Sequence[Fault[Machine]] = (Kill(), Pause(), Cut(), Hold(), Delay(), FullDisk(), Slow(), ClockJump())

#: A broker is started with room to start, and only once; a stopped process cannot be helped by a signal.
_NOT_TOGETHER = (frozenset({"SIGKILL", "disk full"}), frozenset({"SIGKILL", "SIGSTOP"}))


def may_overlap(first: Fault[Machine], second: Fault[Machine]) -> bool:
    return frozenset({first.name, second.name}) not in _NOT_TOGETHER


class Nemesis(Generic[M]):
    """Breaks a machine by a seed. ``caused`` counts faults by name, ``story`` has them in order, of which
    ``tell`` is told.
    """

    def __init__(
        self,
        machine: M,
        seed: int,
        faults: Sequence[Fault[M]],
        may_overlap: Callable[[Fault[M], Fault[M]], bool],
        tell: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._may_overlap = may_overlap
        self._tell = tell
        self.caused: Counter[str] = Counter()
        self.story: list[str] = []
        self._machine = machine
        self._random = random.Random(seed)
        self._faults = list(faults)

    def each_once(self, longest_s: float) -> None:
        """Every fault, briefly."""
        for fault in self._random.sample(self._faults, len(self._faults)):
            self.cause([fault], longest_s)
            time.sleep(0.3)

    def rampage(self, seconds: float) -> None:
        """Faults until the time is over, with pauses in which some of the work comes through."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.once()
            time.sleep(self._random.uniform(0.1, 1.5))

    def once(self) -> None:
        """A fault, or two together."""
        self.cause(self._drawn())

    def _drawn(self) -> list[Fault[M]]:
        # kills are what most has to outlive
        first = self._faults[0] if self._random.random() < 0.3 else self._random.choice(self._faults)
        second = self._random.choice(self._faults)
        if self._random.random() > OVERLAP or first is second or not self._may_overlap(first, second):
            return [first]
        return [first, second]

    def cause(self, faults: Sequence[Fault[M]], longest_s: float = float("inf")) -> None:
        """These faults at once."""
        lasts_s = max(self._random.uniform(fault.shortest_s, fault.longest_s) for fault in faults)
        lasts_s = min(lasts_s, max(longest_s, *(fault.shortest_s for fault in faults), 0.0))
        for fault in faults:
            fault.begin(self._machine, self._random)
            self.caused[fault.name] += 1
        self.story.append(f"{' and '.join(map(str, faults))} for {lasts_s:.1f} s")
        self._tell(self.story[-1])
        time.sleep(lasts_s)
        for fault in reversed(faults):
            fault.end(self._machine)
