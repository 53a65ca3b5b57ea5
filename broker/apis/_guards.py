"""The usual guards, which stand between the router and a handler if there are access rules.

A guard removes the parts of a request that are not allowed, lets the handler carry out the rest, and adds
errors to the response. It also removes what the sender may not see. Handlers know nothing of rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from ...protocol import ErrorCode, KafkaError, operation_bits
from ..authorizer import CLUSTER_NAME, Access, Operation, ResourceType
from ..event_loop.time_slices import in_slices
from ._api import AnswerT, AnyAsked, Asked, BodyT, Guard, T, replaced

MemberT = TypeVar("MemberT")
MemberT_co = TypeVar("MemberT_co", covariant=True)

#: Apache Kafka's words for a group that is not described.
_HIDDEN_TOPICS: Final = "The group has described topic(s) that the client is not authorized to describe."

#: The right that an element of a request needs, and the resource's name; None: no right is needed.
Wanted: TypeAlias = tuple[Access, str] | None

#: The right to see, in Metadata and DescribeCluster, the allowed operations on the cluster.
CLUSTER_OPERATIONS_RIGHT: Final = Access(
    Operation.DESCRIBE,
    ResourceType.CLUSTER,
    None,
    "the authorized operations of the cluster; without it none is told",
)


class _DescribedGroup(Protocol[MemberT_co]):
    """A group with its members, in the response of either type of groups."""

    @property
    def group_id(self) -> str: ...

    @property
    def error_code(self) -> int: ...

    @property
    def members(self) -> Sequence[MemberT_co]: ...


def refusal_error(access: Access) -> KafkaError:
    """Return the error for a missing right."""
    assert access.error is not None, "what is only left out is never refused"
    return KafkaError(access.error, f"{access.operation.name} on {access.resource.name} is not allowed")


async def each(
    asked: Asked[BodyT, AnswerT], wanted_of: Callable[[Any], Wanted], *, always: bool = False
) -> AnswerT:
    """Carry out the allowed elements of the request's outermost array.

    An error of the whole request, which only a handler returns, is returned alone.
    """
    request = asked.request
    asking, answering = request.api.errors.arrays(request.version)
    allowed: list[object] = []
    refused: dict[ErrorCode, list[object]] = {}
    async for item in in_slices(getattr(request.body, asking)):
        wanted = wanted_of(item)
        if wanted is None or asked.may(*wanted):
            allowed.append(item)
        else:
            refused.setdefault(refusal_error(wanted[0]).code, []).append(item)
    if not refused:
        return await asked.proceed()
    asked.narrow(**{asking: allowed})
    answer: AnswerT = await asked.proceed() if allowed or always else request.answer()
    if getattr(answer, "error_code", ErrorCode.NONE):
        return answer
    for code, items in refused.items():
        answer = append_elements(answer, answering, request.element_errors(items, code))
    return answer


def append_elements(answer: T, field: str, more: Iterable[object]) -> T:
    """Return the answer with more elements at the end of the array in ``field``."""
    return replaced(answer, **{field: [*getattr(answer, field), *more]})


def topic_name(asked: AnyAsked, item: object, field: str = "name") -> str | None:
    """The name of a topic that is given by name or by id; None for an id that no topic has."""
    name: str | None = getattr(item, field)
    if name:
        return name
    topic_id = getattr(item, "topic_id", None)
    return name if topic_id is None else asked.node.topics.name_of(topic_id)


async def each_topic(
    asked: Asked[BodyT, AnswerT], access: Access, field: str = "name", *, always: bool = False
) -> AnswerT:
    """Carry out a request whose outermost array has topics; ``always``: even if none is allowed."""

    def wanted(item: object) -> Wanted:
        name = topic_name(asked, item, field)
        return None if name is None else (access, name)

    return await each(asked, wanted, always=always)


def topics(access: Access, field: str = "name", *, always: bool = False) -> Guard:
    """Guard of a request whose outermost array has topics, as ``each_topic`` carries it out."""
    return Guard((access,), lambda asked: each_topic(asked, access, field, always=always))


def whole(access: Access, *, field: str | None = None, then: Guard | None = None) -> Guard:
    """Guard of a request that is refused as a whole: about the group in ``field``, or about the cluster."""

    async def guard(asked: AnyAsked) -> object:
        name = CLUSTER_NAME if field is None else getattr(asked.request.body, field) or ""
        if not asked.may(access, name):
            raise refusal_error(access)
        return await (asked.proceed() if then is None else then.admit(asked))

    return Guard((access,) if then is None else (access, *then.access), guard)


async def each_group(asked: Asked[BodyT, AnswerT], access: Access, *, refused_once: bool = False) -> AnswerT:
    """Carry out a request whose outermost array has group ids; with ``refused_once`` each is refused once."""
    asking, _ = asked.request.api.errors.arrays(asked.request.version)
    named = getattr(asked.request.body, asking)
    if refused_once and len(set(named)) < len(named):
        allowed = [one async for one in in_slices(named) if asked.shows(access, one)]
        asked.narrow(**{asking: [*allowed, *(set(named) - set(allowed))]})
    return await each(asked, lambda group_id: (access, group_id))


def groups(access: Access, *, refused_once: bool = False) -> Guard:
    """Guard of a request whose outermost array has group ids, as ``each_group`` carries it out."""
    return Guard((access,), lambda asked: each_group(asked, access, refused_once=refused_once))


def described_groups(
    group_right: Access, topic_right: Access, topics_of: Callable[[MemberT], Iterable[str]]
) -> Guard:
    """Guard of a request that describes groups with their members: a group is refused if ``topics_of`` any
    of its members are hidden from the sender.
    """

    async def guard(asked: AnyAsked) -> object:
        answer = await each_group(asked, group_right)
        return replaced(answer, groups=[await described(asked, group) for group in answer.groups])

    async def described(asked: AnyAsked, group: _DescribedGroup[MemberT]) -> _DescribedGroup[MemberT]:
        if group.error_code:
            return group
        names: set[str] = set()
        async for member in in_slices(group.members):
            names.update(topics_of(member))
        if not all(asked.shows(topic_right, name) for name in names):
            (hidden,) = asked.request.element_errors([group.group_id], ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            return replaced(hidden, error_message=_HIDDEN_TOPICS)
        if not asked.request.body.include_authorized_operations:
            return group
        return with_operations(asked, group, ResourceType.GROUP, group.group_id, "authorized_operations")

    return Guard((group_right, topic_right), guard)


#: A request that needs no right: it is how a client authenticates.
OPEN_TO_ALL: Final = Guard((), Asked.proceed)


def with_operations(asked: AnyAsked, item: T, kind: ResourceType, name: str, field: str) -> T:
    """A topic or group of a response with its allowed operations."""
    return replaced(item, **{field: operation_bits(asked.operations(kind, name))})


def with_cluster_operations(asked: AnyAsked, answer: T) -> T:
    """The response to Metadata or DescribeCluster with the allowed operations on the cluster, if
    requested.
    """
    if asked.request.body.include_cluster_authorized_operations:
        operations = asked.operations(ResourceType.CLUSTER) if asked.shows(CLUSTER_OPERATIONS_RIGHT) else ()
        return replaced(answer, cluster_authorized_operations=operation_bits(operations))
    return answer
