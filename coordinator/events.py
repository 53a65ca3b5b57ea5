"""What the coordinator tells about itself: one typed event for each thing that happens.

Nobody has to listen, so an event costs little to make: the moves of a rebalance are only worked out when
asked for, and only then are members' assignments looked into, and only for the protocol type "consumer".
Nothing is made for a heartbeat or a commit that is accepted.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeAlias

from ..protocol import ErrorCode
from .engine.effects import Note
from .moves import Move, count_moves, moves_between

if TYPE_CHECKING:
    from .classic.group import Group, Member
    from .engine.effects import Request

#: How a history divides its room, and what makes way for what.
Share: TypeAlias = Literal["rebalances", "members", "refusals"]

#: Longest text of a client's making inside a cause, in characters.
MAX_QUOTED: Final = 200

#: Longest text in an event, in characters, but for its group and its cause; and the longest cause.
MAX_TEXT: Final = 300
MAX_CAUSE: Final = 2_000

# by kind of event: worked out once
_text_fields: dict[str, tuple[str, ...]] = {}

# a rebalance that keeps starting over keeps its first reasons, one that many are late for some of their names
_MAX_CAUSES = 5
_MAX_NAMES = 3


@dataclass(frozen=True, slots=True)
class Cause:
    """Why something happens: in words, and the member it is about ("" if about none)."""

    text: str
    member_id: str = ""
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""


@dataclass(slots=True, eq=False)
class RebalanceTrace:
    """A rebalance under way. ``assignments`` are those it ends, by owner (instance id, or member id)."""

    causes: list[Cause]
    started_ms: int
    members_before: int
    assignments: dict[str, bytes]
    joined_ms: int | None = None

    def add(self, cause: Cause) -> None:
        """Another reason why it takes as long as it does."""
        if len(self.causes) < _MAX_CAUSES:
            self.causes.append(cause)

    def cause(self) -> str:
        """All reasons, each once."""
        return "; ".join(dict.fromkeys(cause.text for cause in self.causes))


# Kinds without fields of their own are no dataclasses themselves: each costs a start most of a millisecond.


@dataclass(slots=True, kw_only=True)
class GroupEvent(Note):
    """Something that happened in a group.

    ``generation`` is the group's at that time, -1 for none; ``cause`` says why, in one line of words with
    control characters escaped. ``member``, ``instance_id``, ``client_id`` and ``client_host`` are those of
    the member it is about, "" and None if about none.
    """

    share: ClassVar[Share] = "rebalances"

    generation: int = -1
    cause: str = ""
    member: str = ""
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""


class RebalanceStarted(GroupEvent):
    """A group begins to collect its members; ``generation`` is the one that ends."""

    __slots__ = ()


@dataclass(slots=True, kw_only=True)
class RebalanceNote(GroupEvent):
    """A rebalance is over: generation ``generation`` is Stable, or Empty with ``members`` 0.

    ``duration_ms`` runs from the first cause to here: ``join_ms`` until all had joined and ``sync_ms`` until
    the assignment was handed out. ``cause`` names every reason, the member is that of the first. ``before``
    and ``after`` are assignments by owner (instance id, or member id); a history lets go of them in time, and
    then no moves are known.
    """

    leader: str = ""
    members: int
    members_before: int
    protocol_type: str = ""
    protocol: str = ""
    duration_ms: int
    join_ms: int
    sync_ms: int
    before: dict[str, bytes] | None = field(default=None, repr=False)
    after: dict[str, bytes] | None = field(default=None, repr=False)
    _counted: tuple[int, int] | None = field(default=None, repr=False, compare=False)

    @property
    def partitions_moved(self) -> int | None:
        """Partitions given to an owner that did not have them before; None if that is not known: for types
        other than "consumer", and where the assignments were let go of.
        """
        return self._count()[0]

    @property
    def partitions_total(self) -> int | None:
        """Partitions that have an owner now; None if that is not known."""
        return self._count()[1]

    def moves(self) -> list[Move]:
        """Every partition whose owner is another now, in order; [] where that is not known."""
        return moves_between(self.before or {}, self.after or {}) if self.protocol_type == "consumer" else []

    def joined(self) -> list[str]:
        """Owners that had no assignment before."""
        return sorted((self.after or {}).keys() - (self.before or {}).keys())

    def left(self) -> list[str]:
        """Owners that have no assignment any more."""
        return sorted((self.before or {}).keys() - (self.after or {}).keys())

    def _count(self) -> tuple[int, int] | tuple[None, None]:
        if self._counted is None:
            if self.before is None or self.after is None or self.protocol_type != "consumer":
                return None, None
            self._counted = count_moves(self.before, self.after)
        return self._counted


@dataclass(slots=True, kw_only=True)
class GenerationAbandoned(GroupEvent):
    """All had joined ``generation``, and it ended before its assignment was handed out."""

    members: int


class MemberJoined(GroupEvent):
    """A member was taken in; it belongs to the generation after ``generation``."""

    __slots__ = ()
    level = "debug"
    share = "members"


class MemberGone(GroupEvent):
    """A member was removed: it left, its session expired, it was late, or there was no room for it."""

    __slots__ = ()
    share = "members"


@dataclass(slots=True, kw_only=True)
class MemberReplaced(GroupEvent):
    """A static member came back under the new id ``member``; ``old_member`` is fenced from here on."""

    share = "members"

    old_member: str


class MemberIdUnused(GroupEvent):
    """A member id that was handed out is forgotten: nobody joined with it. Until then a rebalance waits."""

    __slots__ = ()
    share = "members"


@dataclass(slots=True, kw_only=True)
class OffsetsRemoved(GroupEvent):
    """``count`` offsets of a group were removed: expired, deleted, or their topic was."""

    share = "members"

    count: int


class GroupRemoved(GroupEvent):
    """A group is gone with its offsets, and its history with it."""

    __slots__ = ()


@dataclass(slots=True, kw_only=True)
class Refusal(GroupEvent):
    """A request was refused with the error number ``error_code``."""

    level = "warning"
    share = "refusals"

    error_code: int


@dataclass(slots=True, kw_only=True)
class MemberFenced(Refusal):
    """``api`` was refused because its sender is no member, not any more, or not in this generation."""

    api: str


class JoinRefused(Refusal):
    """A JoinGroup was refused for what it asks."""

    __slots__ = ()


@dataclass(slots=True, kw_only=True)
class CommitRefused(Refusal):
    """A whole OffsetCommit was refused; ``claimed_generation`` is the one its sender believes in."""

    claimed_generation: int


class AppendRefused(Refusal):
    """The log did not take records of a group; ``error_code`` is what it said."""

    __slots__ = ()


@dataclass(slots=True)
class RecordSkipped(Note):
    """A record of the offsets topic could not be read and was left out."""

    level = "warning"

    partition: int
    offset: int
    reason: str


@dataclass(slots=True)
class ShardLoading(Note):
    """A partition of the offsets topic is being read back, and that takes long."""

    partition: int
    records: int
    duration_ms: int


@dataclass(slots=True)
class ShardLoaded(Note):
    """A partition of the offsets topic was read back."""

    level = "debug"

    partition: int
    records: int
    skipped: int
    groups: int
    duration_ms: int


@dataclass(slots=True)
class EventsLost(Note):
    """Only in a subscription: its reader was too slow, ``count`` events before this one are lost to it."""

    level = "warning"

    count: int


def append_refused(group_id: str, error: ErrorCode) -> AppendRefused:
    """The event of a write that the log did not take."""
    return AppendRefused(group_id, cause=f"the log did not take records: {error.name}", error_code=error)


def shorten(event: GroupEvent) -> None:
    """Cut the texts of an event that are long: they are a client's, and events are kept, logged and sent."""
    for name in _texts(event):
        text = getattr(event, name)
        if text is not None and len(text) > MAX_TEXT:
            setattr(event, name, _cut(text, MAX_CAUSE if name == "cause" else MAX_TEXT))


