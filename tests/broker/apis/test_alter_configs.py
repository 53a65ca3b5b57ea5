"""AlterConfigs and IncrementalAlterConfigs: the codes are those that Apache Kafka 4.3.1 gave to the same.

Covers: broker/apis/_configs.py, broker/apis/incremental_alter_configs.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kohort.protocol import ApiKey, Codec, ErrorCode, parse_batch_header
from kohort.testing import running_broker
from tests.broker.wire import Wire, batch, create_topic, fetch, part, produce

TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = range(4)
SET_FOR_TOPIC = 1

#: Name, operation, value.
Change = tuple[str, int, str | None]


def change(
    wire: Wire, name: str, *changes: Change, kind: int = TOPIC, version: int = 1, validate_only: bool = False
) -> ErrorCode:
    return changes_of(wire, [(kind, name, changes)], version, validate_only=validate_only)[0]


def changes_of(wire: Wire, wanted: Any, version: int = 1, *, validate_only: bool = False) -> list[ErrorCode]:
    key = ApiKey.INCREMENTAL_ALTER_CONFIGS
    resources = [
        part(
            key,
            version,
            "AlterConfigsResource",
            resource_type=kind,
            resource_name=name,
            configs=[
                part(
                    key,
                    version,
                    "AlterConfigsResource",
                    "AlterableConfig",
                    name=config,
                    config_operation=operation,
                    value=value,
                )
                for config, operation, value in changes
            ],
        )
        for kind, name, changes in wanted
    ]
    answer = wire.call(key, version, resources=resources, validate_only=validate_only)
    assert [(one.resource_type, one.resource_name) for one in answer.responses] == [one[:2] for one in wanted]
    assert all(bool(one.error_message) == bool(one.error_code) for one in answer.responses)
    return [ErrorCode(one.error_code) for one in answer.responses]


def replace(
    wire: Wire, name: str, version: int = 2, *, kind: int = TOPIC, **configs: str | None
) -> ErrorCode:
    key = ApiKey.ALTER_CONFIGS
    rows = [
        part(
            key,
            version,
            "AlterConfigsResource",
            "AlterableConfig",
            name=config.replace("_", "."),
            value=value,
        )
        for config, value in configs.items()
    ]
    resource = part(
        key, version, "AlterConfigsResource", resource_type=kind, resource_name=name, configs=rows
    )
    answer = wire.call(key, version, resources=[resource], validate_only=False)
    return ErrorCode(answer.responses[0].error_code)


def what_is_set(wire: Wire, name: str) -> dict[str, str]:
    asked = part(
        ApiKey.DESCRIBE_CONFIGS,
        4,
        "DescribeConfigsResource",
        resource_type=TOPIC,
        resource_name=name,
        configuration_keys=None,
    )
    fields = {"include_synonyms": False, "include_documentation": False}
    told = wire.call(ApiKey.DESCRIBE_CONFIGS, 4, resources=[asked], **fields).results[0]
    return {row.name: row.value for row in told.configs if row.config_source == SET_FOR_TOPIC}


@pytest.mark.parametrize("version", [0, 1])
def test_configs_are_set_and_deleted(wire: Wire, name: str, version: int) -> None:
    create_topic(wire, name, segment_ms="5000")
    done = change(wire, name, ("retention.ms", SET, "77"), ("segment.ms", DELETE, None), version=version)
    assert done is ErrorCode.NONE
    assert what_is_set(wire, name) == {"retention.ms": "77"}
    assert change(wire, name, ("retention.ms", DELETE, "5"), version=version) is ErrorCode.NONE
    assert what_is_set(wire, name) == {}


def test_lists_are_appended_to_and_subtracted_from(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    policy = "cleanup.policy"
    for operation, value, expected in (
        (APPEND, "compact", "delete,compact"),
        (APPEND, "compact", "delete,compact"),
        (SUBTRACT, "delete", "compact"),
        (SUBTRACT, "gone", "compact"),
    ):
        assert change(wire, name, (policy, operation, value)) is ErrorCode.NONE
        assert what_is_set(wire, name) == {policy: expected}


@pytest.mark.parametrize("version", range(3))
def test_all_configs_are_replaced(wire: Wire, name: str, version: int) -> None:
    create_topic(wire, name, retention_ms="1000")
    assert replace(wire, name, version, segment_ms="5000") is ErrorCode.NONE
    assert what_is_set(wire, name) == {"segment.ms": "5000"}
    assert replace(wire, name, version, segment_ms=None) is ErrorCode.INVALID_REQUEST
    assert replace(wire, name, version, nope="1") is ErrorCode.INVALID_CONFIG
    assert what_is_set(wire, name) == {"segment.ms": "5000"}
    assert replace(wire, name, version) is ErrorCode.NONE
    assert what_is_set(wire, name) == {}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ([], ErrorCode.NONE),
        ([("nope", DELETE, None)], ErrorCode.NONE),
        ([("retention.ms", SET, "x")], ErrorCode.INVALID_CONFIG),
        (
            [("min.compaction.lag.ms", SET, "100"), ("max.compaction.lag.ms", SET, "99")],
            ErrorCode.INVALID_CONFIG,
        ),
        ([("nope", SET, "1")], ErrorCode.INVALID_CONFIG),
        ([("", SET, "1")], ErrorCode.INVALID_CONFIG),
        ([("segment.bytes", SET, "2000"), ("nope", SET, "1")], ErrorCode.INVALID_CONFIG),
        ([("retention.ms", APPEND, "1")], ErrorCode.INVALID_CONFIG),
        ([("cleanup.policy", APPEND, "zzz")], ErrorCode.INVALID_CONFIG),
        ([("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", SET, "1"), ("retention.ms", DELETE, None)], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", 7, "1")], ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_is_wrong_changes_nothing(wire: Wire, name: str, changes: list[Change], code: ErrorCode) -> None:
    create_topic(wire, name, retention_ms="1000")
    assert change(wire, name, *changes) is code
    assert what_is_set(wire, name) == {"retention.ms": "1000"}


@pytest.mark.parametrize(
    ("kind", "resource", "code"),
    [
        (TOPIC, "no-such-topic", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "b@d", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "", ErrorCode.INVALID_REQUEST),
        (BROKER, "7", ErrorCode.INVALID_REQUEST),
        (9, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_resources_that_cannot_be_changed(wire: Wire, kind: int, resource: str, code: ErrorCode) -> None:
    assert change(wire, resource, ("retention.ms", SET, "1"), kind=kind) is code


def test_a_resource_that_is_named_twice_is_left_alone(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    other = create_topic(wire, f"{name}-other").name
    row = (("retention.ms", SET, "5"),)
    wanted = [(TOPIC, name, row), (TOPIC, other, row), (TOPIC, name, row)]
    invalid = ErrorCode.INVALID_REQUEST
    assert changes_of(wire, wanted) == [invalid, ErrorCode.NONE, invalid]
    assert (what_is_set(wire, name), what_is_set(wire, other)) == ({}, {"retention.ms": "5"})


def test_a_check_changes_nothing(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    assert change(wire, name, ("retention.ms", SET, "5"), validate_only=True) is ErrorCode.NONE
    assert what_is_set(wire, name) == {}


def test_they_are_in_force_at_once(wire: Wire, name: str) -> None:
    create_topic(wire, name, kohort_visibility="flushed", flush_ms="3600000")
    produce(wire, name, batch(3))
    assert fetch(wire, name, 0)[0].high_watermark == 0
    change(wire, name, ("kohort.visibility", SET, "appended"), ("max.message.bytes", SET, "1"))
    assert fetch(wire, name, 0)[0].high_watermark == 3
    assert produce(wire, name, batch()).error_code == ErrorCode.MESSAGE_TOO_LARGE


def test_the_compression_of_the_next_batch_is_that_of_its_topic_or_else_of_the_broker() -> None:
    def next_codec(name: str) -> Codec:
        offset = produce(wire, name, batch(3)).base_offset
        return Codec(parse_batch_header(fetch(wire, name, offset)[0].records).codec)

    with running_broker(compression_type="snappy") as broker, Wire(broker.bootstrap) as wire:
        create_topic(wire, "orders")
        create_topic(wire, "kept", compression_type="producer")
        assert (next_codec("orders"), next_codec("kept")) == (Codec.SNAPPY, Codec.NONE)
        assert change(wire, "", ("compression.type", SET, "lz4"), kind=BROKER) is ErrorCode.NONE
        assert (next_codec("orders"), next_codec("kept")) == (Codec.LZ4, Codec.NONE)
        assert change(wire, "orders", ("compression.type", SET, "zstd")) is ErrorCode.NONE
        assert next_codec("orders") is Codec.ZSTD
        for level in ("0", "10"):
            refused = change(wire, "", ("compression.gzip.level", SET, level), kind=BROKER)
            assert refused is ErrorCode.INVALID_REQUEST


def test_they_survive_a_restart(tmp_path: Path) -> None:
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        create_topic(wire, "orders", segment_ms="5000")
        change(wire, "orders", ("retention.ms", SET, "77"), ("segment.ms", DELETE, None))
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        assert what_is_set(wire, "orders") == {"retention.ms": "77"}
