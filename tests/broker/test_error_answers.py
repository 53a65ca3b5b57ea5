"""Every API at every version can say an error, to all that was asked."""

from __future__ import annotations

from typing import Any

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
    request_class,
)

CODE = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
EVERY = [
    (key, version) for key in HANDLERS for version in range(APIS[key].min_version, APIS[key].max_version + 1)
]


def one_of_each(struct: Any, version: int) -> dict[str, Any]:
    """Fields for a request in which every array has one element."""
    values: dict[str, Any] = {}
    for field in struct.untagged_fields(version):
        if field.is_struct_array():
            values[field.name] = [field.data_class(version=version, **one_of_each(field.array_of, version))]
        elif field.is_array():
            values[field.name] = ["x"] if field.array_of._type_str == "string" else [3]
        elif field._type_str == "string":
            values[field.name] = "x"
    return values


def codes(value: Any) -> list[int]:
    """Every error_code in a response."""
    if isinstance(value, dict):
        return [
            code for key, item in value.items() for code in ([item] if key == "error_code" else codes(item))
        ]
    if isinstance(value, list):
        return [code for item in value for code in codes(item)]
    return []


@pytest.mark.parametrize(("key", "version"), EVERY, ids=[f"{key.name}-v{version}" for key, version in EVERY])
def test_the_error_is_said_once_for_what_was_asked(key: ApiKey, version: int) -> None:
    fields = one_of_each(request_class(key)._struct, version)
    body = request_class(key)(version=version, **{**fields, **({"acks": 1} if key == ApiKey.PRODUCE else {})})
    request = Request(api_for(key), version, body, RequestContext(), ("h", 1))
    encoded = encode_response(key, version, 1, error_answer(request, CODE))
    _, answer = decode_response(key, version, bytes(encoded[4:]))
    # Apache Kafka says it to all of the request and to each user here
    times = 2 if key == ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS else 1
    assert codes(answer.to_dict()) == [CODE] * times


def test_what_was_asked_is_named_in_the_answer() -> None:
    key = ApiKey.LIST_OFFSETS
    fields = one_of_each(request_class(key)._struct, 5)
    fields["topics"][0].partitions[0].partition_index = 7
    request = Request(api_for(key), 5, request_class(key)(version=5, **fields), RequestContext(), ("h", 1))
    (topic,) = error_answer(request, CODE).topics
    assert (topic.name, topic.partitions[0].partition_index) == ("x", 7)


def test_a_produce_without_acks_has_no_answer() -> None:
    body = request_class(ApiKey.PRODUCE)(version=9, acks=0, topic_data=[])
    request = Request(api_for(ApiKey.PRODUCE), 9, body, RequestContext(), ("h", 1))
    assert error_answer(request, CODE) is None
