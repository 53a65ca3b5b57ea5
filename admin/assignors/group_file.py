"""A group from a file, JSON or YAML, for the workbench.

    group: billing
    topics:
      orders: 12                                  # partitions
      clicks: {partitions: 2, racks: [[a, b], [b, c]]}
    members:
      m1: {topics: [orders, clicks], owned: {orders: [0, 1, 2]}}
      m2: {topics: [orders], rack: a, instance_id: pod-2, user_data: acme}
    weights: {orders: 1, orders-0: 9.5}           # by topic or partition

A topic needs at least its number of partitions, a member its topics.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...assignors import Member, TopicInfo
from ...protocol import Json, Subscription, TopicPartition
from .workbench import GroupSnapshot, WorkbenchError

_YAML = {".yaml", ".yml"}
_MEMBER_KEYS = {"topics", "owned", "instance_id", "rack", "user_data", "generation"}


def read_group(path: str | Path) -> GroupSnapshot:
    """Read ``path``: YAML if its name says so, else JSON. Raises WorkbenchError, which says what is wrong."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise WorkbenchError(f"the file {file} cannot be read: {error}") from error
    data = _parse_file(file, text)
    try:
        return _read_group(data, file.stem)
    except (TypeError, ValueError) as error:
        raise WorkbenchError(f"{file}: {error}") from error


def _parse_file(file: Path, text: str) -> object:
    if file.suffix.lower() not in _YAML:
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise WorkbenchError(f"{file} is no JSON: {error}; give a file that is, or a .yaml") from error
    try:
        import yaml
    except ImportError as error:
        raise WorkbenchError(
            f"{file}: reading YAML needs PyYAML: pip install 'kohort[workbench]', or give the group as JSON"
        ) from error
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise WorkbenchError(f"{file} is no YAML: {' '.join(str(error).split())}") from error


def _read_group(data: object, name: str) -> GroupSnapshot:
    fields = _require_mapping(data, "the file")
    _refuse_other_fields(fields, {"group", "topics", "members", "weights", "protocol"}, "the file")
    topics = {
        str(t): _read_topic(str(t), row)
        for t, row in _require_mapping(fields.get("topics"), "topics").items()
    }
    rows = {str(m): row for m, row in _require_mapping(fields.get("members"), "members").items()}
    owned = {m: _owned_of(m, row) for m, row in rows.items()}
    return GroupSnapshot(
        str(fields.get("group", name)),
        topics,
        {m: _read_member(m, row) for m, row in rows.items()},
        owned,
        str(fields.get("protocol", "")),
        weights=_read_weights(_require_mapping(fields.get("weights") or {}, "weights"), topics),
        names={m: str(row["instance_id"]) for m, row in rows.items() if row.get("instance_id")},
    )


def _require_mapping(value: object, what: str) -> Mapping[str, Json]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{what} is {value!r}: give names and what belongs to them")
    return value


def _refuse_other_fields(fields: Mapping[str, Json], allowed: set[str], what: str) -> None:
    if unknown := sorted(str(key) for key in fields if key not in allowed):
        raise ValueError(f"{what} has {', '.join(unknown)}: known are {', '.join(sorted(allowed))}")


def _read_topic(name: str, row: Any) -> TopicInfo:
    fields = row if isinstance(row, Mapping) else {"partitions": row}
    _refuse_other_fields(fields, {"partitions", "racks"}, f"topic {name}")
    count = fields.get("partitions")
    if isinstance(count, bool) or not isinstance(count, int):
        raise TypeError(f"topic {name} has partitions {count!r}: give a whole number")
    return TopicInfo(count, tuple(frozenset(map(str, racks)) for racks in fields.get("racks", ())))


def _read_member(name: str, row: object) -> Member:
    fields = _require_mapping(row, f"member {name}")
    _refuse_other_fields(fields, _MEMBER_KEYS, f"member {name}")
    topics = fields.get("topics")
    if not isinstance(topics, list):
        raise TypeError(f"member {name} has topics {topics!r}: give a list of names")
    data = fields.get("user_data")
    subscription = Subscription(
        tuple(map(str, topics)),
        None if data is None else str(data).encode(),
        _owned_of(name, row),
        int(fields.get("generation", 1)),
        None if fields.get("rack") is None else str(fields["rack"]),
    )
    instance_id = fields.get("instance_id")
    return Member(name, subscription, None if instance_id is None else str(instance_id))


def _owned_of(name: str, row: object) -> tuple[TopicPartition, ...]:
    fields = _require_mapping(
        _require_mapping(row, f"member {name}").get("owned") or {}, f"owned of member {name}"
    )
    owned = []
    for topic, numbers in fields.items():
        if not isinstance(numbers, list) or not all(type(number) is int for number in numbers):
            raise TypeError(f"member {name} owns {topic} {numbers!r}: give a list of partition numbers")
        owned += [TopicPartition(str(topic), number) for number in numbers]
    return tuple(owned)


def _read_weights(fields: Mapping[str, Json], topics: Mapping[str, TopicInfo]) -> dict[TopicPartition, float]:
    """A partition's own weight, else its topic's; partitions with neither are left out."""
    weights = {}
    for topic, info in topics.items():
        for number in range(info.partition_count):
            weight = fields.get(f"{topic}-{number}", fields.get(topic))
            if weight is not None:
                weights[TopicPartition(topic, number)] = float(weight)
    known = {*topics, *(f"{t}-{n}" for t, info in topics.items() for n in range(info.partition_count))}
    _refuse_other_fields(fields, known, "weights")
    return weights
