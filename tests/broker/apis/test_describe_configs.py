"""DescribeConfigs: all configs of topics and of the broker, and where they come from.

Covers: broker/apis/_config_view.py, broker/partitions/topic_config.py.
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from kohort.broker.partitions.topic_config import TopicConfig
from kohort.coordinator import GroupSettings
from kohort.protocol import ApiKey, ErrorCode
from kohort.settings import settings_of
from kohort.testing import running_broker
from tests.broker.wire import Wire, create_topic, part

TOPIC, BROKER = 2, 4
TOPIC_SOURCE, STATIC_SOURCE, DEFAULT_SOURCE = 1, 4, 5

CONFIGS_OF_A_TOPIC_IN_APACHE_KAFKA_4_3 = 33
OWN = {"kohort.ack.flush", "kohort.visibility"}
TOPIC_CONFIGS = sorted(setting.kafka_name for setting in settings_of(TopicConfig).values())


def ask(
    wire: Wire, kind: int, name: str, keys: list[str] | None = None, *, version: int = 4, **flags: bool
) -> Any:
    resource = part(
        ApiKey.DESCRIBE_CONFIGS,
        version,
        "DescribeConfigsResource",
        resource_type=kind,
        resource_name=name,
        configuration_keys=keys,
    )
    return wire.call(ApiKey.DESCRIBE_CONFIGS, version, resources=[resource], **flags).results[0]


@pytest.mark.parametrize("version", range(1, 5))
def test_all_configs_of_a_topic(wire: Wire, name: str, version: int) -> None:
    create_topic(wire, name, retention_ms="1000")
    told = ask(wire, TOPIC, name, version=version)
    assert (told.error_code, told.resource_type, told.resource_name) == (0, TOPIC, name)
    shown = {row.name: row for row in told.configs}
    assert len(shown.keys() - OWN) == CONFIGS_OF_A_TOPIC_IN_APACHE_KAFKA_4_3
    assert sorted(shown) == TOPIC_CONFIGS
    assert (shown["retention.ms"].value, shown["retention.ms"].config_source) == ("1000", TOPIC_SOURCE)
    assert (shown["segment.ms"].value, shown["segment.ms"].config_source) == ("604800000", DEFAULT_SOURCE)
    assert not any(row.is_sensitive or row.read_only for row in told.configs)


def test_keys_choose_and_unknown_ones_are_left_out(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    told = ask(wire, TOPIC, name, ["segment.bytes", "no.such.config"])
    assert [row.name for row in told.configs] == ["segment.bytes"]
    assert len(ask(wire, TOPIC, name, []).configs) == CONFIGS_OF_A_TOPIC_IN_APACHE_KAFKA_4_3 + len(OWN)


def test_each_resource_of_a_request_is_told_its_own_configs(wire: Wire, name: str) -> None:
    short, plain = [f"{name}-short", f"{name}-too"], [f"{name}-plain", f"{name}-other"]
    for topic in short:
        create_topic(wire, topic, retention_ms="1")
    for topic in plain:
        create_topic(wire, topic)
    asked = [(topic, keys) for topic in short + plain for keys in (["retention.ms"], None)]
    resources = [
        part(
            ApiKey.DESCRIBE_CONFIGS,
            4,
            "DescribeConfigsResource",
            resource_type=TOPIC,
            resource_name=topic,
            configuration_keys=keys,
        )
        for topic, keys in asked
    ]
    results = wire.call(ApiKey.DESCRIBE_CONFIGS, 4, resources=resources).results
    assert [told.resource_name for told in results] == [topic for topic, _ in asked]
    for told, (topic, keys) in zip(results, asked, strict=True):
        shown = {row.name: row.value for row in told.configs}
        assert sorted(shown) == (TOPIC_CONFIGS if keys is None else keys)
        assert shown["retention.ms"] == ("1" if topic in short else "604800000")


def test_synonyms_say_what_else_a_config_would_be() -> None:
    with running_broker(log_cleanup_policy="compact") as broker, Wire(broker.bootstrap) as wire:
        create_topic(wire, "set", cleanup_policy="delete")
        create_topic(wire, "unset")
        (row,) = ask(wire, TOPIC, "set", ["cleanup.policy"], include_synonyms=True).configs
        assert [(one.name, one.value, one.source) for one in row.synonyms] == [
            ("cleanup.policy", "delete", TOPIC_SOURCE),
            ("log.cleanup.policy", "compact", STATIC_SOURCE),
            ("log.cleanup.policy", "delete", DEFAULT_SOURCE),
        ]
        (row,) = ask(wire, TOPIC, "unset", ["cleanup.policy"]).configs
        assert (row.value, row.config_source, row.synonyms) == ("compact", STATIC_SOURCE, [])


def test_settings_without_a_one_to_one_synonym_reach_topics_too() -> None:
    with running_broker(log_retention_hours=2) as broker, Wire(broker.bootstrap) as wire:
        create_topic(wire, "t")
        (row,) = ask(wire, TOPIC, "t", ["retention.ms"]).configs
        assert (row.value, row.config_source) == ("7200000", STATIC_SOURCE)


def test_types_and_descriptions(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    told = ask(wire, TOPIC, name, include_documentation=True)
    assert all(row.documentation for row in told.configs)
    types = {row.name: row.config_type for row in told.configs}
    expected = {
        "preallocate": 1,
        "message.timestamp.type": 2,
        "segment.bytes": 3,
        "retention.ms": 5,
        "min.cleanable.dirty.ratio": 6,
        "cleanup.policy": 7,
    }
    assert {key: types[key] for key in expected} == expected
    assert not any(row.documentation for row in ask(wire, TOPIC, name).configs)


def test_the_broker(wire: Wire) -> None:
    told = ask(wire, BROKER, "1", include_synonyms=True)
    shown = {row.name: row for row in told.configs}
    assert shown["offsets.topic.num.partitions"].value == "50"
    row = shown["group.initial.rebalance.delay.ms"]
    assert (row.value, row.config_source, row.read_only) == ("0", STATIC_SOURCE, True)
    assert [(one.value, one.source) for one in row.synonyms] == [
        ("0", STATIC_SOURCE),
        ("3000", DEFAULT_SOURCE),
    ]


@pytest.mark.row("4/described")
def test_every_setting_of_the_coordinator_is_told_and_is_in_the_documentation(wire: Wire) -> None:
    told = {row.name: row for row in ask(wire, BROKER, "1", include_documentation=True).configs}
    page = (Path(__file__).resolve().parents[3] / "docs" / "broker.md").read_text()
    for field in fields(GroupSettings):
        name = field.name.replace("_", ".")
        assert told[name].value is not None
        assert told[name].documentation
        assert f"| `{name}` |" in page


def test_nothing_is_set_for_all_brokers_together(wire: Wire) -> None:
    told = ask(wire, BROKER, "")
    assert (told.error_code, told.configs) == (0, [])


@pytest.mark.parametrize(
    ("kind", "resource", "code"),
    [
        (TOPIC, "no-such-topic", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "two words", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "9", ErrorCode.INVALID_REQUEST),
        (BROKER, "one", ErrorCode.INVALID_REQUEST),
        (77, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_is_not_there(wire: Wire, kind: int, resource: str, code: ErrorCode) -> None:
    told = ask(wire, kind, resource)
    assert (told.error_code, told.configs) == (code, [])
    assert told.error_message
    assert code.name not in told.error_message, "clients put the code in front themselves"
