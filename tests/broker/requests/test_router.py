"""The router: what a handler's failure becomes, and the gate in front of each API."""

from __future__ import annotations

import asyncio
import logging
import struct
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kohort.broker.apis import AnyApi, AnyRequest, served_apis
from kohort.broker.authorizer import Authorizer
from kohort.broker.clients.client_state import Peer
from kohort.broker.event_loop import time_slices as _turns
from kohort.broker.event_loop.time_slices import LongWork
from kohort.broker.metadata.features import Features
from kohort.broker.metrics import BrokerMetrics
from kohort.broker.node import Node
from kohort.broker.quotas import ClientQuotas, QuotaTable
from kohort.broker.reporting.log_lines import LINES, RateLimitedLog
from kohort.broker.requests.router import Router
from kohort.protocol import (
    ApiKey,
    ErrorCode,
    KafkaError,
    MalformedMessageError,
    ProtocolError,
    RequestContext,
    UnsupportedVersionError,
    decode_response,
    encode_request,
)
from kohort.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
)
from tests.messages import request_of, response_of

PEER = Peer("10.0.0.9", ("broker", 9092))


def frame(key: ApiKey, version: int, client_id: str = "me", **fields: Any) -> bytes:
    body = request_of(key)(version=version, **fields)
    return bytes(encode_request(version, 5, client_id, body)[4:])


def routed(handler: Any, *, authorizer: Authorizer | None = None, also: Sequence[ApiKey] = ()) -> Router:
    node = cast(
        Node,
        SimpleNamespace(
            cluster=None,
            authorizer=authorizer,
            metrics=BrokerMetrics(),
            quotas=ClientQuotas(QuotaTable()),
            features=Features(1, cast(Any, None)),
            long_work=LongWork(),
            throttle=SimpleNamespace(charge=lambda *_: None),
        ),
    )
    known = served_apis()
    served: dict[int, AnyApi] = {
        ApiKey.PRODUCE: replace(known[ApiKey.PRODUCE], handler=handler),
        ApiKey.LIST_GROUPS: replace(known[ApiKey.LIST_GROUPS], handler=handler),
        ApiKey.API_VERSIONS: known[ApiKey.API_VERSIONS],
        ApiKey.DELETE_GROUPS: replace(known[ApiKey.DELETE_GROUPS], handler=handler),
        **{key: replace(known[key], handler=handler) for key in also},
    }
    return Router(node, lambda: served)


def ask(router: Router, key: ApiKey, version: int, **fields: Any) -> Any:
    answer = asyncio.run(router.answer(frame(key, version, **fields), PEER))
    assert isinstance(answer, (bytes, bytearray))
    number, body = decode_response(key, version, bytes(answer[4:]))
    assert number == 5
    return body


def test_a_handler_is_told_who_asks() -> None:
    seen: list[AnyRequest] = []

    async def handler(_node: Node, request: AnyRequest) -> Any:
        seen.append(request)
        return request.answer(error_code=0, groups=[])

    ask(routed(handler), ApiKey.LIST_GROUPS, 4)
    (request,) = seen
    assert request.context == RequestContext(client_id="me", client_host="/10.0.0.9")
    assert (request.version, request.endpoint) == (4, ("broker", 9092))


def test_a_peer_is_anonymous_until_it_is_identified_and_its_requests_say_the_listener() -> None:
    peer = Peer("10.0.0.9", ("broker", 9092), "INTERNAL")
    request = frame(ApiKey.HEARTBEAT, 4, group_id="g", generation_id=1, member_id="m", group_instance_id=None)
    for context in (peer.context("me"), peer.read_header(request, flexible=True).context):
        assert (context.principal, context.listener) == ("User:ANONYMOUS", "INTERNAL")
    peer.identify("User:alice")
    assert peer.header is None
    for context in (peer.context("me"), peer.read_header(request, flexible=True).context):
        assert (context.principal, context.listener) == ("User:alice", "INTERNAL")


