"""Subscriptions and assignments: golden bytes, other clients' encoders, hostile bytes, round trips."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

import pytest
from aiokafka.coordinator.protocol import ConsumerProtocol
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from kohort.protocol import (
    SUBSCRIPTION_VERSION,
    Assignment,
    MalformedMessageError,
    Subscription,
    TopicPartition,
    WireReader,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    subscribed_topics,
)

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)
OWNING_T0 = Subscription(("t",), owned=(T0,), generation=5)

SUBSCRIPTIONS = [
    pytest.param(0, Subscription(("t",)), "0000 00000001 000174 ffffffff", id="v0"),
    pytest.param(
        2, OWNING_T0, "0002 00000001 000174 ffffffff 00000001 000174 00000001 00000000 00000005", id="v2"
    ),
    pytest.param(
        3,
        replace(OWNING_T0, rack="r1"),
        "0003 00000001 000174 ffffffff 00000001 000174 00000001 00000000 00000005 00027231",
        id="v3-with-rack",
    ),
]


@pytest.mark.row("10/subscription")
@pytest.mark.parametrize(("version", "subscription", "golden"), SUBSCRIPTIONS)
def test_subscription_has_the_golden_bytes(version: int, subscription: Subscription, golden: str) -> None:
    data = bytes.fromhex(golden)
    assert encode_subscription(subscription, version) == data
    assert decode_subscription(data) == replace(subscription, version=version)
    assert subscribed_topics(data) == frozenset({"t"})


@pytest.mark.row("10/assignment")
def test_assignment_has_the_golden_bytes() -> None:
    data = bytes.fromhex("0000 00000001 000174 00000002 00000000 00000001 ffffffff")
    assert encode_assignment([T0, T1], version=0) == data
    assert decode_assignment(data) == Assignment((T0, T1), None, 0)


@pytest.mark.row("10/librdkafka")
def test_librdkafkas_first_subscription_is_read() -> None:
    data = bytes.fromhex("0003 00000001 000174 00000000 00000000 ffffffff 0000")
    subscription = decode_subscription(data)
    assert subscription == Subscription(("t",), user_data=b"", generation=-1, rack=None, version=3)


@pytest.mark.parametrize("rack", ["ffff", "0000"], ids=["null", "empty"])
def test_a_null_or_empty_rack_is_no_rack(rack: str) -> None:
    data = encode_subscription(OWNING_T0, 2)[2:]
    assert decode_subscription(b"\x00\x03" + data + bytes.fromhex(rack)).rack is None


def test_a_newer_version_is_read_as_the_newest_known() -> None:
    data = encode_subscription(replace(OWNING_T0, rack="r"))[2:] + b"what v9 appends"
    assert decode_subscription(b"\x00\x09" + data) == replace(OWNING_T0, rack="r", version=9)
    assert subscribed_topics(b"\x00\x09" + data) == frozenset({"t"})
    assert decode_assignment(b"\x00\x09" + encode_assignment([T1])[2:] + b"more").partitions == (T1,)


@pytest.mark.parametrize("version", range(SUBSCRIPTION_VERSION + 1))
def test_trailing_bytes_are_ignored(version: int) -> None:
    data = encode_subscription(OWNING_T0, version)
    assert decode_subscription(data + b"tail") == decode_subscription(data)


def test_null_arrays_count_as_empty() -> None:
    assert decode_subscription(bytes.fromhex("0001 ffffffff ffffffff ffffffff")) == Subscription(
        (), version=1
    )


def test_no_assignment_bytes_mean_no_partitions() -> None:
    assert decode_assignment(b"").partitions == ()


def test_a_topic_that_comes_twice_is_joined() -> None:
    array = bytes.fromhex("00000002 000174 00000001 00000000 000174 00000001 00000001")
    assert WireReader(array).topic_partitions() == [T0, T1]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("", "2 bytes wanted"),
        ("ffff 00000000 ffffffff", "versions start at 0"),
        ("0000 7fffffff", "array of 2147483647 items"),
        ("0000 00000001 0005 74", "5 bytes wanted"),
        ("0000 00000001 ffff ffffffff", "null string"),
        ("0000 00000001 0001ff ffffffff", "not UTF-8"),
        ("0000 00000000 00000009", "9 bytes wanted"),
    ],
)
def test_unreadable_topics_are_an_error(data: str, reason: str) -> None:
    with pytest.raises(MalformedMessageError, match=reason):
        decode_subscription(bytes.fromhex(data))
    assert subscribed_topics(bytes.fromhex(data)) is None


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("0001 00000000 ffffffff 7fffffff", "array of 2147483647 items"),
        ("0001 00000000 ffffffff 00000001 000174 7fffffff 00000000", "array of 2147483647 items"),
        ("0002 00000000 ffffffff 00000000 0000", "4 bytes wanted"),
        ("0003 00000000 ffffffff 00000000 00000000 0002", "2 bytes wanted"),
    ],
)
def test_the_coordinator_reads_topics_even_where_the_rest_is_broken(data: str, reason: str) -> None:
    with pytest.raises(MalformedMessageError, match=reason):
        decode_subscription(bytes.fromhex(data))
    assert subscribed_topics(bytes.fromhex(data)) == frozenset()


@pytest.mark.parametrize("version", [-1, SUBSCRIPTION_VERSION + 1])
def test_only_known_versions_are_written(version: int) -> None:
    with pytest.raises(ValueError, match="choose one from 0 to 3"):
        encode_subscription(OWNING_T0, version)
    with pytest.raises(ValueError, match="choose one from 0 to 3"):
        encode_assignment([T0], version=version)


def test_a_string_too_long_for_the_protocol_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 32767"):
        encode_subscription(Subscription(("t" * 0x8000,)))


def test_subscriptions_are_written_in_javas_order() -> None:
    owned = (TopicPartition("b", 1), TopicPartition("a", 2), TopicPartition("b", 0), TopicPartition("a", 1))
    written = decode_subscription(encode_subscription(Subscription(("b", "a"), owned=owned)))
    assert written.topics == ("a", "b")
    assert written.owned == tuple(sorted(owned))


def test_assignments_keep_the_leaders_order() -> None:
    partitions = (TopicPartition("b", 1), TopicPartition("b", 0), TopicPartition("a", 2))
    assert decode_assignment(encode_assignment(partitions)).partitions == partitions


_topics = st.text(st.characters(codec="utf-8"), max_size=5)
_int32 = st.integers(-(2**31), 2**31 - 1)
_partitions = st.lists(st.builds(TopicPartition, _topics, _int32), max_size=8)
_subscriptions = st.builds(
    Subscription,
    topics=st.lists(_topics, max_size=5).map(lambda topics: tuple(sorted(topics))),
    user_data=st.none() | st.binary(max_size=10),
    owned=_partitions.map(lambda owned: tuple(sorted(owned))),
    generation=_int32,
    rack=st.none() | st.text(st.characters(codec="utf-8"), min_size=1, max_size=5),
)


@given(_subscriptions)
def test_what_is_written_is_read_back(subscription: Subscription) -> None:
    assert decode_subscription(encode_subscription(subscription)) == subscription


@given(_subscriptions, st.data())
def test_a_subscription_cut_short_is_an_error_and_never_a_crash(
    sub: Subscription, data: st.DataObject
) -> None:
    whole = encode_subscription(sub)
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(MalformedMessageError):
        decode_subscription(whole[:cut])


@given(st.binary(max_size=80))
def test_random_bytes_are_read_or_refused(data: bytes) -> None:
    for decode in (decode_subscription, decode_assignment):
        with suppress(MalformedMessageError):
            assert decode(data) is not None


@given(_subscriptions)
def test_kafka_python_writes_the_same_subscription(subscription: Subscription) -> None:
    entry = ConsumerProtocolSubscription.TopicPartition
    theirs = ConsumerProtocolSubscription(
        SUBSCRIPTION_VERSION,
        list(subscription.topics),
        subscription.user_data,
        [entry(topic, numbers) for topic, numbers in _grouped(subscription.owned)],
        subscription.generation,
        subscription.rack,
    )
    data = encode_subscription(subscription)
    assert theirs.encode() == data
    assert subscribed_topics(data) == frozenset(ConsumerProtocolSubscription.decode(data).topics)


@given(_partitions, st.none() | st.binary(max_size=10), st.integers(0, SUBSCRIPTION_VERSION))
def test_kafka_python_reads_our_assignment(
    partitions: list[TopicPartition], user_data: bytes | None, version: int
) -> None:
    theirs = ConsumerProtocolAssignment.decode(encode_assignment(partitions, user_data, version))
    ours = decode_assignment(encode_assignment(partitions, user_data, version))
    assert [(a.topic, list(a.partitions)) for a in theirs.assigned_partitions] == _grouped(partitions)
    assert _grouped(ours.partitions) == _grouped(partitions)
    assert (theirs.user_data, theirs.version) == (ours.user_data, ours.version) == (user_data, version)


@given(_subscriptions, _partitions)
def test_aiokafka_writes_the_same_bytes(subscription: Subscription, partitions: list[TopicPartition]) -> None:
    metadata = ConsumerProtocol.METADATA(0, list(subscription.topics), subscription.user_data)
    assert metadata.encode() == encode_subscription(subscription, version=0)
    assignment = ConsumerProtocol.ASSIGNMENT(0, _grouped(partitions), b"")
    assert assignment.encode() == encode_assignment(partitions, b"", version=0)


def _grouped(partitions: Iterable[TopicPartition]) -> list[tuple[str, list[int]]]:
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return list(topics.items())


def test_topics_that_come_again_are_read_once_and_others_anew() -> None:
    """A leader of hundreds that all want the same has their names once, and not for each of them."""
    said = [("a", "b"), ("a", "b"), ("a", "b", "c"), ("a",), (), ("a", "b")]
    subscriptions = [Subscription(topics, b"data", generation=n) for n, topics in enumerate(said)]
    read = [decode_subscription(encode_subscription(one)) for one in subscriptions]
    assert read == subscriptions
    assert read[0].topics is read[1].topics
