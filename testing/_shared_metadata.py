"""The metadata of a cluster whose brokers run in threads of one process: a memory home whose sessions have an
event loop each.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from ..cluster import Change, ConflictError, Create, Entry, SessionState
from ..cluster.tree import Step, Tree, TreeStore


class SharedMetadata:
    """The entries, and the sessions of brokers. Thread-safe.

    A broker learns of steps and of its session's states in its own thread, in order; one whose thread hangs
    learns of them afterwards.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tree = Tree()
        self._sessions: list[SharedStore] = []

    def __repr__(self) -> str:
        return f"SharedMetadata({self._tree}, {len(self._sessions)} sessions)"

    async def open(self) -> SharedStore:
        """Begin a session for the running event loop."""
        store = SharedStore(self)
        with self._lock:
            store._begin(dict(self._tree.entries()))
            self._sessions.append(store)
        return store

    def expire(self, store: SharedStore) -> None:
        """Expire a session with its ephemeral entries. A new one begins at once, unless it was closed."""
        with self._lock:
            if store not in self._sessions:
                return
            owned, store._owned = store._owned, {}
            found = {path: self._tree.get(path) for path in owned}
            gone = {path: None for path, entry in found.items() if entry and entry.created == owned[path]}
            store._tell(store._become, SessionState.LOST)
            if store._closed:
                self._sessions.remove(store)
            self._apply(gone)
            if not store._closed and not store._cut_off:
                store._tell(store._become, SessionState.CONNECTED)

    def end(self, store: SharedStore) -> None:
        """End the session of a broker that has stopped."""
        store._closed = True
        self.expire(store)

    def cut_off(self, store: SharedStore) -> None:
        """Disconnect a broker: it can read its copy, but not write. Its session lives on."""
        with self._lock:
            store._cut_off = True
            store._tell(store._become, SessionState.SUSPENDED)

    def heal(self, store: SharedStore) -> None:
        """Reconnect a broker that was cut off."""
        with self._lock:
            if store._cut_off:
                store._cut_off = False
                store._tell(store._show, self._missing(store))
                store._tell(store._become, SessionState.CONNECTED)

    def _missing(self, store: SharedStore) -> Step:
        there = dict(self._tree.entries())
        return {**{path: None for path in store._seen if path not in there}, **there}

    def _commit(self, store: SharedStore, changes: Sequence[Change]) -> asyncio.Future[None]:
        """Apply changes; the future is done when the store shows them. Raises ConflictError."""
        shown = asyncio.get_running_loop().create_future()
        with self._lock:
            if store._cut_off or store._closed:
                raise ConnectionError("the metadata store is out of reach")
            step = self._tree.plan(changes)
            for change in changes:
                entry = step.get(change.path)
                if isinstance(change, Create) and change.ephemeral and entry is not None:
                    store._owned[change.path] = entry.created
            self._apply(step)
            store._tell(_complete_future, shown)
        return shown

    def _apply(self, step: Step) -> None:
        if not step:
            return
        # a tree that is planned on makes the numbers of its steps itself
        self._tree.apply(step)
        for each in self._sessions:
            if not each._cut_off:
                each._tell(each._show, step)


class SharedStore(TreeStore):
    """A ``MetadataStore`` of one broker, with one session after another."""

    def __init__(self, home: SharedMetadata) -> None:
        super().__init__(Tree(), SessionState.CONNECTED)
        self._home = home
        self._loop = asyncio.get_running_loop()
        self._closed = self._cut_off = False
        # ephemeral entries of the session, and the step that created each
        self._owned: dict[str, int] = {}
        # paths that were handed to this store's thread
        self._seen: set[str] = set()

    @property
    def is_cut_off(self) -> bool:
        return self._cut_off

    async def commit(self, *changes: Change) -> None:
        if self._session is not SessionState.CONNECTED:
            raise ConnectionError(f"the session with the metadata store is {self._session.value}")
        try:
            shown = self._home._commit(self, changes)
        except ConflictError:
            # so that the entry that caused it can be read here
            await self.sync()
            raise
        await shown

    async def sync(self) -> None:
        if self._session is not SessionState.CONNECTED:
            raise ConnectionError(f"the session with the metadata store is {self._session.value}")
        await self._home._commit(self, ())

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._home.end(self)
            self._become(SessionState.LOST)

    # -- from the home ---------------------------------------------------------------------------------------

    def _begin(self, entries: Step) -> None:
        self._seen.update(entries)
        self._tree.apply(entries)

    def _show(self, step: Step) -> None:
        self._seen.update(step)
        self._tree.apply({path: entry for path, entry in step.items() if not self._has(path, entry)})

    def _has(self, path: str, entry: Entry | None) -> bool:
        known = self._tree.get(path)
        if known is None or entry is None:
            return known is entry
        return (known.created, known.version) == (entry.created, entry.version)

    def _tell(self, call: Callable[..., object], *arguments: object) -> None:
        # the loop has ended, so the broker has stopped
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call, *arguments)


def _complete_future(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
