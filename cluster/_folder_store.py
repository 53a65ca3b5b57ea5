"""A metadata store in a data folder, for one broker alone: small files that are replaced as a whole.

``kohort.json`` holds the topics, those that are being deleted and the next producer id, so that many topics
are created or deleted entirely or not at all, whenever the broker dies; each other document is a file of its
own, ``kohort-KIND.json``. A file is read when one of its entries is first asked for. Files hold no versions:
an entry begins at version 0 with each start, since only this process can have seen an earlier one.

Topics may be created one by one by the thousand: ``kohort.json`` is written by the first step of a process,
and again whenever the steps since then, in ``kohort.json.steps``, have become as long. A clean stop leaves
``kohort.json`` alone.

====================  =========================================================================
field of kohort.json  content
====================  =========================================================================
``version``           2: the format; 1 had no steps
``step``              number of the last step that is in it
``next_producer_id``  end of the last block of producer ids that was taken
``deleted``           by id, the names of topics that are being deleted; formerly a list of ids
``topics``            by name: ``id``, ``partitions`` (how many), ``configs`` that were set
====================  =========================================================================

In a step ``entries`` has the values of the entries that it leaves, by path, and ``gone`` the paths of those
that it removes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeGuard
from uuid import UUID

from ..protocol import JsonObject
from ..protocol.named_tuples import NamedTuple
from ._files import StateFile, StateFileError, StepFile
from ._store import Change, SessionState, StoreEntry, Value
from .layout import DELETED_TOPICS, DOCUMENTS, PRODUCER_IDS, TOPICS
from .tree import Step, Tree, TreeStore

#: The file of the topics: the only one whose name is not that of a kind.
TOPICS_FILE: Final = "kohort.json"

#: Most bytes of steps behind a smaller ``kohort.json``.
_STEPS_BYTES: Final = 1 << 16

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


def _topics_content(number: int, entries: Step) -> JsonObject:
    """The content of ``kohort.json``, which has taken in so many steps."""
    below: dict[str, JsonObject] = {DELETED_TOPICS: {}, TOPICS: {}}
    next_producer_id = 0
    for path, entry in entries.items():
        parent, _, name = path.rpartition("/")
        if _is_kept(entry) and path == PRODUCER_IDS:
            next_producer_id = entry.value
        elif _is_kept(entry) and parent in below:
            below[parent][name] = entry.value
    deleted, topics = below.values()
    return {"step": number, "next_producer_id": next_producer_id, "deleted": deleted, "topics": topics}


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
        self._topics = StateFile(
            folder / TOPICS_FILE, "the topics are taken from their folders and lose their configs", version=2
        )
        self._steps = StepFile(folder / f"{TOPICS_FILE}.steps")
        # those that were made, and the bytes of them from which on the next one saves everything
        self._made = self._most_bytes = 0
        topics = _Part(self._topics, self._read_topics)
        # by path, or by the path above
        self._parts: dict[str, _Part] = {TOPICS: topics, DELETED_TOPICS: topics, PRODUCER_IDS: topics}
        self._parts |= {path: _document_part(folder, kind, path) for kind, path in DOCUMENTS.items()}
        self._unread = {part.file for part in self._parts.values()}

    def get(self, path: str) -> StoreEntry | None:
        """See MetadataStore. Raises StateFileError for a document that cannot be read."""
        self._part_of(path)
        return super().get(path)

    def children(self, path: str) -> Sequence[str]:
        """See MetadataStore."""
        self._part_of(path)
        return super().children(path)

    async def commit(self, *changes: Change) -> None:
        """See MetadataStore."""
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
        """Make a step durable that changes ``path``."""
        file = self._parts.get(path, self._parts[TOPICS]).file
        if file is self._topics and self._steps.size < self._most_bytes:
            self._append_step(step)
        elif file is self._topics:
            self._save_topics(step)
        else:
            entry = step[path]
            if entry is None or entry.ephemeral:
                raise OSError(f"{file.path} cannot be emptied: remove it while the broker is stopped")
            file.save(entry.value)

    def _append_step(self, step: Step) -> None:
        there = {path: entry.value for path, entry in step.items() if _is_kept(entry)}
        gone = [path for path in step if path not in there and _is_kept(self._tree.get(path))]
        try:
            self._steps.append(self._made + 1, {"entries": there, "gone": gone})
        except OSError:
            self._most_bytes = 0
            raise
        self._made += 1

    def _save_topics(self, step: Step) -> None:
        """Write everything, as it is after a step."""
        content = _topics_content(self._made + 1, {**self._tree.entries(), **step})
        self._most_bytes = max(self._topics.save(content), _STEPS_BYTES)
        self._made += 1
        self._steps.remove()

    def close(self) -> None:
        """End the session: its ephemeral entries go."""
        if self._session is SessionState.LOST:
            return
        if self._steps.size:
            # what cannot be saved stays where it is
            with suppress(OSError):
                self._save_topics({})
        self._tree.apply({path: None for path, entry in self._tree.entries().items() if entry.ephemeral})
        self._become(SessionState.LOST)

    def files(self) -> list[Path]:
        """The files that exist, that of the topics first."""
        others = [part.file.path for part in self._parts.values()]
        paths = dict.fromkeys([self._topics.path, self._steps.path, *others])
        return [path for path in paths if path.exists()]

    def unreadable(self, path: str, error: Exception) -> StateFileError:
        """See MetadataStore; the error names the file."""
        part = self._part_of(path)
        assert part is not None, "only what was read can be wrong"
        return part.file.unreadable(error)

    def _part_of(self, path: str) -> _Part | None:
        """The file that holds a path, or the entries below it, once it is read."""
        part = self._parts.get(path) or self._parts.get(path.rpartition("/")[0])
        if part is not None and part.file in self._unread:
            found = part.file.load(part.read) or {}
            if part.file is self._topics:
                self._read_steps(found)
            self._tree.apply({path: StoreEntry(value) for path, value in found.items()})
            self._unread.discard(part.file)
        return part

    def _read_topics(self, content: JsonObject) -> dict[str, Value]:
        """The entries of ``kohort.json``; in a file of a former version deleted topics are a list of ids."""
        deleted = content["deleted"]
        names = deleted if isinstance(deleted, dict) else dict.fromkeys(deleted)
        self._made = int(content.get("step", 0))
        found: dict[str, Value] = {PRODUCER_IDS: int(content["next_producer_id"])}
        found |= {f"{DELETED_TOPICS}/{UUID(topic_id)}": name for topic_id, name in names.items()}
        for name, stored in content["topics"].items():
            if not (isinstance(stored["id"], str) and isinstance(stored["configs"], dict)):
                raise ValueError(f"the topic {name} has no id or no configs")
            found[f"{TOPICS}/{name}"] = stored
        return found

    def _read_steps(self, found: dict[str, Value]) -> None:
        """Add the steps that ``kohort.json`` has not taken in to what it has."""
        try:
            for step in self._steps.read(self._made):
                for path in step["gone"]:
                    del found[path]
                found.update(step["entries"])
                self._made = step["step"]
        except (ValueError, KeyError, TypeError) as error:
            names, without = f"{self._topics.path} and {self._steps.path.name}", self._topics.without
            raise StateFileError(
                f"{names} do not fit together ({error}): restore both from a copy; without both {without}"
            ) from error
