"""Committed offsets: stored, read, removed and expired, for groups of every type."""

from typing import Final

from ...offsets_topic import OffsetCommitted, OffsetDeleted
from ...protocol import ApiKey
from ...protocol.messages.offset_delete import OffsetDeleteResponse
from ..engine.shard import Api, FanOut, Kind, Waits
from ..groups.durable import Durable
from ..groups.groups import Groups, GroupShard
from . import commit, delete, expiry, fetch


def _activate_expiry(shard: GroupShard, now_ms: int) -> None:
    shard.state.durable.on_loaded()
    expiry.start(shard, now_ms)


def _unload_waiting(shard: GroupShard, _now_ms: int) -> None:
    shard.state.durable = Durable()


#: The table of offsets.
OFFSETS: Final[Kind[Groups]] = Kind(
    apis={
        ApiKey.OFFSET_COMMIT: Api(commit.handle_commit, commit.refused_commit),
        # a commit that waited could come after the marker that ends its transaction
        ApiKey.TXN_OFFSET_COMMIT: Api(commit.handle_commit, commit.refused_commit, Waits.NEVER),
        ApiKey.OFFSET_FETCH: Api(
            fetch.handle_fetch,
            fetch.fetch_refusal,
            Waits.WRITES,
            overdue=None,
            fan_out=FanOut(fetch.split_fetch, fetch.join_fetches, exact=True),
        ),
        ApiKey.OFFSET_DELETE: Api(
            delete.handle_delete, lambda _request, error: OffsetDeleteResponse(error), Waits.WRITES
        ),
    },
    applies={
        OffsetCommitted: lambda groups, run, at, producer_id: groups.durable.commit(run, at, producer_id),
        OffsetDeleted: lambda groups, run, _at, _producer_id: groups.durable.remove_offsets(run),
    },
    ends_transaction=lambda groups, producer_id, committed: groups.durable.end_transaction(
        producer_id, committed=committed
    ),
    timers={expiry.RETENTION: expiry.on_retention_timer},
    activate=_activate_expiry,
    unload=_unload_waiting,
)
