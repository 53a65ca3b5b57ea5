"""Requests of the APIs of the share coordinator, about a share partition that it knows."""

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
