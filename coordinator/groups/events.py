"""Events of groups: one type for each thing that happens in a group.

Events are cheap to create: the moves of a rebalance are only computed on demand, and only then are members'
assignments decoded, and only for the protocol type "consumer". Accepted heartbeats and commits create none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, ClassVar, Final, Literal, TypeAlias, TypeVar

from ...protocol import CauseKind, ErrorCode, EventName, MalformedMessageError, decode_assignment
from ...protocol.named_tuples import NamedTuple
from ..engine.events import CoordinatorEvent

E = TypeVar("E", bound="GroupEvent")

#: Shares of a history, which bound how much each kind of event may displace.
Share: TypeAlias = Literal["rebalances", "members", "refusals"]

#: Protocol types whose assignments are read.
_READABLE: Final = frozenset({"consumer", "share"})

#: An owner's partitions: an assignment as members read it, or numbers by topic.
Owned: TypeAlias = bytes | Mapping[str, Collection[int]]

#: Longest client-supplied text inside a cause, in characters.
MAX_QUOTED: Final = 200

#: Longest text in an event, in characters, except for its group and its cause; and the longest cause.
MAX_TEXT: Final = 300
MAX_CAUSE: Final = 2_000
#: Most causes of one rebalance.
_MAX_CAUSES: Final = 5

# by kind of event, computed once: the names of its text fields, and a getter of them
_text_fields: dict[str, tuple[tuple[str, ...], attrgetter[object]]] = {}


class Cause(NamedTuple):
    """Why something happens: the text, the kind, and the member concerned ("" for none)."""

    text: str
    kind: CauseKind = CauseKind.OTHER
    member_id: str = ""
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""

    def event(self, kind: type[E], group: str, generation: int, **own: Any) -> E:
        """Make an event of a group with this cause."""
        if issubclass(kind, CausedEvent):
            own["cause_kind"] = self.kind
        return kind(
            group,
            generation=generation,
            cause=self.text,
            member=self.member_id,
            instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            **own,
        )


@dataclass(slots=True, eq=False)
class OpenRebalance:
    """A rebalance in progress of a group whose members the coordinator assigns: from its first cause to the
    next target. ``before`` is what members had, None if that is too much for an event.
    """

    causes: list[Cause]
    started_ms: int
    members_before: int
    before: dict[str, Owned] | None

    def add_cause(self, cause: Cause) -> None:
        """Add a cause, if it is new; a rebalance that keeps starting over keeps its first causes."""
        if len(self.causes) < _MAX_CAUSES and cause not in self.causes:
            self.causes.append(cause)

    def whole_cause(self) -> Cause:
        """Return the first cause, with the texts of all."""
        return self.causes[0]._replace(text="; ".join(dict.fromkeys(each.text for each in self.causes)))


class Move(NamedTuple):
    """A partition with its owner before and after, None for none."""

    topic: str
    partition: int
    from_owner: str | None
    to_owner: str | None


# Kinds without fields of their own are not dataclasses: each dataclass adds most of a millisecond to the
# start.


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class GroupEvent(CoordinatorEvent):
    """Something that happened in a group.

    ``generation`` is the group's at that time, -1 for none; ``cause`` says why, in one line with control
    characters escaped. ``member``, ``instance_id``, ``client_id`` and ``client_host`` are those of the member
    concerned, "" and None for none.
    """

    share: ClassVar[Share] = "rebalances"

    generation: int = -1
    cause: str = ""
    member: str = ""
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class CausedEvent(GroupEvent):
    """An event with a kind of cause; if there are several causes, the kind of the first."""

    cause_kind: CauseKind = CauseKind.OTHER


class RebalanceStarted(CausedEvent):
    """A group begins to collect its members; ``generation`` is the generation that ends."""

    __slots__ = ()
    name = EventName.REBALANCE_STARTED


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class RebalanceCompleted(CausedEvent):
    """A rebalance is over: generation ``generation`` is Stable, or Empty with ``members`` 0.

    ``duration_ms`` runs from the first cause to this event: ``join_ms`` until all had joined and ``sync_ms``
    until the assignment was handed out. ``cause`` names every reason; the member is that of the first.
    ``before`` and ``after`` are assignments by owner (instance id, or member id); a history drops them after
    a while, and then the moves are unknown. In a consumer group ``slowest`` is the owner that took longest to
    give up its partitions, ``slowest_ms`` the time that it took.
    """

    name = EventName.REBALANCE_COMPLETED

    leader: str = ""
    members: int
    members_before: int
    protocol_type: str = ""
    protocol: str = ""
    duration_ms: int
    join_ms: int
    sync_ms: int
    slowest: str = ""
    slowest_ms: int = 0
    before: Mapping[str, Owned] | None = field(default=None, repr=False)
    after: Mapping[str, Owned] | None = field(default=None, repr=False)
    _counted: tuple[int, int] | None = field(default=None, repr=False, compare=False)

    @property
    def partitions_moved(self) -> int | None:
        """Number of partitions given to an owner that did not have them before, for each of their owners in a
        share group; None if unknown: for types other than these and "consumer", and after the assignments
        were dropped.
        """
        return self._count_moves()[0]

    @property
    def partitions_total(self) -> int | None:
        """Number of partitions that have an owner now; None if unknown."""
        return self._count_moves()[1]

    def moves(self) -> list[Move]:
        """Every partition whose owner has changed, in order; [] if unknown. In a share group, whose
        partitions have many owners, each one that an owner got (from None) or lost (to None).
        """
        if self.protocol_type not in _READABLE:
            return []
        find = shared_moves_between if self.protocol_type == "share" else moves_between
        return find(self.before or {}, self.after or {})

    def joined(self) -> list[str]:
        """Owners that had no assignment before."""
        return sorted((self.after or {}).keys() - (self.before or {}).keys())

    def left(self) -> list[str]:
        """Owners that have no assignment any more."""
        return sorted((self.before or {}).keys() - (self.after or {}).keys())

    def _count_moves(self) -> tuple[int, int] | tuple[None, None]:
        if self._counted is None:
            if self.before is None or self.after is None or self.protocol_type not in _READABLE:
                return None, None
            self._counted = count_moves(self.before, self.after)
        return self._counted


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class GenerationAbandoned(CausedEvent):
    """``generation`` ended after all had joined, before its assignment was handed out."""

    name = EventName.GENERATION_ABANDONED

    members: int


class MemberJoined(GroupEvent):
    """A member joined; it belongs to the generation after ``generation``."""

    __slots__ = ()
    name = EventName.MEMBER_JOINED
    level = "debug"
    share = "members"


class MemberGone(CausedEvent):
    """A member was removed: it left, its session expired, it was late, or the group was full."""

    __slots__ = ()
    name = EventName.MEMBER_GONE
    share = "members"


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class MemberReplaced(GroupEvent):
    """A static member returned under the new id ``member``; ``old_member`` is fenced from then on."""

    name = EventName.MEMBER_REPLACED
    share = "members"

    old_member: str


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class RevocationAsked(GroupEvent):
    """A member of a consumer group was asked to give up ``partitions`` partitions, for which others wait."""

    name = EventName.REVOCATION_ASKED
    level = "debug"
    share = "members"

    partitions: int


class MemberIdUnused(GroupEvent):
    """A member id that was handed out and never used is forgotten. A rebalance waits until then."""

    __slots__ = ()
    name = EventName.MEMBER_ID_UNUSED
    share = "members"


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class OffsetsRemoved(GroupEvent):
    """``count`` offsets of a group were removed: they expired, or they or their topic were deleted."""

    name = EventName.OFFSETS_REMOVED
    share = "members"

    count: int


class GroupRemoved(GroupEvent):
    """A group was removed with its offsets and its history."""

    __slots__ = ()
    name = EventName.GROUP_REMOVED


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class Refusal(GroupEvent):
    """A request was refused with ``error_code``."""

    level = "warning"
    share = "refusals"

    error_code: int


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class MemberFenced(Refusal):
    """``api`` was refused because its sender is not a member (any more), or not in this generation."""

    name = EventName.MEMBER_FENCED

    api: str


class JoinRefused(Refusal):
    """A JoinGroup was refused for its content."""

    __slots__ = ()
    name = EventName.JOIN_REFUSED


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class CommitRefused(Refusal):
    """A whole OffsetCommit was refused; ``claimed_generation`` is the generation that it names."""

    name = EventName.COMMIT_REFUSED

    claimed_generation: int


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class AssignorFailed(Refusal):
    """The assignor of a consumer group gave no usable result: members keep their partitions."""

    name = EventName.ASSIGNOR_FAILED

    assignor: str


class ShareStateFailed(Refusal):
    """State of share partitions could not be initialized or deleted at their share coordinators."""

    __slots__ = ()
    name = EventName.SHARE_STATE_FAILED


class AppendRefused(Refusal):
    """The log refused records of a group with ``error_code``."""

    __slots__ = ()
    name = EventName.APPEND_REFUSED


def append_refused(group_id: str, error: ErrorCode) -> AppendRefused:
    """Make the event of records that the log did not take."""
    return AppendRefused(group_id, cause=f"the log did not take records: {error.name}", error_code=error)


def shorten_texts(event: GroupEvent) -> None:
    """Cut long texts of an event: clients supply them, and events are kept, logged and sent."""
    names, texts_of = _text_names(event)
    texts = texts_of(event)
    if len("".join(filter(None, texts))) <= MAX_TEXT:
        return  # nearly always: none of them is longer than all together
    for name, text in zip(names, texts, strict=True):
        if text and len(text) > MAX_TEXT:
            setattr(event, name, _cut_text(text, MAX_CAUSE if name == "cause" else MAX_TEXT))


def text_bytes(event: GroupEvent) -> int:
    """Bytes that its texts take in memory, without the group id, which the group shares."""
    _, texts_of = _text_names(event)
    texts = texts_of(event)
    together = "".join(filter(None, texts))
    # nearly always ASCII: one look at all of them
    return len(together) if together.isascii() else sum(map(size_of, filter(None, texts)))


def size_of(text: str) -> int:
    """Upper bound of a text's size in bytes."""
    return len(text) if text.isascii() else 4 * len(text)


