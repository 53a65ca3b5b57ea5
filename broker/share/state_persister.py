"""The way to the share coordinators, over the client that all brokers have of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol

from ...protocol import ApiKey, KafkaError, SharePartitionKey
from ...protocol.messages import read_share_group_state, write_share_group_state
from ...share_partitions import StateBatch, StoredState
from .persister import ShareKey, StateId, StoredPartition

if TYPE_CHECKING:
    from ...client.share_state import ShareStateClient

#: Share partitions whose keys in writing are remembered.
_MOST_KEYS: Final = 10_000


class OwnCoordinator(Protocol):
    """The share coordinator on this broker."""

    async def answer_one(self, api_key: ApiKey, key: SharePartitionKey, text: str, row: object) -> Any:
        """Answer one row of a request; ``text`` is the key in writing."""


class StatePersister:
    """A ``Persister`` that asks share coordinators: for a write first its own broker's, which most often is
    the one, without a way to look it up and retries around it. ``client`` makes the client of them, for the
    first request.
    """

    def __init__(self, client: Callable[[], ShareStateClient], own: OwnCoordinator) -> None:
        self._client = cache(client)
        self._own = own

    async def read(self, key: ShareKey, leader_epoch: int) -> StoredPartition:
        asked = read_share_group_state.PartitionData(key.number, leader_epoch)
        (row,) = (await self._client().read_state(key.group, {key.topic_id: [asked]})).values()
        _check(row.error_code, row.error_message)
        return StoredPartition(
            StateId(row.state_epoch, row.created_ms),
            row.start_offset,
            [
                StateBatch(first, last, StoredState(state), count)
                for first, last, state, count in row.state_batches
            ],
        )

    async def write(
        self,
        key: ShareKey,
        state: StateId,
        leader_epoch: int,
        start_offset: int,
        done_count: int,
        batches: Sequence[StateBatch],
    ) -> None:
        asked = write_share_group_state.PartitionData(
            key.number,
            state.epoch,
            leader_epoch,
            start_offset,
            done_count,
            [write_share_group_state.StateBatch(*batch) for batch in batches],
            state.created_ms,
        )
        written = _in_writing(key)
        row = await self._own.answer_one(ApiKey.WRITE_SHARE_GROUP_STATE, *written, asked)
        if _is_passing(row.error_code):
            # another broker's, or not loaded yet
            (row,) = (await self._client().write_state(key.group, {key.topic_id: [asked]})).values()
        _check(row.error_code, row.error_message)


@lru_cache(_MOST_KEYS)
def _in_writing(key: ShareKey) -> tuple[SharePartitionKey, str]:
    """Return the key of the share coordinator, also in writing, which takes a while."""
    made = SharePartitionKey(*key)
    return made, str(made)


def _is_passing(code: int) -> bool:
    """Return whether an error ends by itself, or when another broker is asked."""
    if not code:
        return False
    from ...client.share_state import PASSING

    return code in PASSING


def _check(code: int, message: str | None) -> None:
    if code:
        raise KafkaError(code, message or "")
