"""An API as this broker serves it, one request of it, and that request with the rights of its sender."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ...protocol import (
    APIS,
    ApiKey,
    ErrorCode,
    RequestContext,
    UnsupportedVersionError,
    messages_of,
    response_type,
)
from ..authorizer import CLUSTER_NAME, Access, Authorizer, ResourceType
from ._errors import ErrorShape

if TYPE_CHECKING:
    from .._node import Node

BodyT = TypeVar("BodyT")


def replaced(body: BodyT, **fields: Any) -> BodyT:
    """The same body with other values in these fields."""
    if isinstance(body, tuple):
        return body._replace(**fields)  # type: ignore[attr-defined, no-any-return]
    return replace(body, **fields)  # type: ignore[type-var]


def _answered(_body: Any) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedApi:
    """Everything that the broker knows of one API."""

    key: ApiKey
    #: First and last version that is served.
    versions: tuple[int, int]
    #: First version that clients are told; None: the first that is served.
    told_from: int | None = None
    #: Answers a request with a response body, None with nothing. May raise KafkaError.
    handler: Handler
    #: Rights that ``guard`` asks for, in its order; docs/acls.md shows them.
    access: tuple[Access, ...]
    #: Stands in front of the handler where there are access rules.
    guard: Guard
    errors: ErrorShape
    #: Whether this body's request is answered at all: a Produce with acks=0 is not.
    is_answered: Callable[[Any], bool] = _answered
    #: The answer may take minutes.
    parks: bool = False
    #: The coordinator answers it without a task of its own: requests that members send most.
    without_task: bool = False
    #: It changes nothing: not carried out for a client that has left.
    reads_only: bool = False
    #: It goes on to its end though its client has left: it may take many turns, and a producer with acks=0
    #: sends and closes.
    carried_out: bool = False
    #: Its bytes count towards the quota of producers.
    produces: bool = False
    #: Its answer's bytes count towards the quota of consumers; records are sent from their files.
    fetches: bool = False
    #: Version from which clients know THROTTLING_QUOTA_EXCEEDED; older ones are delayed (KIP-599). None: it
    #: makes and deletes no partitions.
    refused_over_quota_from: int | None = None

    @property
    def name(self) -> str:
        return APIS[self.key].name

    @property
    def private(self) -> bool:
        """Whether it is kohort's own: offered as a feature, not by its number."""
        return APIS[self.key].private

    def serves(self, version: int) -> bool:
        """Return whether this version is served."""
        return self.versions[0] <= version <= self.versions[1]

    def require(self, version: int) -> None:
        """Raise UnsupportedVersionError unless this version is served."""
        if not self.serves(version):
            first, last = self.versions
            raise UnsupportedVersionError(
                f"{self.name} v{version} is not spoken here: v{first} to v{last} are"
            )


@dataclass(slots=True)
class Request:
    """One decoded request. ``endpoint`` is the host and port that this client is to be told."""

    api: ServedApi
    version: int
    body: Any
    context: RequestContext
    endpoint: tuple[str, int]
    #: The APIs that the broker serves, by number.
    apis: Mapping[int, ServedApi] = field(default_factory=dict)
    #: Seconds that its client is to wait for what it did; the quotas of time and bytes come to it.
    delay_s: float = 0.0

    @property
    def produces(self) -> bool:
        """Whether its bytes count towards the quota of producers."""
        return self.api.produces

    @property
    def knows_quota_error(self) -> bool:
        """Whether its client knows THROTTLING_QUOTA_EXCEEDED; older ones are delayed instead (KIP-599)."""
        known_from = self.api.refused_over_quota_from
        return known_from is not None and self.version >= known_from

    def answer(self, **fields: Any) -> Any:
        """A response body of this request's API; fields not named have the schema's defaults."""
        return response_type(self.api.key)(**fields)

    def part(self, name: str) -> Callable[..., Any]:
        """The struct of this name inside the response."""
        return _response_struct(self.api.key, name)

    def error_answer(self, code: ErrorCode) -> Any:
        """The response body that says ``code`` to all of it; None if it is not answered."""
        if not self.api.is_answered(self.body):
            return None
        return self.api.errors.answer(self.api.key, self.version, self.body, code)

    def element_errors(self, items: Iterable[Any], code: ErrorCode) -> list[Any]:
        """Elements for the outermost array of the answer, with ``code`` for these of the request."""
        return self.api.errors.elements(self.api.key, self.version, items, code)


@dataclass(slots=True)
class Asked:
    """A request with the rights of its sender. ``proceed`` hands what is left of it to its handler."""

    authorizer: Authorizer
    node: Node
    request: Request

    def may(self, access: Access, name: str = CLUSTER_NAME) -> bool:
        """Return whether this right is there; a no is logged if it is answered with an error."""
        ask = self.authorizer.shows if access.error is None else self.authorizer.allows
        return ask(self.request.context, access.operation, access.resource, name)

    def shows(self, access: Access, name: str = CLUSTER_NAME) -> bool:
        """Return whether this right is there, without a word in the log."""
        return self.authorizer.shows(self.request.context, access.operation, access.resource, name)

    def operations(self, resource_type: ResourceType, name: str = CLUSTER_NAME) -> frozenset[int]:
        """Numbers of all operations on a resource that are allowed."""
        return self.authorizer.operations(self.request.context, resource_type, name)

    def narrow(self, **fields: Any) -> None:
        """Leave only this in fields of the request's body."""
        self.request.body = replaced(self.request.body, **fields)

    async def proceed(self) -> Any:
        return await self.request.api.handler(self.node, self.request)


Handler: TypeAlias = "Callable[[Node, Request], Awaitable[Any]]"
Guard: TypeAlias = Callable[[Asked], Awaitable[Any]]


@cache
def _response_struct(key: int, name: str) -> Callable[..., Any]:
    module = messages_of(key)
    # a struct whose name the request has for another thing is told apart
    found: Callable[..., Any] = getattr(module, f"Response{name}", None) or getattr(module, name)
    return found
