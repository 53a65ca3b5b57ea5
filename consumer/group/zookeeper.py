"""The registry of a group in Apache ZooKeeper, with Kafka 0.8's layout below ``/consumers/GROUP``.

==========================  ==========  ========================================================
``ids/MEMBER``              ephemeral   ``{"version":1,"subscription":{"orders":1},...}``
``owners/TOPIC/PARTITION``  ephemeral   the thread that reads the partition: ``MEMBER-0``
``offsets/TOPIC/PARTITION`` persistent  the next offset to read, in decimal digits
==========================  ==========  ========================================================

An owner first writes the offset's entry once, unchanged, and from then on only at the version that it knows:
so a former owner that does not know of its loss cannot commit any more. If there is no entry it creates one
with -1, which clients of Kafka 0.8 read as "no offset". These clients ignore the version, so they are not
fenced.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from random import Random
from typing import Any, NamedTuple, TypeVar

from ...client.errors import ConfigError, ZooKeeperConnectionError
from ...client.offsets import CommittedOffset
from ...client.surroundings import SURROUNDINGS
from ...client.waiting import now_ms
from ...client.zookeeper import ZooKeeperSession, ZooKeeperSettings, outage_error
from ...protocol import ErrorCode, TopicPartition
from .effects import Request
from .registry import (
    CheckRegistry,
    ClaimPartitions,
    Register,
    RegistryMembership,
    Release,
    Topics,
    Withdraw,
)

#: Session timeout of a client that only reads.
_READING_SESSION_MS = 10_000
#: The value that clients of Kafka 0.8 read as "no offset".
_NO_OFFSET = b"-1"
#: The highest possible offset and its digits, and more threads than any client of Kafka 0.8 has.
_MAX_OFFSET = (1 << 63) - 1
_MAX_DIGITS = 19
_MAX_THREADS = 10_000
#: A partition as clients write it.
_PARTITION = re.compile("0|[1-9][0-9]{0,8}")
#: Pause before members are read again if ZooKeeper refused it.
_READ_AGAIN_S = 1.0

Key = TypeVar("Key")

log = logging.getLogger("kohort.consumer")


class _Stored(NamedTuple):
    """The offset of an owned partition: its entry's version and content.

    ``tried`` is a value that was written without a response: the entry may have it by now.
    """

    version: int
    data: bytes | None
    tried: bytes | None = None


class Registered(NamedTuple):
    """The registry of a group: its members with their topics, and their stored offsets."""

    members: dict[str, Topics]
    offsets: dict[TopicPartition, int]


async def read_registry(address: str, group: str, timeout_ms: int) -> Registered:
    """Read a group's registry once; empty if there is none. Raises BrokerConnectionError and ConfigError like
    ``ZooKeeperRegistry.open``.
    """
    registry = ZooKeeperRegistry(address, group, _READING_SESSION_MS, timeout_ms)
    try:
        await registry.connect(lambda _: None)
        return await registry.read()
    finally:
        registry.close()


def new_member_id(group: str, rng: Random) -> str:
    """A member id like those of Kafka 0.8's clients: group, host, milliseconds, eight hex digits."""
    time_ms = SURROUNDINGS.get().time_ms()
    return f"{group}_{socket.gethostname()}-{time_ms}-{rng.getrandbits(32):08x}"


