"""What a group's configs say of its share partitions."""

from __future__ import annotations

import pytest

from kohort.broker.metadata.group_configs import GroupConfigs
from kohort.broker.settings import BrokerSettings
from kohort.broker.share.group_rules import RulesOfGroups, duration_ms, read_rules
from kohort.share_partitions import ShareLimits, ShareRules

CONFIGS: dict[str, int | str] = {
    "share.record.lock.duration.ms": 20_000,
    "share.delivery.count.limit": 7,
    "share.partition.max.record.locks": 300,
    "share.renew.acknowledge.enable": False,
    "share.isolation.level": "read_committed",
    "share.auto.offset.reset": "by_duration:PT2H",
}


@pytest.mark.parametrize(
    ("reset", "start"), [("latest", "latest"), ("earliest", "earliest"), ("by_duration:PT2H", 7_200_000)]
)
def test_all_configs_are_read(reset: str, start: str | int) -> None:
    values = CONFIGS | {"share.auto.offset.reset": reset}
    limits = ShareLimits(lock_ms=20_000, delivery_count=7, record_locks=300, may_renew=False)
    assert read_rules(values.__getitem__) == ShareRules(limits, committed=True, start=start)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("P1D", 86_400_000),
        ("PT0S", 0),
        ("P2DT3H4M5.678S", 183_845_678),
        ("pt1.5s", 1_500),
        ("PT0,0009S", 0),
        ("PT90M", 5_400_000),
    ],
)
def test_durations(text: str, ms: int) -> None:
    assert duration_ms(text) == ms


def test_rules_are_read_again_when_configs_of_groups_have_changed() -> None:
    configs = GroupConfigs(BrokerSettings(), None)  # type: ignore[arg-type]
    rules_of = RulesOfGroups(configs)
    default = rules_of("g")
    assert default == ShareRules()
    assert rules_of("g") is default
    configs.of_group = {"g": {"share.delivery.count.limit": 9}}
    assert rules_of("g").limits.delivery_count == 9
    assert rules_of("h") == default
