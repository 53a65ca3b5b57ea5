"""Requests of transactions, drawn by chance, are answered as by the cluster of ``--bootstrap``.

Most sequences wait after each end until its markers are written, so that every answer can be compared. Others
do not wait, neither for markers nor for coordinators that load. When a broker has written its markers is its
own affair, so they repeat a request, as clients do, until the answer is another than to come again. That
answer has to be alike, as well as all that can be read in the end.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from random import Random

import pytest

from kohort.protocol import ApiKey, parse_batch_header
from tests.broker.metadata.topic_requests import delete_topics
from tests.broker.wire import Wire, create_topic, offset_at
from tests.clients.alike.transactions import REQUESTS, Asking, Fields, Producer, Side, alike, learn
from tests.clients.raw import RawMember

pytestmark = [pytest.mark.clients, pytest.mark.kafka]

STEPS = 120
#: Apache Kafka's broker hears of its controller's changes a moment after the client has.
HEARD_S = 0.5
#: The last versions of the first protocol. At level 0 Apache Kafka cannot write what later ones need.
FIRST_PROTOCOL = {
    ApiKey.PRODUCE: 11,
    ApiKey.TXN_OFFSET_COMMIT: 4,
    ApiKey.ADD_PARTITIONS_TO_TXN: 3,
    ApiKey.END_TXN: 4,
}
#: What the next transaction begins with, or ends: drawn while the markers of the last may still be written.
WITHOUT_WAITING = {
    ApiKey.INIT_PRODUCER_ID: 3,
    ApiKey.ADD_PARTITIONS_TO_TXN: 12,
    ApiKey.ADD_OFFSETS_TO_TXN: 4,
    ApiKey.END_TXN: 16,
    ApiKey.PRODUCE: 8,
    ApiKey.TXN_OFFSET_COMMIT: 6,
}
#: What can be read in the end.
READ = (
    ApiKey.OFFSET_FETCH,
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.DESCRIBE_PRODUCERS,
    ApiKey.DESCRIBE_TRANSACTIONS,
)
MANY_PARTITIONS = 100
ENDING = {ApiKey.END_TXN, ApiKey.INIT_PRODUCER_ID}


def begin(side: Side) -> None:
    """Make the topics, and find the coordinator: the first who asks has its topic made."""
    make_topics(side)
    deadline = time.monotonic() + 20
    while side.wire.call(ApiKey.FIND_COORDINATOR, 3, key=side.producers[0].name, key_type=1).error_code:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    while side.wire.call(ApiKey.FIND_COORDINATOR, 3, key=side.group, key_type=0).error_code:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    time.sleep(HEARD_S)


def make_topics(side: Side) -> None:
    """Make the topics, and wait until all partitions are served."""
    for topic in side.topics:
        assert create_topic(side.wire, topic, side.partitions).error_code == 0
        deadline = time.monotonic() + 20
        for partition in range(side.partitions):
            while offset_at(side.wire, topic, -1, partition=partition).error_code:
                assert time.monotonic() < deadline
                time.sleep(0.1)


@pytest.mark.parametrize("seed", range(16))
def test_what_is_drawn_is_answered_alike(compared: tuple[str, str], seed: int) -> None:
    compare(compared, seed)


@pytest.mark.parametrize("level", [1, 0])
def test_what_is_drawn_is_answered_alike_at_lower_levels(compared: tuple[str, str], level: int) -> None:
    try:
        set_level(compared, level)
        for seed in range(100, 103):
            compare(compared, seed, {} if level else FIRST_PROTOCOL)
    finally:
        set_level(compared, 2)


def set_level(compared: tuple[str, str], level: int) -> None:
    """Let transaction.version be at this level."""
    for bootstrap in compared:
        with Wire(bootstrap, timeout_s=30) as wire:
            kind = 1 if level == 2 else 3
            row = {"feature": "transaction.version", "max_version_level": level, "upgrade_type": kind}
            answer = wire.call(ApiKey.UPDATE_FEATURES, 1, feature_updates=[row])
            assert answer.error_code == 0, answer
    time.sleep(HEARD_S)


def compare(compared: tuple[str, str], seed: int, last: Mapping[ApiKey, int] | None = None) -> None:
    """Draw a sequence of requests, of versions up to ``last``, and let both answer them."""
    prefix = f"alike-{uuid.uuid4().hex[:8]}"
    sides = [Side(bootstrap, prefix, [f"{prefix}-a", f"{prefix}-b"]) for bootstrap in compared]
    random = Random(seed)
    told: list[str] = []
    try:
        for side in sides:
            begin(side)
        kinds = random.choices(list(REQUESTS), [row[0] for row in REQUESTS.values()], k=STEPS)
        kinds[:2] = [ApiKey.INIT_PRODUCER_ID] * 2
        for number, key in enumerate(kinds):
            version = random.randint(*versions_of(key, last or {}))
            take(sides, number, key, version, random.randrange(1 << 30), told)
    finally:
        for side in sides:
            side.wire.close()


@pytest.mark.parametrize("seed", range(200, 206))
def test_what_is_drawn_without_waiting_is_answered_alike_and_ends_alike(
    compared: tuple[str, str], seed: int
) -> None:
    prefix = f"alike-{uuid.uuid4().hex[:8]}"
    topics = [f"{prefix}-a", f"{prefix}-b"]
    sides = [Side(bootstrap, prefix, topics, partitions=MANY_PARTITIONS) for bootstrap in compared]
    random = Random(seed)
    told: list[str] = []
    try:
        for side in sides:
            make_topics(side)
            for key_type, name in ((1, side.producers[0].name), (0, side.group)):
                side.wire.call(ApiKey.FIND_COORDINATOR, 3, key=name, key_type=key_type)
        kinds = random.choices(list(WITHOUT_WAITING), list(WITHOUT_WAITING.values()), k=STEPS)
        kinds[:2] = [ApiKey.INIT_PRODUCER_ID] * 2
        for number, key in enumerate(kinds):
            take_without_waiting(sides, number, key, random, told)
        for side in sides:
            side.settle()
        for key in READ * 3:
            take(sides, STEPS, key, REQUESTS[key][2], random.randrange(1 << 30), told)
    finally:
        for side in sides:
            delete_topics(side.wire, *side.topics)
            side.wire.close()


def take_without_waiting(
    sides: list[Side], number: int, key: ApiKey, random: Random, told: list[str]
) -> None:
    """One step on both, repeated until the coordinator is ready for it.

    Only what may be stored before the last marker waits for it: its offset would be a broker's own affair.
    """
    version, seed = random.randint(*versions_of(key, {})), random.randrange(1 << 30)
    answers = []
    for side in sides:
        asking = Asking(seed, side, version)
        fields = REQUESTS[key][3](asking)
        if may_overtake_marker(asking.producer, key, fields):
            side.settle()
        body = side.ask_until_ready(key, version, fields)
        learn(asking, key, fields, body)
        answers.append(side.told(body))
    theirs, ours = answers
    told.append(f"{number}. {key.name} v{version} {fields}: {ours}")
    assert alike(ours, theirs), "\n".join([*told[-25:], f"ours:   {ours}", f"theirs: {theirs}"])


def may_overtake_marker(producer: Producer, key: ApiKey, fields: Fields) -> bool:
    """Return whether a partition takes a write though the producer's last marker is not there yet.

    It does if it is part of the last transaction by its epoch, or of none.
    """
    if key == ApiKey.PRODUCE:
        header = parse_batch_header(fields["topic_data"][0].partition_data[0].records)
        same = header.transactional and header.producer_epoch == producer.epoch
    elif key == ApiKey.TXN_OFFSET_COMMIT:
        same = fields["producer_epoch"] == producer.epoch
    else:
        return False
    return not same or producer.keeps_epoch


def versions_of(key: ApiKey, last: Mapping[ApiKey, int]) -> tuple[int, int]:
    _, low, high, _ = REQUESTS[key]
    return low, min(high, last.get(key, high))


def take(sides: list[Side], number: int, key: ApiKey, version: int, seed: int, told: list[str]) -> None:
    """One step on both: the same request, and answers that must be alike."""
    fields_of = REQUESTS[key][3]
    answers = []
    for side in sides:
        asking = Asking(seed, side, version)
        fields = fields_of(asking)
        body = side.ask(key, version, fields)
        learn(asking, key, fields, body)
        answers.append(side.told(body))
    theirs, ours = answers
    told.append(f"{number}. {key.name} v{version} {fields}: {ours}")
    assert alike(ours, theirs), "\n".join([*told[-25:], f"ours:   {ours}", f"theirs: {theirs}"])
    if key in ENDING:
        for side in sides:
            side.settle()


#: Generation, member id and instance id of who commits; "M" stands for the member, "I" for its instance id.
METADATA = [
    (generation, member, instance)
    for generation in (-3, -2, -1, 0, 1, 7)
    for member in ("", "M", "x")
    for instance in (None, "I", "i")
]
KINDS = ("absent", "simple", "classic", "static", "left", "consumer", "consumer left")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", [3, 4, 5])
def test_who_commits_is_checked_alike(compared: tuple[str, str], kind: str, version: int) -> None:
    prefix = f"checked-{uuid.uuid4().hex[:8]}"
    found = []
    for bootstrap in compared:
        side = Side(bootstrap, prefix, [f"{prefix}-a"])
        try:
            begin(side)
            found.append(checked(side, kind, version))
        finally:
            side.wire.close()
    theirs, ours = found
    assert {who: code for who, code in ours.items() if theirs[who] != code} == {}, theirs


def checked(side: Side, kind: str, version: int) -> dict[tuple[int, str, str | None], int]:
    """The error code that each member's TxnOffsetCommit is answered in a group of this kind."""
    instance = "I" if kind == "static" else None
    member = RawMember(
        side.bootstrap,
        side.group,
        side.topics[0],
        session_ms=60_000,
        rebalance_ms=60_000,
        instance=instance,
    )
    name = side.producers[0].name
    told = side.ask(ApiKey.INIT_PRODUCER_ID, 4, {"transactional_id": name, "transaction_timeout_ms": 60_000})
    who = {"transactional_id": name, "producer_id": told.producer_id, "producer_epoch": told.producer_epoch}
    codes = {}
    make_group(side, member, kind)
    for generation, member_id, instance_id in METADATA:
        if version < 5:
            added = side.ask(ApiKey.ADD_OFFSETS_TO_TXN, 3, who | {"group_id": side.group})
            assert added.error_code == 0
        given = member.id if member_id == "M" else member_id
        partition = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
        fields = who | {
            "group_id": side.group,
            "generation_id": generation,
            "member_id": given,
            "group_instance_id": instance_id,
            "topics": [(side.topics[0], [partition])],
        }
        answer = side.ask(ApiKey.TXN_OFFSET_COMMIT, version, fields)
        codes[generation, member_id, instance_id] = answer.topics[0].partitions[0].error_code
    return codes


def make_group(side: Side, member: RawMember, kind: str) -> None:
    """A group of this kind; ``member`` is, or was, the one in it."""
    if kind == "simple":
        partition = {"partition_index": 0, "committed_offset": 1}
        side.ask(ApiKey.OFFSET_COMMIT, 7, {"group_id": side.group, "topics": [(side.topics[0], [partition])]})
    if kind in ("classic", "static", "left"):
        member.join()
        assert member.sync() == 0
    if kind == "left":
        side.ask(ApiKey.LEAVE_GROUP, 2, {"group_id": side.group, "member_id": member.id})
    if kind.startswith("consumer"):
        member.id = "M"
        for epoch in (0, -1) if kind == "consumer left" else (0,):
            fields = {
                "group_id": side.group,
                "member_id": member.id,
                "member_epoch": epoch,
                "rebalance_timeout_ms": 60_000,
                "subscribed_topic_names": side.topics,
                "topic_partitions": [],
            }
            assert side.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, fields).error_code == 0
