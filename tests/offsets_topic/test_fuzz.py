"""10,000 damaged inputs for each reader of the records of the offsets topic: a record or a named error."""

from __future__ import annotations

import random
from functools import partial

from kohort.offsets_topic import Commits, CorruptRecordError, Record, decode, decode_commit_value, records
from kohort.offsets_topic._encoded import load_commits
from kohort.protocol import BATCH_OVERHEAD, CorruptBatchError, MalformedMessageError, build_batch
from tests.fuzzing import fuzzed, inputs, refused, seeds
from tests.offsets_topic.test_records import GOLDEN

PAIRS = [(key, value) for _, key, value in GOLDEN.values()]


@fuzzed
@seeds
def test_keys(rng: random.Random) -> None:
    key, value = rng.choice(PAIRS)
    for damaged in inputs(key, rng):
        refused(partial(decode, damaged, value), CorruptRecordError)


@fuzzed
@seeds
def test_values_are_read_as_the_careful_reader_reads_them(rng: random.Random) -> None:
    key, value = rng.choice([pair for pair in PAIRS if pair[1] is not None])
    for damaged in inputs(value or b"", rng):
        try:
            careful: Record | None = records._read(key, damaged)
        except MalformedMessageError:
            careful = None
        try:
            assert decode(key, damaged) == careful
        except CorruptRecordError:
            assert careful is None


@fuzzed
@seeds
def test_the_records_of_a_batch(rng: random.Random) -> None:
    """What comes out of it reads as a record or is refused."""
    pairs = [(*rng.choice(PAIRS), ()) for _ in range(rng.choice((1, 2, 40)))]
    batch = bytes(build_batch(pairs, timestamp_ms=1))
    for damaged in inputs(batch[BATCH_OVERHEAD:], rng):
        by_group: Commits = {}
        try:
            others = list(load_commits(damaged, len(pairs), by_group, {}))
        except CorruptBatchError:
            continue
        for other in others:
            refused(partial(decode, other.key or b"", other.value), CorruptRecordError)
        for offsets in by_group.values():
            for value in offsets.values():
                decode_commit_value(value)
