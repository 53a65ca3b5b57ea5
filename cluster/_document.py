"""Documents: entries that their owners read and replace as a whole, such as access rules and quotas."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TypeVar

from ..protocol import JsonObject
from ._files import StateFileError
from ._store import Change, Create, MetadataStore, Put, WritesAtOnce
from .layout import DOCUMENTS

log = logging.getLogger("kohort.cluster")

T = TypeVar("T")


class Document:
    """One entry at the version that its owner has read; later versions are not known to it.

    ``kind`` is a key of ``DOCUMENTS``, or a path.
    """

    def __init__(self, store: MetadataStore, kind: str) -> None:
        self._store = store
        self._path = DOCUMENTS.get(kind, kind)
        #: The version that the owner has read or written; None for no entry.
        self._version: int | None = None
        self._changed: Callable[[], None] | None = None
        self._is_saving = False

    def __repr__(self) -> str:
        return f"Document({self._path})"

    def load(self, parse: Callable[[JsonObject], T]) -> T | None:
        """Return what ``parse`` makes of the document; None if there is none.

        Raises StateFileError if the document cannot be read, or ``parse`` raises ValueError, KeyError,
        TypeError or AttributeError.
        """
        entry = self._store.get(self._path)
        self._version = None if entry is None else entry.version
        if entry is None:
            return None
        try:
            return parse(entry.value)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._store.unreadable(self._path, error) from error

    async def save(self, content: Mapping[str, object]) -> None:
        """Replace the document. Raises OSError, and ConflictError if it was changed since it was read; the
        content then stays as it was.
        """
        self._is_saving = True
        try:
            await self._store.commit(self._make_change(content))
            self._version = 0 if self._version is None else self._version + 1
        finally:
            self._is_saving = False
            self._check_version()

    def save_now(self, content: Mapping[str, object]) -> None:
        """As ``save``, at the start and in commands, where no event loop runs; in a folder only."""
        assert isinstance(self._store, WritesAtOnce), "a home that is shared cannot be written without a wait"
        self._store.commit_now(self._make_change(content))
        self._version = 0 if self._version is None else self._version + 1

    def follow(self, changed: Callable[[], None]) -> None:
        """Call ``changed`` whenever another process has replaced the document, to load it again. One that is
        lost is as it was; the next ``save`` writes it whole.
        """
        self._changed = changed
        self._watch_entry(self._path)

    def _watch_entry(self, path: str) -> None:
        self._store.watch(path, self._watch_entry)
        if not self._is_saving:
            self._check_version()

    def _check_version(self) -> None:
        """Notify the owner if the document has another version than the one that it has read."""
        entry = self._store.get(self._path)
        if self._changed is None or (None if entry is None else entry.version) == self._version:
            return
        if entry is None:
            # nobody removes a document
            log.error("the entry %s is lost: what it said stays in force until the next start", self._path)
            self._version = None
            return
        try:
            self._changed()
        except StateFileError as error:
            log.error("what was changed is not in force: %s", error)

    def _make_change(self, content: Mapping[str, object]) -> Change:
        if self._version is None:
            return Create(self._path, dict(content))
        return Put(self._path, dict(content), self._version)
