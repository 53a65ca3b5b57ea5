"""Settings carry Kafka's names, defaults and bounds (specification section 4)."""

from __future__ import annotations

import dataclasses

import pydantic
import pytest

from kohort.coordinator import GroupSettings

DEFAULTS = {
    "group.min.session.timeout.ms": 6_000,
    "group.max.session.timeout.ms": 1_800_000,
    "group.initial.rebalance.delay.ms": 3_000,
    "offset.metadata.max.bytes": 4_096,
    "offsets.load.buffer.size": 5_242_880,
    "offsets.retention.minutes": 10_080,
    "offsets.retention.check.interval.ms": 600_000,
    "offsets.topic.num.partitions": 50,
    "offsets.topic.replication.factor": 3,
    "offsets.topic.segment.bytes": 104_857_600,
    "offsets.topic.compression.codec": 0,
    "offsets.commit.timeout.ms": 5_000,
    "group.coordinator.append.linger.ms": -1,
    "group.coordinator.threads": 4,
    "group.max.size": 2_147_483_647,
    "group.consumer.session.timeout.ms": 45_000,
    "group.consumer.min.session.timeout.ms": 45_000,
    "group.consumer.max.session.timeout.ms": 60_000,
    "group.consumer.heartbeat.interval.ms": 5_000,
    "group.consumer.min.heartbeat.interval.ms": 5_000,
    "group.consumer.max.heartbeat.interval.ms": 15_000,
    "group.consumer.assignment.interval.ms": 1_000,
    "group.consumer.min.assignment.interval.ms": 0,
    "group.consumer.max.assignment.interval.ms": 15_000,
    "group.consumer.max.size": 2_147_483_647,
    "group.consumer.assignors": "uniform,range",
    "group.consumer.migration.policy": "bidirectional",
    "group.consumer.regex.refresh.interval.ms": 600_000,
    "group.share.session.timeout.ms": 45_000,
    "group.share.min.session.timeout.ms": 45_000,
    "group.share.max.session.timeout.ms": 60_000,
    "group.share.heartbeat.interval.ms": 5_000,
    "group.share.min.heartbeat.interval.ms": 5_000,
    "group.share.max.heartbeat.interval.ms": 15_000,
    "group.share.assignment.interval.ms": 1_000,
    "group.share.min.assignment.interval.ms": 0,
    "group.share.max.assignment.interval.ms": 15_000,
    "group.share.record.lock.duration.ms": 30_000,
    "group.share.min.record.lock.duration.ms": 15_000,
    "group.share.max.record.lock.duration.ms": 60_000,
    "group.share.delivery.count.limit": 5,
    "group.share.min.delivery.count.limit": 2,
    "group.share.max.delivery.count.limit": 10,
    "group.share.partition.max.record.locks": 2_000,
    "group.share.min.partition.max.record.locks": 100,
    "group.share.max.partition.max.record.locks": 4_000,
    "group.share.max.share.sessions": 2_000,
    "group.share.max.size": 200,
    "group.share.initialize.retry.interval.ms": 30_000,
    "group.share.assignors": "simple",
}


@pytest.mark.row(
    "4/group.min.session.timeout.ms",
    "4/group.max.session.timeout.ms",
    "4/group.initial.rebalance.delay.ms",
    "4/group.max.size",
    "4/offset.metadata.max.bytes",
    "4/offsets.load.buffer.size",
    "4/offsets.retention.minutes",
    "4/offsets.retention.check.interval.ms",
    "4/offsets.topic.num.partitions",
    "4/offsets.topic.replication.factor",
    "4/offsets.topic.segment.bytes",
    "4/offsets.topic.compression.codec",
    "4/offsets.commit.timeout.ms",
)
def test_names_and_defaults_are_kafkas() -> None:
    ours = {name.replace("_", "."): value for name, value in dataclasses.asdict(GroupSettings()).items()}
    kafkas = {name: value for name, value in ours.items() if not name.startswith("kohort.")}
    assert kafkas.keys() == DEFAULTS.keys()
    differing = {name: value for name, value in kafkas.items() if value != DEFAULTS[name]}
    assert differing == {
        "offsets.topic.replication.factor": 1,
        "group.max.size": 5_000,
        "group.consumer.max.size": 5_000,
        "group.coordinator.threads": 1,
    }


@pytest.mark.row("4/bounds")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("group_max_size", 0),
        ("offsets_retention_minutes", 0),
        ("offsets_topic_num_partitions", 0),
        ("offsets_commit_timeout_ms", 0),
        ("group_min_session_timeout_ms", -1),
    ],
)
def test_the_bounds_can_be_checked_from_the_annotations(name: str, value: int) -> None:
    adapter = pydantic.TypeAdapter(GroupSettings)
    with pytest.raises(pydantic.ValidationError, match=name):
        adapter.validate_python({name: value})


def test_the_retention_in_ms() -> None:
    assert GroupSettings(offsets_retention_minutes=2).offsets_retention_ms == 120_000
