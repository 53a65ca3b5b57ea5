"""Shards of ``__consumer_offsets``, with all kinds of coordinators that have records there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from ...offsets_topic import NONE, GroupStored, OffsetCommitted, Record, decode, encode_all
from ...protocol import ApiKey
from ...settings import MAX_LONG
from ..engine.effects import Request
from ..engine.shard import Api, CoordinatorTopic, Handler, Kind, Shard, Waits
from ..offsets import OFFSETS
from ..settings import GroupSettings
from .delete_groups import DELETE_FAN_OUT, delete_refusal, handle_delete
from .events import append_refused
from .group_config import ConfigValue
from .group_type import GroupType
from .groups import NO_TOPICS, GroupHandler, GroupKind, Groups, GroupShard, TopicDirectory
from .kinds import KINDS
from .list_groups import handle_list, list_refusal

_ADMIN: Final[Kind[Groups]] = Kind(
    apis={
        ApiKey.LIST_GROUPS: Api(handle_list, list_refusal, Waits.NEVER),
        ApiKey.DELETE_GROUPS: Api(handle_delete, delete_refusal, Waits.WRITES, fan_out=DELETE_FAN_OUT),
    }
)


def make_topic(kinds: Sequence[GroupKind]) -> CoordinatorTopic[Groups]:
    """Make the topic for these types of groups."""
    tables = (*kinds, OFFSETS, _ADMIN)
    return CoordinatorTopic(
        "__consumer_offsets",
        (*tables, _make_overrides(kinds, tables)),
        key_of=lambda body: body.group_id or "",
        encode=encode_all,
        decode=decode,
        append_refused=append_refused,
        load=lambda groups, batch: groups.durable.load_batch(batch),
        count=lambda groups: len(groups.group_ids()),
        later=_make_later,
    )


def _make_later(records: Sequence[Record], ahead_ms: int) -> list[Record]:
    """The records with later times, which the age of offsets is counted from."""
    made: list[Record] = []
    for record in records:
        if isinstance(record, OffsetCommitted):
            expire_ms = record.expire_timestamp_ms
            record = record._replace(
                commit_timestamp_ms=record.commit_timestamp_ms + ahead_ms,
                expire_timestamp_ms=expire_ms if expire_ms == NONE else min(expire_ms + ahead_ms, MAX_LONG),
            )
        elif isinstance(record, GroupStored):
            record = record._replace(state_timestamp_ms=record.state_timestamp_ms + ahead_ms)
        made.append(record)
    return made


def _make_overrides(kinds: Sequence[GroupKind], tables: Sequence[Kind[Groups]]) -> Kind[Groups]:
    """The APIs of these tables that groups of some types answer themselves."""
    apis = {key: api for table in tables for key, api in table.apis.items()}
    overridden = dict.fromkeys(key for kind in kinds for key in kind.overrides)
    return Kind(
        apis={
            key: replace(
                apis[key],
                handler=_by_type(
                    {kind.group_type: kind.overrides[key] for kind in kinds if key in kind.overrides},
                    apis[key].handler,
                ),
            )
            for key in overridden
        }
    )


def _by_type(own: Mapping[GroupType[object], GroupHandler], others: Handler[Groups]) -> Handler[Groups]:
    """Handle a request by the type of its group, even if that is only in the log."""

    def handle(shard: GroupShard, request: Request, now_ms: int) -> None:
        groups, group_id = shard.state, request.body.group_id
        group = groups.groups.get(group_id)
        if group is None and any(group_id in groups.durable.of_type(each) for each in own):
            group = groups.find(group_id)
        handler = None if group is None else own.get(group.type)
        if group is None or handler is None:
            others(shard, request, now_ms)
        else:
            handler(shard, group, request, now_ms)

    return handle


OFFSETS_TOPIC: Final = make_topic(KINDS)


def new_groups(
    settings: GroupSettings,
    new_id: Callable[[], str],
    topics: TopicDirectory = NO_TOPICS,
    configs: Callable[[str], Mapping[str, ConfigValue]] = lambda _group_id: {},
) -> Groups:
    """State of a shard before its log is read. ``new_id`` returns a new unique string for each member id.
    Raises AssignorError if an assignor of the settings cannot be used.
    """
    return Groups(settings, new_id, KINDS, topics, configs)


def group_shard(settings: GroupSettings, new_id: Callable[[], str]) -> GroupShard:
    """A shard on its own, as tests and simulations drive it."""
    return Shard(OFFSETS_TOPIC, new_groups(settings, new_id))
