"""What happens to topics and members in a cell, and which records are due.

*Due* is each record that was written after the group's first member knew where it begins, or that it has
nothing to begin with yet, unless its topic was deleted since; and of those that come as letters, each letter.
What is due has to be handled at least once, whatever happens. What was there before is not due: by default a
group begins at the end. Of a partition that is added, or a topic that is made anew, everything is due, as
long as a member lives to see it who knew what was there before: a member that comes later cannot tell.
"""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from kohort.admin.topics.requests import create_partitions
from kohort.client import Cluster, ClusterMetadata
from kohort.client.requests import delete_topics
from kohort.consumer import AsyncGroupConsumer
from kohort.consumer.config import ConsumerConfig
from kohort.producer import Producer
from kohort.protocol import ErrorCode, KafkaError
from kohort.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kohort.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tests.consumer.defaults.lives import READERS, Journal, KilledLife, Life, Place
from tests.consumer.members import shorten_sessions

T = TypeVar("T")

PATIENCE_S: Final = 60.0
PARTITIONS: Final = 2
#: Records of one step: some of each partition, and of each key.
RECORDS: Final = 8
_LEAVING_EPOCH: Final = -1
#: The default.
SESSION_MS: Final = 45_000

#: What the topics are like, and what happens to them.
TOPICS: Final = ("there", "missing", "grown", "remade")
#: What happens to the group's first member, which vanishes before it has committed anything that is done.
MEMBERS: Final = ("stays", "leaves", "vanishes", "is joined")
#: Who assigns.
PROTOCOLS: Final = ("classic", "consumer")


@dataclass(frozen=True, slots=True)
class Cell:
    """One run. ``options`` are the settings that are not at their defaults."""

    reader: str
    protocol: str = "classic"
    topics: str = "there"
    members: str = "stays"
    options: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        options = [f"{name}={value}" for name, value in self.options]
        words = (self.reader, self.protocol, f"topics {self.topics}", f"member {self.members}")
        return ", ".join((*words, *options))


