"""Requests to a group's coordinator that are refused as a whole or not at all."""

from __future__ import annotations

from typing import Protocol, TypeVar

from ..client import Cluster
from ..protocol import KafkaError, RequestBody


class Answer(Protocol):
    """A response with an error of the whole request."""

    @property
    def error_code(self) -> int: ...


AnswerT = TypeVar("AnswerT", bound=Answer)


async def ask_coordinator(cluster: Cluster, group: str, body: RequestBody[AnswerT], doing: str) -> AnswerT:
    """The coordinator's response. Raises KafkaError if the whole request is refused."""

    async def attempt() -> AnswerT:
        response = await cluster.request_coordinator(group, body)
        if response.error_code:
            raise KafkaError(response.error_code, getattr(response, "error_message", None) or doing)
        return response

    return await cluster.at_coordinator(group, attempt)
