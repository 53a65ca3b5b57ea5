"""User data of the sticky assignors: golden bytes, versions without a marker, hostile bytes."""

from __future__ import annotations

import pytest
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyAssignorUserDataV1
from hypothesis import given
from hypothesis import strategies as st
from kafka.coordinator.assignors.sticky.user_data import StickyAssignorUserData

from kohort.assignors import CooperativeStickyAssignor, StickyAssignor
from kohort.assignors.user_data import (
    Claim,
    cooperative_claim,
    decode_cooperative,
    decode_sticky,
    encode_cooperative,
    encode_sticky,
)
from kohort.protocol import Subscription, TopicPartition

T0 = TopicPartition("t", 0)
STICKY_V0 = bytes.fromhex("00000001 000174 00000001 00000000")
STICKY_V1 = STICKY_V0 + bytes.fromhex("00000005")


@pytest.mark.row("10/sticky")
def test_sticky_user_data_has_the_golden_bytes() -> None:
    assert encode_sticky([T0], 5) == STICKY_V1
    assert decode_sticky(STICKY_V1) == Claim([T0], 5)


def test_sticky_user_data_without_a_generation_is_read_as_the_lowest() -> None:
    assert decode_sticky(STICKY_V0) == Claim([T0], -1)


@pytest.mark.parametrize("data", [None, b"", b"\x00", STICKY_V0[:-1], b"\x7f\xff\xff\xff", b"\xff" * 12])
def test_unreadable_sticky_user_data_claims_nothing(data: bytes | None) -> None:
    assert list(decode_sticky(data).partitions) == []


def test_cooperative_user_data_is_the_generation() -> None:
    assert encode_cooperative(7) == bytes.fromhex("00000007")
    assert [decode_cooperative(data) for data in (None, b"", b"\x00\x00", encode_cooperative(7))] == [
        -1,
        -1,
        -1,
        7,
    ]


def test_a_generation_is_found_in_cooperative_user_data_that_has_the_form_of_sticky() -> None:
    assert decode_cooperative(STICKY_V1) == 5
    assert decode_cooperative(encode_sticky([], 6)) == 6
    assert decode_cooperative(encode_cooperative(7) + b"\x00") == 7  # a newer version, with a field more


@pytest.mark.parametrize(("version", "generation"), [(1, 9), (2, 4), (3, 4)])
def test_cooperative_user_data_counts_only_without_a_generation_field(version: int, generation: int) -> None:
    subscription = Subscription(("t",), encode_cooperative(9), (T0,), 4, version=version)
    assert cooperative_claim(subscription) == Claim((T0,), generation)


def test_a_member_reset_to_no_generation_is_not_raised_by_its_user_data() -> None:
    subscription = Subscription(("t",), encode_cooperative(9), (T0,), -1, version=3)
    assert cooperative_claim(subscription).generation == -1


def test_each_sticky_assignor_remembers_its_own_assignment() -> None:
    one, other = StickyAssignor(), StickyAssignor()
    assert one.user_data(["t"]) is None
    one.on_assignment([T0], 5)
    assert one.user_data(["t"]) == STICKY_V1
    assert other.user_data(["t"]) is None
    one.on_assignment([], 6)
    assert one.user_data(["t"]) == bytes.fromhex("00000000 00000006")


def test_a_cooperative_assignor_sends_its_generation() -> None:
    assignor = CooperativeStickyAssignor()
    assert assignor.user_data(["t"]) == bytes.fromhex("ffffffff")
    assignor.on_assignment([T0], 0)
    assert assignor.user_data(["t"]) == bytes.fromhex("00000000")


_partitions = st.lists(
    st.builds(TopicPartition, st.text("abc", min_size=1, max_size=2), st.integers(0, 99)),
    unique=True,
    max_size=9,
)


@given(_partitions, st.integers(-1, 2**31 - 1))
def test_aiokafka_writes_the_same_sticky_user_data(partitions: list[TopicPartition], generation: int) -> None:
    data = encode_sticky(partitions, generation)
    assert decode_sticky(data) == Claim(sorted(partitions), generation)
    assert StickyAssignorUserDataV1(_grouped(partitions), generation).encode() == data


@given(_partitions, st.integers(-1, 2**31 - 1))
def test_kafka_pythons_sticky_user_data_is_read_although_a_version_stands_in_front(
    partitions: list[TopicPartition], generation: int
) -> None:
    data = StickyAssignorUserData(_grouped(partitions), generation).encode()
    assert data.startswith(b"\x00\x01")
    assert decode_sticky(data) == Claim(sorted(partitions), generation)


def _grouped(partitions: list[TopicPartition]) -> list[tuple[str, list[int]]]:
    topics: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        topics.setdefault(topic, []).append(number)
    return list(topics.items())


@given(st.binary(max_size=60))
def test_no_bytes_make_a_claim_fail(data: bytes) -> None:
    claim = decode_sticky(data)
    assert len(claim.partitions) * 4 <= len(data)
    assert decode_cooperative(data) == -1 or len(data) >= 4
