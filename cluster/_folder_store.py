"""A metadata store in a data folder, for one broker alone: small files that are replaced as a whole.

``kohort.json`` holds the topics, those that are being deleted and the next producer id, so that many topics
are created or deleted entirely or not at all, whenever the broker dies; each other document is a file of its
own, ``kohort-KIND.json``. A file is read when one of its entries is first asked for. Files hold no versions:
an entry begins at version 0 with each start, since only this process can have seen an earlier one.

====================  =========================================================================
field of kohort.json  content
====================  =========================================================================
``version``           1: the format
``next_producer_id``  end of the last block of producer ids that was taken
``deleted``           by id, the names of topics that are being deleted; formerly a list of ids
``topics``            by name: ``id``, ``partitions`` (how many), ``configs`` that were set
====================  =========================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeGuard
from uuid import UUID

from ..protocol import JsonObject
from ..protocol.named_tuples import NamedTuple
from ._files import StateFile, StateFileError, encode_lines
from ._store import Change, SessionState, StoreEntry, Value
from .layout import DELETED_TOPICS, DOCUMENTS, PRODUCER_IDS, TOPICS
from .tree import Step, Tree, TreeStore

#: The file of the topics: the only one whose name is not that of a kind.
TOPICS_FILE: Final = "kohort.json"

#: What removing each file would lose: the end of the error for one that cannot be read.
_WITHOUT: Final = {
    "settings": "settings are those of the start",
    "acls": "there are no access rules, and only super users may do anything",
    "scram-users": "nobody can log in by SCRAM until users are recreated",
    "client-quotas": "clients have no quotas",
    "groups": "every consumer group has the settings of the broker",
    "features": "every feature is at its highest level",
}


class _Part(NamedTuple):
    """Entries in one file; ``read`` returns their values by path."""

    file: StateFile
    read: Callable[[dict[str, object]], dict[str, Value]]


def _document_part(folder: Path, kind: str, path: str) -> _Part:
    file = StateFile(folder / f"kohort-{kind}.json", _WITHOUT[kind])
    return _Part(file, lambda content: {path: content})


def _read_topics(content: JsonObject) -> dict[str, Value]:
    """The entries of ``kohort.json``; in a file of a former version deleted topics are a list of ids."""
    deleted = content["deleted"]
    names = deleted if isinstance(deleted, dict) else dict.fromkeys(deleted)
    found: dict[str, Value] = {PRODUCER_IDS: int(content["next_producer_id"])}
    found |= {f"{DELETED_TOPICS}/{UUID(topic_id)}": name for topic_id, name in names.items()}
    for name, stored in content["topics"].items():
        if not (isinstance(stored["id"], str) and isinstance(stored["configs"], dict)):
            raise ValueError(f"the topic {name} has no id or no configs")
        found[f"{TOPICS}/{name}"] = stored
    return found


class _TopicLines(NamedTuple):
    """The content of ``kohort.json``, each entry encoded: topics may be created one by one by the thousand,
    and all others are written each time.
    """

    next_producer_id: int
    deleted: Mapping[str, str]
    topics: Mapping[str, str]

    def after(self, step: Step) -> _TopicLines:
        """The content after a step."""
        next_producer_id = self.next_producer_id
        below = {DELETED_TOPICS: {**self.deleted}, TOPICS: {**self.topics}}
        for path, entry in step.items():
            parent, _, name = path.rpartition("/")
            value = entry.value if _is_kept(entry) else None
            if path == PRODUCER_IDS:
                next_producer_id = value or 0
            elif parent in below and _is_kept(entry):
                below[parent][name] = f"{encode_lines(name)}: {encode_lines(value)}"
            elif parent in below:
                below[parent].pop(name, None)
        return _TopicLines(next_producer_id, below[DELETED_TOPICS], below[TOPICS])

    def text(self, version: int) -> str:
        """The whole file."""
        deleted, topics = (",\n".join(each.values()) for each in (self.deleted, self.topics))
        head = f'"version": {version},\n"next_producer_id": {self.next_producer_id}'
        return f'{{{head},\n"deleted": {{{deleted}}},\n"topics": {{{topics}}}}}'


def _is_kept(entry: StoreEntry | None) -> TypeGuard[StoreEntry]:
    return entry is not None and not entry.ephemeral


class FolderStore(TreeStore):
    """The entries of a data folder, which the opener has locked; see ``MetadataStore``.

    The layout says which file holds an entry; one step may change entries of one file only. Ephemeral entries
    may have any path and are kept in memory. Reads raise StateFileError for a file that cannot be read.
    """

    def __init__(self, folder: Path | str) -> None:
        super().__init__(Tree(), SessionState.CONNECTED)
        folder = Path(folder)
        file = StateFile(
            folder / TOPICS_FILE, "the topics are taken from their folders and lose their configs"
        )
        topics = _Part(file, _read_topics)
        # by path, or by the path above
        self._parts: dict[str, _Part] = {TOPICS: topics, DELETED_TOPICS: topics, PRODUCER_IDS: topics}
        self._parts |= {path: _document_part(folder, kind, path) for kind, path in DOCUMENTS.items()}
        self._unread = {part.file for part in self._parts.values()}
        # encoded before the first step that changes one
        self._topic_lines: _TopicLines | None = None

    def get(self, path: str) -> StoreEntry | None:
        """See MetadataStore. Raises StateFileError for a document that cannot be read."""
        self._part_of(path)
        return super().get(path)

    def children(self, path: str) -> Sequence[str]:
        """See MetadataStore."""
        self._part_of(path)
        return super().children(path)

    async def commit(self, *changes: Change) -> None:
        """See MetadataStore. Each document is written whole, to another name, and renamed."""
        self.commit_now(*changes)

    def commit_now(self, *changes: Change) -> None:
        """Do as ``commit``, synchronously, for decisions of a broker that is alone, and for commands, where
        no event loop runs; a store on a network cannot offer it.

        Also raises ValueError for changes that are not all in one file.
        """
        if self._session is SessionState.LOST:
            raise ConnectionError("the metadata store is closed")
        for change in changes:
            self._part_of(change.path)
        step = self._tree.plan(changes)
        durable = [path for path, entry in step.items() if _is_kept(entry) or _is_kept(self._tree.get(path))]
        parts = {self._part_of(path) for path in durable}
        if len(parts) > 1 or None in parts:
            raise ValueError(f"a folder cannot keep {', '.join(sorted(durable))} in one step")
        if durable:
            self._save(durable[0], step)
        self._tree.apply(step)

    def _save(self, path: str, step: Step) -> None:
        """Write the file that holds ``path`` as it is after the step."""
        file = self._parts.get(path, self._parts[TOPICS]).file
        if file is self._parts[TOPICS].file:
            known = self._topic_lines or _TopicLines(0, {}, {}).after(self._tree.entries())
            lines = known.after(step)
            file.save_text(lines.text(file.version))
            self._topic_lines = lines
            return
        entry = step[path]
        if entry is None or entry.ephemeral:
            raise OSError(f"{file.path} cannot be emptied: remove it while the broker is stopped")
        file.save(entry.value)

    def close(self) -> None:
        """End the session: its ephemeral entries go."""
        if self._session is SessionState.LOST:
            return
        self._tree.apply({path: None for path, entry in self._tree.entries().items() if entry.ephemeral})
        self._become(SessionState.LOST)

    def files(self) -> list[Path]:
        """The files that exist, that of the topics first."""
        paths = dict.fromkeys(part.file.path for part in self._parts.values())
        return [path for path in paths if path.exists()]

    def unreadable(self, path: str, error: Exception) -> StateFileError:
        """See MetadataStore; the error names the file."""
        return self._parts[path].file.unreadable(error)

    def _part_of(self, path: str) -> _Part | None:
        """The file that holds a path, or the entries below it, once it is read."""
        part = self._parts.get(path) or self._parts.get(path.rpartition("/")[0])
        if part is not None and part.file in self._unread:
            found = part.file.load(part.read) or {}
            self._tree.apply({path: StoreEntry(value) for path, value in found.items()})
            self._unread.discard(part.file)
        return part
