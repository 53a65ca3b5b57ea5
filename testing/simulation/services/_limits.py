"""Limits of processes: requests a second, bytes held, how long a partition waits for others."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sized
from typing import Final

from ....consumer import AsyncGroupConsumer
from ....consumer.reading.fetched_records import RUN_BYTES
from ....protocol import ApiKey, TopicPartition
from ....statemachine import MemberState
from ..engine._network import SimulatedCall
from ..groups._checks import stable_members
from ._ledger import BIG_BYTES
from ._plan import NODES, VERSIONS
from ._process import ServiceProcess, ServiceSchedule

#: Most requests of each kind that a process may send, and in how many milliseconds.
_MOST_REQUESTS: Final = 40
_WITHIN_MS: Final = 1_000
_COUNTED: Final = VERSIONS.keys() - {
    ApiKey.FETCH,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
}
#: Longest time until a record is handled when nothing delays its partition.
_PATIENCE_MS: Final = 4_000
#: Numbers that the bookkeeping of a partition may hold besides what is delivered and not done.
_BOOKKEEPING: Final = 400
#: Largest size of a record batch.
_BATCH_BYTES: Final = 1_000
#: Records that are produced together, and what each has besides what pads its value.
_MOST_TOGETHER: Final = 3
_ROW_BYTES: Final = 100
#: Interval between two looks at the memory held.
_HELD_EVERY: Final = 4


class TimeLimits:
    """``sent`` hears of every request, ``look`` is called ten times a second."""

    def __init__(self, world: ServiceSchedule) -> None:
        #: When something last happened that may hold partitions up.
        self.disturbed_ms = 0
        self._world = world
        self._sent: dict[tuple[str, int], deque[int]] = {}
        self._rebalances = self._looks = 0

    def on_sent(self, process: ServiceProcess, call: SimulatedCall) -> None:
        if call.api_key not in _COUNTED:
            return
        now = self._world.heap.now
        times = self._sent.setdefault((process.name, call.api_key), deque(maxlen=_MOST_REQUESTS))
        if len(times) == _MOST_REQUESTS and now - times[0] < _WITHIN_MS:
            name = ApiKey(call.api_key).name
            text = f"{process.name} sends more than {_MOST_REQUESTS} {name} in {_WITHIN_MS} ms"
            self._world.found("S17", text)
        times.append(now)

    def on_disturbed(self) -> None:
        """Something may delay partitions for a while."""
        self.disturbed_ms = self._world.heap.now

    def look(self) -> None:
        if not self._world.checked:
            return
        self._waiting()
        self._looks += 1
        if self._looks % _HELD_EVERY:
            return
        for process in self._world.processes.values():
            self._check_held(process)

    # --- partitions do not wait for each other ------------------------------------------------------------

    def _waiting(self) -> None:
        world = self._world
        if world.stats.rebalances != self._rebalances or not self._is_settled():
            self._rebalances = world.stats.rebalances
            self.on_disturbed()
            return
        if not world.plan.sound or world.plan.kind == "app" or world.healed:
            return
        calm_since = self.disturbed_ms
        now = world.heap.now
        if now - calm_since < _PATIENCE_MS:
            return
        at_work, busy = {entry.partition for entry in world.ledger.at_work}, 0
        for process in world.processes.values():
            in_threads = process.in_threads() if process.alive else []
            at_work |= {entry.partition for entry in in_threads}
            busy = max(busy, len(in_threads) + len(world.ledger.running(process)))
        if busy >= world.plan.concurrency - 1:
            self.on_disturbed()
            return
        for partition in world.cluster.topics.ends():
            entry = world.ledger.oldest(partition)
            if entry is None or entry.postponed or partition in at_work or not self._good(partition, now):
                continue
            moved_ms = world.ledger.moved_ms.get(partition, 0)
            if now - max(entry.made_ms, calm_since, moved_ms) > _PATIENCE_MS:
                others = sorted(f"{p.topic}-{p.partition}" for p in at_work)
                text = f"{entry} has waited for {now - entry.made_ms} ms, though nothing holds it up"
                world.found("S15", f"{text}; others: {others} are at work")

    def _is_settled(self) -> bool:
        world = self._world
        if world.plan.protocol == "registry":
            consumers = [process.consumer for process in world.processes.values() if process.alive]
            stable = (each is not None and each.state.state is MemberState.STABLE for each in consumers)
            return bool(consumers) and all(stable)
        return stable_members(world.shard, world.plan.group) is not None

    def _good(self, partition: TopicPartition, now: int) -> bool:
        """Return whether it could be read for long enough."""
        topics = self._world.cluster.topics
        topic, log = topics.topics.get(partition.topic), topics.log(partition)
        if topic is None or log is None or partition.topic not in self._world.plan.topics:
            return False
        since = max(topic.made_ms, log.led_since_ms, topic.readable_since_ms)
        return log.leader >= 0 and topic.readable and now - since > _PATIENCE_MS

    # --- memory -------------------------------------------------------------------------------------------

    def _check_held(self, process: ServiceProcess) -> None:
        consumer = process.consumer
        if consumer is None:
            return
        config, parts = consumer.config, consumer.parts
        # a request is answered with what each partition may have, one batch of each at least
        most = config.prefetch_max_bytes + NODES * 8 * max(config.max_partition_fetch_bytes, _BATCH_BYTES)
        most += self._taken_apart()
        held = parts.delivery.held.total
        if held > most:
            text = f"{process.name} holds {held} bytes that are not delivered, {most} are allowed"
            self._world.found("S16", text)
        for partition in consumer.assignment():
            undone = parts.tracker.undone([partition])
            allowed = config.max_undone_records + config.max_poll_records
            if undone > allowed:
                name = f"{partition.topic}-{partition.partition}"
                self._world.found(
                    "S16", f"{process.name} has {undone} of {name} undone, {allowed} are allowed"
                )
        if self._world.plan.backlog_max_bytes is not None:
            self._really_held(process, consumer)
        numbers = weight(parts.tracker)
        partitions = max(1, len(consumer.assignment()))
        bound = partitions * (_BOOKKEEPING + 8 * min(config.max_undone_records, 500))
        if numbers > bound:
            self._world.found("S16", f"{process.name} keeps {numbers} numbers about what is done, of {bound}")

    def _really_held(self, process: ServiceProcess, consumer: AsyncGroupConsumer) -> None:
        """Whatever a consumer counts itself: the bytes that are kept from being freed."""
        plan, config = self._world.plan, consumer.config
        most = config.prefetch_max_bytes + NODES * config.max_partition_fetch_bytes + self._taken_apart()
        # an answer has a whole batch of each partition
        most += sum(
            _MOST_TOGETHER * (plan.padding.get(each.topic, 0) + _ROW_BYTES) for each in consumer.assignment()
        )
        # a poll's records are added to those that wait
        waiting = 2 * (plan.backlog_max_bytes or 0) + self._taken_apart()
        for held, allowed, where in (
            (bytes_in(consumer.parts.delivery), most, "that are not delivered"),
            (bytes_in(process.program.queues()), waiting, "that wait for their handlers"),
        ):
            if held > allowed:
                text = f"{process.name} keeps {held} bytes for records {where}, {allowed} are allowed"
                self._world.found("S16", text)

    def _taken_apart(self) -> int:
        """Bytes that the records of batches may have which were decoded together and delivered in part."""
        big = any(incident.kind == "hang-big" for incident in self._world.plan.incidents)
        return RUN_BYTES + BIG_BYTES if big else 0


def bytes_in(root: object) -> int:
    """Bytes that an object of ours keeps alive, including those around a memoryview."""
    return sum(len(each) for each in _kept_by(root) if isinstance(each, (bytes, bytearray)))


def weight(root: object) -> int:
    """Number of elements in the containers that an object of ours is made of."""
    return sum(len(each) for each in _kept_by(root) if not isinstance(each, (bytes, bytearray, memoryview)))


def _kept_by(root: object) -> Iterator[Sized]:
    """Containers and bytes that an object of ours is made of, each once; numbers and text do not count."""
    left, seen = [root], set()
    while left:
        each: object = left.pop()
        if isinstance(each, memoryview):
            each = each.obj
        if isinstance(each, (int, str)) or id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, Mapping):
            left += each.values()
        elif isinstance(each, (list, tuple, set, frozenset, deque)):
            left += each
        elif type(each).__module__.startswith("kohort."):
            left += [getattr(each, name) for name in _fields(each) if hasattr(each, name)]
            continue
        if isinstance(each, Sized):
            yield each


def _fields(each: object) -> list[str]:
    slots = [name for kind in type(each).__mro__ for name in getattr(kind, "__slots__", ())]
    return [*slots, *getattr(each, "__dict__", {})]
