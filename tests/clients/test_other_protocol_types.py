"""Groups of other protocol types: a coordinator carries their members' bytes and reads none of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import pytest

from kohort.protocol import ErrorCode
from tests.clients.members import Group
from tests.clients.raw import RawMember

pytestmark = [pytest.mark.clients, pytest.mark.kafka]

LONG_MS = 30_000
NOT_A_SUBSCRIPTION = bytes(range(255, 200, -1))


def test_bytes_of_another_protocol_type_arrive_as_they_were_sent(
    bootstrap: str, topic: Callable[[str], str], group: Callable[[str], str]
) -> None:
    group_id = group("workers")
    with ExitStack() as stack:

        def member(protocol_type: str, metadata: bytes | None) -> RawMember:
            made = RawMember(
                bootstrap,
                group_id,
                topic("never-made"),
                session_ms=LONG_MS,
                rebalance_ms=LONG_MS,
                protocol_type=protocol_type,
                metadata=metadata,
            )
            return stack.enter_context(made)

        worker = member("connect", NOT_A_SUBSCRIPTION)
        worker.settle()
        described = Group(bootstrap, group_id).describe()
        assert (described.group_state, described.protocol_type, described.protocol_data) == (
            "Stable",
            "connect",
            "range",
        )
        [shown] = described.members
        assert bytes(shown.member_metadata) == NOT_A_SUBSCRIPTION
        assert bytes(shown.member_assignment) == worker.id.encode()

        stranger = member("consumer", None)
        refused = stranger.receive_join(stranger.send_join())
        assert refused.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert worker.heartbeat() == ErrorCode.NONE
