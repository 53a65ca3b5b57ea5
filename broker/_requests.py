"""A request on its way to a handler, and the shape of a handler."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeVar

from ..protocol import Api, ApiKey, RequestContext, messages_of, response_type

BodyT = TypeVar("BodyT")


@dataclass(slots=True)
class Request:
    """One decoded request. ``endpoint`` is the host and port that this client is to be told."""

    api: Api
    version: int
    body: Any
    context: RequestContext
    endpoint: tuple[str, int]
    #: How long its client is to wait for what it did, in seconds; the quotas of time and bytes come to it.
    delay_s: float = 0.0

    def answer(self, **fields: Any) -> Any:
        """A response body of this request's API; fields not named have the schema's defaults."""
        return response_type(self.api.key)(**fields)

    def part(self, name: str) -> Callable[..., Any]:
        """The struct of this name inside the response."""
        return _response_struct(self.api.key, name)


@cache
def _response_struct(key: int, name: str) -> Callable[..., Any]:
    module = messages_of(key)
    # a struct whose name the request has for another thing is told apart
    found: Callable[..., Any] = getattr(module, f"Response{name}", None) or getattr(module, name)
    return found


def replaced(body: BodyT, **fields: Any) -> BodyT:
    """The same body with other values in these fields."""
    if isinstance(body, tuple):
        return body._replace(**fields)  # type: ignore[attr-defined, no-any-return]
    return replace(body, **fields)  # type: ignore[type-var]


#: How frames begin of requests that may be answered in minutes.
MAY_PARK = frozenset(key.to_bytes(2, "big") for key in (ApiKey.FETCH, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP))

#: Requests that change nothing: without a reader for the answer there is nothing to do.
ONLY_ANSWERED = frozenset(
    {
        ApiKey.FETCH,
        ApiKey.LIST_OFFSETS,
        ApiKey.METADATA,
        ApiKey.OFFSET_FETCH,
        ApiKey.FIND_COORDINATOR,
        ApiKey.DESCRIBE_GROUPS,
        ApiKey.LIST_GROUPS,
        ApiKey.API_VERSIONS,
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.DESCRIBE_CLUSTER,
    }
)

#: Requests that go on to their end though their client has left: they may take many turns, and a producer
#: with acks=0 sends and closes.
CARRIED_OUT = frozenset({ApiKey.PRODUCE, ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS})

#: Answers a request with a response body, given the Node; None answers nothing (Produce with acks=0). May
#: raise KafkaError.
Handler = Callable[[Any, Request], Awaitable[Any]]