def _text_names(event: GroupEvent) -> tuple[tuple[str, ...], attrgetter[Any]]:
    kind = type(event).__name__
    known = _text_fields.get(kind)
    if known is None:
        names = tuple(
            field.name
            for field in fields(event)
            if "str" in str(field.type).split(" | ") and field.name != "group"
        )
        known = _text_fields[kind] = names, attrgetter(*names)
    return known


def _cut_text(text: str, length: int) -> str:
    return text if len(text) <= length else text[:length] + "..."


def quote_text(text: str) -> str:
    """Client-supplied text for a cause: control characters escaped, cut to length."""
    text = _cut_text(text, MAX_QUOTED)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def owned_bytes(owned: Owned) -> int:
    """Approximate bytes that an owner's partitions take in memory."""
    return len(owned) if isinstance(owned, bytes) else 8 * sum(map(len, owned.values()))


def count_moves(before: Mapping[str, Owned], after: Mapping[str, Owned]) -> tuple[int, int]:
    """Numbers of partitions: those given to an owner that did not have them, and those that have an owner."""
    total = moved = 0
    for owner, data in after.items():
        owned = _numbers_by_topic(data)
        total += sum(map(len, owned.values()))
        if data != before.get(owner):
            had = _numbers_by_topic(before.get(owner))
            moved += sum(len(numbers.difference(had.get(topic, ()))) for topic, numbers in owned.items())
    return moved, total


