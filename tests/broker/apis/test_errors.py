"""Every API at every version can say an error, to all that was asked."""

from __future__ import annotations

from typing import Any, get_type_hints

import pytest

from kohort.broker.apis import Request, served_apis
from kohort.protocol import (
    ApiKey,
    ErrorCode,
    RequestContext,
    decode_response,
    encode_response,
    request_type,
    struct_arrays,
)
from tests.messages import request_of

CODE = ErrorCode.CLUSTER_AUTHORIZATION_FAILED

#: As Apache Kafka says it: to all of the request and to each element, or by an answer with nothing in it.
UNLIKE_OTHERS = {
    (ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0): 2,
    (ApiKey.ALTER_PARTITION_REASSIGNMENTS, 1): 2,
    (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0): 2,
    (ApiKey.ELECT_LEADERS, 1): 2,
    (ApiKey.ELECT_LEADERS, 2): 2,
    (ApiKey.DESCRIBE_LOG_DIRS, 1): 0,
    (ApiKey.DESCRIBE_LOG_DIRS, 2): 0,
}


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
    named = [name for name in ("error_code", "partition_error_code") if name in value._fields]
    return [*(getattr(value, name) for name in named), *found]


@pytest.mark.parametrize("key", [api.key for api in served_apis().values()], ids=lambda key: key.name)
def test_the_error_is_said_once_for_what_was_asked(key: ApiKey) -> None:
    api = served_apis()[key]
    body = one_of_each(key)
    if key == ApiKey.PRODUCE:
        body = body._replace(acks=1)
    first, last = api.versions
    # clients read an error of ApiVersions as version 0
    for version in range(first, (0 if key == ApiKey.API_VERSIONS else last) + 1):
        request = Request(api, version, body, RequestContext(), ("h", 1))
        encoded = encode_response(key, version, 1, request.error_answer(CODE))
        _, answer = decode_response(key, version, bytes(encoded[4:]))
        times = UNLIKE_OTHERS.get((key, version), 1)
        assert [code for code in codes(answer) if code] == [CODE] * times, f"v{version}"


def test_what_was_asked_is_named_in_the_answer() -> None:
    key = ApiKey.LIST_OFFSETS
    body = request_of(key)(topics=[("x", [(7,)])])
    request = Request(served_apis()[key], 5, body, RequestContext(), ("h", 1))
    (topic,) = request.error_answer(CODE).topics
    assert (topic.name, topic.partitions[0].partition_index) == ("x", 7)


def test_a_produce_without_acks_has_no_answer() -> None:
    body = request_of(ApiKey.PRODUCE)(version=9, acks=0, topic_data=[])
    request = Request(served_apis()[ApiKey.PRODUCE], 9, body, RequestContext(), ("h", 1))
    assert request.error_answer(CODE) is None
