"""The broker's settings and what follows from them."""

from __future__ import annotations

from dataclasses import fields

import pytest

from kohort.broker import BrokerSettings, SettingsError
from kohort.broker.partitions.topic_config import TopicConfig
from kohort.broker.settings import broker_settings
from kohort.coordinator import GroupSettings
from kohort.settings import MAX_LONG, settings_of


def test_it_is_the_coordinators_settings_too() -> None:
    settings = broker_settings({"group.max.size": "7"})
    assert isinstance(settings, GroupSettings)
    assert settings.group_max_size == 7


def test_a_settings_object_is_taken_as_it_is() -> None:
    settings = BrokerSettings(num_partitions=3)
    assert broker_settings(settings) is settings


def test_every_setting_has_a_description() -> None:
    known = settings_of(BrokerSettings)
    assert [
        name for name, setting in known.items() if not setting.row.doc or not setting.allowed_values
    ] == []
    assert known.keys() == {field.name for field in fields(BrokerSettings)}


def test_the_defaults_of_topics_that_can_change_live_are_settings_of_the_broker() -> None:
    broker = settings_of(BrokerSettings)
    sources = [one.row.default_from for one in settings_of(TopicConfig).values() if one.row.default_from]
    assert sources
    assert all(broker[name].row.dynamic for name in sources)


def test_every_default_is_allowed() -> None:
    given = {name: setting.default for name, setting in settings_of(BrokerSettings).items()}
    assert (
        broker_settings({name: value for name, value in given.items() if value is not None})
        == BrokerSettings()
    )


@pytest.mark.parametrize(
    ("given", "retention_ms"),
    [
        ({}, 168 * 3_600_000),
        ({"log.retention.hours": "2"}, 7_200_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.ms": "-1", "log.retention.hours": "5"}, -1),
    ],
)
def test_the_finest_unit_of_retention_wins(given: dict[str, str], retention_ms: int) -> None:
    assert broker_settings(given).retention_ms == retention_ms


def test_rolling_and_flushing_by_time() -> None:
    assert broker_settings({}).segment_ms == 168 * 3_600_000
    assert broker_settings({"log.roll.ms": "5"}).segment_ms == 5
    assert broker_settings({}).flush_ms == MAX_LONG
    assert broker_settings({"log.flush.interval.ms": "9"}).flush_ms == 9


def test_session_bounds_must_not_cross() -> None:
    with pytest.raises(SettingsError, match=r"group\.min\.session\.timeout\.ms=20.*set it to that or less"):
        broker_settings({"group.min.session.timeout.ms": "20", "group.max.session.timeout.ms": "10"})


@pytest.mark.parametrize(
    "text",
    [
        "localhost:9092",
        "SSL://localhost:9092",
        "PLAINTEXT://localhost",
        "PLAINTEXT://:9092",
        "PLAINTEXT://h:0",
        "PLAINTEXT://h:70000",
    ],
)
def test_clients_are_told_addresses_of_listeners_alone(text: str) -> None:
    with pytest.raises(SettingsError, match=r"advertised\.listeners"):
        broker_settings({"advertised.listeners": text})
