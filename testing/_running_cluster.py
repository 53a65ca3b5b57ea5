"""The brokers of a cluster in threads of this process, with methods to disturb them."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..client import BrokerConnectionError, Cluster
from ..client.connection import Connection
from ..client.metadata import Address
from ..cluster import ClusterImage, PartitionState
from ..protocol import TopicPartition
from ._broker_thread import BrokerThread
from ._running_broker import CALL_TIMEOUT_S, RunningBroker
from .memory_store import MemoryHome, MemoryStore

if TYPE_CHECKING:
    from ..broker.metadata.cluster_node import ClusterNode
    from ..consumer import Record

T = TypeVar("T")


@contextmanager
def running_cluster(
    brokers: int = 3, *, racks: Sequence[str] = (), data: str | Path | None = None, **settings: object
) -> Iterator[RunningCluster]:
    """Brokers 1, 2, 3 and so on, until the block ends: each with its own thread, event loop and port.

    ``settings`` are Kafka's names with underscores, for all brokers; ``racks`` are assigned in turn. Topics
    have as many replicas as there are brokers, three at most, unless ``default_replication_factor`` says
    otherwise. With ``data`` the records outlive the block; the cluster's metadata does not.
    """
    cluster = RunningCluster(brokers, racks, data, settings)
    try:
        cluster._start()
        yield cluster
    finally:
        cluster._end()


class RunningCluster:
    """A running cluster. ``bootstrap`` names the brokers of its start.

    Methods take the numbers of brokers. ``brokers`` has the running ones by number; each has the methods of
    a single running broker.
    """

    def __init__(
        self, count: int, racks: Sequence[str], data: str | Path | None, settings: dict[str, object]
    ) -> None:
        replicas = min(count, 3)
        usual = {
            "default_replication_factor": replicas,
            "offsets_topic_replication_factor": replicas,
            "transaction_state_log_replication_factor": replicas,
            "offsets_topic_num_partitions": 3,
            "transaction_state_log_num_partitions": 3,
        }
        self._settings = {**usual, **settings}
        self._numbers = range(1, count + 1)
        self._racks = racks
        self._is_temporary = data is None
        self._data = Path(tempfile.mkdtemp(prefix="kohort-") if data is None else data)
        self._home = MemoryHome()
        self._stores: dict[int, MemoryStore] = {}
        self._threads: dict[int, BrokerThread] = {}
        self._ports: dict[int, int] = {}
        self._held: dict[int, threading.Event] = {}
        # pairs of brokers without a connection, and connections that were made between brokers
        self._cuts: set[frozenset[int]] = set()
        self._lone: set[int] = set()
        self._links: list[tuple[frozenset[int], asyncio.AbstractEventLoop, Connection]] = []
        self.brokers: dict[int, RunningBroker] = {}

    def __repr__(self) -> str:
        return f"RunningCluster({sorted(self.brokers)})"

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self._ports.values())

    # -- looking ---------------------------------------------------------------------------------------------

    @property
    def controller(self) -> int:
        """Wait until there is a controller and return its number."""
        return self._eventually(
            lambda: next((n for n in self._awake() if self._part(n).control.is_active), None)
        )

    def state(self, topic: str, partition: int) -> PartitionState:
        """Return the controller's state of a partition. Raises KeyError if there is none."""
        found = self._image(self.controller).topic(topic)
        if found is None or not 0 <= partition < len(found.partitions):
            raise KeyError(f"there is no partition {topic}-{partition}")
        return found.partitions[partition]

    def leader_of(self, topic: str, partition: int = 0) -> int:
        """Wait until a partition has a leader and return its number."""
        return self._eventually(lambda: max(self.state(topic, partition).leader, 0) or None)

    def coordinator_of(self, group: str) -> int:
        """Wait until a group has a coordinator and return its number."""

        async def look() -> int:
            async with Cluster(self.bootstrap) as client:
                return (await client.coordinator(group)).node_id

        return asyncio.run(look())

    def wait_in_sync(self, topic: str, timeout_s: float = 10.0) -> None:
        """Return when all replicas of a topic are in sync."""

        def is_whole() -> bool:
            found = self._image(self.controller).topic(topic)
            return found is not None and all(
                set(state.isr) == set(state.replicas) and state.leader != -1 for state in found.partitions
            )

        self._eventually(lambda: is_whole() or None, timeout_s)

    # -- disturbing brokers ----------------------------------------------------------------------------------

    def kill(self, number: int, missed_after_s: float = 0.0) -> None:
        """End a broker as SIGKILL does. The others notice after ``missed_after_s``; return when they lead all
        of its partitions that they can lead.
        """
        self._threads.pop(number).end(kill=True)
        self._is_gone(number)
        time.sleep(missed_after_s)
        self._stores.pop(number).expire()
        self._wait_until_missed(number)

    def stop(self, number: int) -> None:
        """Stop a broker cleanly: other brokers take over its partitions first."""
        self._threads.pop(number).end()
        self._is_gone(number)
        self._stores.pop(number)

    def restart(self, number: int) -> None:
        """Restart a broker that was killed or stopped, with its data and on its port."""
        self._begin(number)
        self._serves(number)

    def pause(self, number: int, *, missed: bool = False) -> None:
        """Suspend a broker as SIGSTOP does, until ``resume``. With ``missed`` its session expires."""
        held, released = threading.Event(), threading.Event()
        self._held[number] = released

        def hold() -> None:
            held.set()
            released.wait()

        self._threads[number].loop.call_soon_threadsafe(hold)
        held.wait(CALL_TIMEOUT_S)
        if missed:
            self._stores[number].expire()
            self._stores[number].resume()
            self._wait_until_missed(number)

    def resume(self, number: int) -> None:
        self._held.pop(number).set()

    def lose_session(self, number: int) -> None:
        """Expire a broker's session with the metadata; a new one begins, unless the broker is cut off."""
        self._stores[number].expire()
        if number in self._lone:
            self._wait_until_missed(number)
        else:
            self._stores[number].resume()

    def cut(self, first: int, second: int) -> None:
        """Cut the connections between two brokers until ``heal``. Clients still reach both.

        Nothing passes after the return, unless one of the brokers is suspended.
        """
        pair = frozenset((first, second))
        self._cuts.add(pair)
        closing: list[threading.Event] = []
        for between, loop, connection in self._links:
            if between == pair and not loop.is_closed():
                closed = threading.Event()
                loop.call_soon_threadsafe(connection.close, "cut by the test")
                loop.call_soon_threadsafe(closed.set)
                if loop.is_running():
                    closing.append(closed)
        if not pair & self._held.keys():
            for closed in closing:
                closed.wait(CALL_TIMEOUT_S)

    def cut_off(self, number: int) -> None:
        """Cut a broker off from other brokers and from the metadata store until ``heal``. Its session lives
        until ``lose_session``.
        """
        self._lone.add(number)
        for other in self._numbers:
            if other != number:
                self.cut(number, other)
        self._stores[number].suspend()

    def heal(self) -> None:
        """Restore all connections."""
        self._cuts.clear()
        self._lone.clear()
        for store in self._stores.values():
            store.resume()

    def move_leader(self, topic: str, partition: int, to: int) -> None:
        """Make a broker the leader of a partition, and one of its replicas if necessary. Returns when it
        leads.
        """
        key = TopicPartition(topic, partition)
        replicas = self.state(topic, partition).replicas
        others = [each for each in replicas if each != to]
        wanted = (to, *others[: max(1, len(replicas)) - 1])

        async def move(part: ClusterNode) -> None:
            for refusal in (await part.control.reassign({key: wanted})).values():
                if refusal is not None:
                    raise refusal

        async def elect(part: ClusterNode) -> None:
            await part.control.elect([key], unclean=False)

        self._at_controller(move)
        self._eventually(lambda: to in self.state(topic, partition).isr or None)
        self._at_controller(elect)
        self._eventually(lambda: self.state(topic, partition).leader == to or None)

    # -- records ---------------------------------------------------------------------------------------------

    def create_topic(self, name: str, partitions: int = 1, **configs: str) -> None:
        """``configs`` are Kafka's names with underscores. KafkaError if the topic exists."""
        from ._records import create_topic

        asyncio.run(create_topic(self.bootstrap, name, partitions, configs))
        self.wait_in_sync(name)

    def produce(self, topic: str, values: Iterable[object], *, partition: int | None = None) -> None:
        """As ``RunningBroker.produce``; every in-sync replica acknowledges the records."""
        from ._records import produce

        asyncio.run(produce(self.bootstrap, topic, values, partition))

    def read(self, topic: str) -> list[Record]:
        """Read all records that a topic has now, partition by partition."""
        from ._records import read

        return asyncio.run(read(self.bootstrap, topic))

    # -- inside ----------------------------------------------------------------------------------------------

    def _start(self) -> None:
        for number in self._numbers:
            self._begin(number)
        for number in self._numbers:
            self._serves(number)
        everybody = set(self._numbers)
        for number in self._numbers:
            self._eventually(
                lambda number=number: self._image(number).brokers.keys() == everybody or None  # type: ignore[misc]
            )

    def _begin(self, number: int) -> None:
        async def open_store() -> MemoryStore:
            store = self._stores[number] = self._home.open(asyncio.get_running_loop())
            return store

        settings = {**self._settings, "node_id": number}
        if self._racks:
            settings["broker_rack"] = self._racks[(number - 1) % len(self._racks)]
        thread = BrokerThread(
            settings,
            data=self._data / str(number),
            port=self._ports.get(number, 0),
            open_store=open_store,
            open_connection=partial(self._connect, number),
        )
        self._threads[number] = thread
        thread.begin()

    def _serves(self, number: int) -> None:
        running = self._threads[number].wait_until_started()
        self.brokers[number] = running
        self._ports[number] = running.port

    async def _connect(self, number: int, address: Address, **options: Any) -> Connection:
        """Open a connection from one broker to another, unless it is cut."""
        other = next((n for n, port in self._ports.items() if port == address.port), 0)
        pair = frozenset((number, other))
        connection = await Connection.open(address, **options)
        if pair in self._cuts:
            connection.close("cut by the test")
            raise BrokerConnectionError(str(address), "cut by the test")
        self._links = [each for each in self._links if not each[2].is_closed]
        self._links.append((pair, asyncio.get_running_loop(), connection))
        return connection

    def _wait_until_missed(self, number: int) -> None:
        """Wait until the controller has moved the leadership of a broker's partitions, as far as it can."""
        self._eventually(lambda: self._is_missed(number) or None)

    def _is_missed(self, number: int) -> bool:
        image = self._image(self.controller)
        led = (state for topic in image.topics() for state in topic.partitions if state.leader == number)
        return number not in image.brokers and not any(led)

    def _is_gone(self, number: int) -> None:
        del self.brokers[number]

    def _part(self, number: int) -> ClusterNode:
        part = self._threads[number].broker.cluster
        assert part is not None, "it is one of a cluster"
        return part

    def _image(self, number: int) -> ClusterImage:
        # replaced as a whole: any thread may read it
        return self._threads[number].broker.topics.image

    def _awake(self) -> list[int]:
        return [number for number in self.brokers if number not in self._held and number not in self._lone]

    def _at_controller(self, work: Callable[[ClusterNode], Any]) -> object:
        number = self.controller
        running = asyncio.run_coroutine_threadsafe(work(self._part(number)), self._threads[number].loop)
        return running.result(CALL_TIMEOUT_S)

    def _eventually(self, look: Callable[[], T | None], timeout_s: float = CALL_TIMEOUT_S) -> T:
        """Return what ``look`` returns, as soon as that is not None."""
        deadline = time.monotonic() + timeout_s
        while (found := look()) is None:
            if time.monotonic() > deadline:
                raise TimeoutError("the cluster has not come to be as the test waits for it")
            time.sleep(0.005)
        return found

    def _end(self) -> None:
        for number in list(self._held):
            self.resume(number)
        threads, self._threads = self._threads, {}
        # all at once: one alone would wait for the others to take over its partitions
        ending = [threading.Thread(target=thread.end, kwargs={"kill": True}) for thread in threads.values()]
        for each in ending:
            each.start()
        for each in ending:
            each.join()
        if self._is_temporary:
            shutil.rmtree(self._data, ignore_errors=True)