class Tool:
    """A client on an event loop of its own, for what a cell needs besides its members."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._cluster = self._make(bootstrap)

    def _make(self, bootstrap: str) -> Cluster:
        async def make() -> tuple[Cluster, Producer]:
            cluster = Cluster(bootstrap)
            await cluster.connect()
            producer = Producer(bootstrap=bootstrap)
            await producer.start()
            return cluster, producer

        cluster, self._producer = self.call(make())
        return cluster

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it, and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)

    def close(self) -> None:
        self.call(self._producer.close())
        self.call(self._cluster.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def make(self, topic: str, partitions: int = PARTITIONS) -> None:
        self.call(self._cluster.create_topics({topic: partitions}))

    def grow(self, topic: str, partitions: int) -> None:
        self.call(create_partitions(self._cluster, topic, partitions))

    def remake(self, topic: str) -> None:
        """Delete a topic, and make it again at once."""
        self.call(delete_topics(self._cluster, [topic]))
        until(lambda: self._made(topic), lambda: f"{topic} is made again")

    def _made(self, topic: str) -> bool:
        with suppress(KafkaError):  # Apache Kafka deletes it in the background
            self.make(topic)
            return True
        return False

    def write(self, topic: str, values: list[bytes], partitions: list[int] | None = None) -> None:
        """Write values with keys, to these partitions in turn; without, the first one makes the topic."""

        async def write() -> None:
            for number, value in enumerate(values):
                partition = partitions[number % len(partitions)] if partitions else None
                await self._producer.send_and_wait(topic, value, b"k%d" % (number % 3), partition)

        self.call(write())

    def known(self, topics: Iterable[str]) -> ClusterMetadata:
        return self.call(self._cluster.metadata(topics))

    def values(self, topic: str) -> set[bytes]:
        """The values that a topic has, of transactions that are over."""

        async def read() -> set[bytes]:
            known = await self._cluster.metadata([topic])
            partitions = known.partitions(topic) if topic in known.topics else []
            if not partitions:
                return set()
            settings: dict[str, Any] = {"auto_offset_reset": "earliest", "isolation_level": "read_committed"}
            found: set[bytes] = set()
            async with AsyncGroupConsumer(
                partitions=partitions, bootstrap=self.bootstrap, **settings
            ) as reader:
                ends = await reader.end_offsets(partitions)
                while any((reader.position(p) or 0) < end for p, end in ends.items()):
                    found.update(record.value or b"" for record in await reader.getmany(timeout_ms=200))
            return found

        return self.call(read())

    def end_session(self, group: str, member_id: str, protocol: str) -> None:
        """Have the group go on without a member that is not heard of, as at the end of its session."""
        if protocol == "consumer":
            body: Any = ConsumerGroupHeartbeatRequest(group, member_id, _LEAVING_EPOCH)
        else:
            body = LeaveGroupRequest(group, member_id, [MemberIdentity(member_id)])
        answer = self.call(self._cluster.request_coordinator(group, body))
        assert answer.error_code == ErrorCode.NONE, answer


def until(condition: Callable[[], bool], what: Callable[[], str], patience_s: float = PATIENCE_S) -> None:
    """Wait for something that happens elsewhere."""
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, f"in {patience_s:g} s not: {what()}"
        time.sleep(0.01)


@dataclass(slots=True, eq=False)
class Scene:
    """The run of a cell."""

    cell: Cell
    tool: Tool
    place: Place
    journal: Journal = field(default_factory=Journal)
    due: set[bytes] = field(default_factory=set)
    lives: list[Life] = field(default_factory=list)
    patience_s: float = PATIENCE_S
    _written: int = 0

    def join(self, *, holds: bool = False) -> Life:
        """Start one more member; returns when it is one."""
        life = READERS[self.cell.reader](self.place, self.journal, self._options(), holds=holds)
        self.lives.append(life)
        life.start()
        until(life.joined, lambda: f"{life.consumer()} has begun")
        self.left_alone(life.config)
        return life

    def left_alone(self, config: ConsumerConfig) -> None:
        """The settings that are set are those of the cell: all others are at their defaults."""
        own = {"bootstrap", "group", *self._options(), *READERS[self.cell.reader].SETS}
        assert config.model_fields_set <= own, f"set are {config.model_fields_set - own} as well"

    def _options(self) -> Mapping[str, Any]:
        options = dict(self.cell.options)
        if self.cell.protocol != "classic":
            options["protocol"] = self.cell.protocol
        if self.cell.topics == "grown":
            options.setdefault("metadata_max_age_ms", 300)  # or it takes minutes until anybody looks
        return options

    def write(self, partitions: list[int] | None = None) -> None:
        """Write records that are due."""
        for topic in self.place.topics:
            values = [b"%s %d" % (topic.encode(), self._written + n) for n in range(RECORDS)]
            self._written += RECORDS
            self.due.update(values)
            self.tool.write(topic, values, partitions)

    def missing(self) -> set[bytes]:
        """What is due and not handled."""
        for life in self.lives:
            life.look()
        results = _RESULTS.get(self.cell.reader)
        return self.due - (self.journal.handled if results is None else results(self))

    def until_handled(self) -> None:
        until(
            lambda: not self.missing(),
            lambda: f"{sorted(self.missing())} handled by: {self.cell}",
            self.patience_s,
        )

    def until_held(self) -> None:
        until(self.journal.held.is_set, lambda: "a record is given to a handler")

    def end(self) -> None:
        self.journal.released.set()
        for life in self.lives:
            life.end()


def _in_database(scene: Scene) -> set[bytes]:
    database = scene.place.connect()
    try:
        return {value for (value,) in database.execute("SELECT value FROM results")}
    finally:
        database.close()


#: Where something else than the journal has what was handled.
_RESULTS: Final[dict[str, Callable[[Scene], set[bytes]]]] = {
    "dead letters": lambda scene: scene.tool.values(scene.place.letters),
    "exactly once, topics": lambda scene: scene.tool.values(scene.place.results),
    "exactly once, database": _in_database,
}


def play(cell: Cell, tool: Tool, folder: Path, patience_s: float = PATIENCE_S) -> None:
    """Run a cell. Raises AssertionError if a record that is due is not handled within this time."""
    name = uuid.uuid4().hex[:10]
    topics = (f"orders-{name}", f"payments-{name}")
    place = Place(tool.bootstrap, f"billing-{name}", topics, folder)
    scene = Scene(cell, tool, place, patience_s=patience_s)
    before = [b"before %d" % number for number in range(RECORDS)]
    for topic in topics if cell.topics != "missing" else topics[1:]:
        tool.make(topic)
        tool.write(topic, before, [0, 1])
    if cell.reader == "exactly once, topics":
        tool.make(scene.place.results)
    try:
        _act(scene)
        if not dict(cell.options).get("auto_offset_reset"):
            assert scene.journal.handled.isdisjoint(before), "by default a group begins at the end"
    finally:
        scene.end()


def _act(scene: Scene) -> None:
    cell = scene.cell
    if cell.members == "is killed":
        _kill(scene)
        return
    if cell.protocol == "consumer" and cell.topics != "there":
        # where the brokers allow that, members hear soon of other topics
        shorten_sessions(scene.place.bootstrap, scene.place.group, SESSION_MS)
    dies, remade = cell.members == "vanishes", cell.topics == "remade"
    first = scene.join(holds=dies and not remade)
    scene.write()
    if remade:
        scene.until_handled()
    elif dies:
        scene.until_held()
    _change(scene)
    if dies and remade:
        # not before: a topic that is gone is left when what was read of it is done
        scene.until_handled()
        first.holds = True
        scene.write()
        scene.until_held()
    if dies:
        member_id = first.vanish()
        scene.tool.end_session(scene.place.group, member_id, cell.protocol)
        scene.join()
    elif cell.members == "leaves":
        until(lambda: bool(scene.journal.tries), lambda: "a record is given to a handler")
        first.end()
        scene.write()
        scene.join()
    elif cell.members == "is joined":
        scene.join()
    scene.write()
    scene.until_handled()


def _kill(scene: Scene) -> None:
    killed = KilledLife(scene.cell.reader, scene.place)
    try:
        scene.write()
        killed.until_held()
    finally:
        killed.kill()
    scene.tool.end_session(scene.place.group, killed.member_id, scene.cell.protocol)
    scene.join()
    scene.write()
    scene.until_handled()


def _change(scene: Scene) -> None:
    """What happens to the topics."""
    for topic in scene.place.topics:
        if scene.cell.topics == "grown":
            scene.tool.grow(topic, PARTITIONS + 1)
        elif scene.cell.topics == "remade":
            scene.tool.remake(topic)
    if scene.cell.topics == "remade":
        scene.due.clear()
    if scene.cell.topics in ("grown", "remade"):
        scene.write([PARTITIONS] if scene.cell.topics == "grown" else [0, 1])
    if scene.cell.topics != "there":
        known = scene.tool.known(scene.place.topics)
        until(lambda: scene.lives[0].reads(known, scene.place.topics), lambda: "the change is known")


@contextmanager
def tool_of(bootstrap: str) -> Iterator[Tool]:
    tool = Tool(bootstrap)
    try:
        yield tool
    finally:
        tool.close()
