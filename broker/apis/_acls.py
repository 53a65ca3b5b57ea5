"""Shared parts of the three APIs of access rules: numbers on the wire, and the authorizer."""

from __future__ import annotations

from enum import IntEnum
from typing import TypeVar

from ...protocol import ErrorCode, KafkaError, MalformedMessageError
from ..authorizer import AclBindingFilter, Authorizer, Operation, PatternType, Permission, ResourceType
from ..node import Node

NumberT = TypeVar("NumberT", bound=IntEnum)
#: A rule has every text, a filter may leave some out.
TextT = TypeVar("TextT", str, str | None)


def authorizer_of(node: Node) -> Authorizer:
    """The broker's authorizer. Raises KafkaError SECURITY_DISABLED without access rules."""
    if node.authorizer is None:
        raise KafkaError(
            ErrorCode.SECURITY_DISABLED,
            "this broker keeps no access rules: start it with authorizer.class.name",
        )
    return node.authorizer


def _number_on_wire(kind: type[NumberT], value: int) -> NumberT:
    """A number on the wire; UNKNOWN for one not known here. Raises MalformedMessageError for UNKNOWN."""
    if value == 0:
        raise MalformedMessageError(f"{kind.__name__} is UNKNOWN (0)")
    try:
        return kind(value)
    except ValueError:
        return kind(0)


def is_known(wanted: AclBindingFilter) -> bool:
    """Return whether all numbers of the filter are known."""
    return 0 not in (wanted.resource_type, wanted.pattern_type, wanted.operation, wanted.permission)


def typed_fields(
    item: tuple[int, TextT, int, TextT, TextT, int, int],
) -> tuple[ResourceType, TextT, PatternType, TextT, TextT, Operation, Permission]:
    """The fields of a rule or filter on the wire, in the order of ``Acl``. Raises MalformedMessageError."""
    resource, name, pattern, principal, host, operation, permission = item
    return (
        _number_on_wire(ResourceType, resource),
        name,
        _number_on_wire(PatternType, pattern),
        principal,
        host,
        _number_on_wire(Operation, operation),
        _number_on_wire(Permission, permission),
    )
