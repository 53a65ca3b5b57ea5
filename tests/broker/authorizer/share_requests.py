"""Requests of members of share groups, and of the APIs of the share coordinator, about a share partition that
it knows.
"""

from __future__ import annotations

from typing import Any

from kohort.protocol import ApiKey, SharePartitionKey
from tests.broker.authorizer.topic_requests import Fields
from tests.broker.authorizer.world import World


def ready(world: World) -> None:
    """There is a coordinator, and the share partition of ``g/seen`` and ``t/seen`` is initialized."""
    key = str(SharePartitionKey(world["g/seen"], world.ids["t/seen"], 0))
    wanted = {"key_type": 2, "coordinator_keys": [key]}
    world.wait(lambda: world.admin.call(ApiKey.FIND_COORDINATOR, 6, **wanted).coordinators[0].error_code == 0)
    fields = about(state_epoch=1, start_offset=0)(world)

    def initialized() -> bool:
        answer = world.admin.call(ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0, **fields)
        return bool(answer.results[0].partitions[0].error_code == 0)

    world.wait(initialized)


def about(**more: Any) -> Fields:
    """The share partition of ``g/seen`` and ``t/seen``."""

    def fields(world: World) -> dict[str, Any]:
        return {"group_id": world["g/seen"], "topics": [(world.ids["t/seen"], [{"partition": 0, **more}])]}

    return fields


def fetch(epoch: int) -> Fields:
    """A ShareFetch of both topics by the member ``m`` of ``g/seen``, which waits for nothing."""

    def fields(world: World) -> dict[str, Any]:
        return {
            "group_id": world["g/seen"],
            "member_id": "m",
            "share_session_epoch": epoch,
            "max_bytes": 1 << 20,
            "topics": [(world.ids[plain], [(0, [])]) for plain in ("t/seen", "t/hidden")],
        }

    return fields


def open_session(world: World) -> None:
    """The member ``m`` has a session, on another connection than the one that the test asks."""
    ready(world)
    answer = world.admin.call(ApiKey.SHARE_FETCH, 2, **fetch(0)(world))
    assert answer.error_code == 0, answer


def acknowledge(world: World) -> dict[str, Any]:
    """The member ``m`` says of both topics what it does not have."""
    return {
        "group_id": world["g/seen"],
        "member_id": "m",
        "share_session_epoch": 1,
        "topics": [(world.ids[plain], [(0, [(0, 0, [1])])]) for plain in ("t/seen", "t/hidden")],
    }
