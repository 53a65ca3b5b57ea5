"""A model of brokers and Spark, in which the steps of the sink run with kills, copies and timeouts anywhere.

A schedule is drawn from a Random. All that a process does is a step; before each, other things may happen:
the time of an open transaction is up, a copy of a task that Spark has forgotten goes on, or the driver is
killed, before the step takes effect or after.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

from kohort.client.transactions import ProducerId, Transaction
from kohort.protocol import KohortError
from kohort.spark._batch_steps import (
    OPEN,
    CommitAll,
    DescribeIds,
    End,
    FenceIds,
    ListOpenIds,
    PartialBatchError,
    ReadLedger,
    Report,
    Status,
    Step,
    UndecidedBatchError,
    Work,
    WriteLedger,
    abort_batch,
    begin_task,
    commit_batch,
    compare_rows,
    start_batch,
)
from kohort.spark._ledger_entry import Entry

PREFIX = "g"
ROWS = 6

Row = tuple[str, int]


class ViolationError(Exception):
    """The sink does not hold what it promises."""


class KilledError(Exception):
    """The driver, and what ran for it."""


class FencedError(Exception):
    """Another producer has a task's transactional id."""


@dataclass(frozen=True)
class Init:
    """A task begins a producer, as all clients do: it asks again while the coordinator aborts."""

    name: str


@dataclass(frozen=True)
class Produce:
    """A task writes rows."""

    transaction: Transaction
    rows: Sequence[Row]


@dataclass
class Id:
    """A transactional id at its coordinator, with the rows of its open transaction."""

    producer: ProducerId
    state: str = "Empty"
    rows: list[Row] = field(default_factory=list)

    def abort(self) -> None:
        self.rows.clear()
        self.state, self.producer = "CompleteAbort", self.producer._replace(epoch=self.producer.epoch + 1)


class Brokers:
    """Answers as Apache Kafka does; EndTxn is the version that keeps the epoch."""

    def __init__(self) -> None:
        self.ids: dict[str, Id] = {}
        self.entry = Entry()
        self.visible: Counter[Row] = Counter()

    def carry_out(self, step: Step | Init | Produce, upto: int | None = None) -> Any:
        """``upto``: a driver that is killed commits so many transactions only."""
        match step:
            case ReadLedger():
                return self.entry
            case WriteLedger(entry):
                self.entry = entry
            case ListOpenIds():
                return [name for name, one in self.ids.items() if one.state == "Ongoing"]
            case DescribeIds(names):
                return {n: Status(self.ids[n].state, self.ids[n].producer) for n in names if n in self.ids}
            case FenceIds(names):
                for name in names:
                    self._init(name, again=False)
            case CommitAll(transactions):
                return {one: self._commit(one) for one in transactions[:upto]}
            case Init(name):
                return Transaction(name, self._init(name, again=True))
            case Produce(transaction, rows):
                one = self.ids[transaction.name]
                if one.producer != transaction.producer:
                    raise FencedError
                one.state = "Ongoing"
                one.rows += rows
        return None

    def _init(self, name: str, *, again: bool) -> ProducerId:
        one = self.ids.setdefault(name, Id(ProducerId(len(self.ids), -1)))
        if one.state in OPEN:
            one.abort()
            if not again:
                return one.producer
        one.state, one.producer = "Empty", one.producer._replace(epoch=one.producer.epoch + 1)
        return one.producer

    def _commit(self, transaction: Transaction) -> End:
        one = self.ids[transaction.name]
        if one.producer != transaction.producer:
            return End.GONE
        if one.state == "Ongoing":
            self.visible.update(one.rows)
            one.rows, one.state = [], "CompleteCommit"
        return End.COMMITTED if one.state == "CompleteCommit" else End.ABORTED


Attempt = Generator[Any, Any, Report]


@dataclass(frozen=True)
class Faults:
    """How often what happens; each is the chance before one step."""

    kill: float = 0.0
    expiry: float = 0.0
    copy: float = 0.0
    #: Whether copies may stand still between the look at an id and its use.
    late_copies: bool = False
    resized: bool = False


