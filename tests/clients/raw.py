"""Members of a group made of one socket each: every step by hand, and gone at any of them."""

from __future__ import annotations

import time
from typing import Any

from kohort.protocol import (
    ApiKey,
    ErrorCode,
    Subscription,
    encode_assignment,
    encode_request,
    encode_subscription,
)
from tests.broker.wire import Wire, part
from tests.messages import request_of

#: How long an answer is waited for; longer than any timeout that the tests set.
ANSWER_S = 20.0


class RawMember:
    """A member that does nothing unless told to. ``id`` and ``generation`` are those of the last answer."""

    def __init__(
        self,
        bootstrap: str,
        group: str,
        topic: str,
        *,
        session_ms: int,
        rebalance_ms: int,
        join_version: int = 9,
        instance: str | None = None,
        protocol_type: str = "consumer",
        metadata: bytes | None = None,
    ) -> None:
        self.wire = Wire(bootstrap, timeout_s=ANSWER_S)
        self.group, self.instance = group, instance
        self.session_ms, self.rebalance_ms, self.join_version = session_ms, rebalance_ms, join_version
        self.protocol_type = protocol_type
        self.metadata = metadata or encode_subscription(Subscription((topic,)), version=0)
        self.id = ""
        self.generation = -1
        self.leads = False
        self.others: list[str] = []

    def __enter__(self) -> RawMember:
        return self

    def __exit__(self, *_: object) -> None:
        self.wire.close()

    def find_coordinator(self) -> None:
        answer = self.wire.call(ApiKey.FIND_COORDINATOR, 3, key=self.group, key_type=0)
        assert answer.error_code == ErrorCode.NONE

    def _join_fields(self) -> dict[str, Any]:
        protocol = part(
            ApiKey.JOIN_GROUP,
            self.join_version,
            "JoinGroupRequestProtocol",
            name="range",
            metadata=self.metadata,
        )
        return {
            "group_id": self.group,
            "session_timeout_ms": self.session_ms,
            "rebalance_timeout_ms": self.rebalance_ms,
            "member_id": self.id,
            "group_instance_id": self.instance,
            "protocol_type": self.protocol_type,
            "protocols": [protocol],
            "reason": None,
        }

    def join_frame(self) -> bytes:
        """The bytes of a JoinGroup request, length included, for who wants to send a part of them."""
        body = request_of(ApiKey.JOIN_GROUP)(version=self.join_version, **self._join_fields())
        return bytes(encode_request(self.join_version, 1, "raw", body))

    def send_join(self) -> int:
        return self.wire.send(ApiKey.JOIN_GROUP, self.join_version, **self._join_fields())

    def receive_join(self, number: int) -> Any:
        answer = self.wire.receive(ApiKey.JOIN_GROUP, self.join_version, number)
        if answer.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            self.id = answer.member_id
        if answer.error_code == ErrorCode.NONE:
            self.generation = answer.generation_id
            self.leads = answer.leader == answer.member_id
            self.others = [member.member_id for member in answer.members if member.member_id != self.id]
        return answer

    def join(self) -> None:
        """Join, with the second request where the first is answered MEMBER_ID_REQUIRED."""
        answer = self.receive_join(self.send_join())
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            answer = self.receive_join(self.send_join())
        assert answer.error_code == ErrorCode.NONE, answer

    def send_sync(self) -> int:
        """As leader, with a share for everyone."""
        assignments = [
            part(
                ApiKey.SYNC_GROUP,
                5,
                "SyncGroupRequestAssignment",
                member_id=member,
                assignment=self._share_of(member),
            )
            for member in ([self.id, *self.others] if self.leads else [])
        ]
        return self.wire.send(
            ApiKey.SYNC_GROUP,
            5,
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.id,
            group_instance_id=self.instance,
            protocol_type=self.protocol_type,
            protocol_name="range",
            assignments=assignments,
        )

    def _share_of(self, member: str) -> bytes:
        """Bytes for one member alone. Tools that describe every group read those of consumers."""
        if self.protocol_type != "consumer":
            return member.encode()
        return encode_assignment((), member.encode(), version=0)

    def receive_sync(self, number: int) -> int:
        """The error code; an assignment must be the one meant for this member."""
        answer = self.wire.receive(ApiKey.SYNC_GROUP, 5, number)
        assert answer.error_code != ErrorCode.NONE or bytes(answer.assignment) == self._share_of(self.id)
        error: int = answer.error_code
        return error

    def sync(self) -> int:
        return self.receive_sync(self.send_sync())

    def send_heartbeat(self) -> int:
        return self.wire.send(
            ApiKey.HEARTBEAT,
            4,
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.id,
            group_instance_id=self.instance,
        )

    def heartbeat(self) -> int:
        """The error code."""
        error: int = self.wire.receive(ApiKey.HEARTBEAT, 4, self.send_heartbeat()).error_code
        return error

    def settle(self) -> None:
        """Join and sync until an assignment is there."""
        self.join()
        while (error := self.sync()) == ErrorCode.REBALANCE_IN_PROGRESS:
            self.join()
        assert error == ErrorCode.NONE

    def heartbeat_until_asked(self, seconds: float, every_s: float = 0.03) -> bool:
        """Heartbeat for so long, or until a heartbeat says that the group rebalances; whether one did."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            error = self.heartbeat()
            if error == ErrorCode.REBALANCE_IN_PROGRESS:
                return True
            assert error == ErrorCode.NONE
            time.sleep(every_s)
        return False

    def live_until_alone(self, seconds: float) -> float:
        """Do what a client does until this is the only member and settled; how many seconds that took."""
        started = time.monotonic()
        while True:
            left = started + seconds - time.monotonic()
            assert left > 0, f"not alone and settled within {seconds:g} s"
            if self.heartbeat_until_asked(left):
                self.settle()
                if self.leads and not self.others:
                    return time.monotonic() - started
