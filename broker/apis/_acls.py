"""What the three APIs of access rules share: numbers on the wire, and the authorizer."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, TypeVar

from ...protocol import ErrorCode, KafkaError, MalformedMessageError
from ..authorizer import AclFilter, Authorizer, Operation, PatternType, Permission, ResourceType

if TYPE_CHECKING:
    from .._node import Node

NumberT = TypeVar("NumberT", bound=IntEnum)


def authorizer_of(node: Node) -> Authorizer:
    """The broker's authorizer. Raises KafkaError SECURITY_DISABLED where there are no access rules."""
    if node.authorizer is None:
        raise KafkaError(
            ErrorCode.SECURITY_DISABLED,
            "this broker keeps no access rules: start it with authorizer.class.name",
        )
    return node.authorizer


def number(kind: type[NumberT], value: int) -> NumberT:
    """A number of the wire. One that is not known here is UNKNOWN; who sends UNKNOWN itself is no client.

    Raises MalformedMessageError.
    """
    if value == 0:
        raise MalformedMessageError(f"{kind.__name__} is UNKNOWN (0)")
    try:
        return kind(value)
    except ValueError:
        return kind(0)


def is_known(wanted: AclFilter) -> bool:
    """Whether all numbers of the filter mean something here."""
    return 0 not in (wanted.resource_type, wanted.pattern_type, wanted.operation, wanted.permission)


def filter_of(item: Any) -> AclFilter:
    """The filter in a DescribeAcls, or in an element of a DeleteAcls."""
    return AclFilter(
        number(ResourceType, item.resource_type_filter),
        item.resource_name_filter,
        number(PatternType, item.pattern_type_filter),
        item.principal_filter,
        item.host_filter,
        number(Operation, item.operation),
        number(Permission, item.permission_type),
    )
