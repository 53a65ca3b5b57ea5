"""The usual guards, which stand between the router and a handler if there are access rules.

A guard removes the parts of a request that are not allowed, lets the handler carry out the rest, and adds
errors to the response. It also removes what the sender may not see. A handler knows no rules, unless it looks
up what the request does not name: then it asks ``Request.allows``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from ...protocol import ErrorCode
from ..authorizer import CLUSTER_NAME, Access, ResourceType
from ..event_loop.time_slices import in_slices
from ..node import Node
from ._api import AnyRequest, Guard, T, refusal_error, replaced

MemberT = TypeVar("MemberT")
MemberT_co = TypeVar("MemberT_co", covariant=True)

#: Apache Kafka's words for a group that is not described.
_HIDDEN_TOPICS: Final = "The group has described topic(s) that the client is not authorized to describe."

#: The right that an element of a request needs, and the resource's name; None: no right is needed.
Wanted: TypeAlias = tuple[Access, str] | None


#: Topics of a request that its sender may not see; None if it names none.
_Hidden: TypeAlias = list[object] | None


class _GroupOfTopics(Protocol):
    """A group in a request or a response for offsets."""

    @property
    def topics(self) -> Sequence[object] | None: ...


class _DescribedGroup(Protocol[MemberT_co]):
    """A group with its members, in the response of either type of groups."""

    @property
    def group_id(self) -> str: ...

    @property
    def error_code(self) -> int: ...

    @property
    def members(self) -> Sequence[MemberT_co]: ...


async def each(
    node: Node, request: AnyRequest, wanted_of: Callable[[Any], Wanted], *, always: bool = False
) -> Any:
    """Carry out the allowed elements of the request's outermost array.

    An error of the whole request, which only a handler returns, is returned alone.
    """
    asking, answering = request.api.errors.arrays(request.version)
    allowed: list[object] = []
    refused: dict[ErrorCode, list[object]] = {}
    async for item in in_slices(getattr(request.body, asking)):
        wanted = wanted_of(item)
        if wanted is None or request.allows(*wanted):
            allowed.append(item)
        else:
            refused.setdefault(refusal_error(wanted[0]).code, []).append(item)
    if not refused:
        return await request.proceed(node)
    request.narrow(**{asking: allowed})
    answer = await request.proceed(node) if allowed or always else request.answer()
    if getattr(answer, "error_code", ErrorCode.NONE):
        return answer
    for code, items in refused.items():
        answer = append_elements(answer, answering, request.element_errors(items, code))
    return answer


def append_elements(answer: T, field: str, more: Iterable[object]) -> T:
    """Return the answer with more elements at the end of the array in ``field``."""
    return replaced(answer, **{field: [*getattr(answer, field), *more]})


def topic_name(node: Node, item: object, field: str = "name") -> str | None:
    """The name of a topic that is given by name or by id; None for an id that no topic has."""
    name: str | None = getattr(item, field)
    if name:
        return name
    topic_id = getattr(item, "topic_id", None)
    return name if topic_id is None else node.topics.name_of(topic_id)


async def each_topic(
    node: Node, request: AnyRequest, access: Access, field: str = "name", *, always: bool = False
) -> object:
    """Carry out a request whose outermost array has topics; ``always``: even if none is allowed."""

    def wanted(item: object) -> Wanted:
        name = topic_name(node, item, field)
        return None if name is None else (access, name)

    return await each(node, request, wanted, always=always)


def topics(access: Access, field: str = "name", *, always: bool = False) -> Guard:
    """Guard of a request whose outermost array has topics, as ``each_topic`` carries it out."""
    return Guard((access,), lambda node, request: each_topic(node, request, access, field, always=always))


def whole(access: Access, *, field: str | None = None, then: Guard | None = None) -> Guard:
    """Guard of a request that is refused as a whole: about the group in ``field``, or about the cluster."""

    async def guard(node: Node, request: AnyRequest) -> object:
        name = CLUSTER_NAME if field is None else getattr(request.body, field) or ""
        request.require(access, name)
        return await (request.proceed(node) if then is None else then.admit(node, request))

    return Guard((access,) if then is None else (access, *then.access), guard)


async def each_group(node: Node, request: AnyRequest, access: Access, *, refused_once: bool = False) -> Any:
    """Carry out a request whose outermost array has group ids; with ``refused_once`` each is refused once."""
    asking, _ = request.api.errors.arrays(request.version)
    named = getattr(request.body, asking)
    if refused_once and len(set(named)) < len(named):
        allowed = [one async for one in in_slices(named) if request.shows(access, one)]
        request.narrow(**{asking: [*allowed, *(set(named) - set(allowed))]})
    return await each(node, request, lambda group_id: (access, group_id))


def groups(access: Access, *, refused_once: bool = False) -> Guard:
    """Guard of a request whose outermost array has group ids, as ``each_group`` carries it out."""
    return Guard(
        (access,), lambda node, request: each_group(node, request, access, refused_once=refused_once)
    )


def member_heartbeat(group_right: Access, topic_right: Access) -> Guard:
    """Guard of a heartbeat, which is refused for its group, or for the first topic that the member subscribes
    to and may not describe.
    """

    async def guard(node: Node, request: AnyRequest) -> object:
        request.require(group_right, request.body.group_id)
        for name in request.body.subscribed_topic_names or ():
            request.require(topic_right, name)
        return await request.proceed(node)

    return Guard((group_right, topic_right), guard)


async def only_shown(
    request: AnyRequest, items: Iterable[T], access: Access, name_of: Callable[[T], str]
) -> list[T]:
    """The items whose names the sender may know."""
    return [item async for item in in_slices(items) if request.shows(access, name_of(item))]


def described_groups(
    group_right: Access, topic_right: Access, topics_of: Callable[[MemberT], Iterable[str]]
) -> Guard:
    """Guard of a request that describes groups with their members: a group is refused if ``topics_of`` any
    of its members are hidden from the sender.
    """

    async def guard(node: Node, request: AnyRequest) -> object:
        answer = await each_group(node, request, group_right)
        return replaced(answer, groups=[await described(request, group) for group in answer.groups])

    async def described(request: AnyRequest, group: _DescribedGroup[MemberT]) -> _DescribedGroup[MemberT]:
        if group.error_code:
            return group
        names: set[str] = set()
        async for member in in_slices(group.members):
            names.update(topics_of(member))
        if not all(request.shows(topic_right, name) for name in names):
            (hidden,) = request.element_errors([group.group_id], ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            return replaced(hidden, error_message=_HIDDEN_TOPICS)
        if not request.body.include_authorized_operations:
            return group
        return with_operations(request, group, ResourceType.GROUP, group.group_id, "authorized_operations")

    return Guard((group_right, topic_right), guard)


@dataclass(frozen=True, slots=True)
class GroupOffsetsGuard:
    """Checks a request for offsets of groups, which names the topics of a group, or none and means all.

    A hidden topic that is named is answered with ``refuse(topic)``; of all topics the hidden are left out.
    """

    group: Access
    topic: Access
    #: Field of a topic with its name.
    field: str
    refuse: Callable[[Any], object]

    async def admit_one(self, node: Node, request: AnyRequest) -> object:
        """Carry out a request about one group."""
        request.require(self.group, request.body.group_id)
        request.body, hidden = await self._hide_topics(node, request, request.body)
        return await self._show_topics(node, request, await request.proceed(node), hidden)

    async def admit_many(self, node: Node, request: AnyRequest) -> object:
        """Carry out a request about many groups."""
        allowed: list[tuple[_GroupOfTopics, _Hidden]] = []
        refused: list[object] = []
        async for group in in_slices(request.body.groups):
            if request.allows(self.group, group.group_id):
                allowed.append(await self._hide_topics(node, request, group))
            else:
                refused.append(group)
        request.narrow(groups=[group for group, _ in allowed])
        answer = await request.proceed(node) if allowed else request.answer()
        # matched by position, not by id: a group may be in the request twice, each time with other topics
        pairs = zip(answer.groups, allowed, strict=True)
        told = [
            await self._show_topics(node, request, group, hidden)
            async for group, (_, hidden) in in_slices(pairs)
        ]
        errors = request.element_errors(refused, refusal_error(self.group).code)
        return replaced(answer, groups=[*told, *errors])

    async def _hide_topics(
        self, node: Node, request: AnyRequest, group: _GroupOfTopics
    ) -> tuple[_GroupOfTopics, _Hidden]:
        """A group without its hidden topics, and these; None for them if the request means all topics."""
        if group.topics is None:
            return group, None
        hidden: list[object] = []
        seen: list[object] = []
        async for topic in in_slices(group.topics):
            name = topic_name(node, topic, self.field)
            (seen if name is None or request.allows(self.topic, name) else hidden).append(topic)
        return replaced(group, topics=seen), hidden

    async def _show_topics(
        self, node: Node, request: AnyRequest, group: _GroupOfTopics, hidden: _Hidden
    ) -> object:
        """A group of the response as the sender may see it."""
        if getattr(group, "error_code", ErrorCode.NONE):
            return group
        if hidden is not None:
            return append_elements(group, "topics", map(self.refuse, hidden))
        shown = await only_shown(
            request, group.topics or (), self.topic, lambda topic: topic_name(node, topic, self.field) or ""
        )
        return replaced(group, topics=shown)


def by_handler(*access: Access) -> Guard:
    """Guard of a request whose handler asks for these rights, where it looks up what they are about."""
    return Guard(access, lambda node, request: request.proceed(node))


#: A request that needs no right: it is how a client authenticates.
OPEN_TO_ALL: Final = by_handler()


def with_operations(request: AnyRequest, item: T, kind: ResourceType, name: str, field: str) -> T:
    """A topic or group of a response with its allowed operations."""
    return replaced(item, **{field: request.operations(kind, name)})
