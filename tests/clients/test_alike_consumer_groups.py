"""Drawn requests about consumer groups (KIP-848) are answered as by the cluster of ``--bootstrap``.

Topic ids are told as names. Groups have no assignment interval, so that nothing depends on the clock.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from kohort.protocol import ApiKey, Subscription, decode_assignment, encode_subscription
from tests.broker.wire import Wire, create_topic
from tests.broker_process import QUICK_SETTINGS, BrokerProcess

pytestmark = [pytest.mark.clients, pytest.mark.kafka]

CLIENTS, STEPS = 4, 60
TOPICS = {"a": 12, "b": 12}
JOIN, LEAVE, AWAY = 0, -1, -2
GROUP_RESOURCE = 32
INTERVAL = "consumer.assignment.interval.ms"
#: The cluster may have any: ours gets the same.
POLICY = "group.consumer.migration.policy"


class Side:
    """One broker: its topics, and what its members were told last."""

    def __init__(self, bootstrap: str) -> None:
        self.wire = Wire(bootstrap, timeout_s=30)
        tag = uuid.uuid4().hex[:8]
        self.names = {topic: f"{topic}-{tag}" for topic in TOPICS}
        for topic, partitions in TOPICS.items():
            assert create_topic(self.wire, self.names[topic], partitions).error_code == 0
        self.ids: dict[str, uuid.UUID] = {}
        while len(self.ids) < len(TOPICS):
            answer = self.wire.call(ApiKey.METADATA, 12, topics=None, allow_auto_topic_creation=False)
            told = {each.name: each.topic_id for each in answer.topics}
            self.ids = {topic: told[name] for topic, name in self.names.items() if name in told}
            time.sleep(0.05)
        self.by_id = {topic_id: topic for topic, topic_id in self.ids.items()}
        self.by_name = {name: topic for topic, name in self.names.items()}

    def begin(self, group: str) -> None:
        """A sequence begins, in a group of its own."""
        self.group = group
        self.members = {f"m{client}": f"m{client}" for client in range(CLIENTS)}
        self.epochs: dict[str, int] = {}
        self.before: dict[str, int] = {}
        self.had: dict[str, Any] = {}
        self.has: dict[str, Any] = {}
        # members that speak the classic protocol, by a name that both brokers have for them
        self.classic: dict[str, str] = {}
        self.generations: dict[str, int] = {}
        self.owned: dict[str, Any] = {}

    def told(self, value: Any) -> Any:
        """An answer in words that both brokers have in common."""
        if hasattr(value, "_fields"):
            if (
                "partitions" in value._fields
                and "topic_id" in value._fields
                and "error_code" not in dir(value)
            ):
                numbers = value.partitions
                if not numbers or isinstance(numbers[0], int):
                    return self.by_id.get(value.topic_id, "?"), tuple(sorted(numbers))
            return {
                name: self.told(getattr(value, name)) for name in value._fields if name != "throttle_time_ms"
            }
        if isinstance(value, uuid.UUID):
            return self.by_id.get(value, "?")
        if isinstance(value, str):
            # an id that a broker chose, also within a sentence
            value = re.sub(r"(?<![\w-])[\w-]{22}(?![\w-])", "?", value)
            for name, topic in self.by_name.items():
                value = value.replace(name, topic)
            return "?" if len(value) == 22 and " " not in value else value
        if isinstance(value, (list, tuple)):
            return sorted((self.told(one) for one in value), key=repr)
        if isinstance(value, bytes):
            return self.told(value.decode("latin-1"))
        return value


@pytest.fixture(scope="module")
def sides(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Side, Side]]:
    """The given cluster and a kohort beside it."""
    given: str | None = request.config.getoption("--bootstrap")
    if given is None:
        pytest.skip("compares kohort with the cluster of --bootstrap")
    with Wire(given, timeout_s=30) as wire:
        node = wire.call(ApiKey.METADATA, 12, topics=[], allow_auto_topic_creation=False).brokers[0].node_id
        asked = {"resource_type": 4, "resource_name": str(node), "configuration_keys": [POLICY]}
        told = wire.call(
            ApiKey.DESCRIBE_CONFIGS, 4, resources=[asked], include_synonyms=False, include_documentation=False
        )
    policy = told.results[0].configs[0].value
    ours = BrokerProcess(
        tmp_path_factory.mktemp("compared"),
        data=None,
        settings={**QUICK_SETTINGS, POLICY: policy},
    )
    ours.start()
    both = Side(given), Side(ours.bootstrap)
    try:
        yield both
    finally:
        for side in both:
            side.wire.close()
        ours.stop()


def begin(sides: tuple[Side, Side]) -> None:
    group = f"alike-{uuid.uuid4().hex[:10]}"
    for side in sides:
        configs = [{"name": INTERVAL, "config_operation": 0, "value": "0"}]
        answer = side.wire.call(
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            1,
            resources=[{"resource_type": GROUP_RESOURCE, "resource_name": group, "configs": configs}],
            validate_only=False,
        )
        assert answer.responses[0].error_code == 0, answer
        while side.wire.call(ApiKey.FIND_COORDINATOR, 3, key=group, key_type=0).error_code:
            time.sleep(0.05)
        side.begin(group)
    time.sleep(0.1)


def heartbeat(side: Side, drawn: dict[str, Any]) -> Any:
    """Send a heartbeat that was drawn, with this side's epochs, partitions and topics; learn its answer."""
    member = side.members[drawn["member"]]
    epoch = drawn["epoch"]
    if isinstance(epoch, str):
        known = side.epochs.get(drawn["member"], 0)
        epoch = {"known": known, "next": known + 1, "last": side.before.get(drawn["member"], known - 1)}[
            epoch
        ]
    owned = drawn["owned"]
    if isinstance(owned, str):
        last = {"has": side.has, "had": side.had}[owned].get(drawn["member"], [])
        owned = [(topic_id, list(numbers)) for topic_id, numbers in last]
    names = drawn["names"]
    fields = {
        "group_id": side.group,
        "member_id": member,
        "member_epoch": epoch,
        "instance_id": drawn["instance"],
        "rack_id": drawn["rack"],
        "rebalance_timeout_ms": drawn["rebalance"],
        "subscribed_topic_names": None if names is None else [side.names.get(name, name) for name in names],
        "server_assignor": drawn["assignor"],
        "topic_partitions": owned,
    }
    answer = side.wire.call(ApiKey.CONSUMER_GROUP_HEARTBEAT, drawn["version"], **fields)
    if not answer.error_code:
        side.before[drawn["member"]] = side.epochs.get(drawn["member"], 0)
        side.epochs[drawn["member"]] = answer.member_epoch
        if answer.assignment is not None:
            side.had[drawn["member"]] = side.has.get(drawn["member"], [])
            side.has[drawn["member"]] = [
                (t.topic_id, t.partitions) for t in answer.assignment.topic_partitions
            ]
    return answer


