"""Errors that say what to do: the broker's number and text, and a piece of advice."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, ParamSpec, TypeVar

from ..protocol import ErrorCode, KafkaError


class Outcome(NamedTuple):
    """Result for one group or partition: ``error_code`` 0 and no ``error``, or both."""

    error_code: int
    error: str | None

    @property
    def ok(self) -> bool:
        """Whether the request succeeded for this item."""
        return self.error_code == 0


P = ParamSpec("P")
T = TypeVar("T")

_NOT_READY: Final = "the coordinator was not ready in time: try again, or give more time"
_CONFIGS: Final = "its configs: DESCRIBE_CONFIGS, ALTER_CONFIGS"

ADVICE: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "check the name of the topic and the number of the partition",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: _NOT_READY,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: _NOT_READY,
    ErrorCode.NOT_COORDINATOR: _NOT_READY,
    ErrorCode.INVALID_TOPIC_EXCEPTION: "a name has letters, digits, '.', '_' and '-', at most 249 of them",
    ErrorCode.INVALID_GROUP_ID: "give the id of a group, which is not empty",
    ErrorCode.UNKNOWN_MEMBER_ID: "members have joined meanwhile: stop them, then try again",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "ask for the right to DESCRIBE (to read: READ; to change: WRITE, "
    f"CREATE, ALTER, DELETE; {_CONFIGS}) the topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "ask for the right to DESCRIBE (to change: READ, DELETE; "
    f"{_CONFIGS}) the group",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "ask for the right to DESCRIBE (to change: ALTER; "
    "configs and quotas: DESCRIBE_CONFIGS, ALTER_CONFIGS) the cluster",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "ask for the right to DESCRIBE (to write: WRITE) the "
    "transactional id",
    ErrorCode.SECURITY_DISABLED: "the brokers have no access rules until authorizer.class.name is set",
    ErrorCode.NON_EMPTY_GROUP: "stop its members first; `kohort groups describe` shows who they are",
    ErrorCode.GROUP_ID_NOT_FOUND: "`kohort groups list` shows which groups there are",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "members of the group read this topic: stop them first",
}


def advise_error(code: int, message: str) -> KafkaError:
    """KafkaError with this number; its text ends with advice."""
    error = KafkaError(code, message)
    advice = ADVICE.get(error.code)
    return KafkaError(code, f"{message}; {advice}" if message and advice else message or advice or "")


def explain_error(error: KafkaError) -> str:
    """The error, with advice unless its text has some."""
    advice = None if "; " in str(error) else ADVICE.get(error.code)
    return f"{error}; {advice}" if advice else str(error)


def outcome_of(code: int, message: str = "") -> Outcome:
    """The outcome for an error number; 0 is none."""
    return Outcome(int(code), str(advise_error(code, message)) if code else None)


def with_advice(call: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Wrap a call so that its KafkaErrors end with advice."""

    @functools.wraps(call)
    async def call_with_advice(*arguments: P.args, **named: P.kwargs) -> T:
        try:
            return await call(*arguments, **named)
        except KafkaError as error:
            advice = ADVICE.get(error.code)
            if advice is None or (error.message or "").endswith(advice):
                raise
            raise advise_error(error.code, error.message or "") from error

    return call_with_advice
