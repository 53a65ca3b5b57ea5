"""A request on its way to a handler, and the shape of a handler."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any

from ..protocol import Api, ApiKey, RequestContext, response_class


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
        """A response body of this request's API and version; fields not named have the schema's defaults."""
        return self.part()(**fields)

    def part(self, *names: str) -> Callable[..., Any]:
        """A maker of the nested struct at ``names`` inside the response, at this request's version."""
        known, defaults = _fields(self.api.key, self.version, names)

        def make(**fields: Any) -> SimpleNamespace:
            if not known.issuperset(fields):
                where = ".".join((self.api.name, *names))
                raise TypeError(
                    f"{where} has no field {min(fields.keys() - known)!r}: name one of its schema"
                )
            return SimpleNamespace(**{**defaults, **fields})

        return make


@cache
def _fields(key: int, version: int, names: tuple[str, ...]) -> tuple[frozenset[str], dict[str, Any]]:
    """The fields of a struct of a response, and the defaults of those that ``version`` has.

    The encoder takes any object with these attributes; kafka-python's own cost half as much as an append.
    """
    made: Any = response_class(key)
    for name in names:
        made = getattr(made, name)
    fields = made._struct._fields
    known = frozenset(field.name for field in fields)
    return known, {field.name: field.default for field in fields if field.for_version_q(version)}


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
