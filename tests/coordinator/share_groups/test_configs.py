"""Configs of single share groups: defaults, bounds and texts are those of Apache Kafka 4.3.1."""

from __future__ import annotations

import pytest

from kohort.coordinator import GroupSettings
from kohort.coordinator.groups.group_config import ConfigValue
from kohort.coordinator.share_groups.configs import SHARE_CONFIGS, share_config
from kohort.protocol import ErrorCode, KafkaError

DEFAULTS: dict[str, ConfigValue] = {
    "share.session.timeout.ms": 45_000,
    "share.heartbeat.interval.ms": 5_000,
    "share.assignment.interval.ms": 1_000,
    "share.record.lock.duration.ms": 30_000,
    "share.delivery.count.limit": 5,
    "share.partition.max.record.locks": 2_000,
    "share.auto.offset.reset": "latest",
    "share.isolation.level": "read_uncommitted",
    "share.renew.acknowledge.enable": True,
}


def test_the_defaults_are_kafkas() -> None:
    settings = GroupSettings()
    assert {name: row.default(settings) for name, row in SHARE_CONFIGS.rows.items()} == DEFAULTS
    assert list(share_config({}, settings)) == list(DEFAULTS.values())


def test_what_is_set_for_a_group_counts() -> None:
    own: dict[str, ConfigValue] = {"share.delivery.count.limit": 3, "share.renew.acknowledge.enable": False}
    found = share_config(own, GroupSettings(group_share_record_lock_duration_ms=20_000))
    assert (found.delivery_count_limit, found.renew_acknowledge_enable) == (3, False)
    assert (found.record_lock_duration_ms, found.isolation_level) == (20_000, "read_uncommitted")


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("share.session.timeout.ms", "60000", 60_000),
        ("share.assignment.interval.ms", "0", 0),
        ("share.delivery.count.limit", "2", 2),
        ("share.partition.max.record.locks", "100", 100),
        ("share.auto.offset.reset", "earliest", "earliest"),
        ("share.auto.offset.reset", "by_duration:PT1H", "by_duration:PT1H"),
        ("share.auto.offset.reset", "by_duration:P3DT0.5S", "by_duration:P3DT0.5S"),
        ("share.isolation.level", "read_committed", "read_committed"),
        ("share.renew.acknowledge.enable", "FALSE", False),
        ("share.renew.acknowledge.enable", "true", True),
    ],
)
def test_values_are_parsed(name: str, text: str, value: ConfigValue) -> None:
    parsed = SHARE_CONFIGS.rows[name].parse(text, GroupSettings())
    assert parsed == value
    assert type(parsed) is type(value) is SHARE_CONFIGS.rows[name].type


_ONE_OF = "String must be one of: read_committed, read_uncommitted"
_NO_RESETS = ("none", "EARLIEST", "by_duration:x", "by_duration:-PT1H", "by_duration:", "by_duration:P")
_RESET = (
    "Invalid value {0} for configuration share.auto.offset.reset: Invalid value `{0}` for configuration "
    "share.auto.offset.reset. The value must be either 'earliest', 'latest' or of the format "
    "'by_duration:<PnDTnHnMn.nS>'."
)


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("share.session.timeout.ms", "0", "Value must be at least 1"),
        ("share.session.timeout.ms", "x", "Not a number of type INT"),
        ("share.session.timeout.ms", "44999", "min.session.timeout.ms"),
        ("share.session.timeout.ms", "60001", "max.session.timeout.ms"),
        ("share.heartbeat.interval.ms", "4999", "min.heartbeat.interval.ms"),
        ("share.assignment.interval.ms", "-1", "Value must be at least 0"),
        ("share.assignment.interval.ms", "15001", "max.assignment.interval.ms"),
        ("share.record.lock.duration.ms", "999", "Value must be at least 1000"),
        ("share.record.lock.duration.ms", "1000", "min.record.lock.duration.ms"),
        ("share.delivery.count.limit", "1", "Value must be at least 2"),
        ("share.delivery.count.limit", "11", "max.delivery.count.limit"),
        ("share.partition.max.record.locks", "99", "Value must be at least 100"),
        ("share.partition.max.record.locks", "4001", "max.partition.max.record.locks"),
        (
            "share.isolation.level",
            "READ_COMMITTED",
            _ONE_OF,
        ),
        ("share.renew.acknowledge.enable", "x", "Expected value to be either true or false"),
        *(
            ("share.auto.offset.reset", value, "")
            for value in (
                "none",
                "EARLIEST",
                "by_duration:x",
                "by_duration:-PT1H",
                "by_duration:",
                "by_duration:P",
            )
        ),
    ],
)
def test_other_values_are_refused_with_kafkas_words(name: str, value: str, why: str) -> None:
    with pytest.raises(KafkaError) as refused:
        SHARE_CONFIGS.rows[name].parse(value, GroupSettings())
    assert refused.value.code == ErrorCode.INVALID_CONFIG
    if name == "share.auto.offset.reset":
        expected = _RESET.format(value)
    elif why.startswith(("min.", "max.")):
        bound = "greater than or equal to" if why.startswith("min.") else "less than or equal to"
        expected = f"{name} must be {bound} group.share.{why}"
    else:
        expected = f"Invalid value {value} for configuration {name}: {why}"
    assert refused.value.message == expected


def test_a_session_is_longer_than_an_interval_between_heartbeats() -> None:
    values = DEFAULTS | {"share.heartbeat.interval.ms": 45_000}
    assert SHARE_CONFIGS.check(values) == (
        "share.session.timeout.ms must be greater than share.heartbeat.interval.ms"
    )
    assert SHARE_CONFIGS.check(DEFAULTS) == ""
