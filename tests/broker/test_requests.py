"""Bodies of answers, as handlers make them."""

from __future__ import annotations

import pytest

from kohort.broker._requests import Request
from kohort.protocol import ANONYMOUS, APIS, ApiKey, RequestContext, encode_response
from tests.messages import response_of


def request(key: int, version: int) -> Request:
    return Request(APIS[key], version, None, RequestContext("x", "/127.0.0.1", ANONYMOUS), ("localhost", 1))


@pytest.mark.parametrize("key", list(APIS), ids=lambda key: APIS[key].name)
def test_fields_that_are_not_named_have_the_defaults_of_every_version(key: int) -> None:
    for version in range(APIS[key].min_version, APIS[key].max_version + 1):
        own = encode_response(key, version, 1, response_of(key)(version=version))
        assert encode_response(key, version, 1, request(key, version).answer()) == own


def test_a_nested_struct_has_its_defaults_too() -> None:
    asked = request(ApiKey.PRODUCE, 11)
    partition = asked.part("PartitionProduceResponse")(index=3)
    assert (partition.index, partition.log_append_time_ms, partition.error_message) == (3, -1, None)


def test_a_name_that_the_schema_lacks_is_refused() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'offset'"):
        request(ApiKey.PRODUCE, 11).answer(offset=1)
