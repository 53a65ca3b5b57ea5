"""CreateTopics: what is made, what is only checked, what is refused and with which code."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.protocol import ApiKey, ErrorCode
from tests.broker.wire import Wire, create_topic, part


def ask(wire: Wire, *topics: dict[str, Any], version: int = 7, validate_only: bool = False) -> list[Any]:
    """Create topics; ``assignments`` are (partition, brokers), ``configs`` (name, value)."""
    wanted = []
    for topic in topics:
        fields = {"num_partitions": 1, "replication_factor": 1, **topic}
        fields["assignments"] = [
            part(
                ApiKey.CREATE_TOPICS,
                version,
                "CreatableTopic",
                "CreatableReplicaAssignment",
                partition_index=index,
                broker_ids=brokers,
            )
            for index, brokers in topic.get("assignments", ())
        ]
        fields["configs"] = [
            part(
                ApiKey.CREATE_TOPICS,
                version,
                "CreatableTopic",
                "CreatableTopicConfig",
                name=key,
                value=value,
            )
            for key, value in topic.get("configs", ())
        ]
        wanted.append(part(ApiKey.CREATE_TOPICS, version, "CreatableTopic", **fields))
    answer = wire.call(
        ApiKey.CREATE_TOPICS, version, topics=wanted, timeout_ms=5_000, validate_only=validate_only
    )
    return list(answer.topics)


def partitions_of(wire: Wire, name: str) -> int:
    asked = part(ApiKey.METADATA, 4, "MetadataRequestTopic", name=name)
    answer = wire.call(ApiKey.METADATA, 4, topics=[asked], allow_auto_topic_creation=False)
    return len(answer.topics[0].partitions)


@pytest.mark.parametrize("version", range(2, 8))
def test_a_topic_is_made(wire: Wire, name: str, version: int) -> None:
    (made,) = ask(wire, {"name": name, "num_partitions": 3}, version=version)
    assert (made.name, made.error_code, made.error_message) == (name, 0, None)
    if version >= 5:
        assert (made.num_partitions, made.replication_factor) == (3, 1)
    if version >= 7:
        assert made.topic_id.int
    assert partitions_of(wire, name) == 3


def test_defaults_are_the_brokers(wire: Wire, name: str) -> None:
    (made,) = ask(wire, {"name": name, "num_partitions": -1, "replication_factor": -1})
    assert (made.error_code, made.num_partitions, made.replication_factor) == (0, 1, 1)


def test_configs_are_shown_with_where_they_come_from(wire: Wire, name: str) -> None:
    (made,) = ask(wire, {"name": name, "configs": [("retention.ms", "1000")]})
    shown = {row.name: (row.value, row.config_source) for row in made.configs}
    assert shown["retention.ms"] == ("1000", 1)
    assert shown["cleanup.policy"] == ("delete", 5)
    assert [row.name for row in made.configs] == sorted(shown)


def test_each_topic_of_a_request_is_shown_its_own_configs(wire: Wire, name: str) -> None:
    times = {f"{name}-{number}": str(number % 2) for number in range(1, 5)}
    made = ask(wire, *({"name": topic, "configs": [("retention.ms", ms)]} for topic, ms in times.items()))
    shown = {one.name: {row.name: row.value for row in one.configs} for one in made}
    assert {topic: configs["retention.ms"] for topic, configs in shown.items()} == times


def test_a_check_makes_nothing(wire: Wire, name: str) -> None:
    (checked,) = ask(wire, {"name": name, "num_partitions": 4}, validate_only=True)
    assert (checked.error_code, checked.num_partitions) == (0, 4)
    assert partitions_of(wire, name) == 0


def test_assignments_to_this_broker(wire: Wire, name: str) -> None:
    assigned = {
        "name": name,
        "num_partitions": -1,
        "replication_factor": -1,
        "assignments": [(1, [1]), (0, [1])],
    }
    assert ask(wire, assigned)[0].error_code == 0
    assert partitions_of(wire, name) == 2


WRONG_ASSIGNMENTS: list[list[tuple[int, list[int]]]] = [
    [(0, [1]), (2, [1])],
    [(1, [1])],
    [(0, [9])],
    [(0, [1, 1])],
    [(0, [])],
    [(0, [1]), (0, [1])],
]

REFUSED: list[tuple[str, dict[str, Any], ErrorCode]] = [
    ("no partitions", {"num_partitions": 0}, ErrorCode.INVALID_PARTITIONS),
    ("negative partitions", {"num_partitions": -2}, ErrorCode.INVALID_PARTITIONS),
    ("too many partitions", {"num_partitions": 10_001}, ErrorCode.POLICY_VIOLATION),
    ("no replicas", {"replication_factor": 0}, ErrorCode.INVALID_REPLICATION_FACTOR),
    ("three replicas", {"replication_factor": 3}, ErrorCode.INVALID_REPLICATION_FACTOR),
    (
        "no replicas of no partitions",
        {"num_partitions": 0, "replication_factor": 0},
        ErrorCode.INVALID_REPLICATION_FACTOR,
    ),
    (
        "no replicas, and a config",
        {"replication_factor": 0, "configs": [("no.such.config", "1")]},
        ErrorCode.INVALID_CONFIG,
    ),
    (
        "count and assignments",
        {"replication_factor": -1, "assignments": [(0, [1])]},
        ErrorCode.INVALID_REQUEST,
    ),
    ("factor and assignments", {"num_partitions": -1, "assignments": [(0, [1])]}, ErrorCode.INVALID_REQUEST),
    *(
        (
            f"assignments {assignments}",
            {"num_partitions": -1, "replication_factor": -1, "assignments": assignments},
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        )
        for assignments in WRONG_ASSIGNMENTS
    ),
    *(
        (f"config {name}={value}", {"configs": [(name, value)]}, ErrorCode.INVALID_CONFIG)
        for name, value in (
            ("no.such.config", "1"),
            ("retention.ms", "soon"),
            ("retention.ms", "-2"),
            ("retention.ms", None),
            ("cleanup.policy", "burn"),
            ("min.cleanable.dirty.ratio", "1.5"),
            ("message.timestamp.type", "createtime"),
            ("remote.storage.enable", "true"),
            ("compression.type", "none"),
            ("compression.type", "GZIP"),
            ("compression.gzip.level", "0"),
            ("compression.gzip.level", "10"),
            ("compression.lz4.level", "0"),
            ("compression.lz4.level", "18"),
            ("compression.zstd.level", "-131073"),
            ("compression.zstd.level", "23"),
        )
    ),
]


@pytest.mark.parametrize(("topic", "code"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_is_refused(wire: Wire, name: str, topic: dict[str, Any], code: ErrorCode) -> None:
    (refused,) = ask(wire, {"name": name, **topic})
    assert (refused.error_code, refused.num_partitions) == (code, -1)
    assert refused.error_message
    assert code.name not in refused.error_message, "clients put the code in front themselves"
    assert partitions_of(wire, name) == 0


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        *(
            (bad, ErrorCode.INVALID_TOPIC_EXCEPTION)
            for bad in ("", ".", "..", "a b", "ü", "x" * 250, "a/b", "a\n")
        ),
        ("__cluster_metadata", ErrorCode.INVALID_REQUEST),
        ("__consumer_offsets", ErrorCode.TOPIC_ALREADY_EXISTS),
    ],
)
def test_names_that_cannot_be_taken(wire: Wire, bad: str, code: ErrorCode) -> None:
    assert ask(wire, {"name": bad})[0].error_code == code


def test_the_longest_name(wire: Wire, name: str) -> None:
    assert ask(wire, {"name": name.ljust(249, "x")})[0].error_code == 0


def test_a_name_that_is_taken_or_differs_only_in_dots(wire: Wire, name: str) -> None:
    create_topic(wire, f"{name}.a")
    assert ask(wire, {"name": f"{name}.a"})[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert ask(wire, {"name": f"{name}_a"})[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_name_asked_for_twice_is_refused_and_the_others_are_made(wire: Wire, name: str) -> None:
    twice = {"name": f"{name}-twice"}
    answers = {one.name: one.error_code for one in ask(wire, twice, {"name": name}, twice)}
    assert answers == {f"{name}-twice": ErrorCode.INVALID_REQUEST, name: 0}


@pytest.mark.parametrize("policy", ["compact", "delete, compact", ""])
def test_policies_in_every_spelling(wire: Wire, name: str, policy: str) -> None:
    assert create_topic(wire, name, cleanup_policy=policy).error_code == 0