def test_a_kafka_error_is_answered_in_the_shape_of_the_api() -> None:
    async def handler(_node: Node, _request: AnyRequest) -> Any:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    assert ask(routed(handler), ApiKey.LIST_GROUPS, 4).error_code == 15
    answer = ask(routed(handler), ApiKey.DELETE_GROUPS, 2, groups_names=["a", "b"])
    assert [(one.group_id, one.error_code) for one in answer.results] == [("a", 15), ("b", 15)]


def test_a_bug_is_logged_with_the_api_and_answered(caplog: pytest.LogCaptureFixture) -> None:
    async def handler(_node: Node, _request: AnyRequest) -> Any:
        raise RuntimeError("a bug")

    with caplog.at_level(logging.ERROR, "kohort.broker"):
        assert ask(routed(handler), ApiKey.LIST_GROUPS, 4).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    (record,) = caplog.records
    assert record.getMessage() == "ListGroups v4 failed: answered UNKNOWN_SERVER_ERROR"
    assert record.exc_info is not None


def test_a_bug_that_every_request_meets_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def handler(_node: Node, _request: AnyRequest) -> Any:
        raise RuntimeError("a bug")

    router = routed(handler)
    router._failures = RateLimitedLog(logging.ERROR, lambda: 0.0)
    with caplog.at_level(logging.ERROR, "kohort.broker"):
        for _ in range(2 * LINES):
            assert ask(router, ApiKey.LIST_GROUPS, 4).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert len(caplog.records) == LINES


def test_a_protocol_error_is_the_connections_matter() -> None:
    async def handler(_node: Node, _request: AnyRequest) -> Any:
        raise ProtocolError("enough")

    with pytest.raises(ProtocolError, match="enough"):
        ask(routed(handler), ApiKey.LIST_GROUPS, 4)


def test_what_is_not_allowed_reaches_no_handler() -> None:
    async def handler(_node: Node, _request: AnyRequest) -> Any:
        raise AssertionError("not to be called")

    router = routed(handler, authorizer=Authorizer())
    answer = ask(router, ApiKey.DELETE_GROUPS, 1, groups_names=["a"])
    assert answer.results[0].error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED


def test_a_failed_request_without_answer_is_not_answered(caplog: pytest.LogCaptureFixture) -> None:
    async def handler(_node: Node, _request: AnyRequest) -> Any:
        raise RuntimeError("a bug")

    router = routed(handler)
    silent = frame(ApiKey.PRODUCE, 9, acks=0, transactional_id=None, timeout_ms=1, topic_data=[])
    assert asyncio.run(router.answer(silent, PEER)) is None
    assert "Produce v9 failed" in caplog.text


def test_an_api_without_handler_is_not_offered() -> None:
    async def handler(_node: Node, _request: AnyRequest) -> Any:
        raise AssertionError("not to be called")

    router = routed(handler)
    with pytest.raises(UnsupportedVersionError, match="API number 3 is not offered"):
        ask(router, ApiKey.METADATA, 1, topics=[])
    head = struct.pack(">hhih", ApiKey.API_VERSIONS, 0, 5, -1)
    answer = asyncio.run(router.answer(head, PEER))
    assert isinstance(answer, (bytes, bytearray))
    _, body = decode_response(ApiKey.API_VERSIONS, 0, bytes(answer[4:]))
    assert [row.api_key for row in body.api_keys] == [0, 16, 18, 42]


def test_a_null_that_may_not_be_is_the_peers_fault_and_reaches_no_handler() -> None:
    async def handler(_node: Node, _request: AnyRequest) -> Any:
        raise AssertionError("not to be called")

    with pytest.raises(MalformedMessageError, match="groups_names is null"):
        ask(routed(handler), ApiKey.DELETE_GROUPS, 1, groups_names=None)


class Taking:
    """A coordinator and a connection in one: it keeps the bodies that it is given, and answers nothing."""

    unmetered = False

    def __init__(self) -> None:
        self.bodies: list[Any] = []

    def submit(self, _key: int, _version: int, body: Any, _context: RequestContext, _handle: Any) -> None:
        self.bodies.append(body)


