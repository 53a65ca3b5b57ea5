"""The registry of a group in Apache ZooKeeper, as Kafka 0.8 lays it out below ``/consumers/GROUP``.

==========================  ==========  ========================================================
``ids/MEMBER``              ephemeral   ``{"version":1,"subscription":{"orders":1},...}``
``owners/TOPIC/PARTITION``  ephemeral   the thread that reads the partition: ``MEMBER-0``
``offsets/TOPIC/PARTITION`` persistent  the next offset to read, in decimal digits
==========================  ==========  ========================================================

An owner writes the entry of the offset once, unchanged, and from then on by its version alone: whoever owned
the partition before, and does not know that it is over, can commit nothing more. Clients of Kafka 0.8 do not
look at the version, and are not held back.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from ..client.errors import BrokerConnectionError, ConfigError
from ..client.offsets import CommittedOffset
from ..client.waiting import now_ms
from ..client.zookeeper import ZooKeeperSession, ZooKeeperSettings, unanswered
from ..protocol import ErrorCode, TopicPartition
from .registry import Claim, Register, RegistryEffect, RegistryMembership, Release, Topics, Withdraw

#: Session of somebody who only looks.
_READING_SESSION_MS = 10_000

log = logging.getLogger("kohort.consumer")


class _Stored(NamedTuple):
    """The offset of an owned partition: its entry's version (None: there is no entry), and what it says.

    ``tried`` is what was written without an answer: the entry may say that by now.
    """

    version: int | None
    data: bytes
    tried: bytes | None = None


class Registered(NamedTuple):
    """What is registered of a group: its members with their topics, and the offsets that they have stored."""

    members: dict[str, Topics]
    offsets: dict[TopicPartition, int]


async def read_registry(address: str, group: str, timeout_ms: int) -> Registered:
    """Read a group's registry once; empty where there is none. Raises BrokerConnectionError and ConfigError
    as ``ZooKeeperRegistry.open``.
    """
    registry = ZooKeeperRegistry(address, group, _READING_SESSION_MS, timeout_ms)
    try:
        await registry.connect(lambda _: None)
        return await registry.read()
    finally:
        registry.close()


def new_member_id(group: str) -> str:
    """A member id as clients of Kafka 0.8 make theirs: group, host, milliseconds, eight hex digits."""
    return f"{group}_{socket.gethostname()}-{time.time_ns() // 1_000_000}-{uuid.uuid4().hex[:8]}"


class ZooKeeperRegistry:
    """One member's part of the registry; belongs to the event loop on which ``open`` was called."""

    def __init__(self, address: str, group: str, session_timeout_ms: int, timeout_ms: int) -> None:
        self._settings = ZooKeeperSettings(address, session_timeout_ms, timeout_ms)
        self._root = f"/consumers/{group}"
        self._session: ZooKeeperSession | None = None
        self._member: RegistryMembership
        self._told: Callable[[], None]
        self._members: dict[str, Topics] = {}
        self._me = ""
        self._owned: set[TopicPartition] = set()
        self._stored: dict[TopicPartition, _Stored] = {}
        #: Partitions whose owner, another one, is watched.
        self._watched: set[TopicPartition] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._in_order = asyncio.Lock()
        #: Watches that have fired, for those who measure the herd.
        self.watches_fired = 0

    def __repr__(self) -> str:
        return f"ZooKeeperRegistry({self._settings.connect}{self._root}, {len(self._owned)} partitions)"

    async def open(self, member: RegistryMembership, told: Callable[[], None]) -> None:
        """Begin a session, and tell the member what happens; ``told`` is called each time.

        Raises BrokerConnectionError where there is no answer in time, and ConfigError without kazoo.
        """
        self._member, self._told = member, told
        await self.connect(self._state_changed)
        for name in ("ids", "owners", "offsets"):
            await self._call("ensure_path", f"{self._root}/{name}")
        self._connected()

    async def connect(self, state_changed: Callable[[str], None]) -> None:
        """Begin a session; ``state_changed`` is told what comes after its begin. Raises as ``open``."""
        try:
            self._session = session = ZooKeeperSession(self._settings, log)
        except ModuleNotFoundError as error:
            raise ConfigError(
                "coordination by ZooKeeper needs kazoo: pip install 'kohort[cluster]'"
            ) from error
        begun = asyncio.get_running_loop().create_future()

        def told(state: str) -> None:
            if begun.done():
                state_changed(state)
            elif state == "CONNECTED":
                begun.set_result(None)

        try:
            async with asyncio.timeout(self._settings.connection_timeout_ms / 1_000):
                await session.begin(told)
                await begun
                if session.client.chroot:
                    await asyncio.to_thread(session.client.ensure_path, "/")
        except TimeoutError as error:
            raise BrokerConnectionError(self._settings.connect, str(self._settings.no_answer())) from error
        except Exception as error:
            raise self._no_answer(error) from error

    async def read(self) -> Registered:
        """Who is registered, and every stored offset. Raises BrokerConnectionError."""
        from kazoo.exceptions import KazooException

        offsets = {}
        try:
            names = await self._below("ids")
            entries = [(name, await self._call("get", f"{self._root}/ids/{name}")) for name in names]
            for topic in await self._below("offsets"):
                for number in await self._below(f"offsets/{topic}"):
                    data, _ = await self._call("get", f"{self._root}/offsets/{topic}/{number}")
                    if data.isdigit() and number.isdigit():
                        offsets[TopicPartition(topic, int(number))] = int(data)
        except (KazooException, OSError) as error:
            raise self._no_answer(error) from error
        return Registered({name: _topics_in(name, data) for name, (data, _) in entries}, offsets)

    async def _below(self, path: str) -> list[str]:
        from kazoo.exceptions import NoNodeError

        try:
            return list(await self._call("get_children", f"{self._root}/{path}"))
        except NoNodeError:
            return []

    def close(self) -> None:
        """End the session, and with it what this member has registered and owns."""
        for task in self._tasks:
            task.cancel()
        if self._session is not None:
            self._session.close()

    # -- the session -----------------------------------------------------------------------------------------

    def _state_changed(self, state: str) -> None:
        if state == "CONNECTED":
            self._connected()
        elif state == "SUSPENDED":
            self._tell(self._member.suspended)
        else:
            self._owned.clear()
            self._stored.clear()
            self._tell(self._member.expired)

    def _connected(self) -> None:
        self._watched.clear()  # watches go with the connection
        self._tell(self._member.connected)
        self._read_members()

    def _tell(self, what: Callable[[float], None]) -> None:
        what(now_ms())
        self._told()

    def _freed(self, partition: TopicPartition) -> None:
        self._watched.discard(partition)
        self._tell(self._member.freed)

    def _call(self, request: str, path: str, *arguments: Any) -> asyncio.Future[Any]:
        assert self._session is not None, "it is open"
        return self._session.call(getattr(self._session.client, f"{request}_async"), path, *arguments)

    @property
    def _session_id(self) -> int:
        assert self._session is not None, "it is open"
        (number, _) = self._session.client.client_id
        return int(number)

    # -- who is there ----------------------------------------------------------------------------------------

    def _read_members(self) -> None:
        self._start(self._tell_members())

    def _start(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work, name="kohort registry")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _tell_members(self) -> None:
        from kazoo.exceptions import KazooException, NoNodeError

        path = f"{self._root}/ids"
        try:
            names = await self._call("get_children", path, self._ids_changed)
            known = {name: self._members[name] for name in names if name in self._members}
            missing = [name for name in names if name not in known]
            reads = (self._call("get", f"{path}/{name}") for name in missing)
            for name, read in zip(missing, await asyncio.gather(*reads, return_exceptions=True), strict=True):
                if isinstance(read, NoNodeError):
                    continue  # it has gone meanwhile: the watch tells
                if isinstance(read, BaseException):
                    raise read
                known[name] = _topics_in(name, read[0])
        except (KazooException, OSError) as error:
            # the next connection reads it again
            log.debug("the members of %s were not read: %r", self._root, error)
            return
        self._members = known
        self._tell(lambda now: self._member.members_changed(known, now))

    def _ids_changed(self, event: Any) -> None:
        """Called in a thread of kazoo's."""
        if event.type != "NONE" and self._session is not None:
            self.watches_fired += 1
            self._session.hand_over(self._read_members)

    # -- what a member does ----------------------------------------------------------------------------------

    async def carry_out(self, effect: RegistryEffect) -> frozenset[TopicPartition]:
        """Carry out what a membership asks for, in the order of the calls; returns the partitions that are
        owned after a Claim. Raises BrokerConnectionError.
        """
        from kazoo.exceptions import KazooException

        async with self._in_order:
            try:
                match effect:
                    case Register(member_id, topics):
                        await self._register(member_id, topics)
                    case Claim(partitions):
                        return await self._claim(partitions)
                    case Release(partitions):
                        await self._release(partitions)
                    case Withdraw():
                        await self._release(tuple(self._owned))
                        await self._remove(f"{self._root}/ids/{self._me}")
            except (KazooException, OSError) as error:
                raise self._no_answer(error) from error
        return frozenset()

    async def _register(self, member_id: str, topics: tuple[str, ...]) -> None:
        subscription = dict.fromkeys(topics, 1)
        entry = {"version": 1, "subscription": subscription, "pattern": "static"}
        entry["timestamp"] = str(time.time_ns() // 1_000_000)
        before, self._me = self._me, member_id
        await self._create(f"{self._root}/ids/{member_id}", json.dumps(entry).encode())
        if before not in ("", member_id):
            await self._remove(f"{self._root}/ids/{before}")

    async def _claim(self, partitions: Iterable[TopicPartition]) -> frozenset[TopicPartition]:
        from kazoo.exceptions import NodeExistsError

        wanted = list(partitions)
        owner = f"{self._me}-0".encode()
        claims = (self._create(self._owner(partition), owner) for partition in wanted)
        mine = set()
        for partition, claim in zip(
            wanted, await asyncio.gather(*claims, return_exceptions=True), strict=True
        ):
            if claim is None:
                mine.add(partition)
            elif not isinstance(claim, NodeExistsError):
                raise claim
        self._owned |= mine
        for partition in set(wanted) - mine - self._watched:
            self._watched.add(partition)
            self._start(self._watch_owner(partition))
        await asyncio.gather(*(self._fence(partition) for partition in mine - self._stored.keys()))
        return frozenset(mine & self._stored.keys())

    async def _create(self, path: str, data: bytes) -> None:
        """Create an ephemeral entry; one that this session has already is as good. Raises NodeExistsError."""
        from kazoo.exceptions import NodeExistsError, NoNodeError

        while True:
            try:
                await self._call("create", path, data, None, True, False, True)
            except NodeExistsError:
                stat = await self._call("exists", path)
                if stat is None:
                    continue
                if stat.ephemeralOwner != self._session_id:
                    raise
                try:
                    await self._call("set", path, data)
                except NoNodeError:
                    continue
            return

    async def _watch_owner(self, partition: TopicPartition) -> None:
        from kazoo.exceptions import KazooException

        try:

            def changed(event: Any) -> None:
                """Called in a thread of kazoo's."""
                if self._session is not None:
                    self.watches_fired += event.type != "NONE"
                    self._session.hand_over(self._freed, partition)

            if await self._call("exists", self._owner(partition), changed) is None:
                self._freed(partition)
        except (KazooException, OSError) as error:
            self._watched.discard(partition)
            log.debug("the owner of %s-%d is not watched: %r", *partition, error)

    async def _release(self, partitions: Iterable[TopicPartition]) -> None:
        mine = self._owned.intersection(partitions)
        for partition in mine:
            self._stored.pop(partition, None)
        await asyncio.gather(*(self._remove(self._owner(partition)) for partition in mine))
        self._owned -= mine

    async def _remove(self, path: str) -> None:
        from kazoo.exceptions import NoNodeError

        with suppress(NoNodeError):
            await self._call("delete", path)

    # -- offsets ---------------------------------------------------------------------------------------------

    async def _fence(self, partition: TopicPartition) -> None:
        """Read the offset of a partition that is owned now, and change its entry's version."""
        from kazoo.exceptions import BadVersionError, NoNodeError

        path = self._offset(partition)
        while True:
            try:
                data, stat = await self._call("get", path)
                stat = await self._call("set", path, data, stat.version)
            except NoNodeError:
                self._stored[partition] = _Stored(None, b"")
            except BadVersionError:
                continue  # the owner before was about to commit
            else:
                self._stored[partition] = _Stored(stat.version, data)
            return

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, CommittedOffset]:
        """The offsets of owned partitions, as far as there are any."""
        found = {}
        for partition in partitions:
            stored = self._stored.get(partition)
            if stored is not None and stored.data.isdigit():
                found[partition] = CommittedOffset(int(stored.data))
        return found

    async def commit(
        self, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> dict[TopicPartition, ErrorCode]:
        """Store offsets of owned partitions; ILLEGAL_GENERATION for those of another owner. Raises
        BrokerConnectionError.
        """
        from kazoo.exceptions import KazooException

        writes = (self._store(partition, b"%d" % value.offset) for partition, value in offsets.items())
        results = await asyncio.gather(*writes, return_exceptions=True)
        codes = {}
        for partition, result in zip(offsets, results, strict=True):
            if isinstance(result, KazooException | OSError):
                raise self._no_answer(result) from result
            if isinstance(result, BaseException):
                raise result
            codes[partition] = result
        return codes

    async def _store(self, partition: TopicPartition, data: bytes) -> ErrorCode:
        from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError

        path = self._offset(partition)
        try:
            if (stored := await self._certain(partition)) is None:
                return ErrorCode.ILLEGAL_GENERATION
            self._stored[partition] = stored._replace(tried=data)
            if stored.version is None:
                await self._call("create", path, data, None, False, False, True)
                version = 0
            else:
                version = (await self._call("set", path, data, stored.version)).version
        except (BadVersionError, NoNodeError, NodeExistsError):
            self._stored.pop(partition, None)
            return ErrorCode.ILLEGAL_GENERATION
        if partition in self._stored:
            self._stored[partition] = _Stored(version, data)
        return ErrorCode.NONE

    async def _certain(self, partition: TopicPartition) -> _Stored | None:
        """What is stored; after a write without an answer, it is looked up whether it was made."""
        from kazoo.exceptions import NoNodeError

        stored = self._stored.get(partition)
        if stored is None or stored.tried is None:
            return stored
        try:
            data, stat = await self._call("get", self._offset(partition))
        except NoNodeError:
            return stored if stored.version is None else None
        written = 0 if stored.version is None else stored.version + 1
        if stat.version == stored.version:
            return stored
        return _Stored(stat.version, data) if (stat.version, data) == (written, stored.tried) else None

    def _no_answer(self, error: Exception) -> BrokerConnectionError:
        return BrokerConnectionError(self._settings.connect, str(unanswered(error)))

    # -- paths -----------------------------------------------------------------------------------------------

    def _owner(self, partition: TopicPartition) -> str:
        return f"{self._root}/owners/{partition.topic}/{partition.partition}"

    def _offset(self, partition: TopicPartition) -> str:
        return f"{self._root}/offsets/{partition.topic}/{partition.partition}"


def _topics_in(name: str, data: bytes) -> Topics:
    """The threads by topic of a registration; none if it cannot be read, or subscribes to patterns."""
    try:
        entry = json.loads(data)
        topics = {str(topic): int(count) for topic, count in entry["subscription"].items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        log.warning("the registration of %s in ZooKeeper cannot be read: it gets no partitions", name)
        return {}
    if entry.get("pattern", "static") != "static":
        log.warning(
            "%s subscribes to a pattern in ZooKeeper, which is not supported: it gets no partitions", name
        )
        return {}
    return topics