def draw_heartbeat(rng: Random, assignor: str) -> dict[str, Any]:
    client = rng.randrange(CLIENTS)
    instance = f"i{client % 2}" if client >= 2 else None
    kind = rng.choices(("join", "beat", "leave", "odd"), (3, 10, 1, 1))[0]
    names = rng.choice((["a"], ["a"], ["a", "b"], ["b", "a", "b"], ["b"], [], ["missing"]))
    if assignor == "uniform":
        names = ["a"]
    drawn: dict[str, Any] = {
        "member": f"m{client}",
        "version": 1,
        "instance": instance,
        "rack": None,
        "rebalance": -1,
        "names": None,
        "assignor": None,
        "owned": rng.choice((None, None, "has", "has", "had", [])),
        "epoch": "known",
    }
    if kind == "join":
        drawn |= {"epoch": JOIN, "rebalance": 60_000, "names": names, "owned": [], "assignor": assignor}
    elif kind == "leave":
        drawn |= {"epoch": rng.choice((LEAVE, AWAY)), "owned": None}
    elif kind == "beat":
        drawn["epoch"] = rng.choices(("known", "last", "next", "known"), (10, 2, 1, 1))[0]
        if rng.random() < 0.2:
            drawn["names"] = names
        if rng.random() < 0.1:
            drawn |= {"names": names, "rebalance": 50_000}
        if rng.random() < 0.1:
            drawn["rack"] = "r"
    else:
        wrong: tuple[dict[str, Any], ...] = (
            {"rack": ""},
            {"instance": ""},
            {"instance": " "},
            {"member": f"m{(client + 1) % CLIENTS}"},
            {"instance": "i9"},
            {"instance": None, "epoch": AWAY},
            {"epoch": -3},
            {"assignor": "x"},
            {"epoch": JOIN, "names": ["a"], "owned": []},
            {"epoch": JOIN, "names": ["a"], "owned": None, "rebalance": 5},
            {"epoch": JOIN, "names": None, "owned": [], "rebalance": 5},
            {"version": 0},
            {"instance": "i0"},
        )
        drawn |= rng.choice(wrong)
    return drawn


