"""DescribeGroupHistory: why a group rebalanced, over the wire."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kohort.broker.apis import served_apis
from kohort.broker.authorizer import Authorizer
from kohort.broker.clients.client_state import Peer
from kohort.broker.metadata.features import Features
from kohort.broker.metrics import BrokerMetrics
from kohort.broker.node import Node
from kohort.broker.quotas import ClientQuotas, QuotaTable
from kohort.broker.requests.router import Router
from kohort.coordinator import KeptEvent, MemberGone, RebalanceCompleted
from kohort.coordinator.groups.event_data import MAX_BYTES, details_json
from kohort.protocol import (
    APIS,
    OWN_FEATURES,
    ApiKey,
    ErrorCode,
    TopicPartition,
    decode_response,
    encode_assignment,
    encode_request,
)
from tests.broker.wire import Wire, part
from tests.messages import request_of

KEY = ApiKey.DESCRIBE_GROUP_HISTORY


def history(wire: Wire, group: str, limit: int = -1, after: int = -1) -> Any:
    return wire.call(KEY, 0, group_id=group, limit=limit, after=after)


def a_member(wire: Wire, group: str) -> str:
    """A Stable group of one, and a heartbeat of somebody else."""
    protocol = part(ApiKey.JOIN_GROUP, 5, "JoinGroupRequestProtocol", name="range", metadata=b"")
    joining = {
        "group_id": group,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "protocol_type": "consumer",
        "protocols": [protocol],
        "group_instance_id": None,
    }
    member: str = wire.call(ApiKey.JOIN_GROUP, 5, member_id="", **joining).member_id
    wire.call(ApiKey.JOIN_GROUP, 5, member_id=member, **joining)
    share = part(
        ApiKey.SYNC_GROUP,
        3,
        "SyncGroupRequestAssignment",
        member_id=member,
        assignment=encode_assignment([TopicPartition("t", 0), TopicPartition("t", 1)]),
    )
    syncing = {"generation_id": 1, "member_id": member, "group_instance_id": None, "assignments": [share]}
    assert wire.call(ApiKey.SYNC_GROUP, 3, group_id=group, **syncing).error_code == 0
    beat = {"generation_id": 1, "member_id": "stranger", "group_instance_id": None}
    assert wire.call(ApiKey.HEARTBEAT, 3, group_id=group, **beat).error_code == 25
    return member


def test_every_event_is_told_with_its_cause_and_its_fields(wire: Wire, name: str) -> None:
    member = a_member(wire, name)
    answer = history(wire, name)
    assert (answer.throttle_time_ms, answer.error_code, answer.error_message) == (0, 0, None)
    assert [(e.kind, e.generation, e.cause, e.member) for e in answer.entries] == [
        ("MemberJoined", 0, f"member {member} joined", member),
        ("RebalanceCompleted", 1, f"member {member} joined", member),
        ("MemberFenced", 1, "member stranger is not in the group", "stranger"),
    ]
    _, note, fenced = answer.entries
    assert (note.client_id, note.client_host) == ("wire", "/127.0.0.1")
    assert note.sequence < fenced.sequence
    assert note.timestamp_ms > 1_700_000_000_000
    details = json.loads(note.details)
    assert details.pop("duration_ms") == details.pop("join_ms") + details.pop("sync_ms")
    assert details == {
        "instance_id": None,
        "cause_kind": "join",
        "leader": member,
        "members": 1,
        "members_before": 0,
        "protocol_type": "consumer",
        "protocol": "range",
        "slowest": "",
        "slowest_ms": 0,
        "partitions_moved": 2,
        "partitions_total": 2,
        "joined": [member],
        "left": [],
        "moves": [["t", 0, None, member], ["t", 1, None, member]],
    }
    assert json.loads(fenced.details) == {
        "instance_id": None,
        "error": "UNKNOWN_MEMBER_ID",
        "error_code": 25,
        "api": "HEARTBEAT",
    }


def test_what_is_known_already_need_not_be_told_again(wire: Wire, name: str) -> None:
    a_member(wire, name)
    every = [entry.sequence for entry in history(wire, name).entries]
    assert [entry.sequence for entry in history(wire, name, after=every[0]).entries] == every[1:]
    assert [entry.sequence for entry in history(wire, name, limit=1).entries] == every[-1:]
    assert history(wire, name, limit=0).entries == []


@pytest.mark.parametrize(
    ("group", "code", "said"),
    [
        ("", ErrorCode.INVALID_GROUP_ID, "the group id is empty: name a group"),
        ("nobody's", ErrorCode.GROUP_ID_NOT_FOUND, 'there is no group "nobody\'s"'),
    ],
)
def test_a_group_that_cannot_be_told_of(wire: Wire, group: str, code: ErrorCode, said: str) -> None:
    answer = history(wire, group)
    assert (answer.error_code, answer.error_message, answer.entries) == (code, said, [])


def test_it_is_a_feature_and_no_api_number_that_clients_see(wire: Wire) -> None:
    for version in (3, 4):
        answer = wire.call(
            ApiKey.API_VERSIONS, version, client_software_name="x", client_software_version="1"
        )
        assert KEY not in {row.api_key for row in answer.api_keys}
        told = {each.name: (each.min_version, each.max_version) for each in answer.supported_features}
        assert {name: told[name] for name in OWN_FEATURES} == dict.fromkeys(OWN_FEATURES, (1, 1))
        in_force = {each.name: each.max_version_level for each in answer.finalized_features}
        assert {name: in_force[name] for name in OWN_FEATURES} == dict.fromkeys(OWN_FEATURES, 1)
    assert APIS[KEY].private


async def test_who_may_not_describe_the_group_is_told_nothing() -> None:
    node = SimpleNamespace(
        authorizer=Authorizer(),
        metrics=BrokerMetrics(),
        quotas=ClientQuotas(QuotaTable()),
        features=Features(1, cast(Any, None)),
        cluster=None,
    )
    router = Router(cast(Node, node), served_apis)
    body = request_of(KEY)(version=0, group_id="g", limit=-1, after=-1)
    frame = bytes(encode_request(0, 7, "c", body)[4:])
    response = await router.answer(frame, Peer("127.0.0.1", ("127.0.0.1", 1)))
    assert isinstance(response, (bytes, bytearray))
    _, answer = decode_response(KEY, 0, bytes(response[4:]))
    assert (answer.error_code, answer.entries) == (ErrorCode.GROUP_AUTHORIZATION_FAILED, [])


@pytest.mark.parametrize("length", [10, 8_000])
def test_details_fit_a_string_of_the_wire(length: int) -> None:
    before = {f"{n}".rjust(length, "ü"): encode_assignment([TopicPartition("t", n)]) for n in range(300)}
    after = dict(zip(before, reversed(before.values()), strict=True))
    note = RebalanceCompleted(
        "g", members=300, members_before=300, protocol_type="consumer", duration_ms=1, join_ms=1, sync_ms=0
    )
    note.before, note.after = before, after
    text = details_json(KeptEvent(note, 1, 0))
    assert len(text.encode()) <= MAX_BYTES
    assert json.loads(text)["partitions_moved"] == 300


def test_events_that_were_folded_say_how_many_they_are() -> None:
    text = details_json(KeptEvent(MemberGone("g", timestamp_ms=9), 3, 5))
    folded = {"instance_id": None, "cause_kind": "other", "count": 3, "first_ms": 5}
    assert json.loads(text) == folded
