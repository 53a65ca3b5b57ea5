"""Entries in memory, for all stores: steps of changes, watches, and the session."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from ..protocol import KohortError
from ._document import Document
from ._files import StateFileError
from ._store import ANY_VERSION, Change, Check, ConflictError, Create, Delete, Put, SessionState, StoreEntry

#: The entries that a step leaves, by path; None: removed.
Step: TypeAlias = Mapping[str, StoreEntry | None]

_Watchers: TypeAlias = dict[str, list[Callable[[str], None]]]


class Tree:
    """Entries by path. ``plan`` computes what changes lead to, ``apply`` makes it so."""

    __slots__ = ("_child_watchers", "_children", "_entries", "_steps", "_watchers")

    def __init__(self) -> None:
        self._entries: dict[str, StoreEntry] = {}
        self._steps = 0
        # names below each path, in the order of their creation
        self._children: dict[str, dict[str, None]] = {}
        self._watchers: _Watchers = {}
        self._child_watchers: _Watchers = {}

    def __repr__(self) -> str:
        return f"Tree({len(self._entries)} entries)"

    def get(self, path: str) -> StoreEntry | None:
        """Find an entry."""
        return self._entries.get(path)

    def children(self, path: str) -> Sequence[str]:
        """Names of the entries right below a path, in the order of their creation."""
        return list(self._children.get(path, ()))

    def entries(self) -> Mapping[str, StoreEntry]:
        """Return every entry by its path, in the order of their creation."""
        return self._entries

    def plan(self, changes: Sequence[Change]) -> Step:
        """Return the step that the changes lead to, without making it. Raises ConflictError."""
        step: dict[str, StoreEntry | None] = {}
        for change in changes:
            found = step[change.path] if change.path in step else self._entries.get(change.path)
            if isinstance(change, Create):
                if found is not None:
                    raise ConflictError(change, found)
                step[change.path] = StoreEntry(
                    change.value, ephemeral=change.ephemeral, created=self._steps + 1
                )
                continue
            if found is None or change.version not in (ANY_VERSION, found.version):
                raise ConflictError(change, found)
            if isinstance(change, Put):
                step[change.path] = replace(found, value=change.value, version=found.version + 1)
            elif isinstance(change, Delete):
                step[change.path] = None
            else:
                assert isinstance(change, Check)
        return step

    def apply(self, step: Step) -> None:
        """Apply the planned entries, then call the watches."""
        self._steps += 1
        fired: list[tuple[Callable[[str], None], str]] = []
        for path, entry in step.items():
            parent, _, name = path.rpartition("/")
            before = self._entries.get(path)
            if before is None and entry is None:
                continue
            fired += [(call, path) for call in self._watchers.pop(path, ())]
            if before is None or entry is None or before.created != entry.created:
                fired += [(call, parent) for call in self._child_watchers.pop(parent, ())]
                if before is not None:
                    # an entry that replaces it is new, and comes after the others
                    del self._entries[path], self._children[parent][name]
            if entry is not None:
                self._entries[path] = entry
                self._children.setdefault(parent, {})[name] = None
        for call, path in fired:
            call(path)

    def watch(self, path: str, fired: Callable[[str], None]) -> None:
        """See MetadataStore."""
        self._watchers.setdefault(path, []).append(fired)

    def watch_children(self, path: str, fired: Callable[[str], None]) -> None:
        """See MetadataStore."""
        self._child_watchers.setdefault(path, []).append(fired)


class TreeStore(ABC):
    """The part of a ``MetadataStore`` that is the same for all homes: reading and watching a copy in memory,
    and the state of the session.
    """

    def __init__(self, tree: Tree, session: SessionState) -> None:
        self._tree = tree
        self._session = session
        self._session_watchers: list[Callable[[SessionState], None]] = []
        self.refusal: KohortError | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._tree}, {self._session.value})"

    @property
    def session(self) -> SessionState:
        """See MetadataStore."""
        return self._session

    def get(self, path: str) -> StoreEntry | None:
        """See MetadataStore."""
        return self._tree.get(path)

    def children(self, path: str) -> Sequence[str]:
        """See MetadataStore."""
        return self._tree.children(path)

    async def sync(self) -> None:
        """See ``MetadataStore``. A home in this process shows every change at once."""
        return

    def watch(self, path: str, fired: Callable[[str], None]) -> None:
        """See MetadataStore."""
        self._tree.watch(path, fired)

    def watch_children(self, path: str, fired: Callable[[str], None]) -> None:
        """See MetadataStore."""
        self._tree.watch_children(path, fired)

    def on_session(self, changed: Callable[[SessionState], None]) -> None:
        """See MetadataStore."""
        self._session_watchers.append(changed)

    @abstractmethod
    async def commit(self, *changes: Change) -> None:
        """See MetadataStore."""

    @abstractmethod
    def close(self) -> None:
        """See MetadataStore."""

    def document(self, kind: str) -> Document:
        """The document of a kind: a key of ``DOCUMENTS``, or a path."""
        return Document(self, kind)

    def unreadable(self, path: str, error: Exception) -> StateFileError:
        """See MetadataStore."""
        return StateFileError(f"the entry {path} of the metadata store cannot be read: {error!r}")

    def _become(self, session: SessionState) -> None:
        if session is self._session:
            return
        self._session = session
        for changed in list(self._session_watchers):
            changed(session)
