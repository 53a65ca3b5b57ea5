"""Bodies of answers, as handlers make them."""

from __future__ import annotations

import pytest

from kohort.broker.apis import Request, served_apis
from kohort.protocol import APIS, ApiKey, RequestContext, encode_response
from tests.messages import response_of


def request(key: int, version: int) -> Request:
    return Request(served_apis()[key], version, None, RequestContext("x", "/127.0.0.1"), ("localhost", 1))


def test_every_version_that_is_served_can_be_read_and_written() -> None:
    for key, api in served_apis().items():
        first, last = api.versions
        assert APIS[key].min_version <= first <= last <= APIS[key].max_version, api.name


@pytest.mark.parametrize("key", list(served_apis()), ids=lambda key: APIS[key].name)
def test_fields_that_are_not_named_have_the_defaults_of_every_version(key: int) -> None:
    first, last = served_apis()[key].versions
    for version in range(first, last + 1):
        own = encode_response(key, version, 1, response_of(key)(version=version))
        assert encode_response(key, version, 1, request(key, version).answer()) == own


def test_a_nested_struct_has_its_defaults_too() -> None:
    asked = request(ApiKey.PRODUCE, 11)
    partition = asked.part("PartitionProduceResponse")(index=3)
    assert (partition.index, partition.log_append_time_ms, partition.error_message) == (3, -1, None)


def test_a_name_that_the_schema_lacks_is_refused() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'offset'"):
        request(ApiKey.PRODUCE, 11).answer(offset=1)
