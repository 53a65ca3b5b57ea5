"""Helpers that the APIs of transactions share."""

from __future__ import annotations

from ...protocol import ErrorCode
from ..authorizer import Operation, ResourceType, right
from ._api import AnyRequest

#: The right to run transactions under an id.
TRANSACTION_RIGHT = right(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "the transactional id")


def fenced_name(request: AnyRequest, error: ErrorCode, known_from: int) -> ErrorCode:
    """The error as the request's version knows it: PRODUCER_FENCED exists from ``known_from`` on."""
    if error is ErrorCode.PRODUCER_FENCED and request.version < known_from:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error


def written_name(error: ErrorCode, *, knows_abortable: bool) -> ErrorCode:
    """The error of a write in a transaction; old versions do not know TRANSACTION_ABORTABLE."""
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error is ErrorCode.TRANSACTION_ABORTABLE and not knows_abortable:
        return ErrorCode.INVALID_TXN_STATE
    return error
