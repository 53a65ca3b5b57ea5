"""Shards of ``__consumer_offsets``: all kinds of coordinators that have records there, put together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..offsets_topic import decode, encode_all
from ..protocol import ApiKey
from .admin import delete_refusal, handle_delete, handle_list, list_refusal
from .classic import CLASSIC
from .classic.group import wake
from .consumer import CONSUMER
from .engine.shard import Api, CoordinatorTopic, Kind, Shard, Waits
from .events import append_refused
from .groups import Groups, GroupShard
from .offsets import OFFSETS
from .settings import GroupSettings

_ADMIN: Final[Kind[Groups]] = Kind(
    apis={
        ApiKey.LIST_GROUPS: Api(handle_list, list_refusal, Waits.NEVER),
        ApiKey.DELETE_GROUPS: Api(handle_delete, delete_refusal, Waits.WRITES),
    }
)

#: The topic, and who has records in it or answers from them.
OFFSETS_TOPIC: Final[CoordinatorTopic[Groups]] = CoordinatorTopic(
    "__consumer_offsets",
    (CLASSIC, CONSUMER, OFFSETS, _ADMIN),
    key_of=lambda body: body.group_id or "",
    encode=encode_all,
    decode=decode,
    append_refused=append_refused,
    load=lambda groups, batch: groups.durable.load(batch),
    count=lambda groups: len(groups.group_ids()),
)


def new_groups(settings: GroupSettings, new_id: Callable[[], str]) -> Groups:
    """State of a shard before its log is read. ``new_id`` gives a fresh unique text for each member id."""
    return Groups(settings, new_id, wake)


def group_shard(settings: GroupSettings, new_id: Callable[[], str]) -> GroupShard:
    """A shard on its own, as tests and simulations drive it."""
    return Shard(OFFSETS_TOPIC, new_groups(settings, new_id))
