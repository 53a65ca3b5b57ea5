"""The machine stops, the disk fills up or fails at any operation: what was acknowledged and flushed is there,
what was never sent is not, and the log can be written again.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Iterator

import pytest

from kohort.log import LogConfig
from kohort.testing.faults import SimulatedCrash
from tests.log.model import KILLED, Model, Survival

pytestmark = pytest.mark.slow(4)

DELETE = LogConfig(
    segment_bytes=400,
    index_interval_bytes=100,
    retention_bytes=900,
    segment_index_bytes=10_000,
    file_delete_delay_ms=0,
)
COMPACT = LogConfig(
    segment_bytes=400,
    index_interval_bytes=100,
    cleanup_policy="compact,delete",
    min_cleanable_dirty_ratio=0.1,
    segment_index_bytes=10_000,
    file_delete_delay_ms=0,
)
#: Scenarios for each config and error; ``make soak-simulation`` runs more.
SCENARIOS = 3
CONFIGS_BY_NAME = {"delete": DELETE, "compact": COMPACT}
CONFIGS = pytest.mark.parametrize("config", CONFIGS_BY_NAME.values(), ids=CONFIGS_BY_NAME)


def steps(model: Model, seed: int = 5) -> Iterator[bool]:
    """Appends that roll, flushes, checkpoints, deletions, retention, compaction, a clean stop and a start."""
    rng = random.Random(seed)
    for number in range(26):
        model.now_ms += 1_000
        yield model.append([b"key-%d" % rng.randrange(4) for _ in range(1 + number % 3)])
        if number % 6 == 2:
            yield model.flush()
            yield model.checkpoint()
        if number == 9:
            yield model.delete_records(model.end // 4)
        if number % 10 == 7:
            yield model.compact()
            yield model.retain()
        if number == 20:
            yield model.close()
    yield model.close()


def count_of(config: LogConfig, seed: int = 5) -> int:
    """Operations of all steps, which go well."""
    model = Model(config)
    before = len(model.fs.operations)
    fs = model.fs
    count = 0
    for done in steps(model, seed):
        assert done
        model.check()
        if model.fs is not fs:
            count += len(fs.operations) - before
            fs, before = model.fs, 0
    return count


@CONFIGS
def test_a_crash_at_any_operation_or_within_a_write_loses_nothing_that_was_promised(
    config: LogConfig,
) -> None:
    rng = random.Random(1)
    at, crashes, refusals = 0, 0, 0
    while True:
        at += 1
        model = Model(config)
        model.fs.crash_at(at, byte=rng.choice((None, 1, 20, 70)))
        try:
            for _ in steps(model):
                pass
            break
        except SimulatedCrash:
            crashes += 1
        crashed = model.fs
        torn = Survival(seed=rng.randrange(1 << 30), again=rng.choice((None, 3, 9)))
        for survival in (KILLED, Survival(seed=-1), torn):
            model.fs = crashed
            kept = (dict(model.sent), dict(model.unanswered), model.end, model.flushed, model.starts)
            model.crash(survival)
            model.check()
            model.fs.heal()
            assert model.append([b"key-1"])
            assert model.flush()
            model.check()
            refusals += model.refusals
            model.sent, model.unanswered, model.end, model.flushed, model.starts = kept
    assert crashes > 150
    assert refusals < crashes


@CONFIGS
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO], ids=errno.errorcode.get)
def test_an_error_of_any_operation_leaves_what_was_acknowledged_and_writing_goes_on(
    config: LogConfig, error: int
) -> None:
    """A failed sync loses what it should have kept: the log stops, and the next start reads the disk."""
    for seed in range(SCENARIOS):
        fail_each_operation(config, error, seed)


def fail_each_operation(config: LogConfig, error: int, seed: int) -> None:
    """Run the steps once for each operation, which fails then."""
    count_of(config, seed)
    failed = 0
    while fails_at(failed + 1, error, config, seed):
        failed += 1
    assert failed > 100


def fails_at(at: int, error: int, config: LogConfig, seed: int) -> bool:
    """Whether there is such an operation, which fails then; until it does the steps are those of count_of."""
    model = Model(config)
    model.fs.fail_at(at, error)
    failed = False
    for done in steps(model, seed):
        failed = failed or bool(model.fs.failed)
        if done:
            if failed:
                model.check()
            continue
        (operation,) = model.fs.failed
        synced = operation.kind in ("sync", "sync_dir")
        model.fs.heal()
        if model.log.offline:
            # a close that failed is not clean
            model.crash(Survival(seed=1_000 * seed + at) if synced else KILLED)
        model.check()
        assert model.append([b"key-2"])
        assert model.flush()
        model.check()
        return True
    return failed


@CONFIGS
def test_a_full_disk_stays_readable_and_is_written_again_once_there_is_room(config: LogConfig) -> None:
    rng = random.Random(3)
    for room in range(0, 700, 13):
        model = Model(config)
        for _ in range(rng.randrange(6)):
            assert model.append([b"key"])
        model.fs.capacity_bytes = model.fs.used_bytes + room
        refused = 0
        for number in range(12):
            refused += not model.append([b"key-%d" % number], value_bytes=number)
            assert not model.log.offline
            model.check()
        assert refused
        model.fs.capacity_bytes = None
        assert model.append([b"key"])
        assert model.flush()
        model.check()
        model.crash(Survival(seed=-1))
        model.check()
