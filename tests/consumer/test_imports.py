"""The package is cheap to import."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from kohort.protocol import build_batch

HEAVY = ("aiokafka", "kafka", "numpy", "pandas", "pyarrow", "pydantic", "pyspark")


def _loaded_after(code: str) -> set[str]:
    """Which of the heavy packages a fresh interpreter has after running this."""
    ask = f"{code}\nimport json, sys\nprint(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert _loaded_after("import kohort.consumer") == set()


def test_a_consumer_is_made_without_spark_arrow_and_pandas() -> None:
    code = "from kohort.consumer import GroupConsumer; GroupConsumer('t', bootstrap='b', group='g')"
    assert _loaded_after(code) <= {"pydantic"}


def test_the_first_requests_of_a_move_make_no_classes_of_messages() -> None:
    code = """
from kohort.consumer.consumer import _load_modules
from kohort.protocol import ApiKey, messages_of
_load_modules()
for api, structs in (
    (ApiKey.FETCH, ("FetchRequest", "FetchTopic", "FetchPartition")),
    (ApiKey.OFFSET_COMMIT, ("OffsetCommitRequest", "OffsetCommitRequestPartition")),
    (ApiKey.CONSUMER_GROUP_HEARTBEAT, ("GivenUpTopic", "GivenUpPartition")),
    (ApiKey.JOIN_GROUP, ("JoinGroupRequest", "JoinGroupRequestProtocol")),
    (ApiKey.SYNC_GROUP, ("SyncGroupRequest", "SyncGroupRequestAssignment")),
    (ApiKey.OFFSET_FETCH, ("OffsetFetchRequest", "OffsetFetchRequestTopics")),
):
    for name in structs:
        assert "__new__" in vars(getattr(messages_of(api), name)), name
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("records", [1, 1_000])
def test_the_first_records_load_nothing_that_was_not_loaded_at_the_start(records: int) -> None:
    data = bytes(build_batch([(None, b"v", [])] * records, timestamp_ms=0, base_offset=0))
    code = f"""
import sys
from kohort.consumer.reading.fetched_records import ChunkReader, prepare_checksum
from kohort.protocol import TopicPartition
prepare_checksum()
before = set(sys.modules)
assert len(ChunkReader(TopicPartition("orders", 0), {data!r}, 0).read()) == {records}
assert set(sys.modules) == before, set(sys.modules) - before
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_public_name_is_there() -> None:
    import kohort.consumer

    assert all(getattr(kohort.consumer, name) is not None for name in kohort.consumer.__all__)
    with pytest.raises(AttributeError, match="nothing_of_this_name"):
        _ = kohort.consumer.nothing_of_this_name
