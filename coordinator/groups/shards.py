"""Shards of ``__consumer_offsets``, with all kinds of coordinators that have records there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from ...offsets_topic import decode, encode_all
from ...protocol import ApiKey
from ..admin import delete_refusal, handle_delete, handle_list, list_refusal
from ..classic_groups import CLASSIC
from ..classic_groups.group import wake as wake_classic
from ..consumer_groups import CLASSIC_APIS, CONSUMER
from ..consumer_groups.group import ConsumerGroup
from ..consumer_groups.group import wake as wake_consumer
from ..consumer_groups.target import server_assignors
from ..engine.effects import Request
from ..engine.shard import Api, CoordinatorTopic, Handler, Kind, Shard, Waits
from ..offsets import OFFSETS
from ..settings import GroupSettings
from .events import append_refused
from .groups import NO_TOPICS, Group, Groups, GroupShard, TopicDirectory

_ADMIN: Final[Kind[Groups]] = Kind(
    apis={
        ApiKey.LIST_GROUPS: Api(handle_list, list_refusal, Waits.NEVER),
        ApiKey.DELETE_GROUPS: Api(handle_delete, delete_refusal, Waits.WRITES),
    }
)


def _by_type(
    classic: Handler[Groups], consumer: Callable[[GroupShard, ConsumerGroup, Request, int], None]
) -> Handler[Groups]:
    """An API of the classic protocol, which members of a consumer group may speak too."""

    def handle(shard: GroupShard, request: Request, now_ms: int) -> None:
        group_id = request.body.group_id
        group = shard.state.groups.get(group_id)
        if group is None and group_id in shard.state.durable.consumer_groups:
            group = shard.state.find(group_id)
        if type(group) is ConsumerGroup:
            consumer(shard, group, request, now_ms)
        else:
            classic(shard, request, now_ms)

    return handle


#: APIs of the classic protocol, for both types of groups.
_MEMBERS: Final[Kind[Groups]] = Kind(
    apis={
        key: replace(CLASSIC.apis[key], handler=_by_type(CLASSIC.apis[key].handler, handle))
        for key, handle in CLASSIC_APIS.items()
    }
)

#: The topic, with the kinds that write or read its records.
OFFSETS_TOPIC: Final[CoordinatorTopic[Groups]] = CoordinatorTopic(
    "__consumer_offsets",
    (CLASSIC, CONSUMER, _MEMBERS, OFFSETS, _ADMIN),
    key_of=lambda body: body.group_id or "",
    encode=encode_all,
    decode=decode,
    append_refused=append_refused,
    load=lambda groups, batch: groups.durable.load(batch),
    count=lambda groups: len(groups.group_ids()),
)


def new_groups(
    settings: GroupSettings,
    new_id: Callable[[], str],
    topics: TopicDirectory = NO_TOPICS,
    configs: Callable[[str], Mapping[str, int]] = lambda _group_id: {},
) -> Groups:
    """State of a shard before its log is read. ``new_id`` returns a new unique string for each member id.
    Raises AssignorError if an assignor of the settings cannot be used.
    """
    return Groups(
        settings, new_id, _wake, topics, server_assignors(settings.group_consumer_assignors), configs
    )


def _wake(groups: Groups, group_id: str) -> Group:
    """Restore a group from the log."""
    records = groups.durable.consumer_groups.get(group_id)
    if records is None:
        return wake_classic(group_id, groups.durable.stored.get(group_id))
    return wake_consumer(group_id, records, groups.topics)


def group_shard(settings: GroupSettings, new_id: Callable[[], str]) -> GroupShard:
    """A shard on its own, as tests and simulations drive it."""
    return Shard(OFFSETS_TOPIC, new_groups(settings, new_id))
