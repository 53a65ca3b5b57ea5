"""What seldom happens to a consumer group (KIP-848) goes as on the cluster of ``--bootstrap``."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kohort.protocol import ApiKey, Subscription, TopicPartition, encode_assignment, encode_subscription
from tests.broker.wire import create_topic
from tests.clients.alike.consumer_groups import Side, begin, describe

pytestmark = [pytest.mark.clients, pytest.mark.kafka]

#: What the steps of a scene are answered.
Scene = Callable[[Side], Iterator[Any]]

#: A coordinator may see a topic a moment after the metadata has it.
SEEN_S = 1.0
#: Member ids that brokers choose end with one.
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")


def beat(side: Side, member: str, epoch: int, owned: Any = None, **fields: Any) -> Any:
    said = {
        "instance_id": None,
        "rack_id": None,
        "rebalance_timeout_ms": -1,
        "subscribed_topic_names": None,
        "subscribed_topic_regex": None,
        "server_assignor": None,
        "topic_partitions": owned,
    }
    about = {"group_id": side.group, "member_id": member, "member_epoch": epoch}
    return side.wire.call(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, **about, **said | fields)


def join(side: Side, member: str, *topics: str, **fields: Any) -> Any:
    names = [side.names[topic] for topic in topics]
    said = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": names, "server_assignor": "range"}
    return beat(side, member, 0, [], **said | fields)


def create(side: Side, topic: str, partitions: int, told: str = "") -> uuid.UUID:
    """Create a topic; answers call it ``told``."""
    name = side.names.setdefault(topic, f"{topic}-{uuid.uuid4().hex[:8]}")
    assert create_topic(side.wire, name, partitions).error_code == 0
    topic_id: uuid.UUID = _described(side, name, lambda found: not found.error_code).topic_id
    side.by_id[topic_id], side.by_name[name] = told or topic, topic
    time.sleep(SEEN_S)
    return topic_id


def delete(side: Side, topic: str) -> None:
    side.wire.call(ApiKey.DELETE_TOPICS, 5, topic_names=[side.names[topic]], timeout_ms=10_000)
    _described(side, side.names[topic], lambda found: found.error_code)
    time.sleep(SEEN_S)


def grow(side: Side, topic: str, count: int) -> None:
    more = {"name": side.names[topic], "count": count, "assignments": None}
    side.wire.call(ApiKey.CREATE_PARTITIONS, 1, topics=[more], timeout_ms=5_000, validate_only=False)
    _described(side, side.names[topic], lambda found: len(found.partitions) == count)
    time.sleep(SEEN_S)


def _described(side: Side, name: str, done: Callable[[Any], Any]) -> Any:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        asked = [{"topic_id": None, "name": name}]
        answer = side.wire.call(ApiKey.METADATA, 12, topics=asked, allow_auto_topic_creation=False)
        if done(answer.topics[0]):
            return answer.topics[0]
        time.sleep(0.05)
    raise AssertionError(f"{name} did not change: {answer}")


def commit(side: Side, version: int, epoch: int, **topic: Any) -> Any:
    partitions = [{"partition_index": 0, "committed_offset": 7, "committed_metadata": ""}]
    about = {"group_id": side.group, "member_id": "m", "group_instance_id": None}
    topics = [{**topic, "partitions": partitions}]
    return side.wire.call(
        ApiKey.OFFSET_COMMIT, version, generation_id_or_member_epoch=epoch, topics=topics, **about
    )


def recreated(side: Side) -> Iterator[Any]:
    """A topic is deleted and recreated while a member owns it; it goes on claiming the old one."""
    old = create(side, "r", 4)
    yield join(side, "m", "r")
    yield beat(side, "m", 2)
    delete(side, "r")
    yield beat(side, "m", 2)
    yield describe(side, 1)
    new = create(side, "r", 4, "another r")
    yield beat(side, "m", 3, [])
    yield beat(side, "m", 4)
    full = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": [side.names["r"]]}
    yield beat(side, "m", 4, [(old, [0, 1, 2, 3])], **full)
    yield beat(side, "m", 4, [(new, [0, 1, 2, 3])])
    yield commit(side, 10, 4, topic_id=old)
    yield commit(side, 9, 2, name=side.names["r"])
    yield describe(side, 1)


def grown(side: Side) -> Iterator[Any]:
    """A topic of two members grows, and the one that has to give nothing up is asked first."""
    topic_id = create(side, "g", 2)
    yield join(side, "m", "g")
    yield join(side, "n", "g")
    yield beat(side, "m", 2)
    yield beat(side, "m", 2, [(topic_id, [0])])
    yield beat(side, "n", 3)
    grow(side, "g", 5)
    for member, epoch in (("n", 3), ("m", 3), ("n", 4)):
        yield beat(side, member, epoch)
    yield beat(side, "m", 3, [(topic_id, [0])])
    yield describe(side, 1)


def wrong_state(side: Side) -> Iterator[Any]:
    """Two members claim what they do not have, at every epoch."""
    a, unknown = side.ids["a"], uuid.UUID(int=7)
    full = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": [side.names["a"]]}
    yield join(side, "m", "a")
    yield join(side, "n", "a")
    for owned in (
        [(a, list(range(12)))],
        [(a, [0, 0, 0])],
        [(unknown, [0])],
        [(a, [999])],
        [(a, [-1])],
        [(a, []), (a, [0])],
        [(a, [0]), (a, [11])],
        [(a, [0, 1, 2, 3, 4, 5]), (unknown, [1])],
    ):
        yield beat(side, "m", 2, owned, **full)
        yield beat(side, "m", 3, owned, **full)
        yield beat(side, "n", 3, owned)
        yield beat(side, "n", 2, owned)
        yield beat(side, "m", 1, owned)
    for epoch in (2**31 - 1, -(2**31)):
        yield beat(side, "m", epoch)
    for timeout_ms in (0, -5, -(2**31)):
        yield beat(side, "m", 3, rebalance_timeout_ms=timeout_ms)
    yield beat(side, "m", 3, subscribed_topic_names=[""])
    yield beat(side, "m", 4, subscribed_topic_names=["a b", "..", "x" * 300])
    yield describe(side, 1)


def ids_again(side: Side) -> Iterator[Any]:
    """Member ids and instance ids are taken again, by their owner and by others, and epochs go back."""
    yield join(side, "m", "a", instance_id="i")
    yield join(side, "n", "a", instance_id="i")
    yield beat(side, "n", 2, instance_id="i")
    yield beat(side, "m", -2, instance_id="i")
    yield join(side, "n", "a", instance_id="i")
    for epoch in (2, -2, -1):
        yield beat(side, "m", epoch, instance_id="i")
    yield join(side, "m", "a", instance_id="i")
    yield join(side, "m", "a")
    for member, epoch, owned in (
        ("n", 3, None),
        ("n", 2, None),
        ("m", 2, None),
        ("m", 3, []),
        ("m", 1, None),
    ):
        yield beat(side, member, epoch, owned, instance_id="i" if member == "n" else None)
    yield join(side, "m", "a")
    yield beat(side, "m", 2, [])
    leaving = [("", "i"), ("m", None), ("nobody", None)]
    members = [
        {"member_id": each, "group_instance_id": instance, "reason": None} for each, instance in leaving
    ]
    yield side.wire.call(ApiKey.LEAVE_GROUP, 5, group_id=side.group, members=members)
    yield describe(side, 1)


def nothing_to_read(side: Side) -> Iterator[Any]:
    """The only member subscribes to nothing, to what does not exist, and to an empty expression."""
    yield join(side, "m")
    yield beat(side, "m", 1, [])
    yield beat(side, "m", 1, subscribed_topic_names=["missing"])
    yield beat(side, "m", 2)
    yield beat(side, "m", 2, subscribed_topic_names=[])
    yield describe(side, 1)
    yield beat(side, "m", -1)
    yield describe(side, 1)
    yield join(side, "n", subscribed_topic_names=None, subscribed_topic_regex="")
    yield describe(side, 1)


def upgraded_while_a_classic_member_hangs(side: Side) -> Iterator[Any]:
    """A consumer joins a group whose classic member owns all, says nothing, and comes back later."""
    metadata = encode_subscription(Subscription((side.names["a"],)), version=3)
    asked = {
        "group_id": side.group,
        "session_timeout_ms": 45_000,
        "rebalance_timeout_ms": 60_000,
        "group_instance_id": "i",
        "protocol_type": "consumer",
        "protocols": [("range", metadata)],
        "reason": None,
    }
    classic = side.wire.call(ApiKey.JOIN_GROUP, 9, member_id="", **asked).member_id
    about = {"group_id": side.group, "member_id": classic, "group_instance_id": "i"}
    every = encode_assignment([TopicPartition(side.names["a"], number) for number in range(12)], version=3)
    kind = {"protocol_type": "consumer", "protocol_name": "range"}
    yield side.wire.call(
        ApiKey.SYNC_GROUP, 5, generation_id=1, assignments=[(classic, every)], **kind, **about
    ).error_code
    yield join(side, "m", "a")
    yield describe(side, 1)
    yield beat(side, "m", 2)
    yield side.wire.call(ApiKey.HEARTBEAT, 4, generation_id=1, **about)
    yield side.wire.call(ApiKey.JOIN_GROUP, 9, member_id=classic, **asked)
    yield describe(side, 1)
    yield side.wire.call(ApiKey.SYNC_GROUP, 5, generation_id=2, assignments=[], **kind, **about).error_code
    yield beat(side, "m", 2)
    leaving = [{"member_id": classic, "group_instance_id": "i", "reason": None}]
    yield side.wire.call(ApiKey.LEAVE_GROUP, 5, group_id=side.group, members=leaving).error_code
    yield beat(side, "m", 2)
    yield describe(side, 1)


def expressions(side: Side) -> Iterator[Any]:
    """Expressions that RE2J cannot read, and some that it can."""
    for regex in (
        *("[", "(", ")", "*", "a**", "a|*", "a++", "a??", "+", "^*", "()", "|", "(?)", "(?-)", "(?i", "(?:"),
        *(
            "a{2,1}",
            "a{1001}",
            "a{1,1001}",
            "x{1000,}",
            "x{,2}",
            "a{2}{3}",
            "{",
            "a{1",
            "[z-a]",
            "[^]",
            "[]a]",
        ),
        *("(?<=a)b", "(?<!a)b", "(?!x)", "(?=x)", "(?#c)a", "(?<n>a)", "(?<n", "(?P<n", "(?<1>a)", "(?P=n)"),
        *("(?P<n>a)(?<n>b)", "(?s-i:x)", "(?x) a", "(?U)a", "(?i)A-.*", "[[:word:]]", "[[:nope:]]", "[a&&b]"),
        *("\\", "\\8", "\\1", "\\C", "\\pX", "\\pN", "\\p{Greek}", "\\p{IsGreek}", "\\x{110000}", "\\x4"),
        *(
            "\\Q",
            "\\Qa.b\\E",
            "\\Z",
            "\\G",
            "\\R",
            "\\h",
            "\\u0041",
            "\\cA",
            "é+",
            "(a+)+$",
            "(x*)*y",
            "." * 5_000,
        ),
    ):
        answer = join(side, "m", subscribed_topic_names=None, subscribed_topic_regex=regex)
        # the epoch depends on whether the one before is resolved by now
        yield regex, answer.error_code, answer.error_message


@pytest.mark.parametrize(
    "scene",
    [
        recreated,
        grown,
        wrong_state,
        ids_again,
        nothing_to_read,
        upgraded_while_a_classic_member_hangs,
        expressions,
    ],
)
def test_it_goes_as_on_the_other_broker(sides: tuple[Side, Side], scene: Scene) -> None:
    begin(sides)
    theirs, ours = (scene(side) for side in sides)
    for number, answers in enumerate(zip(theirs, ours, strict=True), 1):
        one, other = (_UUID.sub("?", repr(s.told(a))) for s, a in zip(sides, answers, strict=True))
        assert one == other, f"step {number}"