class Job:
    """A job that writes two batches, is killed and comes back until they are there; and a third one."""

    def __init__(self, rng: Random, faults: Faults) -> None:
        self._rng = rng
        self._faults = faults
        self.brokers = Brokers()
        self._copies: list[tuple[Attempt, Any]] = []
        self.failures: list[KohortError] = []

    def run(self) -> None:
        tasks = self._rng.choice((2, 3))
        calm = Faults()
        for batch in ("1-a", "2-b", "3-c"):
            if batch == "3-c":
                self._copies.clear()  # the last batch has to end all that is left
            for faults in [self._faults] * (4 * (batch != "3-c")) + [calm] * 6:
                if faults.resized:
                    tasks = self._rng.choice((1, 2, 3, 4))
                elif faults == calm and self.failures and isinstance(self.failures[-1], PartialBatchError):
                    tasks = tasks % 4 + 1  # the operator tries
                if self._once(batch, tasks, faults):
                    break
                if self.failures and isinstance(self.failures[-1], UndecidedBatchError):
                    return
            else:
                raise ViolationError(f"{batch} is never written: {self.failures[-1:]}")
            missing = [row for row in _rows_of(batch) if self.brokers.visible[row] != 1]
            if missing:
                raise ViolationError(f"{missing} of {batch} are said to be there")
        if self.brokers.carry_out(ListOpenIds()):
            raise ViolationError("transactions are left open")

    def _once(self, batch: str, tasks: int, faults: Faults) -> bool:
        """Run a batch; return whether the job goes on after it."""
        reports: list[Report] = []
        try:
            if self._rng.random() < 0.5:
                self._drive(start_batch(), faults)
            for task in range(tasks):
                if self._rng.random() < faults.copy:
                    self._begin_copy(attempt_of(batch, task, tasks, self._rng.choice((0, 1))), faults)
                reports.append(self._drive(attempt_of(batch, task, tasks, 0), faults))
                if self._rng.random() < faults.copy:
                    self._begin_copy(attempt_of(batch, task, tasks, self._rng.choice((0, 1))), faults)
            self._drive(commit_batch(batch, reports), faults)
        except KilledError:
            return False
        except (KohortError, FencedError) as error:
            if isinstance(error, KohortError):
                self.failures.append(error)
            with suppress(KilledError):
                self._drive(abort_batch(reports), faults)
            return False
        return True

    def _drive(self, steps: Generator[Any, Any, Any], faults: Faults) -> Any:
        try:
            step = next(steps)
            while True:
                self._disturb(faults)
                killed = self._rng.random() < faults.kill
                if killed and self._rng.random() < 0.5:
                    raise KilledError
                upto = None
                if killed and isinstance(step, CommitAll):
                    upto = self._rng.randrange(len(step.transactions) + 1)
                answer = self.brokers.carry_out(step, upto)
                self._check()
                if killed:
                    raise KilledError
                step = steps.send(answer)
        except StopIteration as end:
            return end.value

    def _begin_copy(self, steps: Attempt, faults: Faults) -> None:
        """Let a copy do some steps. Nobody hears of it again, but it may go on later."""
        step: Any = next(steps)
        for _ in range(self._rng.randrange(8)):
            try:
                step = steps.send(self.brokers.carry_out(step))
            except (StopIteration, FencedError, KohortError):
                return
        if isinstance(step, Init | DescribeIds | ReadLedger) and not faults.late_copies:
            return
        self._copies.append((steps, step))

    def _disturb(self, faults: Faults) -> None:
        if self._copies and self._rng.random() < faults.copy:
            steps, step = self._copies.pop(self._rng.randrange(len(self._copies)))
            with suppress(StopIteration, FencedError, KohortError):
                self._copies.append((steps, steps.send(self.brokers.carry_out(step))))
        for one in self.brokers.ids.values():
            if one.state == "Ongoing" and self._rng.random() < faults.expiry:
                one.abort()

    def _check(self) -> None:
        twice = [row for row, count in self.brokers.visible.items() if count > 1]
        if twice:
            raise ViolationError(f"{twice} are there twice")


def _rows_of(batch: str) -> list[Row]:
    return [(batch, number) for number in range(ROWS)]


def attempt_of(batch: str, task: int, tasks: int, number: int) -> Attempt:
    """An attempt of a task, step by step."""
    order = yield from begin_task(PREFIX, batch, task, number)
    if order.work is Work.PASS_OVER:
        return Report(task, Work.PASS_OVER)
    rows = [row for row in _rows_of(batch) if row[1] % tasks == task]
    digest = hash(tuple(rows)) & 0xFFFFFFFF
    if order.work is Work.COMPARE:
        return compare_rows(batch, task, order, digest)
    if not rows:
        return Report(task, Work.WRITE, digest)
    transaction = yield Init(order.name)
    for row in rows:
        yield Produce(transaction, [row])
    return Report(task, Work.WRITE, digest, transaction)
