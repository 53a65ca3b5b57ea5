"""A right that an API asks for: operation, kind of resource, and the error where it is not there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ...protocol import ErrorCode
from ._acls import Operation, ResourceType


@dataclass(frozen=True, slots=True)
class Access:
    """One right that an API asks for.

    ``words`` name what it is asked for: a request about many topics is carried out for those that are
    allowed, and answered with the error for the rest. ``error`` None leaves things out of the answer: nothing
    is told of them.
    """

    operation: Operation
    resource: ResourceType
    error: ErrorCode | None
    words: str


_ERRORS: Final = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


def right(operation: Operation, resource: ResourceType, words: str) -> Access:
    """A right without which the usual error of its kind of resource is answered."""
    return Access(operation, resource, _ERRORS[resource], words)
