"""Every API at every version can say an error, to all that was asked."""

from __future__ import annotations

from typing import Any, get_type_hints

import pytest

from kohort.broker._error_answers import error_answer
from kohort.broker._requests import Request
from kohort.broker.handlers import HANDLERS
from kohort.protocol import (
    APIS,
    ApiKey,
    ErrorCode,
    RequestContext,
    api_for,
    decode_response,
    encode_response,
    request_type,
    struct_arrays,
)
from tests.messages import request_of

CODE = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
EVERY = [
    (key, version) for key in HANDLERS for version in range(APIS[key].min_version, APIS[key].max_version + 1)
]


def one_of_each(key: ApiKey) -> Any:
    """A request in which every array has one element."""
    return _one(request_type(key))


def _one(made: Any) -> Any:
    structs = struct_arrays(made)
    values: dict[str, Any] = {}
    for name, hint in get_type_hints(made).items():
        if name in structs:
            values[name] = [_one(structs[name])]
        elif "Sequence[str]" in str(hint):
            values[name] = ["x"]
        elif "Sequence[int]" in str(hint):
            values[name] = [3]
        elif "str" in str(hint):
            values[name] = "x"
    return made(**values)


def codes(value: Any) -> list[int]:
    """Every error_code in a response."""
    if isinstance(value, list):
        return [code for item in value for code in codes(item)]
    if not hasattr(value, "_fields"):
        return []
    found = [code for item in value for code in codes(item)]
    return [value.error_code, *found] if "error_code" in value._fields else found


@pytest.mark.parametrize(("key", "version"), EVERY, ids=[f"{key.name}-v{version}" for key, version in EVERY])
def test_the_error_is_said_once_for_what_was_asked(key: ApiKey, version: int) -> None:
    body = one_of_each(key)
    if key == ApiKey.PRODUCE:
        body = body._replace(acks=1)
    request = Request(api_for(key), version, body, RequestContext(), ("h", 1))
    encoded = encode_response(key, version, 1, error_answer(request, CODE))
    _, answer = decode_response(key, version, bytes(encoded[4:]))
    # Apache Kafka says it to all of the request and to each user here
    times = 2 if key == ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS else 1
    assert [code for code in codes(answer) if code] == [CODE] * times


def test_what_was_asked_is_named_in_the_answer() -> None:
    key = ApiKey.LIST_OFFSETS
    body = request_of(key)(topics=[("x", [(7,)])])
    request = Request(api_for(key), 5, body, RequestContext(), ("h", 1))
    (topic,) = error_answer(request, CODE).topics
    assert (topic.name, topic.partitions[0].partition_index) == ("x", 7)


def test_a_produce_without_acks_has_no_answer() -> None:
    body = request_of(ApiKey.PRODUCE)(version=9, acks=0, topic_data=[])
    request = Request(api_for(ApiKey.PRODUCE), 9, body, RequestContext(), ("h", 1))
    assert error_answer(request, CODE) is None
