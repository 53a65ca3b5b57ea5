"""The two tables of section 3.0, cell by cell.

Covers: protocol/_context.py.
"""

from __future__ import annotations

import pytest

from kohort.coordinator import Unready, append_error
from kohort.coordinator.groups.shards import OFFSETS_TOPIC
from kohort.protocol import ApiKey, ErrorCode

SERVED = tuple(OFFSETS_TOPIC.apis)


@pytest.mark.row("3.0/inactive", "3.0/not-here")
@pytest.mark.parametrize("api", SERVED)
def test_inactive_is_15_and_not_here_16_for_every_api(api: int) -> None:
    assert OFFSETS_TOPIC.unready_error(api, Unready.INACTIVE) == 15
    assert OFFSETS_TOPIC.unready_error(api, Unready.NOT_HERE) == 16


@pytest.mark.row("3.0/loading")
@pytest.mark.parametrize("api", SERVED)
def test_loading_is_14_but_for_heartbeat_and_sync(api: int) -> None:
    expected = {int(ApiKey.HEARTBEAT): 0, int(ApiKey.SYNC_GROUP): 27}.get(api, 14)
    assert OFFSETS_TOPIC.unready_error(api, Unready.LOADING) == expected


@pytest.mark.row("3.0/append")
@pytest.mark.parametrize(
    ("log", "client"),
    [
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 15),
        (ErrorCode.NOT_ENOUGH_REPLICAS, 15),
        (ErrorCode.REQUEST_TIMED_OUT, 15),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, 16),
        (ErrorCode.KAFKA_STORAGE_ERROR, 16),
        (ErrorCode.MESSAGE_TOO_LARGE, -1),
        (ErrorCode.RECORD_LIST_TOO_LARGE, -1),
        (ErrorCode.INVALID_FETCH_SIZE, -1),
        (ErrorCode.NETWORK_EXCEPTION, 14),
        (ErrorCode.INVALID_PRODUCER_EPOCH, 47),
    ],
)
def test_what_a_failed_write_means_to_a_client(log: ErrorCode, client: int) -> None:
    assert append_error(log) == client
