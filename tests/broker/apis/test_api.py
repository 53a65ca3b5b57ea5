"""Bodies of answers, as handlers make them."""

from __future__ import annotations

from importlib import import_module
from typing import get_args, get_type_hints

import pytest

from kohort.broker.apis import AnyRequest, Request, served_apis
from kohort.broker.apis._api import hand_over
from kohort.protocol import (
    APIS,
    ApiKey,
    RequestContext,
    encode_response,
    messages_of,
    request_type,
    response_type,
)
from tests.messages import response_of


def request(key: int, version: int) -> AnyRequest:
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


@pytest.mark.parametrize("key", list(served_apis()), ids=lambda key: APIS[key].name)
def test_a_handler_names_the_messages_of_its_api(key: int) -> None:
    api = served_apis()[key]
    if api.handler is hand_over:
        module = import_module(f"kohort.broker.apis.{messages_of(key).__name__.rpartition('.')[2]}")
        assert get_args(get_type_hints(module)["API"]) == (request_type(key), response_type(key))
    else:
        hints = get_type_hints(api.handler)
        assert get_args(hints.get("request", hints.get("_request"))) == (request_type(key),)
        assert response_type(key) in (hints["return"], *get_args(hints["return"]))


def test_a_name_that_the_schema_lacks_is_refused() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'offset'"):
        request(ApiKey.PRODUCE, 11).answer(offset=1)
