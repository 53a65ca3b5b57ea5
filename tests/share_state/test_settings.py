"""Settings of the share coordinator are Apache Kafka's, with its defaults and bounds."""

from __future__ import annotations

from dataclasses import fields

import pytest

from kohort.broker.settings import broker_settings
from kohort.settings import SettingsError
from kohort.share_state import ShareCoordinatorSettings

#: Of Apache Kafka 4.3.1.
DEFAULTS = {
    "share.coordinator.state.topic.num.partitions": 50,
    "share.coordinator.state.topic.replication.factor": 3,
    "share.coordinator.state.topic.min.isr": 2,
    "share.coordinator.state.topic.segment.bytes": 104_857_600,
    "share.coordinator.state.topic.prune.interval.ms": 300_000,
    "share.coordinator.snapshot.update.records.per.snapshot": 500,
    "share.coordinator.cold.partition.snapshot.interval.ms": 300_000,
    "share.coordinator.write.timeout.ms": 5_000,
    "share.coordinator.load.buffer.size": 5_242_880,
}


def test_defaults_are_those_of_apache_kafka() -> None:
    defaults = ShareCoordinatorSettings()
    assert {
        each.name.replace("_", "."): getattr(defaults, each.name) for each in fields(defaults)
    } == DEFAULTS


@pytest.mark.parametrize(
    ("name", "value"),
    [*((name, 0) for name in DEFAULTS if "snapshot.update" not in name), *[(name, -1) for name in DEFAULTS]],
)
def test_less_than_the_least_is_refused(name: str, value: int) -> None:
    with pytest.raises(SettingsError, match=name):
        broker_settings({name: value})


def test_at_most_500_updates_follow_a_snapshot() -> None:
    name = "share.coordinator.snapshot.update.records.per.snapshot"
    assert broker_settings({name: 0}).share_coordinator_snapshot_update_records_per_snapshot == 0
    with pytest.raises(SettingsError, match="500"):
        broker_settings({name: 501})
