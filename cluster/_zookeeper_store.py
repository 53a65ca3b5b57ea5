"""A metadata store in an ensemble of Apache ZooKeeper, shared by the brokers of a cluster.

This process keeps a copy of every entry below the chroot. One ZooKeeper watch, which stays as long as the
connection, reports all changes; what was reported is read, many nodes with each request, and changes made in
one step are shown here in one step.

A node without data is a parent, not an entry. Values are JSON, and say who wrote them. If a step is larger
than a request may be in ZooKeeper, its largest values are written beforehand, in pieces, and the entry names
them.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from ..client.zookeeper import ZooKeeperSession, ZooKeeperSettings, outage_error
from ..client.zookeeper_requests import ZooKeeperNode
from ._format import NewerFormatError, add_stamp, remove_stamp
from ._session_note import SessionNote
from ._store import Change, Check, ConflictError, Create, Delete, Put, SessionState, StoreEntry
from .tree import Tree, TreeStore

log = logging.getLogger("kohort.cluster")

#: Bytes of values in one request. ZooKeeper refuses requests of 1 MiB (``jute.maxbuffer``).
MAX_STEP_BYTES: Final = 900_000

#: Bytes of one piece of a larger value.
_PIECE_BYTES: Final = 500_000
#: Parent of the pieces: nodes that this store reads by name only.
_PIECES: Final = "/kohort_pieces"
#: The data of an entry whose value is in pieces: this prefix, their name and number. No JSON begins so.
_IN_PIECES: Final = b"#pieces "

#: Bytes of a change apart from its path and value, at most.
_CHANGE_BYTES: Final = 200

#: Age beyond which pieces without an entry cannot belong to an entry that is still being written.
_ORPHAN_MS: Final = 3_600_000

#: Nodes that hold no entries.
_FOREIGN: Final = ("/zookeeper", _PIECES)

#: Nodes that are read with one request, and requests of one reading that are under way at once.
_AT_ONCE: Final = 100
_REQUESTS: Final = 8

#: Pause between two lines of the log about how far a first reading is, in seconds.
_TELL_S: Final = 5.0

#: Rounds of reading after which the result is shown, even if entries keep changing.
_MAX_ROUNDS: Final = 100

#: Entries that only brokers may read where ZooKeeper has digest authentication, as Apache Kafka has it.
_SECRET: Final = ("/config/users", "/config/brokers", "/kafka-acl")

_MAY_NOT_READ: Final = (
    "ZooKeeper has entries of this cluster that this session may not read: give it the digest, or the "
    "certificate, of the brokers that made them (kohort.zookeeper.digest, zookeeper.ssl.keystore.location)"
)


async def open_zookeeper(settings: ZooKeeperSettings) -> ZooKeeperStore:
    """Begin a session, and return the store once it has read every entry.

    Raises ConnectionError if no connection begins within ``connection_timeout_ms``, ImportError without
    kazoo, ValueError for a malformed address, and NewerFormatError for entries of a newer build. Reading may
    take longer, and the log says how far it is.
    """
    try:
        session = ZooKeeperSession(settings, log)
    except ModuleNotFoundError as error:
        raise ImportError("a cluster on ZooKeeper needs kazoo: pip install kohort[cluster]") from error
    store = ZooKeeperStore(session)
    try:
        await store._open_session(settings.connection_timeout_ms / 1_000)
    except (ConnectionError, NewerFormatError):
        store.close()
        raise
    except TimeoutError as error:
        store.close()
        raise settings.no_answer() from error
    return store


class ZooKeeperStore(TreeStore):
    """A store with one session after another in an ensemble; see ``MetadataStore`` and ``open_zookeeper``."""

    def __init__(self, session: ZooKeeperSession) -> None:
        super().__init__(Tree(), SessionState.SUSPENDED)
        self._zookeeper = session
        self._loop = asyncio.get_running_loop()
        self._closed = False
        # nodes that are no entries, as they have no data
        self._parents: set[str] = set()
        # nodes that may have changed
        self._changed: dict[str, None] = {}
        self._wake = asyncio.Event()
        self._reading = False
        # where the pieces of values are, by entry
        self._pieces: dict[str, list[str]] = {}
        # waiters until all changes reported so far are read
        self._settling: list[asyncio.Future[None]] = []
        # connections begun and ended so far; whether nothing has been read since the last one
        self._connections = 0
        self._is_new = False
        self._follower: asyncio.Task[None] | None = None
        self._sweeper: asyncio.Task[None] | None = None
        self._opened: asyncio.Future[None] = self._loop.create_future()
        # until when there must be a connection, while the store is opened
        self._limit_s = 0.0
        self._limit: asyncio.Timeout | None = None
        self._note: SessionNote | None = None

    @property
    def _client(self) -> Any:
        return self._zookeeper.client

    async def end_former(self, folder: Path) -> None:
        """End the session of the last process on a data folder that this process has locked, and note this
        session so that the next process can end it.
        """
        self._note = SessionNote(folder)
        former = self._note.read()
        if former is not None:
            await self._zookeeper.end_other(former)
        self._note_session()

    def _note_session(self) -> None:
        # without a session there is none to end
        if self._note is not None and (session := self._client.client_id) is not None:
            self._note.write(session)

    def close(self) -> None:
        """End the session. Safe to call again."""
        if self._closed:
            return
        self._closed = True
        for task in (self._follower, self._sweeper):
            if task is not None:
                task.cancel()
        self._zookeeper.close()
        self._become(SessionState.LOST)

    # -- write -----------------------------------------------------------------------------------------------

    async def commit(self, *changes: Change) -> None:
        """See MetadataStore. Raises ConnectionError while there is no connection; the outcome is unknown
        then.
        """
        if self._session is not SessionState.CONNECTED:
            raise ConnectionError(f"the session with ZooKeeper is {self._session.value}: nothing is written")
        for change in changes:
            if change.path in self._parents:
                raise ConflictError(change, None)
        values, pieces = _encode_changes(changes)
        replaced = [path for change in changes for path in self._pieces.get(change.path, ())]
        from kazoo.exceptions import BadVersionError, KazooException, NodeExistsError, NoNodeError

        try:
            created = [change.path for change in changes if isinstance(change, Create)]
            await self._make_parents([*created, *pieces])
            for path, piece in pieces.items():
                await self._zookeeper.call(self._client.create_async, path, piece, self._acl_of(path))
            results = await self._zookeeper.call(self._make_transaction(changes, values).commit_async)
        except KazooException as error:
            raise outage_error(error) from error
        # ZooKeeper gives the reason of the first change that failed, and reports the others as rolled back
        conflicts = (NodeExistsError, NoNodeError, BadVersionError)
        refused = [n for n, result in enumerate(results) if isinstance(result, conflicts)]
        failed = next((result for result in results if isinstance(result, Exception)), None)
        self._remove_pieces(replaced if failed is None else pieces)
        await self._wait_for_changes()
        if refused:
            change = changes[refused[0]]
            raise ConflictError(change, self._tree.get(change.path))
        if failed is not None:
            raise OSError(f"ZooKeeper refuses a change: {failed!r}") from failed

    def _make_transaction(self, changes: Sequence[Change], values: Sequence[bytes]) -> Any:
        made = self._client.transaction()
        for change, value in zip(changes, values, strict=True):
            match change:
                case Create(path, _, ephemeral):
                    made.create(path, value, acl=self._acl_of(path), ephemeral=ephemeral)
                case Put(path, _, version):
                    made.set_data(path, value, version)
                case Delete(path, version):
                    made.delete(path, version)
                case Check(path, version):
                    made.check(path, version)
        return made

    def _acl_of(self, path: str) -> Any:
        """The ACL of a node; None: the client's default."""
        acl = self._client.default_acl
        return acl[:1] if acl and path.startswith((*_SECRET, _PIECES)) else None

    async def _make_parents(self, paths: Iterable[str]) -> None:
        from kazoo.exceptions import NodeExistsError

        missing: dict[str, None] = {}
        for path in paths:
            names = path.split("/")[1:-1]
            above = ["/" + "/".join(names[: count + 1]) for count in range(len(names))]
            missing.update((each, None) for each in above if each not in self._parents)
        for each in missing:
            with suppress(NodeExistsError):
                await self._zookeeper.call(self._client.create_async, each, b"", self._acl_of(each))

    def _remove_pieces(self, pieces: Iterable[str]) -> None:
        """Remove pieces that no entry names any more; those that stay do no harm."""
        for path in pieces:
            self._client.delete_async(path)

    async def _wait_for_changes(self) -> None:
        """Return when all changes reported so far can be read here."""
        if self._changed or self._reading:
            settled = self._loop.create_future()
            self._settling.append(settled)
            self._wake.set()
            await settled

    # -- follow ----------------------------------------------------------------------------------------------

    async def _open_session(self, limit_s: float) -> None:
        self._follower = self._loop.create_task(self._follow_changes())
        self._limit_s = limit_s
        async with asyncio.timeout(limit_s) as self._limit:
            await self._zookeeper.begin(self._connection_changed)
            await self._opened
        self._limit = None
        self._sweeper = self._loop.create_task(self._sweep_pieces())

    async def _sweep_pieces(self) -> None:
        """Remove old pieces that no entry names: their writer died before it wrote the entry, or removing
        them failed. Young ones may belong to an entry that is being written.
        """
        from kazoo.exceptions import KazooException

        try:
            names = await self._zookeeper.call(self._client.get_children_async, _PIECES)
            for name in names:
                stat = await self._zookeeper.call(self._client.exists_async, f"{_PIECES}/{name}")
                await self._wait_for_changes()
                named = {path for pieces in self._pieces.values() for path in pieces}
                is_old = stat is not None and time.time() * 1_000 - stat.ctime > _ORPHAN_MS
                if is_old and f"{_PIECES}/{name}" not in named:
                    self._remove_pieces([f"{_PIECES}/{name}"])
        except (KazooException, OSError) as error:
            # nothing is lost: there are none, or the next start removes them
            log.debug("pieces in ZooKeeper were not looked through: %r", error)

    async def sync(self) -> None:
        """See MetadataStore. Raises ConnectionError."""
        if self._session is not SessionState.CONNECTED:
            raise ConnectionError(f"the session with ZooKeeper is {self._session.value}")
        from kazoo.exceptions import KazooException

        try:
            # everything that ZooKeeper has reported by then arrives before the response
            await self._zookeeper.call(self._client.sync_async, "/")
        except KazooException as error:
            raise outage_error(error) from error
        await self._wait_for_changes()

    def _connection_changed(self, state: str) -> None:
        if self._closed:
            return
        self._connections += 1
        if self._limit is not None:
            # for connecting alone: reading takes as long as there is to read
            is_connected = state == "CONNECTED"
            self._limit.reschedule(None if is_connected else self._loop.time() + self._limit_s)
        if state == "CONNECTED":
            # the watch ended with the connection: look at everything again
            self._is_new = True
            # it may be another session
            self._note_session()
            self._wake.set()
        else:
            self._become(SessionState(state.lower()))

    async def _follow_changes(self) -> None:
        """Read changes as long as the store is open."""
        from kazoo.exceptions import KazooException, NoAuthError

        while True:
            await self._wake.wait()
            self._wake.clear()
            self._reading = True
            try:
                if self._is_new:
                    await self._read_all()
                else:
                    await self._read_changed()
            except NoAuthError:
                if self._opened.done():
                    log.error("%s", _MAY_NOT_READ)
                else:
                    self._opened.set_exception(ConnectionError(_MAY_NOT_READ))
            except NewerFormatError as error:
                self._refuse_newer(error)
                return
            except (KazooException, ConnectionError) as error:
                # the next connection reads everything
                log.info("reading from ZooKeeper was cut short: %r", error)
            except Exception:
                log.exception("entries of ZooKeeper could not be read")
            self._reading = bool(self._changed)
            if not self._reading:
                settling, self._settling = self._settling, []
                for each in settling:
                    if not each.done():
                        each.set_result(None)

    def _refuse_newer(self, error: NewerFormatError) -> None:
        """Read nothing more: what is shown stays as it was before the newer entry."""
        if not self._opened.done():
            self._opened.set_exception(error)
            return
        log.error("%s", error)
        self.refusal = error
        self.close()

    async def _read_all(self) -> None:
        """Read every entry, in a new connection. Values are parsed of those only that have changed."""
        connection, self._is_new = self._connections, False
        if self._client.chroot:
            await asyncio.to_thread(self._client.ensure_path, "/")
        await self._zookeeper.watch_all(partial(self._node_changed, connection))
        self._parents.clear()
        self._changed.clear()
        found: dict[str, StoreEntry | None] = {}
        there: set[str] = set()
        progress = _Progress()
        level = ["/"]
        while level:
            progress.known += len(level)
            there.update(level)
            parents = await self._read_nodes(level, found, progress)
            level = await self._read_names(parents)
        found |= await self._read_rounds()
        gone = {path: None for path in self._tree.entries() if path not in there and path not in found}
        if connection == self._connections:
            self._show_entries({**found, **gone})
            self._become(SessionState.CONNECTED)
            if not self._opened.done():
                self._opened.set_result(None)

    async def _read_changed(self) -> None:
        self._show_entries(await self._read_rounds())

    async def _read_rounds(self) -> dict[str, StoreEntry | None]:
        """Read entries, None for those that are gone, until no more changes are reported. A response comes
        after all earlier notifications, so a step is read whole.
        """
        found: dict[str, StoreEntry | None] = {}
        for _ in range(_MAX_ROUNDS):
            changed, self._changed = list(self._changed), {}
            if not changed:
                break
            await self._read_nodes(changed, found)
        return found

    async def _read_nodes(
        self, paths: Sequence[str], found: dict[str, StoreEntry | None], progress: _Progress | None = None
    ) -> list[str]:
        """Read nodes, and add entries that have changed to ``found``. Return the nodes that have children."""
        parents: list[str] = []
        turns = asyncio.Semaphore(_REQUESTS)

        async def read(some: Sequence[str]) -> None:
            async with turns:
                nodes = await self._zookeeper.read(some)
                for path, node in zip(some, nodes, strict=True):
                    await self._take_node(path, node, found)
                    if node is not None and node.children:
                        parents.append(path)
            if progress is not None:
                progress.add(len(some))

        await asyncio.gather(*map(read, _some_paths(paths)))
        return parents

    async def _take_node(
        self, path: str, node: ZooKeeperNode | None, found: dict[str, StoreEntry | None]
    ) -> None:
        if node is None or not node.data:
            (self._parents.discard if node is None else self._parents.add)(path)
            self._pieces.pop(path, None)
            found[path] = None
            return
        self._parents.discard(path)
        before = self._tree.get(path)
        if before is not None and (before.modified, before.version) == (node.modified, node.version):
            found.pop(path, None)
            return
        data, pieces = node.data, _piece_paths(node.data)
        if pieces:
            parts = [each for each in await self._zookeeper.read(pieces) if each is not None]
            if len(parts) < len(pieces):
                # it was replaced or removed meanwhile, as is reported
                return
            data = b"".join(each.data for each in parts)
        self._pieces[path] = pieces
        try:
            value = json.loads(data)
        except ValueError:
            log.error("the entry %s in ZooKeeper is no JSON, and is passed over", path)
            return
        value = remove_stamp(path, value)
        found[path] = StoreEntry(value, node.version, bool(node.owner), node.created, node.modified)

    async def _read_names(self, parents: Sequence[str]) -> list[str]:
        """The paths of the nodes right below these."""
        found: list[str] = []
        for some in _some_paths(parents):
            for path, names in zip(some, await self._zookeeper.read_children(some), strict=True):
                found += (f"{path.rstrip('/')}/{name}" for name in names)
        return [path for path in found if path not in _FOREIGN]

    def _show_entries(self, found: dict[str, StoreEntry | None]) -> None:
        """Show the entries that were read, in the order of their creation."""
        back = [path for path, entry in found.items() if entry is not None and self._is_older(path, entry)]
        if back:
            log.warning(
                "ZooKeeper's data were replaced by an older copy (entries that are older: %d, such as %s). "
                "Check configs of topics, access rules, users, quotas and settings: those of the copy count",
                len(back),
                min(back),
            )
        order = sorted(found.items(), key=lambda each: (0 if each[1] is None else each[1].created, each[0]))
        self._tree.apply({path: entry for path, entry in order if not _is_same(entry, self._tree.get(path))})

    def _is_older(self, path: str, entry: StoreEntry) -> bool:
        before = self._tree.get(path)
        if before is None or entry.ephemeral:
            return False
        return entry.modified < before.modified and entry.value != before.value

    def _become(self, session: SessionState) -> None:
        if session is not SessionState.CONNECTED:
            settling, self._settling = self._settling, []
            for each in settling:
                if not each.done():
                    each.set_exception(ConnectionError(f"the session with ZooKeeper is {session.value}"))
        super()._become(session)

    def _node_changed(self, connection: int, path: str) -> None:
        is_foreign = any(path == each or path.startswith(f"{each}/") for each in _FOREIGN)
        if connection == self._connections and not is_foreign:
            self._changed[path] = None
            self._reading = True
            self._wake.set()


