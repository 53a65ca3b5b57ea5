"""The run: records flow, members come, go, die and hang, by a seed; then the journals are judged."""

from __future__ import annotations

import asyncio
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kohort.admin import GroupAdmin
from tests.broker_process import BrokerProcess
from tests.churn.journal import Handled, read_journal
from tests.churn.judge import AFTERMATH_S, Trouble, Verdict, judge, silence
from tests.churn.machine import Watch
from tests.churn.member import OURS, Task, work
from tests.forked import Forked

PARTITIONS = 12
FEWEST, MOST = 3, 8
HEARTBEAT_MS = 200
LONGEST = 15
#: For runs in which nobody dies: a machine that is busy elsewhere must not end anybody's session.
LONG_SESSION_MS = 6_000
#: For the others; and longer than that: whoever hangs for so long is out.
SESSION_MS, HANG_S = 2_000, 3.0
LEAVE_TIMEOUT_S = 120.0
FINISH_TIMEOUT_S = 60.0
#: Each time every partition gets a batch: batches are what costs, not records.
_SEND_EVERY_S = 0.1
GRACEFUL = ("join", "leave")
EVERYTHING = (*GRACEFUL, "join", "leave", "kill", "stop", "pause", "broker")


@dataclass(frozen=True, slots=True)
class Plan:
    """One run."""

    seed: int
    seconds: float
    records: int
    kinds: Sequence[str]
    assignor: str = "cooperative-sticky"
    protocol: str = "classic"
    actions: Sequence[str] = GRACEFUL
    session_timeout_ms: int = LONG_SESSION_MS
    #: Seconds between two actions, at least and at most.
    pace_s: tuple[float, float] = (0.5, 2.0)
    #: How many members must have been killed or hung: on a busy machine a single start of the broker may take
    #: all of the seconds, and then the run goes on for up to LONGEST times as long.
    fewest_out: int = 0


class Writer:
    """Sends numbered records evenly until it is told to end, idempotently; ``sent`` has how many by when.

    It sends those of the plan at least.
    """

    def __init__(self, bootstrap: str, topic: str, plan: Plan) -> None:
        from confluent_kafka import Producer

        self.sent: dict[float, int] = {}
        self.count = 0
        self.failed: list[str] = []
        self._topic = topic
        self._plan = plan
        self._ending = threading.Event()
        self._producer = Producer(
            # a broker that is killed on purpose is not worth a line for each try to reach it
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 2, "log_level": 0}
        )
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def finish(self) -> None:
        """Returns when every record is acknowledged."""
        self._ending.set()
        self._thread.join()
        left = self._producer.flush(FINISH_TIMEOUT_S)
        assert not left, f"{left} records were not acknowledged"
        assert not self.failed, f"records were refused: {self.failed[:3]}"

    def _delivered(self, error: Any, _: Any) -> None:
        if error is not None:
            self.failed.append(str(error))

    def _run(self) -> None:
        began = time.monotonic()
        while self.count < self._plan.records or not self._ending.is_set():
            part = (time.monotonic() - began) / self._plan.seconds
            while self.count < int(part * self._plan.records):
                try:
                    self._producer.produce(
                        self._topic,
                        str(self.count),
                        partition=self.count % PARTITIONS,
                        on_delivery=self._delivered,
                    )
                except BufferError:
                    self._producer.poll(0.1)
                    continue
                self.count += 1
            self._producer.poll(0)
            self.sent[time.monotonic()] = self.count
            time.sleep(_SEND_EVERY_S)


@dataclass(slots=True, eq=False)
class Member:
    """A member's process."""

    name: str
    kind: str
    process: Forked
    journal: Path
    log: Path

    def send(self, number: signal.Signals) -> None:
        if self.process.poll() is None:
            self.process.send_signal(number)

    def last_words(self) -> str:
        """The end of its log."""
        return self.log.read_text(errors="replace")[-3_000:]


