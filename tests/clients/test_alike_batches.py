"""Batches drawn by chance, good and broken, are taken or refused as by the cluster of ``--bootstrap``, and
lie in the log as they do there.
"""

from __future__ import annotations

import time
import uuid
from random import Random
from typing import Any, NamedTuple

import pytest

from kohort.log import decode_records
from kohort.protocol import BATCH_OVERHEAD, ApiKey, Codec, CorruptBatchError, decompress, parse_batch_header
from kohort.protocol._batch import with_payload
from tests.broker.wire import Wire, batch, create_topic, part, produce
from tests.clients.alike.batches import DrawnBatch, message_set

pytestmark = [pytest.mark.clients, pytest.mark.kafka]

BATCHES = 500
REWRITTEN = ("uncompressed", "gzip", "snappy", "lz4", "zstd")
TOPICS: dict[str, Any] = {
    "plain": {},
    "stamping": {"message_timestamp_type": "LogAppendTime"},
    "compacted": {"cleanup_policy": "compact"},
    **{f"in-{codec}": {"compression_type": codec} for codec in REWRITTEN},
    "stamping-in-lz4": {"message_timestamp_type": "LogAppendTime", "compression_type": "lz4"},
    "strict": {"message_timestamp_before_max_ms": "3600000", "message_timestamp_after_max_ms": "3600000"},
}
#: Where it rewrites records, Apache Kafka runs out of memory at the first size (as may be at a damaged byte),
#: and writes null for the second.
UNLIKE = ("2147483647", "2147483648", "packed byte")
#: Kohort names no more records of a batch than this.
NAMED = 100


class Seen(NamedTuple):
    """What a Produce was answered, without texts and times."""

    error: int
    base_offset: int
    is_stamped: bool
    log_start_offset: int
    records: list[int]


def seen(answer: Any) -> Seen:
    return Seen(
        answer.error_code,
        answer.base_offset,
        answer.log_append_time_ms > 0,
        answer.log_start_offset,
        [error.batch_index for error in answer.record_errors or ()][:NAMED],
    )


def stored(wire: Wire, topic: str, offset: int) -> tuple[bytes, bytes]:
    """The batch at an offset, without its leader epoch, and its time where the broker has set that."""
    partition = part(
        ApiKey.FETCH, 11, "FetchTopic", "FetchPartition",
        partition=0, fetch_offset=offset, partition_max_bytes=1, current_leader_epoch=-1, log_start_offset=-1,
    )  # fmt: skip
    answer = wire.call(
        ApiKey.FETCH, 11,
        replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=1, isolation_level=0,
        session_id=0, session_epoch=-1,
        topics=[part(ApiKey.FETCH, 11, "FetchTopic", topic=topic, partitions=[partition])],
        forgotten_topics_data=[], rack_id="",
    )  # fmt: skip
    records = bytes(answer.responses[0].partitions[0].records)
    records = records[: parse_batch_header(records).size]
    if parse_batch_header(records).log_append_time:
        records = records[:17] + bytes(4) + records[21:35] + bytes(8) + records[43:]
    return records[:12], records[16:]


def anew(stored: tuple[bytes, bytes]) -> tuple[Any, Any]:
    """Fields and records of a batch that the broker has compressed: its bytes are the library's."""
    data = stored[0] + bytes(4) + stored[1]
    header = parse_batch_header(data)
    plain = bytes(decompress(header.codec, data[BATCH_OVERHEAD:]))
    fields = header._replace(length=0, crc=0)
    try:
        return fields, decode_records(with_payload(data, Codec.NONE, plain), fields)
    except CorruptBatchError:
        return fields, None  # it was sent so


@pytest.mark.parametrize("seed", range(4))
def test_what_is_drawn_is_taken_and_refused_alike(compared: tuple[str, str], seed: int) -> None:
    wires = [Wire(bootstrap, timeout_s=30) for bootstrap in compared]
    topics = {name: f"batches-{name}-{uuid.uuid4().hex[:8]}" for name in TOPICS}
    for wire in wires:
        for name, configs in TOPICS.items():
            assert not create_topic(wire, topics[name], **configs).error_code
    time.sleep(1)  # Apache Kafka's broker hears of its controller's changes a moment later
    for number in range(seed * BATCHES, (seed + 1) * BATCHES):
        random = Random(number)
        now_ms = int(time.time() * 1_000)
        if random.random() < 0.05:
            data, wrong = message_set(random, now_ms), ["old message set"]
        else:
            drawn = DrawnBatch(random, now_ms)
            data, wrong = drawn.data, drawn.wrong
        kind, version = random.choice(list(TOPICS)), random.choice([3, 6, 7, 8, 9, 12])
        topic, is_rewritten = topics[kind], "compression_type" in TOPICS[kind]
        if is_rewritten and any(size in " ".join(wrong) for size in UNLIKE):
            continue
        one, other = (seen(produce(wire, topic, data, version=version)) for wire in wires)
        assert one == other, f"batch {number} to {topic}, v{version}: {wrong}"
        if not one.error:
            places: Any = [stored(wire, topic, one.base_offset) for wire in wires]
            if is_rewritten:
                places = [anew(place) for place in places]
            assert places[0] == places[1], f"batch {number} in {topic}: {wrong}"
    for wire in wires:
        assert not produce(wire, topics["plain"], batch(1, timestamp_ms=now_ms)).error_code
        wire.close()