def moves_between(before: Mapping[str, Owned], after: Mapping[str, Owned]) -> list[Move]:
    """Every partition whose owner has changed, by topic and partition."""
    changed = [owner for owner in {**before, **after} if before.get(owner) != after.get(owner)]
    old = {partition: owner for owner in changed for partition in _partitions_of(before.get(owner))}
    new = {partition: owner for owner in changed for partition in _partitions_of(after.get(owner))}
    return [
        Move(*partition, old.get(partition), new.get(partition))
        for partition in sorted({**old, **new})
        if old.get(partition) != new.get(partition)
    ]


def shared_moves_between(before: Mapping[str, Owned], after: Mapping[str, Owned]) -> list[Move]:
    """Every partition that an owner got or lost, by topic and partition, where others may have it too."""
    found: list[Move] = []
    for owner in {**before, **after}:
        old, new = {*_partitions_of(before.get(owner))}, {*_partitions_of(after.get(owner))}
        found += [Move(*partition, owner, None) for partition in old - new]
        found += [Move(*partition, None, owner) for partition in new - old]
    return sorted(
        found, key=lambda move: (move.topic, move.partition, move.from_owner or "", move.to_owner or "")
    )


def _partitions_of(owned: Owned | None) -> Iterator[tuple[str, int]]:
    return ((topic, number) for topic, numbers in _numbers_by_topic(owned).items() for number in numbers)


def _numbers_by_topic(owned: Owned | None) -> dict[str, set[int]]:
    if not isinstance(owned, bytes):
        return {topic: set(numbers) for topic, numbers in (owned or {}).items()}
    found: dict[str, set[int]] = {}
    with suppress(MalformedMessageError):
        for topic, number in decode_assignment(owned).partitions:
            found.setdefault(topic, set()).add(number)
    return found
