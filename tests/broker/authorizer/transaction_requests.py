"""Requests of the APIs of transactions: of a producer that no coordinator knows."""

from __future__ import annotations

from typing import Any

from kohort.protocol import ApiKey
from tests.broker.authorizer.topic_requests import Fields
from tests.broker.authorizer.world import World

_ID = 987_654


def ready(world: World) -> None:
    """There is a coordinator, which knows ``x/seen``."""
    wanted = {"transactional_id": world["x/seen"], "transaction_timeout_ms": 1000}
    world.wait(
        lambda: world.admin.call(ApiKey.FIND_COORDINATOR, 3, key=world["x/seen"], key_type=1).error_code == 0
    )
    world.wait(lambda: world.admin.call(ApiKey.INIT_PRODUCER_ID, 2, **wanted).error_code == 0)


def add_partitions(*topics: str) -> Fields:
    return lambda world: {
        "v3_and_below_transactional_id": world["x/seen"],
        "v3_and_below_producer_id": _ID,
        "v3_and_below_producer_epoch": 0,
        "v3_and_below_topics": [(world[topic], [0]) for topic in topics],
    }


def add_for_broker(world: World) -> dict[str, Any]:
    return {"transactions": [(world["x/seen"], _ID, 0, True, [(world["t/seen"], [0])])]}


def add_offsets(world: World) -> dict[str, Any]:
    return {**_producer(world), "group_id": world["g/seen"]}


def end(world: World) -> dict[str, Any]:
    return {**_producer(world), "committed": True}


def commit_offsets(world: World) -> dict[str, Any]:
    offset = {"partition_index": 0, "committed_offset": 1}
    return {
        **_producer(world),
        "group_id": world["g/seen"],
        "topics": [(world["t/hidden"], [offset]), (world["t/seen"], [offset])],
    }


def write_marker(world: World) -> dict[str, Any]:
    marker = {
        "producer_id": _ID,
        "producer_epoch": 0,
        "transaction_result": False,
        "topics": [(world["t/seen"], [0])],
        "coordinator_epoch": 0,
    }
    return {"markers": [marker]}


def describe_producers(world: World) -> dict[str, Any]:
    return {"topics": [(world["t/hidden"], [0]), (world["t/seen"], [0])]}


def describe(world: World) -> dict[str, Any]:
    return {"transactional_ids": [world["x/hidden"], world["x/seen"]]}


def listed(_world: World) -> dict[str, Any]:
    return {"state_filters": [], "producer_id_filters": []}


def no_features(_world: World) -> dict[str, Any]:
    return {"feature_updates": []}


def _producer(world: World) -> dict[str, Any]:
    return {"transactional_id": world["x/seen"], "producer_id": _ID, "producer_epoch": 0}
