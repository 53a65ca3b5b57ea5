"""Records are walked over as they would be read one by one."""

from __future__ import annotations

from random import Random

import pytest

from kohort.log._record_checks import RecordWalk, UnreadableRecordError
from kohort.protocol import ErrorCode
from tests.fuzzing import damage
from tests.records import record

HEADERS: list[tuple[bytes, bytes | None]] = [(b"h", None), (b"h", b"xy"), (b"h", None)]


def drawn(random: Random) -> tuple[bytes, list[int], bool]:
    """Records in runs of those that are alike; their times, and whether one has no key."""
    out, keyless = b"", False
    times: list[int] = []
    while len(times) < random.choice([1, 20, 300, 9_000]):
        size, has_key = random.choice([0, 5, 40, 63, 64, 200, 9_000]), random.random() < 0.9
        headers = random.choice([0, 0, 0, 1, 3])
        time, rising = random.choice([0, 3, 60, -4, 8_000, 70_000]), random.choice([0, 1])
        for _ in range(random.choice([1, 3, 17, 150])):
            key = b"k%03d" % random.randrange(1_000) if has_key else None
            out += record(time, len(times), key, bytes(size), HEADERS[:headers])
            times.append(time)
            keyless = keyless or not has_key
            time += rising
    return out, times, keyless


def test_times_keys_and_order_are_those_of_the_records() -> None:
    for seed in range(60):
        data, times, keyless = drawn(Random(seed))
        for packed in (False, True):
            walk = RecordWalk(data, len(times), packed=packed)
            while not walk.advance(100):
                pass
            assert (walk.oldest, walk.newest, walk.keyless) == (min(times), max(times), keyless), seed
            assert not walk.unordered
            assert walk.at == len(data)


def test_one_by_one_each_has_its_time() -> None:
    data, times, _ = drawn(Random(3))
    walk = RecordWalk(data, len(times), packed=False)
    assert [walk.next()[0] for _ in times] == times


def test_a_wrong_byte_is_met_as_if_records_were_read_one_by_one() -> None:
    rows = [record(n % 50, n, b"key", b"value") for n in range(60)]
    good = b"".join(rows)
    random = Random(1)
    for at in range(len(good)):
        data = good[:at] + bytes([random.randrange(256)]) + good[at + 1 :]
        for packed in (False, True):
            quick, slow = RecordWalk(data, 60, packed=packed), RecordWalk(data, 60, packed=packed)
            assert _outcome(quick, 60) == _outcome(slow, 1), f"byte {at}"
            assert quick.unordered == slow.unordered or not packed, f"byte {at}"


def _outcome(walk: RecordWalk, at_a_time: int) -> object:
    """What the walk ends with; one at a time all are read as Apache Kafka reads them."""
    oldest, newest, keyless = walk.oldest, walk.newest, False
    try:
        if at_a_time > 1:
            assert walk.advance(at_a_time)
            return walk.oldest, walk.newest, walk.keyless
        while walk.left:
            time, has_key = walk.next()
            oldest, newest, keyless = min(oldest, time), max(newest, time), keyless or not has_key
        assert walk.advance(1)
    except UnreadableRecordError as error:
        return error.code
    return oldest, newest, keyless


@pytest.mark.parametrize("packed", [False, True])
def test_any_bytes_are_records_or_are_refused(packed: bool) -> None:
    rows = b"".join(record(n, n, b"key", b"value", HEADERS[: n % 3]) for n in range(40))
    random = Random(5)
    for data in (damage(rows, random) for _ in range(1_500)):
        outcome = _outcome(RecordWalk(data, 40, packed=packed), 1)
        assert outcome == _outcome(RecordWalk(data, 40, packed=packed), 40)
        codes = (ErrorCode.INVALID_RECORD, ErrorCode.UNKNOWN_SERVER_ERROR)
        assert isinstance(outcome, tuple) or outcome in codes


def test_fewer_records_than_none_are_refused() -> None:
    with pytest.raises(UnreadableRecordError, match="the header counts -3 records"):
        RecordWalk(b"", -3, packed=False).advance(1)
