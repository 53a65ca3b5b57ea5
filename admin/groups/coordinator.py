"""Requests to a group's coordinator about one group."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from ...client import Cluster
from ...client.requests import error_of
from ...protocol import ErrorCode, KafkaError, RequestBody, TopicPartition, UnsupportedVersionError


class WholeResponse(Protocol):
    """A response with an error of the whole request."""

    @property
    def error_code(self) -> int: ...


class GroupRow(Protocol):
    """A group in a response."""

    @property
    def error_code(self) -> int: ...
    @property
    def error_message(self) -> str | None: ...


AnswerT = TypeVar("AnswerT", bound=WholeResponse)
RowT = TypeVar("RowT", bound=GroupRow)
RowT_co = TypeVar("RowT_co", bound=GroupRow, covariant=True)


class GroupRows(Protocol[RowT_co]):
    """A response with a row for each group."""

    @property
    def groups(self) -> Sequence[RowT_co]: ...


class AssignedTopic(Protocol):
    """A topic in the assignment of a member."""

    @property
    def topic_name(self) -> str: ...
    @property
    def partitions(self) -> Sequence[int]: ...


async def ask_coordinator(cluster: Cluster, group: str, body: RequestBody[AnswerT], doing: str) -> AnswerT:
    """The coordinator's response. Raises KafkaError if the whole request is refused."""

    async def attempt() -> AnswerT:
        response = await cluster.request_coordinator(group, body)
        if response.error_code:
            raise KafkaError(response.error_code, getattr(response, "error_message", None) or doing)
        return response

    return await cluster.at_coordinator(group, attempt)


async def describe_one(cluster: Cluster, group: str, body: RequestBody[GroupRows[RowT]]) -> RowT | None:
    """The row of a response that describes one group; None if its coordinator knows no such group, or no such
    type of groups. Raises KafkaError for another error of the group.
    """

    async def attempt() -> RowT | None:
        (row,) = (await cluster.request_coordinator(group, body)).groups
        if row.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
            return None
        if row.error_code:
            raise error_of(row, f"describing group {group!r}")
        return row

    try:
        return await cluster.at_coordinator(group, attempt)
    except UnsupportedVersionError:
        return None


def assigned_partitions(topics: Iterable[AssignedTopic]) -> tuple[TopicPartition, ...]:
    """The partitions of an assignment, in order."""
    return tuple(sorted(TopicPartition(topic.topic_name, n) for topic in topics for n in topic.partitions))
