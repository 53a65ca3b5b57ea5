"""The compiled part of the offsets topic: what Python makes of the same bytes, and no crash.

Covers: offsets_topic/_native.pyx.
"""

from __future__ import annotations

import random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.offsets_topic import (
    Commits,
    GroupDeleted,
    Known,
    OffsetCommitted,
    OffsetDeleted,
    OtherRecord,
    Record,
    _encoded,
    encode,
    encode_all,
    records,
)
from kohort.offsets_topic._encoded import load_commits
from kohort.protocol import CorruptBatchError
from tests.fuzzing import inputs
from tests.leaks import require_no_leak
from tests.native_parts import needs_native
from tests.offsets_topic.test_encoded import RUNS, TIME_MS, commit, payload

pytestmark = needs_native("offsets_topic")

#: Groups with their offsets, and other records; or the text of an error.
Loaded = tuple[Commits, list[OtherRecord]] | str


def loaded(data: bytes, count: int) -> Loaded:
    by_group: Commits = {}
    try:
        others = list(load_commits(data, count, by_group, {}))
    except CorruptBatchError as error:
        return str(error)
    return by_group, others


def by_python(data: bytes, count: int) -> Loaded:
    with patch.object(_encoded, "NATIVE", False):
        return loaded(data, count)


@settings(max_examples=200)
@given(RUNS)
def test_what_is_entered_is_what_python_enters(runs: list[tuple[Record, int]]) -> None:
    pairs = [encode(record) for record, count in runs for _ in range(count)]
    data = payload(pairs)
    assert loaded(data, len(pairs)) == by_python(data, len(pairs))


@pytest.mark.parametrize("seed", range(6))
def test_damaged_bytes_are_entered_or_refused_as_by_python(seed: int) -> None:
    rng = random.Random(seed)
    pairs = [commit(rng.choice(["g", "h" * 70, "ä"]), "t" * rng.randint(0, 80), i) for i in range(12)]
    whole = payload(pairs)
    for damaged in inputs(whole, rng):
        found, expected = loaded(damaged, len(pairs)), by_python(damaged, len(pairs))
        assert isinstance(found, str) == isinstance(expected, str)
        if not isinstance(found, str):
            assert found == expected


@pytest.mark.parametrize("cut", range(130))
def test_bytes_may_end_anywhere(cut: int) -> None:
    data = payload([commit("group", "topic", i) for i in range(3)])[:cut]
    found, expected = loaded(data, 3), by_python(data, 3)
    assert found == expected or (isinstance(found, str) and isinstance(expected, str))


@given(st.binary(max_size=80), st.integers(0, 3))
def test_no_bytes_are_too_much(data: bytes, count: int) -> None:
    found, expected = loaded(data, count), by_python(data, count)
    assert found == expected or (isinstance(found, str) and isinstance(expected, str))


def test_what_is_no_batch_at_all_is_refused() -> None:
    from kohort.offsets_topic._native import take_commits

    nothing: Any = None
    for position in (-1, 4, 2**62):
        with pytest.raises(IndexError):
            take_commits(b"abc", position, {}, {}, _encoded._learn_partition)
    with pytest.raises(TypeError):
        take_commits(nothing, 0, {}, {}, _encoded._learn_partition)
    with pytest.raises(KeyError):
        take_commits(payload([commit()]), 0, {}, {}, lambda _partition, _known: True)


def test_no_memory_stays_behind() -> None:
    names = [f"group-{i}" for i in range(10)]
    data = payload(
        [commit(name, "topic", i) for name in names for i in range(10)] + [commit(metadata="note")]
    )
    known: Known = {}
    list(load_commits(data, 101, {}, known))

    def work() -> None:
        list(load_commits(data, 101, {}, known))
        loaded(data[:-30], 101)

    require_no_leak(work, [*known.values(), data], 300)


#: Mostly what is written, and sometimes what has no room in a record.
NUMBERS = st.integers(-2, 2**31 - 1) | st.integers(-(2**65), 2**65) | st.booleans() | st.none()
NAMES = st.text(max_size=5) | st.sampled_from(["g" * 32_767, "g" * 32_768, "\ud800", None])
PLAIN = st.builds(
    OffsetCommitted,
    st.sampled_from(["g", "group"]),
    st.sampled_from(["t", "topic"]),
    st.integers(0, 200),
    st.integers(-1, 2**63 - 1),
    st.integers(-1, 2**31 - 1),
    st.just(""),
    st.integers(0, 2**45),
    st.just(-1),
    st.just(b"") | st.binary(min_size=16, max_size=16),
)
ODD: Any = st.builds(
    OffsetCommitted,
    NAMES,
    NAMES,
    NUMBERS,
    NUMBERS,
    NUMBERS,
    NAMES,
    NUMBERS,
    st.just(-1) | NUMBERS,
    st.binary(),
)
OTHERS = st.builds(OffsetDeleted, st.just("g"), st.text(max_size=5), st.integers(0, 9))


def written(given_records: list[Any]) -> object:
    try:
        return encode_all(given_records)
    except Exception as error:
        return type(error)


@given(st.lists(PLAIN | OTHERS | st.just(GroupDeleted("g")), max_size=12) | st.lists(PLAIN | ODD, max_size=3))
def test_what_is_written_is_what_python_writes(given_records: list[Any]) -> None:
    with patch.object(records, "NATIVE", False):
        expected = written(given_records)
    assert written(given_records) == expected


def test_a_commit_of_another_shape_is_left_to_python() -> None:
    short: Any = tuple.__new__(OffsetCommitted, ("g", "t", 1))
    whole = OffsetCommitted("g", "t", 1, 2, 3, "", TIME_MS, -1, b"i" * 16)
    with patch.object(records, "NATIVE", False):
        expected = written([short])
    assert written([short]) == expected
    given_records: list[Any] = [whole, whole._replace(metadata="note"), GroupDeleted("g")]
    require_no_leak(lambda: encode_all(given_records), [*given_records, whole.topic_id], 300)
