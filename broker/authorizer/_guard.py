"""A guard stands between the router and a handler: what it is, and the usual kinds.

It takes out of a request what is not allowed, lets the handler carry out the rest, and puts the errors
beside its answer; what may not be seen it takes out of the answer. Handlers know nothing of rules.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from ...protocol import ApiKey, ErrorCode, KafkaError
from .._config_request import ConfigResource, flaw, has_configs, times_named
from .._error_answers import element_errors, mirrored_arrays
from .._requests import Handler, Request, replaced
from ._access import Access
from ._acls import CLUSTER_NAME, ResourceType
from ._authorizer import Authorizer

if TYPE_CHECKING:
    from .._node import Node


@dataclass(slots=True)
class Asked:
    """One request with what its sender may do. ``proceed`` hands what is left of it to the handler."""

    authorizer: Authorizer
    node: Node
    request: Request
    handler: Handler

    def may(self, access: Access, name: str = CLUSTER_NAME) -> bool:
        """Whether this right is there; a no is logged if it is answered with an error."""
        ask = self.authorizer.shows if access.error is None else self.authorizer.allows
        return ask(self.request.context, access.operation, access.resource, name)

    def shows(self, access: Access, name: str = CLUSTER_NAME) -> bool:
        """Whether this right is there, without a word in the log."""
        return self.authorizer.shows(self.request.context, access.operation, access.resource, name)

    def operations(self, resource_type: ResourceType, name: str = CLUSTER_NAME) -> frozenset[int]:
        """All that may be done to a resource."""
        return self.authorizer.operations(self.request.context, resource_type, name)

    def narrow(self, **fields: Any) -> None:
        """Leave only this in fields of the request's body."""
        self.request.body = replaced(self.request.body, **fields)

    async def proceed(self) -> Any:
        return await self.handler(self.node, self.request)


Guard: TypeAlias = Callable[[Asked], Awaitable[Any]]

#: The right that an element of a request asks for and the name it is asked of; None: nothing to be asked.
Wanted: TypeAlias = tuple[Access, str] | None


def refuse(access: Access) -> KafkaError:
    assert access.error is not None, "what is only left out is never refused"
    return KafkaError(access.error, f"{access.operation.name} on {access.resource.name} is not allowed")


async def each(asked: Asked, wanted_of: Callable[[Any], Wanted], *, always: bool = False) -> Any:
    """Carry out the elements of the request's outermost array that are allowed.

    An error of the whole, which comes only where the handler was asked, stands alone.
    """
    request = asked.request
    asking, answering = mirrored_arrays(request)
    allowed: list[Any] = []
    refused: dict[ErrorCode, list[Any]] = {}
    for item in getattr(request.body, asking):
        wanted = wanted_of(item)
        if wanted is None or asked.may(*wanted):
            allowed.append(item)
        else:
            refused.setdefault(refuse(wanted[0]).code, []).append(item)
    if not refused:
        return await asked.proceed()
    asked.narrow(**{asking: allowed})
    answer = await asked.proceed() if allowed or always else request.answer()
    if getattr(answer, "error_code", ErrorCode.NONE):
        return answer
    for code, items in refused.items():
        answer = appended(answer, answering, element_errors(request, items, code))
    return answer


def appended(answer: Any, field: str, more: Iterable[Any]) -> Any:
    """The answer with more elements in an array."""
    return replaced(answer, **{field: [*getattr(answer, field), *more]})


def topic_name(asked: Asked, item: Any, field: str = "name") -> str | None:
    """The name of a topic that is given by name or by id; None for an id that no topic has."""
    name: str | None = getattr(item, field)
    if name:
        return name
    topic_id = getattr(item, "topic_id", None)
    return name if topic_id is None else asked.node.topics.name_of(topic_id)


def topics(access: Access, field: str = "name", *, always: bool = False) -> Guard:
    """A request whose outermost array are topics; ``always``: carried out if none is allowed, too."""

    async def guard(asked: Asked) -> Any:
        def wanted(item: Any) -> Wanted:
            name = topic_name(asked, item, field)
            return None if name is None else (access, name)

        return await each(asked, wanted, always=always)

    return guard


def whole(access: Access, *, field: str | None = None, then: Guard | None = None) -> Guard:
    """A request that is refused as a whole: about the group in ``field``, or about the cluster."""

    async def guard(asked: Asked) -> Any:
        name = CLUSTER_NAME if field is None else getattr(asked.request.body, field) or ""
        if not asked.may(access, name):
            raise refuse(access)
        return await (asked.proceed() if then is None else then(asked))

    return guard


def groups(access: Access, *, refused_once: bool = False) -> Guard:
    """A request whose outermost array are group ids; with ``refused_once`` each is refused once."""

    async def guard(asked: Asked) -> Any:
        asking, _ = mirrored_arrays(asked.request)
        named = getattr(asked.request.body, asking)
        if refused_once and len(set(named)) < len(named):
            allowed = [one for one in named if asked.shows(access, one)]
            asked.narrow(**{asking: [*allowed, *(set(named) - set(allowed))]})
        return await each(asked, lambda group_id: (access, group_id))

    return guard


def configs(topic: Access, cluster: Access, group: Access) -> Guard:
    """A request whose outermost array are resources with configs; what cannot be meant is the handler's."""

    async def guard(asked: Asked) -> Any:
        request = asked.request
        altering = request.api.key != ApiKey.DESCRIBE_CONFIGS
        times = times_named(request.body.resources)
        if not altering and not all(map(has_configs, request.body.resources)):
            return await asked.proceed()

        def wanted(item: Any) -> Wanted:
            if altering and flaw(item, times):
                return None
            if item.resource_type == ConfigResource.TOPIC:
                return topic, item.resource_name
            if item.resource_type == ConfigResource.GROUP:
                return group, item.resource_name
            return cluster, CLUSTER_NAME

        return await each(asked, wanted)

    return guard