def describe(side: Side, version: int) -> Any:
    return side.wire.call(
        ApiKey.CONSUMER_GROUP_DESCRIBE, version, group_ids=[side.group], include_authorized_operations=False
    )


def draw_step(rng: Random, assignor: str) -> tuple[Any, ...]:
    kind = rng.choices(
        ("heartbeat", "describe", "commit", "fetch", "list", "classic", "offset delete", "delete"),
        (20, 3, 3, 2, 1, 1, 1, 0.3),
    )[0]
    member = f"m{rng.randrange(CLIENTS)}"
    epoch = rng.choice(("known", "known", "last", "next", -1))
    topic, number = rng.choice("ab"), rng.randrange(12)
    if kind == "heartbeat":
        return kind, draw_heartbeat(rng, assignor)
    if kind == "commit":
        return kind, rng.choice((8, 9, 9, 10)), rng.choice((member, member, "")), epoch, topic, number
    if kind == "fetch":
        # Apache Kafka stumbles over an epoch without a member
        asking = rng.choice((member, member, None, ""))
        return kind, asking, -1 if asking is None else epoch
    return kind, topic, rng.randrange(7)


def carry_out(side: Side, step: tuple[Any, ...]) -> Any:
    kind, *drawn = step
    group, call = side.group, side.wire.call
    if kind == "heartbeat":
        return heartbeat(side, *drawn)
    if kind == "describe":
        return describe(side, drawn[1] % 2)
    if kind in ("commit", "fetch"):
        member, epoch = drawn[kind == "commit" :][:2]
        known = side.epochs.get(member, 0)
        numbers = {"known": known, "last": side.before.get(member, known - 1), "next": known + 1}
        epoch = numbers.get(epoch, epoch)
        if kind == "fetch":
            asked = {"group_id": group, "member_id": member, "member_epoch": epoch, "topics": None}
            return call(ApiKey.OFFSET_FETCH, 9, groups=[asked], require_stable=True)
        version, topic, number = drawn[0], *drawn[3:]
        partition = {"partition_index": number, "committed_offset": 7, "committed_metadata": ""}
        named = {"topic_id": side.ids[topic]} if version >= 10 else {"name": side.names[topic]}
        return call(
            ApiKey.OFFSET_COMMIT,
            version,
            group_id=group,
            generation_id_or_member_epoch=epoch,
            member_id=member,
            group_instance_id=None,
            topics=[{**named, "partitions": [partition]}],
        )
    if kind == "list":
        types = [["consumer"], ["CONSUMER"], ["classic"], []][drawn[1] % 4]
        answer = call(ApiKey.LIST_GROUPS, 5, states_filter=[], types_filter=types)
        return [each for each in answer.groups if each.group_id == group]
    if kind == "classic":
        return call(ApiKey.DESCRIBE_GROUPS, drawn[1], groups=[group], include_authorized_operations=False)
    if kind == "offset delete":
        topics = [{"name": side.names[drawn[0]], "partitions": [{"partition_index": 1}]}]
        return call(ApiKey.OFFSET_DELETE, 0, group_id=group, topics=topics)
    return call(ApiKey.DELETE_GROUPS, 2, groups_names=[group])