class Crowd:
    """Carries out a plan. ``broker`` is None where it is not ours to kill."""

    def __init__(
        self,
        plan: Plan,
        *,
        bootstrap: str,
        topic: str,
        group: str,
        folder: Path,
        broker: BrokerProcess | None = None,
    ) -> None:
        self.plan = plan
        self.troubles: list[Trouble] = []
        self.story: list[str] = []
        #: How often what was done, and how long each member of ours took to leave.
        self.done: Counter[str] = Counter()
        self.leaves_s: list[float] = []
        self._bootstrap, self._topic, self._group = bootstrap, topic, group
        self._folder = folder
        self._broker = broker
        self._random = random.Random(plan.seed)
        self._members: list[Member] = []
        self._everyone: list[Member] = []
        self._hanging: list[tuple[float, Member]] = []
        self._leaving: list[tuple[float, Member]] = []

    # the members

    def join(self) -> None:
        """One more, of the next kind."""
        number = len(self._everyone)
        kind = self.plan.kinds[number % len(self.plan.kinds)]
        name = f"{number:03d}-{kind}"
        journal, log = self._folder / f"{name}.journal", self._folder / f"{name}.log"
        task = Task(
            self._bootstrap,
            self._group,
            self._topic,
            self.plan.assignor,
            self.plan.session_timeout_ms,
            HEARTBEAT_MS,
            HANG_S,
            str(journal),
            self.plan.protocol,
        )
        process = Forked(work, kind, task, output=log)
        member = Member(name, kind, process, journal, log)
        self._members.append(member)
        self._everyone.append(member)
        self._tell("join", member)

    def leave(self, member: Member) -> None:
        """SIGTERM; it has LEAVE_TIMEOUT_S."""
        self._members.remove(member)
        member.send(signal.SIGTERM)
        self._leaving.append((time.monotonic() + LEAVE_TIMEOUT_S, member))
        self._tell("leave", member)

    def kill(self, member: Member) -> None:
        """SIGKILL."""
        self._members.remove(member)
        self.troubles.append(Trouble("kill", member.name, time.monotonic()))
        member.send(signal.SIGKILL)
        self._tell("kill", member)

    def stop(self, member: Member) -> None:
        """SIGSTOP, and SIGCONT when its session is over."""
        self._hang("stop", member, signal.SIGSTOP)

    def pause(self, member: Member) -> None:
        """Its main thread, and with it asyncio's loop, sleeps beyond the session."""
        self._hang("pause", member, signal.SIGUSR1)

    def _hang(self, what: str, member: Member, number: signal.Signals) -> None:
        now = time.monotonic()
        self.troubles.append(Trouble(what, member.name, now, now + HANG_S + AFTERMATH_S))
        member.send(number)
        self._hanging.append((now + HANG_S, member))
        self._members.remove(member)
        self._tell(what, member)

    def broker(self) -> None:
        """kill -9, and up again."""
        if self._broker is None:
            return
        begin = time.monotonic()
        self._broker.kill()
        time.sleep(0.3)
        self._broker.start()
        self.troubles.append(Trouble("broker", None, begin, time.monotonic() + AFTERMATH_S))
        self._tell("broker killed and started", None)

    # the run

    def run(self) -> Verdict:
        """All of it; no process is left behind."""
        writer, watch = Writer(self._bootstrap, self._topic, self.plan), Watch(self._running)
        watch.start()
        try:
            for _ in range(FEWEST):
                self.join()
            self._wait_for_all_to_work()
            begin = time.monotonic()
            writer.start()
            while not self._is_over(time.monotonic() - begin):
                self._wait(self._random.uniform(*self.plan.pace_s))
                self._act()
            end = time.monotonic()
            writer.finish()
            self._wait_until_handled(writer.count)
            self._end()
        finally:
            self._clean_up()
            starved = watch.finish()
            self.troubles += starved
        handled = self.handled()
        verdict = judge(writer.count, handled, self.troubles)
        silence(verdict, handled, writer.sent, begin, end)
        verdict.stall_s = max([verdict.stall_s, *(each.end - AFTERMATH_S - each.begin for each in starved)])
        return verdict

    def handled(self) -> list[Handled]:
        """What everybody has handled."""
        written = [each for each in self._everyone if each.journal.exists()]
        return [line for each in written for line in read_journal(each.journal, each.name)]

    def _is_over(self, seconds: float) -> bool:
        """Whether it has gone on for the plan's time and done its worst, or for far too long."""
        out = self.done["kill"] + self.done["stop"] + self.done["pause"]
        return seconds >= self.plan.seconds * (1 if out >= self.plan.fewest_out else LONGEST)

    def _running(self) -> dict[str | None, int]:
        """The numbers of all processes, by the members' names; None is the broker's."""
        found: dict[str | None, int] = {
            each.name: each.process.pid for each in list(self._everyone) if each.process.returncode is None
        }
        if self._broker is not None and (process := self._broker.process) is not None:
            found[None] = process.pid
        return found

    def _act(self) -> None:
        action = self._random.choice(self.plan.actions)
        alone = len(self._members) <= FEWEST
        crowded = len(self._members) >= MOST
        if action == "broker":
            self.broker()
        elif (action == "join" and not crowded) or alone:
            self.join()
        elif ready := [each for each in self._members if each.journal.exists()]:
            act = {"kill": self.kill, "stop": self.stop, "pause": self.pause}.get(action, self.leave)
            act(self._random.choice(ready))

    def _wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while (now := time.monotonic()) < deadline:
            for due, member in [each for each in self._hanging if each[0] <= now]:
                self._hanging.remove((due, member))
                member.send(signal.SIGCONT)
                self._members.append(member)
            self._look_after_leaving(now)
            self._look_for_dead(now)
            time.sleep(0.02)

    def _look_after_leaving(self, now: float) -> None:
        for due, member in list(self._leaving):
            code = member.process.poll()
            if code is not None:
                self._leaving.remove((due, member))
                self._tell(f"exit code {code}", member)
                if member.kind in OURS:
                    self.leaves_s.append(now - due + LEAVE_TIMEOUT_S)
                assert code == 0 or member.kind not in OURS, (
                    f"{member.name} left with exit code {code}: {member.last_words()}"
                )
            elif now > due:
                assert member.kind not in OURS, f"{member.name} does not leave: {member.last_words()}"
                self.troubles.append(Trouble("does not leave", member.name, due - LEAVE_TIMEOUT_S))
                self._tell("does not leave", member)
                member.process.kill()

    def _look_for_dead(self, now: float) -> None:
        for member in [each for each in self._members if each.process.poll() is not None]:
            code = member.process.returncode
            assert member.kind not in OURS, (
                f"{member.name} ended with exit code {code}: {member.last_words()}"
            )
            self._members.remove(member)
            self.troubles.append(Trouble("ended by itself", member.name, now - AFTERMATH_S))
            self._tell(f"ended by itself with exit code {code}", member)

    def _wait_for_all_to_work(self) -> None:
        """Send nothing before the first members are there: their start is not the run's matter."""
        deadline = time.monotonic() + FINISH_TIMEOUT_S
        # ours: kafka-python 3.0.12 now and then hangs in its first join, until its session is over
        ours = sum(each.kind in OURS for each in self._members)
        while asyncio.run(self._members_of_ours()) < ours:
            assert time.monotonic() < deadline, f"the first members did not join: {self.logs()}"
            self._wait(0.1)

    async def _members_of_ours(self) -> int:
        """How many the group has; 0 unless it is Stable."""
        async with GroupAdmin(self._bootstrap) as admin:
            group = (await admin.describe([self._group]))[self._group]
        return sum("kohort" in each.client_id for each in group.members) if group.state == "Stable" else 0

    def _wait_until_handled(self, count: int) -> None:
        """Wait for all records, for as long as any comes: a busy machine takes its time."""
        deadline = time.monotonic() + FINISH_TIMEOUT_S
        seen: set[int] = set()
        read: dict[Path, int] = {}
        while len(seen) < count and time.monotonic() < deadline:
            self._wait(0.2)
            before = len(seen)
            for each in [each for each in self._everyone if each.journal.exists()]:
                with each.journal.open("rb") as file:
                    file.seek(read.get(each.journal, 0))
                    data = file.read()
                whole = data.rfind(b"\n") + 1
                read[each.journal] = read.get(each.journal, 0) + whole
                seen.update(int(line.rsplit(b" ", 1)[1]) for line in data[:whole].splitlines())
            if len(seen) > before:
                deadline = time.monotonic() + FINISH_TIMEOUT_S

    def _end(self) -> None:
        self._wait(max([0.0, *(due - time.monotonic() for due, _ in self._hanging)]) + 0.1)
        for member in list(self._members):
            # one that is only starting has no ear for SIGTERM yet
            (self.leave if member.journal.exists() else self.kill)(member)
        while self._leaving:
            self._wait(0.1)

    def _clean_up(self) -> None:
        for member in self._everyone:
            if member.process.poll() is None:
                member.process.kill()
            member.process.wait()
        (self._folder / "story").write_text("\n".join(self.story))

    def _tell(self, what: str, member: Member | None) -> None:
        name = "" if member is None else member.name
        self.done[what] += 1
        self.story.append(f"{time.monotonic():.3f} {what} {name}")

    def logs(self) -> str:
        """The ends of all members' logs."""
        return "\n".join(f"--- {each.name}\n{each.last_words()}" for each in self._everyone)
