"""The interface of a metadata store, with ZooKeeper's semantics: versioned entries in a tree, conditional
writes, several writes in one step, ephemeral entries, watches and session states.

Each store keeps a copy of its entries in this process, so reads do not wait; writes are awaited, since they
may go over the network.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Protocol, TypeAlias, runtime_checkable

from ..protocol import Json, KohortError
from ._files import StateFileError

#: Matches any version of an entry.
ANY_VERSION: Final = -1

#: The value of an entry: anything that JSON can express. It must not be changed once it was passed to a store
#: or returned by one.
Value: TypeAlias = Json


@dataclass(frozen=True, slots=True)
class StoreEntry:
    """One entry as it is now. ``version`` is 0 when it is created and one more with each ``Put``.

    An ephemeral entry is removed when the session that created it ends. ``created`` is the number of the step
    that created it; each step of the home has a higher one. ``modified`` is that of the last step that
    changed it, where its home tells.
    """

    value: Value
    version: int = 0
    ephemeral: bool = False
    created: int = field(default=0, compare=False)
    modified: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Create:
    """Create an entry, which must not exist."""

    path: str
    value: Value
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class Put:
    """Replace the value of an entry, which must exist and have ``version``."""

    path: str
    value: Value
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove an entry, which must exist and have ``version``."""

    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Check:
    """Change nothing; the entry must exist and have ``version``. It keeps a controller that was replaced from
    writing.
    """

    path: str
    version: int


Change: TypeAlias = Create | Put | Delete | Check


class ConflictError(KohortError):
    """An entry does not meet the condition of a change: no change was made. ``change`` is the first whose
    condition failed.
    """

    def __init__(self, change: Change, entry: StoreEntry | None) -> None:
        found = "it is not there" if entry is None else f"it is there, at version {entry.version}"
        super().__init__(f"{type(change).__name__.lower()} of {change.path} cannot be done: {found}")
        self.change = change


class SessionState(Enum):
    """The state of a store's session with its home."""

    #: Reads are current, writes are accepted.
    CONNECTED = "connected"
    #: The home is out of reach; the session, and its ephemeral entries, may still exist.
    SUSPENDED = "suspended"
    #: The session is over, and its ephemeral entries are gone. Once the home can be reached again another
    #: session begins (connected), unless the store was closed.
    LOST = "lost"


class MetadataStore(Protocol):
    """A tree of entries. A path is ``/`` followed by names with ``/`` between them. Parents need not be
    created and are not entries: an entry has no entries below it.
    """

    @property
    def session(self) -> SessionState:
        """State of the session; entries that it owns go when it is lost."""

    @property
    def refusal(self) -> KohortError | None:
        """Why the home is not used any more, once its last session was ended for that."""
        ...

    def get(self, path: str) -> StoreEntry | None:
        """Return the entry at a path, None if there is none."""
        ...

    def children(self, path: str) -> Sequence[str]:
        """Return the names of the entries right below a path, in the order in which they were created; those
        of one step may be in any order.
        """
        ...

    async def commit(self, *changes: Change) -> None:
        """Make changes, all of them or, when it raises, none; they are durable when it returns, and can be
        read here.

        Raises ConflictError, and OSError when the home fails or is out of reach (ConnectionError): then a
        home on a network may have made them.
        """
        ...

    async def sync(self) -> None:
        """Return when every change that was durable before can be read here. Raises OSError."""
        ...

    def watch(self, path: str, fired: Callable[[str], None]) -> None:
        """Call ``fired`` once, with the path, when the entry there is next created, changed or deleted.

        It is called after the change can be read here. To see the next change, watch again.
        """
        ...

    def watch_children(self, path: str, fired: Callable[[str], None]) -> None:
        """Call ``fired`` once, with the path, when an entry right below it is next created or deleted."""
        ...

    def on_session(self, changed: Callable[[SessionState], None]) -> None:
        """Call ``changed`` whenever the session state changes."""
        ...

    def unreadable(self, path: str, error: Exception) -> StateFileError:
        """The error for a malformed entry."""
        ...

    def close(self) -> None:
        """End the session: its ephemeral entries are removed, and nothing more can be written."""
        ...


@runtime_checkable
class WritesAtOnce(Protocol):
    """A store on this machine's disk."""

    def commit_now(self, *changes: Change) -> None:
        """Do as ``commit``, synchronously, for decisions of a broker that is alone, and for commands, where
        no event loop runs; a store on a network cannot offer it.
        """
        ...