def classic(side: Side, kind: str, drawn: dict[str, Any]) -> Any:
    """A request of a member that speaks the classic protocol."""
    name, call = drawn["member"], side.wire.call
    member, generation = side.classic.get(name, ""), side.generations.get(name, -1) + drawn["off"]
    instance = drawn["instance"]
    if kind == "join":
        owned = side.owned.get(name, []) if drawn["cooperative"] else []
        topics = tuple(side.names[topic] for topic in drawn["topics"])
        metadata = encode_subscription(
            Subscription(topics, owned=tuple(owned)), version=drawn["subscription"]
        )
        answer = call(
            ApiKey.JOIN_GROUP,
            drawn["version"],
            group_id=side.group,
            session_timeout_ms=45_000,
            rebalance_timeout_ms=60_000,
            member_id=member,
            group_instance_id=instance,
            protocol_type=drawn["type"],
            protocols=[(protocol, metadata) for protocol in drawn["protocols"]],
            reason=None,
        )
        if answer.error_code in (0, 79):
            side.classic[name] = answer.member_id
        if answer.error_code == 0:
            side.generations[name] = answer.generation_id
        return answer
    if kind == "sync":
        answer = call(
            ApiKey.SYNC_GROUP,
            5,
            group_id=side.group,
            generation_id=generation,
            member_id=member,
            group_instance_id=instance,
            protocol_type=drawn["type"],
            protocol_name=drawn["protocols"][0],
            assignments=[],
        )
        if answer.error_code == 0:
            side.owned[name] = decode_assignment(bytes(answer.assignment)).partitions
            told = [(side.by_name[topic], number) for topic, number in side.owned[name]]
            return answer._replace(assignment=sorted(told))
        return answer
    if kind == "leave":
        leaving = [{"member_id": member, "group_instance_id": instance, "reason": None}]
        answer = call(ApiKey.LEAVE_GROUP, 5, group_id=side.group, members=leaving)
        return [each.error_code for each in answer.members]
    return call(
        ApiKey.HEARTBEAT,
        4,
        group_id=side.group,
        generation_id=generation,
        member_id=member,
        group_instance_id=instance,
    )


def draw_classic(rng: Random) -> tuple[str, dict[str, Any]]:
    name = rng.choice(("c0", "c1", "c2"))
    kind = rng.choices(("join", "sync", "heartbeat", "leave"), (5, 4, 4, 0.5))[0]
    return kind, {
        "member": name,
        # the order of member ids that a broker chooses would decide what range gives to whom
        "instance": f"i{name}",
        "off": rng.choices((0, -1, 1), (10, 1, 1))[0],
        "type": rng.choices(("consumer", "other"), (20, 1))[0],
        "protocols": rng.choice((["range"], ["range"], ["range", "sticky"], ["sticky", "range"])),
        "topics": rng.choice(("a", "a", "ab", "b")),
        "cooperative": name != "c1",
        "subscription": rng.choice((1, 2, 3)),
        "version": rng.choice((5, 7, 9)),
    }


