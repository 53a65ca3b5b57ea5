"""A request on its way to a handler, and the shape of a handler."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..protocol import Api, RequestContext, response_class

if TYPE_CHECKING:
    from ._node import Node


@dataclass(slots=True)
class Request:
    """One decoded request. ``endpoint`` is the host and port that this client is to be told."""

    api: Api
    version: int
    body: Any
    context: RequestContext
    endpoint: tuple[str, int]

    def answer(self, **fields: Any) -> Any:
        """A response body of this request's API and version; fields not named have the schema's defaults."""
        return response_class(self.api.key)(version=self.version, **fields)

    def part(self, *names: str) -> Callable[..., Any]:
        """A maker of the nested struct at ``names`` inside the response, at this request's version."""
        made: Any = response_class(self.api.key)
        for name in names:
            made = getattr(made, name)
        version = self.version
        return lambda **fields: made(version=version, **fields)


#: Answers a request with a response body; None answers nothing (Produce with acks=0). May raise KafkaError.
Handler = Callable[["Node", Request], Awaitable[Any]]
