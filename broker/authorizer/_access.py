"""A right that an API requires: operation, type of resource, and the error without it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ...protocol import ErrorCode
from ._acls import Operation, ResourceType


@dataclass(frozen=True, slots=True)
class Access:
    """One right that an API requires.

    ``words`` name the resources, for docs/acls.md. A request about many topics is carried out for the allowed
    ones, and answered with ``error`` for the others. ``error`` None: the others are left out of the response.
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
    """A right whose lack has the usual error of its type of resource."""
    return Access(operation, resource, _ERRORS[resource], words)
