"""Finding topics and partitions: also where a request's version lets it say too little."""

from __future__ import annotations

import pytest

from kohort.protocol import ErrorCode
from tests.broker.wire import Wire, batch, create_topic, fetch, produce


@pytest.mark.parametrize("missing", ["", "no-such-topic"])
def test_a_missing_topic_is_one_error_for_its_partition(wire: Wire, name: str, missing: str) -> None:
    create_topic(wire, name)
    assert fetch(wire, missing, 0)[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert produce(wire, missing, batch()).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
