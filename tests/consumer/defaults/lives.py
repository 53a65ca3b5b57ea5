"""Readers of every kind, with all settings at their defaults but those that are given, one in each thread.

A reader may *vanish*: its event loop stands still, so that the group hears nothing of it any more.
"""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

from kohort.client import ClusterMetadata
from kohort.consumer import AsyncGroupConsumer, GroupConsumer, Record
from kohort.consumer.config import ConsumerConfig
from kohort.consumer.reading.positions import Phase
from kohort.producer import ProducerRecord
from kohort.service import ConsumerService, DbApiSink, KafkaOutput
from kohort.statemachine import MemberState

ROOT: Final = Path(__file__).resolve().parents[3]
END_TIMEOUT_S: Final = 60.0


@dataclass(slots=True, eq=False)
class Journal:
    """What the readers of a cell are given, and what they have handled. From any thread."""

    handled: set[bytes] = field(default_factory=set)
    tries: Counter[bytes] = field(default_factory=Counter)
    #: Set when a reader holds a record and is not going to finish it.
    held: threading.Event = field(default_factory=threading.Event)
    #: Set when readers need not hold any more what they hold.
    released: threading.Event = field(default_factory=threading.Event)


@dataclass(slots=True)
class Place:
    """Where readers read: ``topics`` are those of the cell, ``folder`` is for a database of results."""

    bootstrap: str
    group: str
    topics: tuple[str, ...]
    folder: Path

    @property
    def letters(self) -> str:
        return f"{self.topics[0]}.letters"

    @property
    def results(self) -> str:
        return f"{self.topics[0]}.results"

    def connect(self) -> sqlite3.Connection:
        """A connection to the database of results. Its table is there."""
        database = sqlite3.connect(self.folder / "results.db", timeout=30)
        database.execute("CREATE TABLE IF NOT EXISTS results (value BLOB)")
        database.commit()
        return database