def text_bytes(event: GroupEvent) -> int:
    """What its texts take in memory, but for the group's id, which the group has too."""
    texts: list[str | None] = [getattr(event, name) for name in _texts(event)]
    return sum(map(size_of, filter(None, texts)))


def size_of(text: str) -> int:
    """Bytes of a text, at most."""
    return len(text) if text.isascii() else 4 * len(text)


def _texts(event: GroupEvent) -> tuple[str, ...]:
    """The fields that hold texts, but for the group."""
    kind = type(event).__name__
    known = _text_fields.get(kind)
    if known is None:
        known = _text_fields[kind] = tuple(
            field.name
            for field in fields(event)
            if "str" in str(field.type).split(" | ") and field.name != "group"
        )
    return known


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[:length] + "..."


def quoted(text: str) -> str:
    """Text of a client's making, fit for a cause: control characters escaped, cut to length."""
    text = _cut(text, MAX_QUOTED)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def about(member: Member, text: str) -> Cause:
    """A cause that is about a member."""
    return Cause(text, member.member_id, member.instance_id, member.client_id, member.client_host)


def late(members: list[Member], what: str, timeout_ms: int) -> Cause:
    """Members that did not do ``what`` in time, the first of them by name."""
    names = ", ".join(quoted(member.member_id) for member in members[:_MAX_NAMES])
    if len(members) > _MAX_NAMES:
        names += f" and {len(members) - _MAX_NAMES} more"
    noun = "member" if len(members) == 1 else "members"
    return about(members[0], f"{noun} {names} did not {what} within {timeout_ms / 1000:.1f} s")


def fenced(group: Group | None, request: Request, member_id: str, instance_id: str | None, error: int) -> str:
    """Why a request's sender does not pass for a member, in words."""
    who = f"member {quoted(member_id)}" if member_id else "a sender without a member id"
    if group is None:
        return f"{who} speaks of a group that does not exist"
    if error == ErrorCode.FENCED_INSTANCE_ID and instance_id is not None:
        now = quoted(group.static_members.get(instance_id, ""))
        return f"{who} is fenced: static {quoted(instance_id)} is member {now} now"
    if error == ErrorCode.ILLEGAL_GENERATION:
        body = request.body
        claimed = getattr(body, "generation", getattr(body, "generation_id", -1))
        return f"{who} is in generation {claimed}, the group is in {group.generation}"
    if error == ErrorCode.REBALANCE_IN_PROGRESS:
        return f"{who} has not synced in generation {group.generation}"
    if instance_id is not None and instance_id not in group.static_members:
        return f"{who} says to be static {quoted(instance_id)}, of whom the group knows nothing"
    return f"{who} is not in the group"