class _Progress:
    """Says in the log how far a reading of all entries is, if it takes long."""

    def __init__(self) -> None:
        self.known = 0
        self._read = 0
        self._due_s = time.monotonic() + _TELL_S

    def add(self, count: int) -> None:
        self._read += count
        if time.monotonic() >= self._due_s:
            self._due_s = time.monotonic() + _TELL_S
            log.info("%d of the %d nodes found so far in ZooKeeper are read", self._read, self.known)


def _some_paths(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    """The paths, as many at a time as are read with one request."""
    return (paths[start : start + _AT_ONCE] for start in range(0, len(paths), _AT_ONCE))


def _is_same(entry: StoreEntry | None, before: StoreEntry | None) -> bool:
    if entry is None or before is None:
        return entry is before
    return (entry.created, entry.modified, entry.version) == (before.created, before.modified, before.version)


def _encode_changes(changes: Sequence[Change]) -> tuple[list[bytes], dict[str, bytes]]:
    """The data of each change, and the pieces that are written before it, by path.

    Raises ValueError for a step with more changes than a request can hold.
    """
    values = [
        json.dumps(add_stamp(change.value), separators=(",", ":")).encode()
        if isinstance(change, Create | Put)
        else b""
        for change in changes
    ]
    pieces: dict[str, bytes] = {}
    size = sum(len(value) for value in values) + sum(_CHANGE_BYTES + len(each.path) for each in changes)
    while size > MAX_STEP_BYTES:
        longest = max(range(len(values)), key=lambda n: len(values[n]))
        value, name = values[longest], uuid.uuid4().hex
        if len(value) < _CHANGE_BYTES:
            raise ValueError(f"{len(changes)} changes are too many for one step: make it several")
        parts = [value[at : at + _PIECE_BYTES] for at in range(0, len(value), _PIECE_BYTES)]
        values[longest] = _IN_PIECES + f"{name} {len(parts)}".encode()
        pieces |= dict(zip(_piece_paths(values[longest]), parts, strict=True))
        size -= len(value) - len(values[longest])
    return values, pieces


def _piece_paths(data: bytes) -> list[str]:
    """Paths of the pieces of an entry's value; none if the value is in its data."""
    if not data.startswith(_IN_PIECES):
        return []
    name, count = data.removeprefix(_IN_PIECES).decode().split()
    return [f"{_PIECES}/{name}-{number}" for number in range(int(count))]