def taken(*frames: bytes) -> tuple[list[Any], Peer]:
    """The bodies that a router hands over of these requests of one connection, and its peer."""
    taking, peer = Taking(), Peer("10.0.0.9", ("broker", 9092))
    metrics, quotas = BrokerMetrics(), ClientQuotas(QuotaTable())
    features = Features(1, cast(Any, None))
    node = SimpleNamespace(
        authorizer=None,
        metrics=metrics,
        quotas=quotas,
        coordinator=taking,
        features=features,
        cluster=None,
    )
    router = Router(cast(Node, node), served_apis)
    for each in frames:
        assert router.take(each, peer, cast(Any, taking), deque())
    return taking.bodies, peer


def heartbeat(version: int, **fields: Any) -> bytes:
    known = {"group_id": "g", "generation_id": 1, "member_id": "m", **fields}
    return frame(ApiKey.HEARTBEAT, version, **known)


def test_a_heartbeat_that_is_the_last_one_again_is_not_read_again() -> None:
    (first, again, other, back), _ = taken(
        heartbeat(4), heartbeat(4), heartbeat(4, generation_id=2), heartbeat(4)
    )
    assert again is first
    assert other == first._replace(generation_id=2)
    assert back == first


def test_the_same_bytes_in_another_version_are_read_again() -> None:
    # version 0 has no instance id: the same body is one field shorter for it, and the rest is left over
    body = heartbeat(3, group_instance_id="i")
    (new, old), _ = taken(body, body[:2] + b"\0\0" + body[4:])
    assert (new.group_instance_id, old.group_instance_id) == ("i", None)


def test_a_long_heartbeat_is_not_kept() -> None:
    _, peer = taken(heartbeat(4), heartbeat(4, member_id="m" * 2_000))
    assert len(peer.heartbeat[1]) < 100


@pytest.mark.parametrize("key", [ApiKey.DESCRIBE_GROUPS, ApiKey.CONSUMER_GROUP_DESCRIBE])
async def test_others_have_their_turn_between_the_members_of_a_large_group(
    key: ApiKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_turns, "WORK_SLICE_S", 0.0)
    make = response_of(key)
    member = make.DescribedGroupMember if key is ApiKey.DESCRIBE_GROUPS else make.Member
    turns = 0

    async def handler(_node: Node, _request: AnyRequest) -> Any:
        return make(groups=[make.DescribedGroup(group_id="g", members=[member()] * 20)])

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    asked: dict[str, Any] = {"groups": ["g"]} if key is ApiKey.DESCRIBE_GROUPS else {"group_ids": ["g"]}
    router, running = routed(handler, also=[key]), asyncio.create_task(others())
    answer = await router.answer(frame(key, 1, include_authorized_operations=False, **asked), PEER)
    running.cancel()
    assert turns >= 20
    assert isinstance(answer, (bytes, bytearray))
    assert len(decode_response(key, 1, bytes(answer[4:]))[1].groups[0].members) == 20


async def test_others_have_their_turn_while_rights_to_the_topics_of_a_large_group_are_looked_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_turns, "SLICE_S", -1.0)
    turns: list[int] = []

    async def handler(_node: Node, _request: AnyRequest) -> Any:
        asyncio.get_running_loop().call_soon(lambda: turns.append(members.seen))
        return ConsumerGroupDescribeResponse(groups=[DescribedGroup(group_id="g", members=members)])

    class Members(list[Any]):
        seen = 0

        def __iter__(self) -> Any:
            for member in super().__iter__():
                self.seen += 1
                yield member

    members = Members([Member()] * 20)
    authorizer = Authorizer(allow_everyone_if_no_acl_found=True)
    router = routed(handler, authorizer=authorizer, also=[ApiKey.CONSUMER_GROUP_DESCRIBE])
    asked = frame(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, group_ids=["g"], include_authorized_operations=False)
    assert await router.answer(asked, PEER)
    assert turns == [1], "the loop's next turn comes after the first of the members"
