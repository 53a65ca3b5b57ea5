"""What a leader needs of the share coordinator: the stored state of share partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from ...protocol import ErrorCode, KafkaError
from ...protocol.named_tuples import NamedTuple
from ...share_partitions import StateBatch

_E = ErrorCode

#: What clients are told if the state cannot be read or written; UNKNOWN_SERVER_ERROR for all others.
_TOLD = {
    _E.NOT_COORDINATOR: _E.COORDINATOR_NOT_AVAILABLE,
    _E.COORDINATOR_NOT_AVAILABLE: _E.COORDINATOR_NOT_AVAILABLE,
    _E.COORDINATOR_LOAD_IN_PROGRESS: _E.COORDINATOR_NOT_AVAILABLE,
    _E.GROUP_ID_NOT_FOUND: _E.GROUP_ID_NOT_FOUND,
    _E.UNKNOWN_TOPIC_OR_PARTITION: _E.UNKNOWN_TOPIC_OR_PARTITION,
    _E.KAFKA_STORAGE_ERROR: _E.KAFKA_STORAGE_ERROR,
    _E.FENCED_LEADER_EPOCH: _E.NOT_LEADER_OR_FOLLOWER,
    _E.FENCED_STATE_EPOCH: _E.NOT_LEADER_OR_FOLLOWER,
}

#: Errors of a write after which the share partition is not this leader's any more, or is not any more at all:
#: INVALID_REQUEST says that its state was deleted.
LOST = frozenset(
    {
        _E.FENCED_LEADER_EPOCH,
        _E.FENCED_STATE_EPOCH,
        _E.GROUP_ID_NOT_FOUND,
        _E.UNKNOWN_TOPIC_OR_PARTITION,
        _E.INVALID_REQUEST,
    }
)


class ShareKey(NamedTuple):
    """A share partition: a group, and a partition by its topic's id."""

    group: str
    topic_id: UUID
    number: int


class StateId(NamedTuple):
    """Which state of a share partition is meant. ``epoch`` rises when the state is replaced, and begins anew
    with a group that was deleted: then ``created_ms`` tells two apart, which is -1 if it is not known.
    """

    epoch: int
    created_ms: int = -1


class StoredPartition(NamedTuple):
    """What is stored of a share partition; ``start_offset`` is -1 as long as nobody has read it."""

    state: StateId
    start_offset: int
    batches: Sequence[StateBatch]


class Persister(Protocol):
    """The way to the share coordinators. Both methods raise KafkaError."""

    async def read(self, key: ShareKey, leader_epoch: int) -> StoredPartition:
        """Read the state as the leader of this epoch; earlier leaders cannot write from then on."""
        ...

    async def write(
        self,
        key: ShareKey,
        state: StateId,
        leader_epoch: int,
        start_offset: int,
        done_count: int,
        batches: Sequence[StateBatch],
    ) -> None:
        """Write what has changed in the state that was read; ``done_count`` are the offsets from
        ``start_offset`` on that are done.
        """
        ...


def told_error(error: KafkaError) -> KafkaError:
    """Return what a client is told of an error of the share coordinator."""
    return KafkaError(_TOLD.get(error.code, _E.UNKNOWN_SERVER_ERROR), error.message or "")
