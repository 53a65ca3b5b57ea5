"""Requests about a share group (KIP-932) for two brokers, which have to answer them alike.

Who gets which partition is up to the broker: an assignment is told by how many it has.

Left out is what Apache Kafka answers with UNKNOWN_SERVER_ERROR (offsets of no partitions, or of topics of a
group without a name; negative partitions that are altered) or after more than 30 s (offsets of a partition
that there is not), and a start where the group's rule says (-1), for which our group's epoch rises.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from random import Random
from typing import Any

from kohort.protocol import ApiKey
from tests.broker.share_requests import join_share_group, share_beat
from tests.clients.alike.consumer_groups import CLIENTS, GROUP_RESOURCE, TOPICS, Side

JOIN, LEAVE = 0, -1
#: A consumer group, a group that there is not, and one without a name, beside that of the test.
OTHERS = ("consumers", "nowhere", "")
_PATIENCE_S = 60.0
_SETTLED = "share.assignment.interval.ms"


def begin(sides: tuple[Side, Side]) -> None:
    """A sequence begins, in a group of its own that has state for all topics and no members."""
    group = f"alike-{uuid.uuid4().hex[:10]}"
    for side in sides:
        _prepare(side, group)
    # a group's configs are known to Apache Kafka's coordinator a moment later
    time.sleep(0.1)


def _prepare(side: Side, group: str) -> None:
    side.begin(group)
    configs = [(_SETTLED, 0, "0"), ("share.auto.offset.reset", 0, "earliest")]
    resources = [(GROUP_RESOURCE, group, configs)]
    answer = side.wire.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=resources, validate_only=False)
    assert answer.responses[0].error_code == 0, answer
    # whoever looks for the first coordinator has its topic made
    _wait(lambda: not side.wire.call(ApiKey.FIND_COORDINATOR, 3, key=group, key_type=0).error_code)
    join_share_group(side.wire, group, "m0", *side.names.values())
    assert share_beat(side.wire, group, "m0", LEAVE).error_code == 0
    _make_consumer_group(side)


def settle(side: Side) -> None:
    """Wait until what members subscribe to has state: how long that takes is up to the broker."""
    wanted = {topic for topics in side.subscribed.values() for topic in topics}

    def is_there() -> bool:
        (group,) = _describe_offsets(side, 1, side.group, None).groups
        counts = {side.by_name.get(row.topic_name): len(row.partitions) for row in group.topics}
        return all(counts.get(topic) == TOPICS[topic] for topic in wanted)

    _wait(is_there)


def draw_step(rng: Random) -> tuple[str, dict[str, Any]]:
    """A kind of request, and what it has."""
    kind = rng.choices(tuple(_SENDERS), (20, 2, 3, 4, 4, 2, 0.5, 1, 1, 1, 1, 1))[0]
    if kind == "heartbeat":
        return kind, _draw_heartbeat(rng)
    topics = rng.choice((["a"], ["b"], ["a", "b"], ["a", "missing"], ["missing"], [], ["a", "a"]))
    if kind == "alter" and topics == ["a", "a"]:
        topics = ["b", "a"]  # Apache Kafka answers once, with each partition twice
    group = rng.choice((None,) * 12 + OTHERS)
    return kind, {
        "group": group,
        "topics": topics,
        "all": (kind, group) == ("offsets", "") or rng.random() < 0.5,
        "numbers": rng.choice(([0], [0, 1], [5], [5, 1 if kind == "offsets" else 99], list(range(12)))),
        "offset": rng.choice((0, 1, 2, 3, 7)),
        "version": rng.randrange(2),
    }


def send(side: Side, step: tuple[str, dict[str, Any]]) -> Any:
    """Send a step; what is told of its answer."""
    kind, drawn = step
    answer = _without_numbers(side.told(_SENDERS[kind](side, drawn)))
    settle(side)
    return answer


def _draw_heartbeat(rng: Random) -> dict[str, Any]:
    kind = rng.choices(("join", "beat", "leave", "odd"), (8, 10, 1, 2))[0]
    names = rng.choice((["a"], ["a"], ["b"], ["a", "b"], ["b", "a", "b"], ["missing"], ["a", "missing"]))
    drawn: dict[str, Any] = {"member": f"m{rng.randrange(CLIENTS)}", "epoch": "known", "names": None}
    drawn |= {"rack": None, "group": None}
    if kind == "join":
        drawn |= {"epoch": JOIN, "names": names}
    elif kind == "leave":
        drawn["epoch"] = LEAVE
    elif kind == "beat":
        drawn["epoch"] = rng.choices(("known", "last", "next"), (12, 2, 1))[0]
        if rng.random() < 0.25:
            drawn["names"] = names
        if rng.random() < 0.1:
            drawn["rack"] = rng.choice(("r", "s"))
    else:
        wrong: tuple[dict[str, Any], ...] = (
            {"rack": ""},
            {"rack": " "},
            {"member": ""},
            {"member": " "},
            {"member": "unknown"},
            {"member": "unknown", "epoch": LEAVE},
            {"group": ""},
            {"group": " "},
            {"group": "consumers"},
            {"group": "consumers", "epoch": JOIN, "names": ["a"]},
            {"group": "consumers", "epoch": LEAVE},
            {"group": "nowhere"},
            {"group": "nowhere", "epoch": LEAVE},
            {"epoch": JOIN},
            {"epoch": JOIN, "names": []},
            {"epoch": -2, "names": ["a"]},
            {"epoch": -3},
            {"epoch": 1 << 30},
            {"names": []},
        )
        drawn |= rng.choice(wrong)
    return drawn


def _heartbeat(side: Side, drawn: dict[str, Any]) -> Any:
    name, epoch, names = drawn["member"], drawn["epoch"], drawn["names"]
    if isinstance(epoch, str):
        known = side.epochs.get(name, 0)
        # who is not a member has no epoch that could be taken for a join
        epoch = {"known": known, "next": known + 1, "last": side.before.get(name, known)}[epoch] or 1
    answer = side.wire.call(
        ApiKey.SHARE_GROUP_HEARTBEAT,
        1,
        group_id=_group_of(side, drawn),
        member_id=name,
        member_epoch=epoch,
        rack_id=drawn["rack"],
        subscribed_topic_names=None if names is None else [side.names.get(each, each) for each in names],
    )
    if not answer.error_code:
        side.before[name], side.epochs[name] = side.epochs.get(name, 0), answer.member_epoch
        if epoch == LEAVE:
            for learned in (side.before, side.epochs):
                learned.pop(name)
            side.subscribed.pop(name, None)
        elif names is not None:
            side.subscribed[name] = set(names).intersection(TOPICS)
    return answer


def _leave_all(side: Side, _drawn: dict[str, Any]) -> list[Any]:
    leaving = {"epoch": LEAVE, "names": None, "rack": None, "group": None}
    return [_heartbeat(side, {"member": name, **leaving}) for name in sorted(side.epochs)]


def _describe(side: Side, drawn: dict[str, Any]) -> Any:
    groups = [_group_of(side, drawn)]
    return side.wire.call(
        ApiKey.SHARE_GROUP_DESCRIBE, 1, group_ids=groups, include_authorized_operations=drawn["all"]
    )


def _describe_offsets(side: Side, version: int, group: str, topics: Any) -> Any:
    return side.wire.call(
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, version, groups=[{"group_id": group, "topics": topics}]
    )


def _offsets(side: Side, drawn: dict[str, Any]) -> Any:
    topics = None if drawn["all"] else [(name, drawn["numbers"]) for name in _names_of(side, drawn)]
    return _describe_offsets(side, drawn["version"], _group_of(side, drawn), topics)


def _alter(side: Side, drawn: dict[str, Any]) -> Any:
    rows = [(number, drawn["offset"]) for number in drawn["numbers"]]
    topics = [(name, rows) for name in _names_of(side, drawn)]
    return side.wire.call(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, group_id=_group_of(side, drawn), topics=topics)


def _delete_offsets(side: Side, drawn: dict[str, Any]) -> Any:
    return side.wire.call(
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        0,
        group_id=_group_of(side, drawn),
        topics=_names_of(side, drawn),
    )


def _delete(side: Side, drawn: dict[str, Any]) -> Any:
    group = drawn["group"] if drawn["group"] == "" else side.group
    return side.wire.call(ApiKey.DELETE_GROUPS, 2, groups_names=[group])


def _list(side: Side, drawn: dict[str, Any]) -> Any:
    types = ["share"] if drawn["all"] else []
    states = ["Empty"] if drawn["version"] else []
    answer = side.wire.call(ApiKey.LIST_GROUPS, 5, states_filter=states, types_filter=types)
    return [each for each in answer.groups if each.group_id == side.group]


def _classic_describe(side: Side, drawn: dict[str, Any]) -> Any:
    groups = [side.group]
    return side.wire.call(
        ApiKey.DESCRIBE_GROUPS, 5 + drawn["version"], groups=groups, include_authorized_operations=False
    )


def _commit(side: Side, drawn: dict[str, Any]) -> Any:
    rows = [{"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}]
    return side.wire.call(
        ApiKey.OFFSET_COMMIT,
        9,
        group_id=side.group,
        generation_id_or_member_epoch=-1 if drawn["all"] else 3,
        member_id="" if drawn["all"] else "m0",
        group_instance_id=None,
        topics=[{"name": side.names["a"], "partitions": rows}],
    )


def _fetch_offsets(side: Side, drawn: dict[str, Any]) -> Any:
    asked = {"group_id": side.group, "member_id": None, "member_epoch": -1, "topics": None}
    return side.wire.call(ApiKey.OFFSET_FETCH, 9, groups=[asked], require_stable=drawn["all"])


def _consumer_heartbeat(side: Side, drawn: dict[str, Any]) -> Any:
    return side.wire.call(
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        1,
        group_id=side.group,
        member_id="m0",
        member_epoch=drawn["version"],
        instance_id=None,
        rack_id=None,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[side.names["a"]],
        server_assignor=None,
        topic_partitions=[],
    )


_SENDERS: dict[str, Callable[[Side, dict[str, Any]], Any]] = {
    "heartbeat": _heartbeat,
    "all leave": _leave_all,
    "describe": _describe,
    "offsets": _offsets,
    "alter": _alter,
    "delete offsets": _delete_offsets,
    "delete": _delete,
    "list": _list,
    "classic describe": _classic_describe,
    "commit": _commit,
    "fetch offsets": _fetch_offsets,
    "consumer heartbeat": _consumer_heartbeat,
}


def _group_of(side: Side, drawn: dict[str, Any]) -> str:
    other = drawn["group"]
    if other is None:
        return side.group
    return f"{side.group}-{other}" if other.strip() else other


def _names_of(side: Side, drawn: dict[str, Any]) -> list[str]:
    return [side.names.get(topic, topic) for topic in drawn["topics"]]


def _make_consumer_group(side: Side) -> None:
    """There is a group of another type."""
    answer = side.wire.call(
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        1,
        group_id=f"{side.group}-consumers",
        member_id="m0",
        member_epoch=JOIN,
        instance_id=None,
        rack_id=None,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[side.names["a"]],
        server_assignor=None,
        topic_partitions=[],
    )
    assert answer.error_code == 0, answer


def _without_numbers(told: Any) -> Any:
    """An answer with the number of partitions in place of which ones."""
    if isinstance(told, dict):
        return {
            name: sum(len(numbers) for _, numbers in value)
            if name == "topic_partitions"
            else _without_numbers(value)
            for name, value in told.items()
        }
    return [_without_numbers(each) for each in told] if isinstance(told, list) else told


def _wait(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)
