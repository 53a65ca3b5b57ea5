"""Partitions of keys as Java's producers choose them, and those of records without."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from kohort.producer import partition_of_key
from kohort.producer.partitioner import Sticky
from kohort.protocol import kafka_module, murmur2


@given(st.binary(max_size=60))
def test_murmur2_is_that_of_kafka_python(key: bytes) -> None:
    assert murmur2(key) == kafka_module("kafka.partitioner.default").murmur2(key) & 0xFFFFFFFF


def test_keys_go_where_apache_kafka_puts_them() -> None:
    # from Apache Kafka's own tests of Utils.murmur2
    assert murmur2(b"21") == -973932308 & 0xFFFFFFFF
    assert murmur2(b"foobar") == -790332482 & 0xFFFFFFFF
    assert murmur2(b"abc") == 479470107
    assert murmur2(b"a-little-bit-long-string") == -985981536 & 0xFFFFFFFF
    assert partition_of_key(b"21", 12) == (-973932308 & 0x7FFFFFFF) % 12


def test_a_partition_is_kept_until_a_batch_of_it_is_full() -> None:
    sticky = Sticky(100, random.Random(1))
    found = [sticky.partition(25, [0, 1, 2]) for _ in range(12)]
    assert [len(set(found[at : at + 4])) for at in (0, 4, 8)] == [1, 1, 1]
    assert found[0] != found[4] != found[8]


def test_a_topic_of_one_partition() -> None:
    sticky = Sticky(10, random.Random(1))
    assert {sticky.partition(9, [0]) for _ in range(5)} == {0}
