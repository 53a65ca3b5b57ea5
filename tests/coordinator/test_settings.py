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
}


def test_names_and_defaults_are_kafkas() -> None:
    ours = {name.replace("_", "."): value for name, value in dataclasses.asdict(GroupSettings()).items()}
    assert ours.pop("group.max.size") == 5_000, "the one that differs"
    assert ours.pop("kohort.group.history.size") == 100, "the one that is ours"
    assert ours == DEFAULTS


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
