"""ListPartitionReassignments, asked of either broker: nothing is being moved."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.protocol import ApiKey
from tests.broker.wire import Wire, create_topic

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize("topics", [None, [], "own", [("nothing-is-named-so", [0])]])
def test_no_partition_is_being_moved(link: Wire, name: str, topics: Any) -> None:
    create_topic(link, name, 1)
    asked = [(name, [0])] if topics == "own" else topics
    answer = link.call(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, timeout_ms=1_000, topics=asked)
    assert (answer.error_code, answer.error_message, answer.topics) == (0, None, [])