class ZooKeeperRegistry:
    """One member's access to the registry; use it on the event loop on which ``open`` was called."""

    def __init__(self, address: str, group: str, session_timeout_ms: int, timeout_ms: int) -> None:
        # not kazoo's chroot, which does not create parent nodes
        hosts, slash, folder = address.partition("/")
        self._settings = ZooKeeperSettings(hosts, session_timeout_ms, timeout_ms)
        self._root = f"{slash}{folder}/consumers/{group}"
        self._session: ZooKeeperSession | None = None
        self._member: RegistryMembership
        self._told: Callable[[], None]
        self._members: dict[str, Topics] = {}
        #: How often the members were read, or began to be.
        self._reads = 0
        #: The ids that this member may be registered under, and its present id.
        self._ids: set[str] = set()
        self._me = ""
        self._stored: dict[TopicPartition, _Stored] = {}
        #: Partitions whose owner, this member or another one, is watched.
        self._watched: set[TopicPartition] = set()
        #: What was warned of.
        self._warned: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._in_order = asyncio.Lock()
        #: Number of watches that have fired, for measuring the herd effect.
        self.watches_fired = 0

    def __repr__(self) -> str:
        return f"ZooKeeperRegistry({self._settings.connect}{self._root}, {len(self._stored)} partitions)"

    async def open(self, member: RegistryMembership, told: Callable[[], None]) -> None:
        """Begin a session, and report its events to the member; ``told`` is called after each.

        Raises BrokerConnectionError if there is no response in time, and ConfigError without kazoo.
        """
        self._member, self._told = member, told
        await self.connect(self._state_changed)
        self._on_connected()

    async def connect(self, state_changed: Callable[[str], None]) -> None:
        """Begin a session; ``state_changed`` is called with each later state. Raises the errors of
        ``open``.
        """
        try:
            self._session = session = SURROUNDINGS.get().open_zookeeper(self._settings, log)
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
        except TimeoutError as error:
            raise ZooKeeperConnectionError(self._settings.connect, str(self._settings.no_answer())) from error

    async def read(self) -> Registered:
        """Read the registered members, and all stored offsets. Raises BrokerConnectionError."""
        from kazoo.exceptions import KazooException

        offsets = {}
        try:
            entries = await self._read_entries("ids")
            for topic in await self._names_below("offsets"):
                for number, data in (await self._read_entries(f"offsets/{topic}")).items():
                    # what is written otherwise than by a client is no partition's
                    if _PARTITION.fullmatch(number):
                        partition = TopicPartition(topic, int(number))
                        if (offset := _offset_of(partition, data)) is not None:
                            offsets[partition] = offset
        except (KazooException, OSError) as error:
            raise self._no_answer(error) from error
        return Registered({name: _topics_in(name, data) for name, data in entries.items()}, offsets)

    async def _read_entries(self, path: str) -> dict[str, bytes | None]:
        """The entries below another, by name; without those that go meanwhile."""
        from kazoo.exceptions import NoNodeError

        entries = {}
        for name in await self._names_below(path):
            with suppress(NoNodeError):
                entries[name], _ = await self._call_client("get", f"{self._root}/{path}/{name}")
        return entries

    async def _names_below(self, path: str) -> list[str]:
        from kazoo.exceptions import NoNodeError

        try:
            return list(await self._call_client("get_children", f"{self._root}/{path}"))
        except NoNodeError:
            return []

    def close(self) -> None:
        """End the session, and with it this member's registration and ownership."""
        for task in self._tasks:
            task.cancel()
        if self._session is not None:
            self._session.close()

    # -- the session -----------------------------------------------------------------------------------------

    def _state_changed(self, state: str) -> None:
        if state == "CONNECTED":
            self._on_connected()
        elif state == "SUSPENDED":
            self._report_change(self._member.on_suspended)
            self._start(self._forget_last_change())
        else:
            self._stored.clear()
            self._report_change(self._member.on_expired)

    def _on_connected(self) -> None:
        self._watched.clear()  # watches end with the connection
        self._report_change(self._member.on_connected)
        self._read_members()

    async def _forget_last_change(self) -> None:
        """Once the session is over, forget the last change: servers that lost data refuse clients that
        saw later.
        """
        await asyncio.sleep(self._settings.session_timeout_ms / 1_000)
        assert self._session is not None, "it is open"
        if self._session.client.client_id is None:
            self._session.client.last_zxid = 0

    def _report_change(self, what: Callable[[float], None]) -> None:
        what(now_ms())
        self._told()

    def _call_client(self, request: str, path: str, *arguments: Any) -> asyncio.Future[Any]:
        assert self._session is not None, "it is open"
        return self._session.call(getattr(self._session.client, f"{request}_async"), path, *arguments)

    def _is_mine(self, stat: object) -> bool:
        """Return whether an entry is ephemeral and of this session. Raises ConnectionLoss without a
        connection, when that is unknown.
        """
        from kazoo.exceptions import ConnectionLoss

        assert self._session is not None, "it is open"
        if (known := self._session.client.client_id) is None:
            raise ConnectionLoss
        return bool(getattr(stat, "ephemeralOwner", None) == known[0])

    def _start(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work, name="kohort registry")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- who is there ----------------------------------------------------------------------------------------

    def _read_members(self) -> None:
        self._start(self._tell_members())

    async def _tell_members(self) -> None:
        from kazoo.exceptions import KazooException

        self._reads += 1
        number = self._reads
        try:
            known, refused = await self._find_members()
        except (KazooException, OSError) as error:
            if not _is_refused(error):
                return  # the next connection reads them
            self._warn_once(f"the members of {self._root} are not to be had from ZooKeeper: {error!r}")
            refused = [self._root]
        else:
            if number != self._reads:
                return  # a later read is newer, even if its response came earlier
            self._members = known
            shown: dict[str, Topics] = known | {name: {} for name in refused}
            self._report_change(lambda now: self._member.members_changed(shown, now))
        if refused:
            await asyncio.sleep(_READ_AGAIN_S)
            if number == self._reads:
                self._read_members()

    async def _find_members(self) -> tuple[dict[str, Topics], list[str]]:
        """The registered members with their topics, and those whose topics ZooKeeper refuses to give. A
        registration is read once, since a member whose topics change registers another id. Sets a watch for
        the next change.
        """
        from kazoo.exceptions import NoNodeError

        path = f"{self._root}/ids"
        while True:
            try:
                names = await self._call_client("get_children", path, self._ids_changed)
                break
            except NoNodeError:
                await self._call_client(
                    "ensure_path", path
                )  # there never was a member, or the node was removed
        known = {name: self._members[name] for name in names if name in self._members}
        missing = [name for name in names if name not in known]
        refused = []
        for name, read in (
            await self._call_each("get", {name: f"{path}/{name}" for name in missing})
        ).items():
            if isinstance(read, NoNodeError):
                continue  # it is gone meanwhile: the watch reports it
            if isinstance(read, Exception):
                refused.append(name)
                continue
            data, stat = read
            known[name] = _topics_in(name, data)
            self._look_for_remnant(f"{path}/{name}", stat)
        self._members = self._members | known
        return known, refused

    def _ids_changed(self, event: Any) -> None:
        """Called in a thread of kazoo."""
        if event.type != "NONE" and self._session is not None:
            self.watches_fired += 1
            self._session.hand_over(self._read_members)

    # -- what a member does ----------------------------------------------------------------------------------

    async def carry_out(self, effect: Request) -> frozenset[TopicPartition]:
        """Carry out a membership's effects, in the order of the calls; return the partitions that are owned
        after a Claim, or at a Check. Raises BrokerConnectionError.
        """
        from kazoo.exceptions import KazooException

        async with self._in_order:
            try:
                match effect:
                    case Register(member_id, topics):
                        await self._register_member(member_id, topics)
                    case ClaimPartitions(partitions):
                        return await self._claim_partitions(partitions)
                    case Release(partitions):
                        await self._release_partitions(partitions)
                    case Withdraw(partitions):
                        await self._release_partitions(partitions)
                        await self._unregister_members(self._ids)
                    case CheckRegistry(partitions):
                        return await self._owned_among(partitions)
            except (KazooException, OSError) as error:
                raise self._no_answer(error) from error
        return frozenset()

    async def _register_member(self, member_id: str, topics: tuple[str, ...]) -> None:
        subscription = dict.fromkeys(topics, 1)
        entry = {"version": 1, "subscription": subscription, "pattern": "static"}
        entry["timestamp"] = str(SURROUNDINGS.get().time_ms())
        self._me = member_id
        self._ids.add(member_id)
        await self._create_entry(f"{self._root}/ids/{member_id}", json.dumps(entry).encode())
        await self._unregister_members(self._ids - {member_id})

    async def _unregister_members(self, ids: Iterable[str]) -> None:
        for name in list(ids):
            await self._remove_entry(f"{self._root}/ids/{name}")
            self._ids.discard(name)

    async def _claim_partitions(self, partitions: Iterable[TopicPartition]) -> frozenset[TopicPartition]:
        paths = {partition: self._owner_path(partition) for partition in partitions}
        claims = await self._call_each(self._create_entry, paths, f"{self._me}-0".encode())
        mine = [partition for partition, claim in claims.items() if claim is None]
        # the offset may have changed since this member last owned the partition
        fences = await self._call_each(self._fence_partition, {partition: partition for partition in mine})
        # what a watch told during the claim, the member took for a part of it: it is watched from its end on
        self._watched.difference_update(mine)
        self._watch_owners(claims)
        if unread := [partition for partition, fence in fences.items() if fence is not None]:
            await self._release_partitions(unread)
        return frozenset(mine).difference(unread)

    async def _owned_among(self, partitions: Iterable[TopicPartition]) -> frozenset[TopicPartition]:
        await self._call_client("exists", self._root)
        owners = await self._call_each(
            "exists", {partition: self._owner_path(partition) for partition in partitions}
        )
        self._watch_owners(owners)
        return frozenset(partition for partition, stat in owners.items() if self._is_mine(stat))

    async def _call_each(
        self, call: str | Callable[..., Any], of: Mapping[Key, Any], *more: Any
    ) -> dict[Key, Any]:
        """ZooKeeper's response to each call, or the exception if it refuses one. If it does not answer, that
        exception is raised when all calls have ended.
        """
        from kazoo.exceptions import NodeExistsError, NoNodeError

        calls = [
            self._call_client(call, each) if isinstance(call, str) else call(each, *more)
            for each in of.values()
        ]
        results = dict(zip(of, await asyncio.gather(*calls, return_exceptions=True), strict=True))
        for key, result in results.items():
            if isinstance(result, BaseException):
                if not _is_refused(result):
                    raise result
                if not isinstance(result, NodeExistsError | NoNodeError):
                    name = f"{key.topic}-{key.partition}" if isinstance(key, TopicPartition) else key
                    self._warn_once(f"ZooKeeper refuses {name} of {self._root}: {result!r}")
        return results

    async def _create_entry(self, path: str, data: bytes) -> None:
        """Create an ephemeral entry, unless this session has it already. Raises NodeExistsError."""
        from kazoo.exceptions import NodeExistsError, NoNodeError

        while True:
            try:
                await self._call_client("create", path, data, None, True, False, True)
            except NodeExistsError:
                stat = await self._call_client("exists", path)
                if stat is None:
                    continue
                if not self._is_mine(stat):
                    self._look_for_remnant(path, stat)
                    raise
                try:
                    await self._call_client("set", path, data)
                except NoNodeError:
                    continue
            return

    def _look_for_remnant(self, path: str, stat: Any) -> None:
        """Warn of another member's entry that no session will take away."""
        if not stat.ephemeralOwner:
            self._warn_once(f"{path} in ZooKeeper belongs to no session and stays for good: remove it")

    def _warn_once(self, text: str) -> None:
        """Warn of what every retry would find again."""
        if text not in self._warned:
            self._warned.add(text)
            log.warning(text)

    def _watch_owners(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in set(partitions) - self._watched:
            self._watched.add(partition)
            self._start(self._watch_owner(partition))

    async def _watch_owner(self, partition: TopicPartition) -> None:
        from kazoo.exceptions import KazooException

        def changed(event: Any) -> None:
            """Called in a thread of kazoo."""
            if event.type != "NONE" and self._session is not None:
                self.watches_fired += 1
                self._session.hand_over(self._owner_changed, partition, event.type)

        try:
            stat = await self._call_client("exists", self._owner_path(partition), changed)
            free = stat is None or (partition in self._member.owned and not self._is_mine(stat))
        except (KazooException, OSError) as error:
            self._watched.discard(partition)
            log.debug("the owner of %s-%d is not watched: %r", *partition, error)
        else:
            if free:
                self._report_change(lambda now: self._member.on_freed(partition, now))

    def _owner_changed(self, partition: TopicPartition, how: str) -> None:
        if how == "DELETED":
            self._watched.discard(partition)
            self._report_change(lambda now: self._member.on_freed(partition, now))
        else:
            self._start(self._watch_owner(partition))

    async def _release_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self._stored.pop(partition, None)
        await asyncio.gather(*(self._remove_entry(self._owner_path(partition)) for partition in partitions))

    async def _remove_entry(self, path: str) -> None:
        """Remove an entry, if it is of this session: it may be another session's by now."""
        from kazoo.exceptions import NoNodeError

        with suppress(NoNodeError):
            if self._is_mine(await self._call_client("exists", path)):
                await self._call_client("delete", path)

    # -- offsets ---------------------------------------------------------------------------------------------

    async def _fence_partition(self, partition: TopicPartition) -> None:
        """Read the offset of a newly owned partition, and change its entry's version."""
        from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError

        path = self._offset_path(partition)
        while True:
            # the former owner may be committing, or somebody removing the entry
            with suppress(BadVersionError, NodeExistsError):
                try:
                    data, stat = await self._call_client("get", path)
                    stat = await self._call_client("set", path, data, stat.version)
                except NoNodeError:
                    data = _NO_OFFSET
                    _, stat = await self._call_client("create", path, data, None, False, False, True, True)
                break
        _offset_of(partition, data)
        self._stored[partition] = _Stored(stat.version, data)

    async def stored_offsets(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, CommittedOffset]:
        """Read the offsets of any partitions; those without one are left out. Raises
        BrokerConnectionError.
        """
        from kazoo.exceptions import KazooException

        try:
            read = await self._call_each(
                "get", {partition: self._offset_path(partition) for partition in partitions}
            )
        except (KazooException, OSError) as error:
            raise self._no_answer(error) from error
        offsets = {
            p: None if isinstance(entry, Exception) else _offset_in(entry[0]) for p, entry in read.items()
        }
        return {p: CommittedOffset(offset) for p, offset in offsets.items() if offset is not None}

    def owned_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, CommittedOffset]:
        """The offsets of owned partitions; those without one are left out."""
        found = {}
        for partition in partitions:
            stored = self._stored.get(partition)
            if stored is not None and (offset := _offset_in(stored.data)) is not None:
                found[partition] = CommittedOffset(offset)
        return found

    async def commit(
        self, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> dict[TopicPartition, ErrorCode]:
        """Store offsets of owned partitions; ILLEGAL_GENERATION for those with another owner, and
        GROUP_AUTHORIZATION_FAILED if ZooKeeper refuses it. Raises BrokerConnectionError.
        """
        from kazoo.exceptions import KazooException

        try:
            codes = await self._call_each(
                lambda partition: self._store_offset(partition, b"%d" % offsets[partition].offset),
                {partition: partition for partition in offsets},
            )
        except (KazooException, OSError) as error:
            raise self._no_answer(error) from error
        refused = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return {p: refused if isinstance(code, Exception) else code for p, code in codes.items()}

    async def _store_offset(self, partition: TopicPartition, data: bytes) -> ErrorCode:
        from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError

        path = self._offset_path(partition)
        try:
            if (stored := await self._certain_offset(partition)) is None:
                return ErrorCode.ILLEGAL_GENERATION
            self._stored[partition] = stored._replace(tried=data)
            try:
                stat = await self._call_client("set", path, data, stored.version)
            except NoNodeError:
                # the offset was removed, but not its owner
                if not self._is_mine(await self._call_client("exists", self._owner_path(partition))):
                    raise
                _, stat = await self._call_client("create", path, data, None, False, False, True, True)
        except (BadVersionError, NoNodeError, NodeExistsError):
            self._stored.pop(partition, None)
            return ErrorCode.ILLEGAL_GENERATION
        if partition in self._stored:
            self._stored[partition] = _Stored(stat.version, data)
        return ErrorCode.NONE

    async def _certain_offset(self, partition: TopicPartition) -> _Stored | None:
        """The stored offset; after a write without a response, look up whether it was made."""
        from kazoo.exceptions import NoNodeError

        stored = self._stored.get(partition)
        if stored is None or stored.tried is None:
            return stored
        try:
            data, stat = await self._call_client("get", self._offset_path(partition))
        except NoNodeError:
            return stored
        if (stat.version, data) in ((stored.version + 1, stored.tried), (0, stored.tried)):
            return _Stored(stat.version, data)
        return stored if stat.version == stored.version else None

    def _no_answer(self, error: Exception) -> ZooKeeperConnectionError:
        return ZooKeeperConnectionError(self._settings.connect, str(outage_error(error)))

    # -- paths -----------------------------------------------------------------------------------------------

    def _owner_path(self, partition: TopicPartition) -> str:
        return f"{self._root}/owners/{partition.topic}/{partition.partition}"

    def _offset_path(self, partition: TopicPartition) -> str:
        return f"{self._root}/offsets/{partition.topic}/{partition.partition}"


def _is_refused(error: BaseException) -> bool:
    """Return whether this error is a response of ZooKeeper."""
    from kazoo.exceptions import KazooException

    return isinstance(error, KazooException) and not isinstance(outage_error(error), ConnectionError)


def _offset_in(data: bytes | None) -> int | None:
    """The offset in an entry; None if it has none, or something else, or no data at all."""
    if data is None or not data.isdigit() or len(data) > _MAX_DIGITS:
        return None
    return offset if (offset := int(data)) <= _MAX_OFFSET else None


def _offset_of(partition: TopicPartition, data: bytes | None) -> int | None:
    """The offset in a partition's entry; None, with a warning unless it says so, if it has none."""
    offset = _offset_in(data)
    if offset is None and data != _NO_OFFSET:
        log.warning("the offset of %s-%d in ZooKeeper is no number: %.40r", *partition, data)
    return offset


def _topics_in(name: str, data: bytes | None) -> Topics:
    """The threads by topic of a registration; empty if it is unreadable, or subscribes to patterns."""
    try:
        entry = json.loads(data or b"")
        topics = {str(topic): int(count) for topic, count in entry["subscription"].items()}
        if any(not 0 <= count <= _MAX_THREADS for count in topics.values()):
            raise ValueError(topics)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        log.warning("the registration of %s in ZooKeeper cannot be read: it gets no partitions", name)
        return {}
    if entry.get("pattern", "static") != "static":
        log.warning(
            "%s subscribes to a pattern in ZooKeeper, which is not supported: it gets no partitions", name
        )
        return {}
    return topics
