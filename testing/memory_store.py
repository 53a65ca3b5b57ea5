"""A metadata store in memory, shared by the brokers of a cluster that lives in one process. Its sessions are
cut off, ended and renewed on command.
"""

from __future__ import annotations

import asyncio
import threading
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress

from ..cluster import Change, ConflictError, Create, SessionState, StoreEntry
from ..cluster.tree import Step, Tree, TreeStore


class MemoryHome:
    """The entries that several stores share. Thread-safe. ``changed`` is called after each step."""

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self.tree = Tree()
        self.sessions: list[SharedStore] = []
        self.lock = threading.RLock()
        self._changed = changed

    def __repr__(self) -> str:
        return f"MemoryHome({self.tree}, {len(self.sessions)} sessions)"

    def open(self, loop: asyncio.AbstractEventLoop | None = None) -> MemoryStore:
        """Begin a session with the present entries. Its store shows each step at once; with a loop it does so
        there, and one whose thread hangs learns of all afterwards.
        """
        with self.lock:
            store = MemoryStore(self, loop)
            self.sessions.append(store)
        return store

    def write(self, session: SharedStore, changes: Sequence[Change]) -> None:
        """Make the changes of a session. Raises ConflictError."""
        step = self.tree.plan(changes)
        for change in changes:
            entry = step.get(change.path)
            if isinstance(change, Create) and change.ephemeral and entry is not None:
                session.owned[change.path] = entry.created
        self._apply(step)

    def drop_owned(self, session: SharedStore) -> None:
        """Remove the ephemeral entries of a session, unless another one has replaced them."""
        owned, session.owned = session.owned, {}
        there = {path: self.tree.get(path) for path in owned}
        self._apply({path: None for path, entry in there.items() if entry and entry.created == owned[path]})

    def _apply(self, step: Step) -> None:
        if step:
            self.tree.apply(step)
            for session in list(self.sessions):
                session.on_step(step)
            self._changed()


class SharedStore(TreeStore):
    """One client's sessions with a ``MemoryHome``, one after another; see ``MetadataStore``."""

    def __init__(self, home: MemoryHome) -> None:
        super().__init__(Tree(), SessionState.CONNECTED)
        self._tree.apply(home.tree.entries())
        self._home = home
        #: Ephemeral entries of the present session, and the step that created each.
        self.owned: dict[str, int] = {}

    @abstractmethod
    def on_step(self, step: Step) -> None:
        """Called with each step of the home."""

    async def sync(self) -> None:
        await self.commit()

    def _check_connected(self, session: SessionState) -> None:
        if session is not SessionState.CONNECTED:
            raise ConnectionError(f"the session with the metadata store is {session.value}")

    def _show(self, step: Step) -> None:
        self._tree.apply({path: entry for path, entry in step.items() if not self._has(path, entry)})

    def _show_all(self, there: dict[str, StoreEntry]) -> None:
        """Show these entries, and no others."""
        self._show({**{path: None for path in self._tree.entries() if path not in there}, **there})

    def _has(self, path: str, entry: StoreEntry | None) -> bool:
        known = self._tree.get(path)
        if known is None or entry is None:
            return known is entry
        return (known.created, known.version) == (entry.created, entry.version)


class MemoryStore(SharedStore):
    """A store whose sessions do what they are told; see ``MemoryHome.open``."""

    def __init__(self, home: MemoryHome, loop: asyncio.AbstractEventLoop | None) -> None:
        super().__init__(home)
        self._loop = loop
        # its session as the home has it; this store may not have heard of that yet
        self._present = SessionState.CONNECTED

    async def commit(self, *changes: Change) -> None:
        self._check_connected(self._session)
        shown = None if self._loop is None else self._loop.create_future()
        try:
            with self._home.lock:
                self._check_connected(self._present)
                self._home.write(self, changes)
                if shown is not None:
                    self._deliver(complete_future, shown)
        except ConflictError:
            # so that the entry that caused it can be read here
            await self.sync()
            raise
        if shown is not None:
            await shown

    def close(self) -> None:
        self.expire()
        self._become(SessionState.LOST)

    def on_step(self, step: Step) -> None:
        if self._present is SessionState.CONNECTED:
            self._deliver(self._show, step)

    # -- what happens to sessions ----------------------------------------------------------------------------

    def suspend(self) -> None:
        """Cut the store off: it can read its copy, but not write."""
        with self._home.lock:
            self._turn(SessionState.SUSPENDED)

    def resume(self) -> None:
        """Connect a store that was cut off: in its old session, or in another one if that is over."""
        with self._home.lock:
            if self not in self._home.sessions:
                self._home.sessions.append(self)
            self._deliver(self._show_all, dict(self._home.tree.entries()))
            self._turn(SessionState.CONNECTED)

    def expire(self) -> None:
        """End the session, with its ephemeral entries."""
        with self._home.lock:
            if self in self._home.sessions:
                self._home.sessions.remove(self)
                self._turn(SessionState.LOST)
                self._home.drop_owned(self)

    def _turn(self, session: SessionState) -> None:
        self._present = session
        self._deliver(self._become, session)

    def _deliver(self, call: Callable[..., object], *arguments: object) -> None:
        if self._loop is None:
            call(*arguments)
            return
        # the loop has ended, so the broker has stopped
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call, *arguments)


def complete_future(shown: asyncio.Future[None]) -> None:
    """End a wait, unless it was given up."""
    if not shown.done():
        shown.set_result(None)
