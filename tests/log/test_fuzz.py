"""10,000 damaged inputs for each reader of files: nothing but the errors it names, and no wrong record."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache, partial

import pytest
from hypothesis import settings

from kohort.log import CorruptLogError, DataFolderError, LogConfig, at_once, decode_records
from kohort.log._checkpoints import read_epochs, read_offsets, read_properties, read_topic_id, write_offsets
from kohort.log._producers import decode_snapshot
from kohort.protocol import (
    BATCH_OVERHEAD,
    Codec,
    CorruptBatchError,
    KafkaError,
    TopicPartition,
    compress,
    iter_batches,
    parse_batch_header,
    verify_batch,
)
from kohort.testing.faults import FaultyFileSystem
from tests.fuzzing import EXAMPLES, INPUTS, damage, fuzzed, inputs, refused, seeds
from tests.log.batches import NOW_MS, batch, marker
from tests.log.disks import FOLDER, batches_of, disk, opened

pytestmark = pytest.mark.slow(6)

READS = 10
#: After a clean stop and after another one: 10,000 together.
halved = settings(fuzzed, max_examples=EXAMPLES // 2)
CONFIG = LogConfig(segment_bytes=700, index_interval_bytes=60)


@cache
def written() -> tuple[FaultyFileSystem, frozenset[tuple[int, bytes]]]:
    """A log of a few segments with everything in it; values hold batches of their own, to lead astray."""
    fs = disk()
    log = opened(fs, CONFIG)
    for number in range(12):
        if number % 6 == 5:
            log.append(marker(9, committed=False), now_ms=NOW_MS, from_client=False)
        elif number % 6 == 3:
            log.append(batch(2, producer_id=9, transactional=True), now_ms=NOW_MS, from_client=False)
        else:
            decoy = bytearray(batch())
            decoy[:8] = log.log_end_offset.to_bytes(8, "big")
            log.append(batch(1 + number % 3, value=bytes(decoy)), now_ms=NOW_MS, leader_epoch=number // 6)
    log.close()
    assert len(log._segments.all) > 2
    fs = fs.after_kill()
    sent = {
        (base, content[16:])
        for path in fs.paths()
        if path.endswith(".log")
        for base, _, content in batches_of(fs.content(path))
    }
    return fs, frozenset(sent)


def require_sent(fs: FaultyFileSystem, *, clean: bool, sent: frozenset[tuple[int, bytes]]) -> None:
    """Open the log and read it from many offsets: records as they were sent, or an error that is named."""
    try:
        log = opened(fs, CONFIG, clean=clean)
        # after a clean stop the last batch is believed: its offset may be anything
        for offset in range(log.log_start_offset, log.log_end_offset, 3)[:READS]:
            records = bytes(log.read(offset, 500, committed=offset % 2 == 0).records)
            if clean:
                continue
            for position, header in iter_batches(records):
                verify_batch(records, header, position)
                content = records[position + 16 : position + header.size]
                assert (header.base_offset, content) in sent
        at_once(log.find_timestamp(NOW_MS))
        at_once(log.find_newest())
        log.append(batch(), now_ms=NOW_MS)
    except (CorruptLogError, DataFolderError, KafkaError):
        return


@halved
@seeds
@pytest.mark.parametrize("clean", [False, True], ids=["unclean", "clean"])
def test_damaged_segments(clean: bool, rng: random.Random) -> None:
    fs, sent = written()
    logs = [path for path in fs.paths() if path.endswith(".log")]
    for path in rng.choices(logs, k=INPUTS):
        damaged = fs.after_kill()
        damaged.put(path, damage(fs.content(path), rng))
        require_sent(damaged, clean=clean, sent=sent)


@halved
@seeds
@pytest.mark.parametrize("clean", [False, True], ids=["unclean", "clean"])
def test_damaged_files_beside_the_segments(clean: bool, rng: random.Random) -> None:
    """Indexes, snapshots, epochs, the topic's id: a reader gets the right records all the same."""
    fs, sent = written()
    others = [path for path in fs.paths() if path.startswith(FOLDER) and not path.endswith(".log")]
    for path in rng.choices(others, k=INPUTS):
        damaged = fs.after_kill()
        damaged.put(path, damage(fs.content(path), rng))
        try:
            log = opened(damaged, CONFIG, clean=clean)
        except (CorruptLogError, DataFolderError):
            continue
        for offset in rng.choices(range(log.log_end_offset), k=4):
            records = bytes(log.read(offset, 1, committed=False).records)
            (header,) = [found for _, found in iter_batches(records)]
            assert header.base_offset <= offset <= header.last_offset
            assert (header.base_offset, records[16:]) in sent


@fuzzed
@seeds
def test_batches_and_records(rng: random.Random) -> None:
    """The header, the checksum, and what is behind them where the checksum is not asked."""
    whole = batch(5, value=b"v" * 20)
    header = parse_batch_header(whole)
    codec = rng.choice(list(Codec))
    payload = bytes(compress(codec, whole[BATCH_OVERHEAD:]))
    packed = header._replace(attributes=int(codec), length=BATCH_OVERHEAD - 12 + len(payload))
    for data in inputs(payload, rng):
        content = whole[:BATCH_OVERHEAD] + data
        fitting = packed._replace(length=len(content) - 12)
        refused(partial(decode_records, content, fitting), CorruptBatchError)
    for data in inputs(whole, rng):
        try:
            for position, found in iter_batches(data):
                verify_batch(data, found, position)
                assert data[position + 16 : position + found.size] in whole + whole
                decode_records(data, found, position)
        except CorruptBatchError:
            continue


@fuzzed
@seeds
def test_small_files(rng: random.Random) -> None:
    fs = disk()
    fs.make_dirs(FOLDER)
    write_offsets(fs, "/data/offsets", {TopicPartition("orders", n): n * 1_000 for n in range(4)})
    files: list[tuple[str, bytes, Callable[[], object]]] = [
        ("/data/offsets", fs.content("/data/offsets"), lambda: read_offsets(fs, "/data/offsets")),
        ("/data/epochs", b"0\n3\n0 0\n2 17\n9 4000\n", lambda: read_epochs(fs, "/data/epochs")),
        ("/data/meta", b"version=1\ncluster.id=abc\nnode.id=1\n", lambda: read_properties(fs, "/data/meta")),
        (
            f"{FOLDER}/partition.metadata",
            b"version: 0\ntopic_id: wsj7xB1yQHKFRfVFnIIwDA",
            lambda: read_topic_id(fs, FOLDER),
        ),
    ]
    for path, content, read in files:
        for data in inputs(content, rng):
            fs.put(path, data)
            refused(read, DataFolderError)
    for data in inputs(snapshot(), rng):
        refused(partial(decode_snapshot, data), CorruptBatchError)


@cache
def snapshot() -> bytes:
    fs, _ = written()
    (*_, newest) = [path for path in fs.paths() if path.endswith(".snapshot")]
    return fs.content(newest)
