"""Answers of two brokers in words that both have in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kohort.protocol import ApiKey, ErrorCode, encode_assignment

from .side import Answer, Side

#: Not told, or told in words of its own.
LEFT_OUT = {"throttle_time_ms", "tags", "unknown_tags", "error_message"}
#: A member that its leader has left out gets this from kohort and nothing from Apache Kafka (spec 3.4).
NOTHING = encode_assignment((), version=0).decode(errors="backslashreplace")
#: How lists are sorted that a broker may answer in any order.
ORDER = {
    "members": ("member_id", "group_instance_id"),
    "groups": ("group_id", "error_code"),
    "results": ("group_id", "error_code"),
    "topics": ("name", "topic_id"),
    "partitions": ("partition_index",),
}


def is_choice(answer: Answer, step: int) -> bool:
    """Whether kohort answers what Apache Kafka leaves unanswered: requests that were parked and have no use.

    A second JoinGroup or SyncGroup takes the first one's place (KAFKA-20938), which is answered with
    NOT_COORDINATOR; a parked SyncGroup of a member that is removed is answered with UNKNOWN_MEMBER_ID.
    """
    if answer.sent.step == step or answer.body is None:
        return False
    error = getattr(answer.body, "error_code", ErrorCode.NONE)
    if answer.sent.key == ApiKey.JOIN_GROUP:
        return bool(error == ErrorCode.NOT_COORDINATOR)
    return error in (ErrorCode.NOT_COORDINATOR, ErrorCode.UNKNOWN_MEMBER_ID)


def view(side: Side, answer: Answer) -> Any:
    """The answer with names for what is one broker's own."""
    if answer.body is None:
        return "closed"
    key = answer.sent.key
    if key == ApiKey.JOIN_GROUP:
        side.name_of(answer.body.member_id)
        for member_id in sorted((m.member_id for m in answer.body.members), key=lambda i: i in side.names):
            side.name_of(member_id)
    seen = _view(side, answer.body.to_dict(), "")
    if key == ApiKey.LIST_GROUPS:
        seen["groups"] = [each for each in seen["groups"] if each["group_id"] in side.groups]
    if key == ApiKey.FIND_COORDINATOR:
        for each in [seen, *seen.get("coordinators", ())]:
            each.update(
                {name: each[name] not in ("", -1) for name in ("host", "port", "node_id") if name in each}
            )
    return seen


def _view(side: Side, value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return {key: _view(side, each, key) for key, each in value.items() if key not in LEFT_OUT}
    if isinstance(value, list | tuple):
        seen = [_view(side, each, name) for each in value]
        order = ORDER.get(name)
        if order and seen and isinstance(seen[0], dict):
            seen.sort(key=lambda each: [str(each.get(key)) for key in order])
        return seen
    if name in ("member_id", "leader"):
        return side.names.get(value, value if not value or len(value) < 20 else "somebody")
    if name in ("assignment", "member_assignment") and value == NOTHING:
        return ""
    return next(
        (f"id of {topic}" for topic, (_, id_) in side.topics.items() if str(id_) == str(value)), value
    )


def differences(one: Any, other: Any, where: str = "") -> Iterator[str]:
    """Where two views differ, a line each."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            yield from differences(one.get(key), other.get(key), f"{where}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, pair in enumerate(zip(one, other, strict=True)):
            yield from differences(*pair, f"{where}[{number}]")
    elif one != other:
        yield f"{where or 'answers'}: {one!r}, here {other!r}"
