"""Ownership in lists and in C: both do the same; and owned partitions as they are read.

Covers: assignors/_owned_partitions.py.
"""

from __future__ import annotations

import random
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.assignors import (
    CooperativeStickyAssignor,
    Member,
    RackPreference,
    StickyAssignor,
    TopicInfo,
    _ownership,
)
from kohort.assignors._group import IndexedGroup
from kohort.assignors._owned_partitions import OwnedPartitions, OwnedPartitionsReader, owned_partitions
from kohort.assignors._ownership import ListOwnership
from kohort.assignors.user_data import Claim, decode_sticky, encode_sticky
from kohort.protocol import Subscription, TopicPartition, has_native
from tests.native_parts import both

NATIVE = has_native("assignors")
if NATIVE:
    from kohort.assignors._native import NativeOwnership

Kind: TypeAlias = "type[ListOwnership | NativeOwnership]"
KINDS = pytest.mark.parametrize("kind", [ListOwnership, *([NativeOwnership] if NATIVE else [])])


def claim(text: str, generation: int = 1) -> OwnedPartitions:
    partitions = [TopicPartition(one[0], int(one[1:])) for one in text.split()]
    return OwnedPartitionsReader().sticky(encode_sticky(partitions, generation))


GROUP = IndexedGroup(["a", "b", "c"], ["t", "u"], [4, 3], [[0, 1], [0, 1, 2]], [[0, 1], [0, 1], [1]])


@KINDS
def test_owned_partitions_are_counted_and_distributed_by_class(kind: Kind) -> None:
    ownership = kind(GROUP, [claim("t0 t1 t2 u0"), claim("u1 t9 x0"), claim("t3 u2")])
    t, u = [(0, range(4))], [(1, [4, 5, 6])]
    assert ownership.owned(t) == [3, 0, 1]
    assert ownership.owned(u) == [1, 1, 1]
    ownership.distribute(t, [3, 0, 1], {0: 2, 1: 2})
    ownership.distribute(u, [1, 1, 1], {0: 1, 1: 1, 2: 1})
    assert ownership.assignment() == {
        "a": [("t", 0), ("t", 1), ("u", 0)],
        "b": [("t", 2), ("t", 3), ("u", 1)],
        "c": [("u", 2)],
    }
    ownership.withhold()
    assert ownership.assignment()["b"] == [("u", 1)]


@KINDS
def test_what_is_given_up_comes_from_all_topics(kind: Kind) -> None:
    ownership = kind(GROUP, [claim("t0 t1 t2 t3 u0 u1 u2"), claim(""), claim("")])
    ownership.distribute([(0, range(4)), (1, range(4, 7))], [7, 0, 0], {0: 4, 1: 3})
    assert ownership.assignment()["b"] == [("t", 2), ("t", 3), ("u", 2)]


_NUMBERS = st.lists(st.integers(-1, 9), max_size=9)
_CLAIMS = st.dictionaries(st.sampled_from(["t", "u", "vv", "w\u00e4"]), _NUMBERS, max_size=4)


@both("assignors")
@given(st.lists(st.tuples(_CLAIMS, st.integers(-1, 3), st.booleans()), max_size=6))
def test_claims_are_read_as_the_plain_decoder_reads_them(
    native: bool, members: list[tuple[dict[str, list[int]], int, bool]]
) -> None:
    reader = OwnedPartitionsReader(native)
    for claims, generation, generation_missing in members:
        partitions = [TopicPartition(topic, n) for topic, numbers in claims.items() for n in numbers]
        data = encode_sticky(partitions, generation)
        data = data[:-4] if generation_missing else data
        for each in (data, b"\x00\x01" + data, data[:-1], data + b"\x00"):
            assert flat(reader.sticky(each)) == flat(owned_partitions(decode_sticky(each)))


@both("assignors")
@given(st.lists(st.binary(max_size=40), max_size=5))
def test_no_bytes_make_the_reader_fail(native: bool, members: list[bytes]) -> None:
    reader = OwnedPartitionsReader(native)
    for data in members:
        assert flat(reader.sticky(data)) == flat(owned_partitions(decode_sticky(data)))


def test_partition_numbers_that_are_no_int32_are_no_partitions() -> None:
    claimed = owned_partitions(Claim([TopicPartition("t", 2**40), TopicPartition("t", 3)], 1))
    assert flat(claimed) == ([("t", -1), ("t", 3)], 1)


def flat(claimed: OwnedPartitions) -> tuple[list[tuple[str, int]], int]:
    topics = [topic for topic, units in claimed.layout for _ in range(units)]
    numbers = memoryview(claimed.numbers)
    found = [int.from_bytes(numbers[i : i + 4], "big", signed=True) for i in range(0, len(numbers), 4)]
    return list(zip(topics, found, strict=True)), claimed.generation


def random_members(rnd: random.Random, known: dict[str, TopicInfo]) -> dict[str, Member]:
    """Some want the same; claims collide, are stale, or of partitions that are not there."""
    same = [tuple(topic for topic in known if rnd.random() < 0.7) for _ in range(rnd.randint(1, 4))]
    members = {}
    for i in range(rnd.randint(1, 12)):
        name = f"m{i}"
        some = (rnd.choice([*known, "gone"]) for _ in range(rnd.randint(0, 15)))
        owned_now = {TopicPartition(topic, rnd.randint(-1, 12)) for topic in some}
        generation = rnd.randint(3, 5)
        data = encode_sticky(owned_now, generation)
        rack = rnd.choice([None, "r0", "r1"])
        subscription = Subscription(rnd.choice(same), data, tuple(sorted(owned_now)), generation, rack)
        members[name] = Member(name, subscription)
    return members


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("racks", list(RackPreference))
def test_lists_and_compiled_code_lead_to_the_same_answer(
    seed: int, racks: RackPreference, monkeypatch: pytest.MonkeyPatch
) -> None:
    rnd = random.Random(seed)
    for _ in range(40):
        known = {}
        for topic in "stuv":
            count = rnd.randint(0, 9)
            replicas = tuple(frozenset({f"r{rnd.randint(0, 1)}"}) for _ in range(count))
            known[topic] = TopicInfo(count, replicas if rnd.random() < 0.8 else ())
        members = random_members(rnd, known)
        for kind in (StickyAssignor, CooperativeStickyAssignor):
            assignor = kind(racks=racks, slack=rnd.choice([0, 0, 1]))
            monkeypatch.setattr(_ownership, "NATIVE", False)
            expected = assignor.assign(known, members)
            monkeypatch.setattr(_ownership, "NATIVE", NATIVE)
            assert assignor.assign(known, members) == expected