@dataclass(eq=False)
class Life(ABC):
    """One life of a reader, from ``start`` to ``end``. With ``holds`` it finishes no record it is given."""

    place: Place
    journal: Journal
    options: Mapping[str, Any]
    _: KW_ONLY
    holds: bool = False
    error: BaseException | None = None
    vanished: bool = False
    #: Settings that this kind of reader has to set.
    SETS: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        self._thawed = threading.Event()
        #: It holds its records no longer.
        self.let_go = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name=f"{type(self).__name__}")

    def _run(self) -> None:
        try:
            self.live()
        except BaseException as error:
            self.error = error  # for the test's thread

    @abstractmethod
    def live(self) -> None:
        """Read until ``stop`` is called."""

    @abstractmethod
    def stop(self) -> None:
        """Ask for the end, from another thread."""

    @abstractmethod
    def consumer(self) -> AsyncGroupConsumer | None:
        """The consumer, once there is one."""

    @abstractmethod
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop on which the consumer runs."""

    def settings(self) -> dict[str, Any]:
        return {"bootstrap": self.place.bootstrap, "group": self.place.group, **self.options}

    def start(self) -> None:
        self._thread.start()

    @property
    def config(self) -> ConsumerConfig:
        consumer = self.consumer()
        assert consumer is not None, "the member runs"
        return consumer.config

    def joined(self) -> bool:
        """Return whether it is a member, and knows where it begins with all that it has been assigned."""
        self.look()
        consumer = self.consumer()
        if consumer is None or consumer.state.state is not MemberState.STABLE:
            return False
        positions = list(consumer.parts.positions)
        ready = all(each.phase is Phase.READING and not each.held for each in positions)
        return ready and {each.partition for each in positions} == consumer.assignment()

    def reads(self, known: ClusterMetadata, topics: Iterable[str]) -> bool:
        """Return whether it has begun with all partitions that these topics have now."""
        self.look()
        consumer = self.consumer()
        assert consumer is not None, "the member runs"
        positions = {each.partition: each for each in consumer.parts.positions}
        wanted = [partition for topic in topics for partition in known.partitions(topic)]
        found = [positions.get(partition) for partition in wanted]
        return all(
            each is not None
            and each.phase is Phase.READING
            and not each.held
            and each.topic_id == known.topic_id(each.partition.topic)
            for each in found
        )

    def look(self) -> None:
        """Raise what it has ended with; afterwards it does what it likes, once it has vanished."""
        if not self.vanished and self.error is not None:
            raise AssertionError(f"{self} has ended") from self.error

    def vanish(self) -> str:
        """Stand still from now on; returns the member id."""
        consumer = self.consumer()
        assert consumer is not None, "the member runs"
        member_id = consumer.state.member_id
        stands = threading.Event()

        def stand() -> None:
            stands.set()
            self._thawed.wait()

        self.loop().call_soon_threadsafe(stand)
        stands.wait(END_TIMEOUT_S)
        self.let_go.set()
        self.vanished = True
        return member_id

    def end(self) -> None:
        """End in good order; one that had vanished comes back for that. Raises what it ends with."""
        self._thawed.set()
        if self._thread.is_alive():
            self.stop()
        self._thread.join(END_TIMEOUT_S)
        assert not self._thread.is_alive(), f"{self} does not end"
        self.look()

    def give(self, value: bytes | None) -> bytes:
        """Note that a reader was given this value."""
        assert value is not None, "every record has a value"
        self.journal.tries[value] += 1
        return value

    def hold(self) -> None:
        """Wait until the cell is over."""
        self.journal.held.set()
        self.journal.released.wait()

    def finish(self, value: bytes) -> None:
        self.journal.handled.add(value)


class ServiceLife(Life):
    """A ConsumerService; the subclasses register handlers."""

    SETS = frozenset({"drain_timeout_ms"})  # which a service sets for its consumer

    def live(self) -> None:
        self.service = ConsumerService(**self.settings())
        self.register(self.service)
        asyncio.run(self.service.serve())

    @abstractmethod
    def register(self, service: ConsumerService) -> None:
        """Register the handlers."""

    def stop(self) -> None:
        self.service.stop()

    def consumer(self) -> AsyncGroupConsumer | None:
        engine = None if not hasattr(self, "service") else self.service._engine
        return None if engine is None else engine._consumer

    def loop(self) -> asyncio.AbstractEventLoop:
        assert self.service._loop is not None, "the service runs"
        return self.service._loop

    async def handle(self, record: Record) -> None:
        value = self.give(record.value)
        if self.holds:
            await asyncio.to_thread(self.hold)
        self.finish(value)

    def handle_in_thread(self, record: Record) -> bytes:
        value = self.give(record.value)
        if self.holds:
            self.journal.held.set()
            self.let_go.wait()
            raise ValueError("this member has vanished")  # and its transaction with it
        return value


class OneHandler(ServiceLife):
    def register(self, service: ConsumerService) -> None:
        service.handler(*self.place.topics)(self.handle)


class SeveralHandlers(ServiceLife):
    """A handler for each topic."""

    def register(self, service: ConsumerService) -> None:
        for topic in self.place.topics:
            service.handler(topic)(self.handle)


class LanesByKey(ServiceLife):
    def register(self, service: ConsumerService) -> None:
        service.handler(*self.place.topics, lanes="key")(self.handle)


class Batches(ServiceLife):
    def register(self, service: ConsumerService) -> None:
        @service.batch_handler(*self.place.topics)
        async def handle(records: list[Record]) -> None:
            for record in records:
                await self.handle(record)


class RetryTopics(ServiceLife):
    """Each record fails at first, and comes again by a retry topic, which its first letter makes."""

    def register(self, service: ConsumerService) -> None:
        @service.handler(*self.place.topics, retry_after_ms=[20])
        async def handle(record: Record) -> None:
            if not self.is_letter(record):
                self.give(record.value)
                raise OSError("no route")
            await self.handle(record)

    def is_letter(self, record: Record) -> bool:
        """Return whether it came by a retry topic, though it is what it was before."""
        consumer = self.consumer()
        assert consumer is not None, "it has delivered a record"
        session = consumer.parts.tracker.sessions.get(record.session_id)
        return session is not None and session.partition.topic != record.topic


class DeadLetters(ServiceLife):
    """Each record fails: its letter is what has to be there."""

    def register(self, service: ConsumerService) -> None:
        @service.handler(*self.place.topics, dead_letter=self.place.letters)
        async def handle(record: Record) -> None:
            await self.handle(record)
            raise OSError("no route")


class Output(ServiceLife):
    """Exactly once, into a topic."""

    SETS = ServiceLife.SETS | {"isolation_level", "enable_auto_commit"}

    def register(self, service: ConsumerService) -> None:
        service.exactly_once(KafkaOutput())

        @service.handler(*self.place.topics)
        def handle(record: Record) -> ProducerRecord:
            return ProducerRecord(self.place.results, self.handle_in_thread(record))


class Database(ServiceLife):
    """Exactly once, into a table."""

    def register(self, service: ConsumerService) -> None:
        service.exactly_once(DbApiSink(self.place.connect))

        @service.handler(*self.place.topics)
        def handle(record: Record, database: sqlite3.Connection) -> None:
            value = self.handle_in_thread(record)
            database.execute("INSERT INTO results VALUES (?)", (value,))


class LoopLife(Life):
    """A program with an AsyncGroupConsumer."""

    def live(self) -> None:
        asyncio.run(self._live())

    async def _live(self) -> None:
        self._loop = asyncio.get_running_loop()
        async with AsyncGroupConsumer(*self.place.topics, **self.settings()) as self._consumer:
            await self.read(self._consumer)

    @abstractmethod
    async def read(self, consumer: AsyncGroupConsumer) -> None:
        """Read until the consumer is closed."""

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._consumer.close(), self._loop)

    def consumer(self) -> AsyncGroupConsumer | None:
        return getattr(self, "_consumer", None)

    def loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    async def handle(self, value: bytes | None) -> None:
        given = self.give(value)
        if self.holds:
            await asyncio.to_thread(self.hold)
        self.finish(given)


class DoneByCall(LoopLife):
    """Polls, and marks each record done."""

    async def read(self, consumer: AsyncGroupConsumer) -> None:
        async for record in consumer:
            await self.handle(record.value)
            consumer.done(record)


class AutoDone(LoopLife):
    """A loop whose records are done with the next ones, left and begun again after each few."""

    SETS = frozenset({"auto_done"})

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), "auto_done": True}

    async def read(self, consumer: AsyncGroupConsumer) -> None:
        while True:
            count = 0
            async for record in consumer:
                await self.handle(record.value)
                count += 1
                if count == 3:
                    break  # the third is not done
            else:
                return


class ArrowBatches(LoopLife):
    async def read(self, consumer: AsyncGroupConsumer) -> None:
        async for batch in consumer.arrow_batches(max_rows=3):
            for value in batch.column("value").to_pylist():
                await self.handle(value)
            consumer.done_batch(batch)


class Blocking(Life):
    """A program with a GroupConsumer."""

    def live(self) -> None:
        with GroupConsumer(*self.place.topics, **self.settings()) as self._consumer:
            for record in self._consumer:
                value = self.give(record.value)
                if self.holds:
                    self.hold()
                self.finish(value)
                self._consumer.done(record)

    def stop(self) -> None:
        self._consumer.close()

    def consumer(self) -> AsyncGroupConsumer | None:
        return self._consumer._consumer if hasattr(self, "_consumer") else None

    def loop(self) -> asyncio.AbstractEventLoop:
        return self._consumer._loop


#: The kinds of readers, each of which is a feature.
READERS: Final[dict[str, type[Life]]] = {
    "one handler": OneHandler,
    "several handlers": SeveralHandlers,
    "lanes by key": LanesByKey,
    "batches": Batches,
    "retry topics": RetryTopics,
    "dead letters": DeadLetters,
    "exactly once, topics": Output,
    "exactly once, database": Database,
    "done by call": DoneByCall,
    "auto_done loops": AutoDone,
    "arrow batches": ArrowBatches,
    "blocking": Blocking,
}

#: Those that are a service, which has settings of its own.
SERVICES: Final = frozenset(name for name, kind in READERS.items() if issubclass(kind, ServiceLife))


class KilledLife:
    """A reader in a process of its own that holds what it is given, until SIGKILL ends it."""

    def __init__(self, reader: str, place: Place) -> None:
        command = [sys.executable, "-m", __name__, reader, place.bootstrap, place.group, str(place.folder)]
        self._process = subprocess.Popen(
            [*command, *place.topics], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.member_id = self._line("joined")

    def until_held(self) -> None:
        self._line("holds")

    def _line(self, word: str) -> str:
        assert self._process.stdout is not None
        said, _, rest = self._process.stdout.readline().strip().partition(" ")
        assert said == word, f"{said} {rest}, and not {word!r}"
        return rest

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def main(reader: str, bootstrap: str, group: str, folder: str, *topics: str) -> None:
    """Be a KilledLife."""
    journal = Journal()
    life = READERS[reader](Place(bootstrap, group, topics, Path(folder)), journal, {}, holds=True)
    life.start()
    while not life.joined():
        time.sleep(0.01)
    consumer = life.consumer()
    assert consumer is not None, "it has joined"
    print("joined", consumer.state.member_id, flush=True)
    journal.held.wait()
    print("holds", flush=True)
    journal.released.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
