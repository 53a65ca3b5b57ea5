"""The group requests' plain bodies are, on the wire, what kafka-python's own are."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.consumer.group import messages as group_messages
from kohort.consumer.group.effects import Send
from kohort.protocol import APIS, ApiKey, decode_request, decode_request_header, encode_request
from tests.consumer.configs import config
from tests.messages import request_of

SETTINGS = config(group_instance_id="pod-1")

_join, _sync = request_of(ApiKey.JOIN_GROUP), request_of(ApiKey.SYNC_GROUP)
_leave = request_of(ApiKey.LEAVE_GROUP)

CASES: dict[str, tuple[Send, Any]] = {
    "JoinGroup": (
        group_messages.join_group(SETTINGS, "m1", [("range", b"metadata"), ("sticky", b"")], "first join"),
        _join(
            group_id="billing",
            session_timeout_ms=45_000,
            rebalance_timeout_ms=300_000,
            member_id="m1",
            group_instance_id="pod-1",
            protocol_type="consumer",
            protocols=[
                _join.JoinGroupRequestProtocol(name="range", metadata=b"metadata"),
                _join.JoinGroupRequestProtocol(name="sticky", metadata=b""),
            ],
            reason="first join",
        ),
    ),
    "SyncGroup": (
        group_messages.sync_group(SETTINGS, 7, "m1", "range", {"m1": b"share", "m2": b""}),
        _sync(
            group_id="billing",
            generation_id=7,
            member_id="m1",
            group_instance_id="pod-1",
            protocol_type="consumer",
            protocol_name="range",
            assignments=[
                _sync.SyncGroupRequestAssignment(member_id="m1", assignment=b"share"),
                _sync.SyncGroupRequestAssignment(member_id="m2", assignment=b""),
            ],
        ),
    ),
    "Heartbeat": (
        group_messages.make_heartbeat(SETTINGS, 7, "m1"),
        request_of(ApiKey.HEARTBEAT)(
            group_id="billing", generation_id=7, member_id="m1", group_instance_id="pod-1"
        ),
    ),
    "LeaveGroup": (
        group_messages.leave_group(SETTINGS, "m1", "it stops"),
        _leave(
            group_id="billing",
            member_id="m1",
            members=[_leave.MemberIdentity(member_id="m1", group_instance_id=None, reason="it stops")],
        ),
    ),
}


@pytest.mark.parametrize(("send", "same"), CASES.values(), ids=CASES)
def test_each_version_has_the_same_bytes(send: Send, same: Any) -> None:
    api = APIS[send.api_key]
    for version in range(api.min_version, api.max_version + 1):
        frame = encode_request(version, 5, "client", send.body)
        assert frame == encode_request(version, 5, "client", same)
        body = bytes(frame[4:])
        assert decode_request(body, decode_request_header(body)).group_id == "billing"
