"""Answers of two brokers in words that both have in common."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from typing import Any

from kohort.protocol import (
    BATCH_OVERHEAD,
    ApiKey,
    BatchHeader,
    CorruptBatchError,
    ErrorCode,
    encode_assignment,
    iter_batches,
)

from .side import Answer, Sent, Side

#: Not told, or told in words of its own.
LEFT_OUT = {"throttle_time_ms", "tags", "unknown_tags", "error_message", "configs"}
#: A member that its leader has left out gets this from kohort and nothing from Apache Kafka (spec 3.4).
NOTHING = encode_assignment((), version=0).decode(errors="backslashreplace")
#: A broker may answer rows in any order; by these they are sorted.
ORDER = (
    *("group_id", "member_id", "group_instance_id", "name", "topic", "topic_id"),
    *("partition_index", "partition", "index", "resource_type", "resource_name", "pattern_type"),
    *("principal", "operation", "host", "permission_type"),
    *("user", "mechanism", "entity", "entity_type", "key", "error_code", "member_assignment"),
)
#: One broker's own: told is only whether there is one, or how many.
OWN = {"host", "port", "node_id", "leader_id", "controller_id", "cluster_id", "brokers"}
OWN |= {"replica_nodes", "isr_nodes", "offline_replicas", "node_endpoints"}


def is_choice(answer: Answer, sent: Collection[Sent]) -> bool:
    """Whether kohort answers what Apache Kafka leaves unanswered: requests parked before ``sent``, of no use.

    A second JoinGroup or SyncGroup takes the first one's place (KAFKA-20938), which is answered with
    NOT_COORDINATOR; a parked SyncGroup of a member that is removed is answered with UNKNOWN_MEMBER_ID.
    """
    if answer.sent in sent or answer.body is None:
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
    told = as_dict(answer.body)
    if key == ApiKey.FETCH:
        for topic, rows in zip(answer.body.responses, told["responses"], strict=True):
            for partition, row in zip(topic.partitions, rows["partitions"], strict=True):
                row["records"] = repr(_records(bytes(partition.records or b"")))
    if key == ApiKey.DESCRIBE_CONFIGS:
        for row in told["results"]:
            row["rows"] = sorted(str({**each, "documentation": None}) for each in row.pop("configs"))
    seen = _view(side, told, "")
    if key == ApiKey.LIST_GROUPS:
        seen["groups"] = [each for each in seen["groups"] if each["group_id"] in side.groups]
    return seen


def as_dict(message: Any) -> Any:
    """A message as dicts and lists."""
    if hasattr(message, "_asdict"):
        return {name: as_dict(value) for name, value in message._asdict().items()}
    return list(map(as_dict, message)) if isinstance(message, list | tuple) else message


def _view(side: Side, value: Any, name: str) -> Any:
    if name in OWN:
        return len(value) if isinstance(value, list) else value not in ("", -1, None)
    if isinstance(value, dict):
        return {key: _view(side, each, key) for key, each in value.items() if key not in LEFT_OUT}
    if isinstance(value, list | tuple):
        seen = [_view(side, each, name) for each in (_joined(value) if name == "responses" else value)]
        if seen and isinstance(seen[0], dict):
            seen.sort(key=lambda each: [str(each.get(key)) for key in ORDER])
        return seen
    if name == "aborted_transactions" and value is None:
        return []  # either means none
    if name in ("member_id", "leader"):
        return side.names.get(value, value if not value or len(value) < 20 else "somebody")
    if name in ("assignment", "member_assignment") and value == NOTHING:
        return ""
    if name in ("topic_id", "producer_id"):
        return side.names.get(str(value), value if str(value).startswith(("-1", "0000")) else "new")
    return value


def _records(records: bytes) -> list[tuple[BatchHeader, bytes]]:
    """Headers, without who wrote the batch, and records of the whole batches.

    Apache Kafka ends an answer inside a batch where there is no room for all of it, kohort before it.
    """
    seen = []
    with suppress(CorruptBatchError):
        for position, header in iter_batches(records):
            told = header._replace(crc=0, producer_id=min(header.producer_id, 0))
            seen.append((told, records[position + BATCH_OVERHEAD : position + header.size]))
    return seen


def _joined(topics: Iterable[Any]) -> list[Any]:
    """A topic whose partitions a broker tells at several places stands once."""
    rows: dict[str, Any] = {}
    for topic in topics:
        key = str(topic.get("name") or topic.get("topic") or topic.get("topic_id"))
        lists = [name for name, value in topic.items() if isinstance(value, list)]
        for name in lists if key in rows else ():
            rows[key][name] = rows[key][name] + topic[name]
        rows.setdefault(key, topic)
    return list(rows.values())


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
