"""Entries in memory: what a step of changes makes of them, and who watches. What homes in this process
share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from ._store import ANY_VERSION, Change, Check, ConflictError, Create, Delete, Entry, Put

#: The entries that a step leaves, by path; None: removed.
Step: TypeAlias = Mapping[str, Entry | None]

_Watchers: TypeAlias = dict[str, list[Callable[[str], None]]]


class Tree:
    """Entries by path. Look a step up with ``plan``, then let it be so with ``apply``."""

    __slots__ = ("_child_watchers", "_children", "_entries", "_watchers")

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        # names below each path, in the order of their creation
        self._children: dict[str, dict[str, None]] = {}
        self._watchers: _Watchers = {}
        self._child_watchers: _Watchers = {}

    def __repr__(self) -> str:
        return f"Tree({len(self._entries)} entries)"

    def get(self, path: str) -> Entry | None:
        return self._entries.get(path)

    def children(self, path: str) -> Sequence[str]:
        return list(self._children.get(path, ()))

    def entries(self) -> Mapping[str, Entry]:
        """Return every entry by its path, in the order of their creation."""
        return self._entries

    def plan(self, changes: Sequence[Change]) -> Step:
        """Return what the changes make of the entries, which stay as they are. Raises ConflictError."""
        step: dict[str, Entry | None] = {}
        for change in changes:
            found = step[change.path] if change.path in step else self._entries.get(change.path)
            if isinstance(change, Create):
                if found is not None:
                    raise ConflictError(change, found)
                step[change.path] = Entry(change.value, ephemeral=change.ephemeral)
                continue
            if found is None or change.version not in (ANY_VERSION, found.version):
                raise ConflictError(change, found)
            if isinstance(change, Put):
                step[change.path] = Entry(change.value, found.version + 1, found.ephemeral)
            elif isinstance(change, Delete):
                step[change.path] = None
            else:
                assert isinstance(change, Check)
        return step

    def apply(self, step: Step) -> None:
        """Let the entries be as planned, then call those who watch."""
        fired: list[tuple[Callable[[str], None], str]] = []
        for path, entry in step.items():
            parent, _, name = path.rpartition("/")
            was_there = path in self._entries
            if entry is not None:
                self._entries[path] = entry
                self._children.setdefault(parent, {})[name] = None
            elif was_there:
                del self._entries[path]
                del self._children[parent][name]
            if entry is not None or was_there:
                fired += [(call, path) for call in self._watchers.pop(path, ())]
            if (entry is None) is was_there:
                fired += [(call, parent) for call in self._child_watchers.pop(parent, ())]
        for call, path in fired:
            call(path)

    def watch(self, path: str, fired: Callable[[str], None]) -> None:
        self._watchers.setdefault(path, []).append(fired)

    def watch_children(self, path: str, fired: Callable[[str], None]) -> None:
        self._child_watchers.setdefault(path, []).append(fired)