@pytest.mark.parametrize("seed", range(20))
def test_members_of_both_protocols_are_answered_alike(sides: tuple[Side, Side], seed: int) -> None:
    """As long as there is a consumer: m0 never leaves."""
    rng, told = Random(seed), list[str]()
    begin(sides)
    first = draw_heartbeat(rng, "range") | {"member": "m0", "version": 1, "instance": None, "rack": None}
    first |= {"epoch": JOIN, "rebalance": 60_000, "names": ["a"], "owned": [], "assignor": "range"}
    for side in sides:
        assert heartbeat(side, first).error_code == 0
    for number in range(STEPS):
        if rng.random() < 0.5:
            kind, drawn = draw_classic(rng)
            step: tuple[Any, ...] = (kind, drawn)
            answers = [classic(side, kind, drawn) for side in sides]
        else:
            step = draw_step(rng, "range")
            if step[0] == "heartbeat" and step[1]["member"] == "m0" and step[1]["epoch"] == LEAVE:
                continue
            answers = [carry_out(side, step) for side in sides]
        theirs, ours = (side.told(answer) for side, answer in zip(sides, answers, strict=True))
        told.append(f"{number} {step}: {ours}")
        assert ours == theirs, "\n".join([*told[-12:], f"theirs: {theirs}"])


def test_when_a_classic_member_takes_the_place_of_the_last_consumer_the_same_happens(
    sides: tuple[Side, Side],
) -> None:
    """The group turns back without a rebalance, where the policy lets it. It subscribes to the same: another
    subscription Apache Kafka answers with generation 0, which its next request is refused for.
    """
    begin(sides)
    consumer: dict[str, Any] = {
        "member": "m0",
        "version": 1,
        "instance": "s",
        "rack": None,
        "epoch": JOIN,
        "rebalance": 60_000,
        "names": ["a"],
        "owned": [],
        "assignor": "range",
    }
    lives = consumer | {"epoch": "known", "rebalance": -1, "names": None, "owned": "has", "assignor": None}
    rng = Random(1)
    stays = draw_classic(rng)[1] | {
        "member": "c0",
        "instance": "ic0",
        "off": 0,
        "type": "consumer",
        "protocols": ["range"],
        "topics": "a",
        "cooperative": True,
        "version": 9,
    }
    comes = stays | {"member": "c1", "instance": "s"}
    steps: list[tuple[Any, ...]] = [
        ("heartbeat", consumer),
        ("join", stays),
        ("sync", stays),
        ("heartbeat", lives),
        ("heartbeat", lives),
        ("beat", stays),
        ("join", stays),
        ("sync", stays),
        ("join", comes),
        ("list", "a", 3),
        ("beat", stays),
        ("sync", comes),
        ("heartbeat", lives),
        ("describe", "a", 1),
        ("commit", 9, "m0", "known", "a", 0),
        ("delete", "a", 0),
    ]
    for step in steps:
        answers = [
            classic(side, *step) if step[0] in ("join", "sync", "beat") else carry_out(side, step)
            for side in sides
        ]
        theirs, ours = (side.told(answer) for side, answer in zip(sides, answers, strict=True))
        assert ours == theirs, step


@pytest.mark.parametrize("seed", range(40))
def test_what_is_drawn_is_answered_alike(sides: tuple[Side, Side], seed: int) -> None:
    rng, told = Random(seed), list[str]()
    begin(sides)
    assignor = "uniform" if seed % 5 == 4 else "range"
    for number in range(STEPS):
        step = draw_step(rng, assignor)
        theirs, ours = (side.told(carry_out(side, step)) for side in sides)
        told.append(f"{number} {step}: {ours}")
        if assignor == "uniform" and ours != theirs:
            # which partitions, and so what of them is free already, is up to the broker
            assert without_partitions(ours) == without_partitions(theirs), "\n".join(told[-12:])
            return
        assert ours == theirs, "\n".join([*told[-12:], f"theirs: {theirs}"])


def without_partitions(told: Any) -> Any:
    """An answer but for the partitions of its assignments."""
    if isinstance(told, dict):
        return {name: without_partitions(value) for name, value in told.items() if "assignment" not in name}
    return [without_partitions(one) for one in told] if isinstance(told, list) else told
