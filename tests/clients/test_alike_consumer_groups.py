"""Drawn requests about consumer groups (KIP-848) are answered as by the cluster of ``--bootstrap``.

Topic ids are told as names. Groups have no assignment interval, so that nothing depends on the clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any

import pytest

from kohort.protocol import ApiKey, Subscription, decode_assignment, encode_subscription
from tests.clients.alike.consumer_groups import CLIENTS, Side, begin, describe

pytestmark = [pytest.mark.clients, pytest.mark.kafka]

STEPS = 60
JOIN, LEAVE, AWAY = 0, -1, -2


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


class _Sent(Exception):  # noqa: N818 - no error: the request is on its way
    """Ends a step whose answer is not waited for."""


class Ahead:
    """In the place of a side's connection: requests go out in one go, and are answered afterwards."""

    def __init__(self, side: Side) -> None:
        self._side, self._wire = side, side.wire
        self._sent: deque[int] = deque()
        self._answering = False

    def call(self, key: ApiKey, version: int, **fields: Any) -> Any:
        if self._answering:
            return self._wire.receive(key, version, self._sent.popleft())
        self._sent.append(self._wire.send(key, version, **fields))
        raise _Sent

    def take(self, steps: list[Callable[[Side], Any]]) -> list[Any]:
        """Send all of these, then learn their answers and return what both sides have in common of them."""
        side = self._side
        side.wire = self  # type: ignore[assignment]
        try:
            for step in steps:
                with suppress(_Sent):
                    step(side)
            self._answering = True
            return [side.told(step(side)) for step in steps]
        finally:
            side.wire = self._wire


@pytest.mark.parametrize("seed", range(300, 312))
def test_what_is_drawn_without_waiting_is_answered_alike(sides: tuple[Side, Side], seed: int) -> None:
    """Up to six requests go out together: each says what its member knew before all of them.

    Members of both protocols, as long as there is a consumer: m0 never leaves.
    """
    rng, told = Random(seed), list[str]()
    begin(sides)
    first = draw_heartbeat(rng, "range") | {"member": "m0", "version": 1, "instance": None, "rack": None}
    first |= {"epoch": JOIN, "rebalance": 60_000, "names": ["a"], "owned": [], "assignor": "range"}
    for side in sides:
        assert heartbeat(side, first).error_code == 0
    for _ in range(STEPS // 3):
        burst: list[Callable[[Side], Any]] = []
        for _ in range(rng.randint(2, 6)):
            if rng.random() < 0.3:
                kind, drawn = draw_classic(rng)
                burst.append(partial(classic, kind=kind, drawn=drawn))
            else:
                step = draw_step(rng, "range")
                if step[0] != "heartbeat" or step[1]["member"] != "m0" or step[1]["epoch"] != LEAVE:
                    burst.append(partial(carry_out, step=step))
        theirs, ours = (Ahead(side).take(burst) for side in sides)
        told += [f"{one.keywords}: {answer}" for one, answer in zip(burst, ours, strict=True)]  # type: ignore[attr-defined]
        assert ours == theirs, "\n".join([*told[-12:], f"theirs: {theirs}"])
