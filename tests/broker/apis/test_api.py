"""Bodies of answers, as handlers make them, and what a request knows of its sender's rights."""

from __future__ import annotations

from importlib import import_module
from typing import get_args, get_type_hints

import pytest

from kohort.broker.apis import AnyRequest, Request, served_apis
from kohort.broker.apis._api import hand_over
from kohort.broker.authorizer import (
    OPERATIONS,
    Access,
    Acl,
    Authorizer,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    right,
)
from kohort.protocol import (
    APIS,
    ApiKey,
    ErrorCode,
    KafkaError,
    RequestContext,
    encode_response,
    messages_of,
    operation_bits,
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


READ_TOPIC = right(Operation.READ, ResourceType.TOPIC, "each topic")
HIDDEN_TOPIC = Access(Operation.READ, ResourceType.TOPIC, None, "left out")


def reader_of(topic: str) -> AnyRequest:
    """A request of a client that may read this topic alone."""
    sent = request(ApiKey.FETCH, 12)
    rule = Acl(
        ResourceType.TOPIC,
        topic,
        PatternType.LITERAL,
        sent.context.principal,
        "*",
        Operation.READ,
        Permission.ALLOW,
    )
    sent.authorizer = Authorizer([rule])
    return sent


def test_without_access_rules_everything_is_allowed() -> None:
    sent = request(ApiKey.FETCH, 12)
    sent.require(READ_TOPIC, "orders")
    assert sent.allows(READ_TOPIC, "orders")
    assert sent.shows(READ_TOPIC, "orders")
    assert sent.allows_some(READ_TOPIC)
    assert sent.operations(ResourceType.TOPIC, "orders") == operation_bits(OPERATIONS[ResourceType.TOPIC])


def test_a_request_knows_the_rights_of_its_sender() -> None:
    sent = reader_of("orders")
    assert [sent.allows(READ_TOPIC, name) for name in ("orders", "bills")] == [True, False]
    assert [sent.shows(READ_TOPIC, name) for name in ("orders", "bills")] == [True, False]
    assert sent.allows_some(READ_TOPIC)
    assert not sent.allows_some(right(Operation.WRITE, ResourceType.TOPIC, "any"))
    # who may read a topic may describe it
    seen = operation_bits([Operation.READ, Operation.DESCRIBE])
    assert (sent.operations(ResourceType.TOPIC, "orders"), sent.operations(ResourceType.TOPIC, "bills")) == (
        seen,
        0,
    )


def test_a_missing_right_that_is_required_is_its_own_error() -> None:
    sent = reader_of("orders")
    sent.require(READ_TOPIC, "orders")
    with pytest.raises(KafkaError, match="READ on TOPIC is not allowed") as caught:
        sent.require(READ_TOPIC, "bills")
    assert caught.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_a_denial_is_logged_if_it_is_an_error_and_not_if_something_is_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "kohort.broker.authorizer")
    sent = reader_of("orders")
    assert not sent.allows(HIDDEN_TOPIC, "bills")
    assert not sent.shows(READ_TOPIC, "bills")
    assert caplog.messages == []
    assert not sent.allows(READ_TOPIC, "bills")
    (line,) = caplog.messages
    assert "may not READ TOPIC" in line
    assert "bills" in line
