"""Record batches decoded into Arrow, beside the readers of kafka-python and aiokafka.

``python -m benchmarks.spark_decode [--records 200000] [--rounds 5]``

Every reader gets the same bytes, checks the checksums and hands out key, value, offset and timestamp of each
record: kohort as Arrow columns, the others as the objects their consumers give. Processor time of one thread,
best of the rounds; the last columns are kohort's rate over theirs.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable
from typing import Any

import cramjam
from crc32c import crc32c

from kohort.consumer.reading import arrow
from kohort.protocol import BATCH_OVERHEAD, Codec, build_batch, iter_batches

Reader = Callable[[bytes], int]
Content = Callable[[random.Random, int], tuple[bytes, bytes]]

SEED = 20_240_601


def fixed(rng: random.Random, number: int) -> tuple[bytes, bytes]:
    """8 bytes of key, 100 of value."""
    return b"%08d" % (number % 10**8), rng.randbytes(100)


def order(rng: random.Random, number: int) -> tuple[bytes, bytes]:
    """A JSON document of varying length."""
    customer = rng.randrange(10**6)
    document = {
        "order": number,
        "customer": customer,
        "items": [rng.randrange(10**5) for _ in range(rng.randrange(1, 12))],
        "note": "x" * rng.randrange(60),
    }
    return b"customer-%d" % customer, json.dumps(document).encode()


#: Name, content, records in a batch, codec.
CASES: list[tuple[str, Content, int, Codec]] = [
    ("8 + 100 bytes, 500 a batch", fixed, 500, Codec.NONE),
    ("JSON, 500 a batch", order, 500, Codec.NONE),
    ("JSON, 500 a batch, lz4", order, 500, Codec.LZ4),
    ("JSON, 10 a batch", order, 10, Codec.NONE),
]


def make(content: Content, per_batch: int, codec: Codec, records: int) -> bytes:
    rng = random.Random(SEED)
    out = bytearray()
    for base in range(0, records, per_batch):
        rows = [(*content(rng, base + n), ()) for n in range(per_batch)]
        batch = build_batch(rows, timestamp_ms=1_700_000_000_000 + base, base_offset=base)
        out += compressed(batch, codec) if codec else batch
    return bytes(out)


def compressed(batch: bytearray, codec: Codec) -> bytearray:
    assert codec is Codec.LZ4
    batch = batch[:BATCH_OVERHEAD] + bytes(cramjam.lz4.compress(bytes(batch[BATCH_OVERHEAD:])))
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    batch[22] |= codec
    batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
    return batch


def by_kohort(data: bytes) -> int:
    return sum(batch.num_rows for batch in arrow.decode(data, topic="orders", partition=0))


def by_kafka_python(data: bytes) -> int:
    from kafka.record.default_records import DefaultRecordBatch

    return _by_objects(data, DefaultRecordBatch)


def by_aiokafka(data: bytes) -> int:
    from aiokafka.record.default_records import DefaultRecordBatch

    return _by_objects(data, DefaultRecordBatch)


def _by_objects(data: bytes, reader: Any) -> int:
    count = 0
    for position, header in iter_batches(data):
        batch = reader(data[position : position + header.size])
        assert batch.validate_crc()
        for record in batch:
            _ = record.key, record.value, record.offset, record.timestamp
            count += 1
    return count


READERS: dict[str, Reader] = {
    "kohort": by_kohort,
    "kafka-python": by_kafka_python,
    "aiokafka": by_aiokafka,
}


def rate(reader: Reader, data: bytes, records: int, rounds: int) -> float | None:
    """Records per second of processor time; None where the reader does not know the codec."""
    best = float("inf")
    for _ in range(rounds):
        began = time.thread_time()
        try:
            found = reader(data)
        except Exception as error:
            if "codec" in repr(error).lower():
                return None
            raise
        best = min(best, time.thread_time() - began)
        assert found == records, f"{found} records read, {records} written"
    return records / best


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark_decode", description=__doc__)
    parser.add_argument("--records", type=int, default=200_000, help="in each case; a multiple of 500")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.records % 500 or arguments.records <= 0:
        parser.error("--records must be a multiple of 500")
    peers = [name for name in READERS if name != "kohort"]
    titles = [f"{name:>13}" for name in READERS] + [f"{'/ ' + name:>15}" for name in peers]
    print(f"{'thousand records a second':28}", *titles)
    for name, content, per_batch, codec in CASES:
        data = make(content, per_batch, codec, arguments.records)
        rates = {
            reader: rate(read, data, arguments.records, arguments.rounds) for reader, read in READERS.items()
        }
        cells = [f"{'no codec' if r is None else f'{r / 1000:,.0f}':>13}" for r in rates.values()]
        ours = rates["kohort"]
        assert ours is not None
        for peer in peers:
            theirs = rates[peer]
            cells.append(f"{'-' if theirs is None else f'{ours / theirs:.1f}':>15}")
        print(f"{name:28}", *cells, flush=True)


if __name__ == "__main__":
    main()
