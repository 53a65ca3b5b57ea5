"""A metadata store in memory, shared by the brokers of a cluster that lives in one process.

Its sessions can be lost, cut off and renewed on command, for clusters in tests and in the simulator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ._store import Change, Create, SessionState
from .tree import Step, Tree, TreeStore


class MemoryHome:
    """The entries that several stores share. ``open`` begins a session."""

    def __init__(self) -> None:
        self._tree = Tree()
        self._sessions: list[MemoryStore] = []

    def __repr__(self) -> str:
        return f"MemoryHome({self._tree}, {len(self._sessions)} sessions)"

    def open(self) -> MemoryStore:
        """Return a store with its own session and a copy of the present entries."""
        return MemoryStore(self)

    def _join(self, store: MemoryStore) -> Tree:
        """Pass every step from now on to a store; return a copy of the present entries."""
        self._sessions.append(store)
        copy = Tree()
        copy.apply(self._tree.entries())
        return copy

    def _leave(self, store: MemoryStore, owned: Mapping[str, int]) -> None:
        self._sessions.remove(store)
        there = {path: self._tree.get(path) for path in owned}
        gone = {path: None for path, entry in there.items() if entry and entry.created == owned[path]}
        if gone:
            self._apply(gone)

    def _commit(self, changes: Sequence[Change]) -> Step:
        step = self._tree.plan(changes)
        self._apply(step)
        return step

    def _apply(self, step: Step) -> None:
        self._tree.apply(step)
        for store in list(self._sessions):
            store._take(step)


class MemoryStore(TreeStore):
    """One session with a ``MemoryHome``; see ``MetadataStore``."""

    def __init__(self, home: MemoryHome) -> None:
        super().__init__(home._join(self), SessionState.CONNECTED)
        self._home = home
        # ephemeral entries of this session, and the step that created each
        self._owned: dict[str, int] = {}
        # steps that were made while this was cut off
        self._missed: list[Step] = []

    async def commit(self, *changes: Change) -> None:
        if self._session is not SessionState.CONNECTED:
            raise ConnectionError(f"the session with the metadata store is {self._session.value}")
        step = self._home._commit(changes)
        for path in {change.path for change in changes if isinstance(change, Create) and change.ephemeral}:
            entry = step[path]
            if entry is not None:
                self._owned[path] = entry.created

    def close(self) -> None:
        if self._session is SessionState.LOST:
            return
        self.expire()

    # -- what happens to sessions ----------------------------------------------------------------------------

    def suspend(self) -> None:
        """Cut the store off: it can read its copy, but not write."""
        self._become(SessionState.SUSPENDED)

    def resume(self) -> None:
        """Reconnect a store that was cut off, in its old session."""
        self._catch_up()
        self._become(SessionState.CONNECTED)

    def expire(self) -> None:
        """End the session, with its ephemeral entries."""
        owned, self._owned = self._owned, {}
        self._home._leave(self, owned)
        self._become(SessionState.LOST)

    def renew(self) -> None:
        """Begin another session after the last one has ended."""
        missed = self._home._join(self).entries()
        self._missed = [{path: None for path in self._tree.entries() if path not in missed}, missed]
        self._catch_up()
        self._become(SessionState.CONNECTED)

    def _take(self, step: Step) -> None:
        if self._session is SessionState.CONNECTED:
            self._tree.apply(step)
        else:
            self._missed.append(step)

    def _catch_up(self) -> None:
        missed, self._missed = self._missed, []
        for step in missed:
            self._tree.apply({path: entry for path, entry in step.items() if entry != self._tree.get(path)})
