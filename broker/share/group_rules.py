"""The configs of a share group that matter where its records are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, Protocol

from ...coordinator.groups.group_config import ConfigValue
from ...share_partitions import ShareLimits, ShareRules

#: ISO 8601, as the config is checked.
_DURATION: Final = re.compile(
    r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:[.,](\d*))?S)?)?", re.IGNORECASE | re.ASCII
)
_BY_DURATION: Final = "by_duration:"
#: Most groups whose rules are remembered.
_MOST_GROUPS: Final = 10_000


class ConfigsInForce(Protocol):
    """Configs of groups; another table is put in force when they change."""

    @property
    def of_group(self) -> Mapping[str, object]: ...

    def value(self, group_id: str, name: str) -> ConfigValue:
        """Return what is in force for a group."""
        ...


class RulesOfGroups:
    """The rules of each group, read once and again when configs of groups have changed: a fetch looks at
    them several times.
    """

    def __init__(self, configs: ConfigsInForce) -> None:
        self._configs = configs
        self._read_from: object = None
        self._rules: dict[str, ShareRules] = {}

    def __call__(self, group: str) -> ShareRules:
        """Return what is in force for a group."""
        if self._read_from is not self._configs.of_group or len(self._rules) >= _MOST_GROUPS:
            # each change puts another table in force
            self._read_from, self._rules = self._configs.of_group, {}
        rules = self._rules.get(group)
        if rules is None:
            rules = self._rules[group] = read_rules(partial(self._configs.value, group))
        return rules


def read_rules(value_of: Callable[[str], ConfigValue]) -> ShareRules:
    """Return the rules of a group. ``value_of`` returns what is in force for it, by Kafka's name."""
    limits = ShareLimits(
        lock_ms=int(value_of("share.record.lock.duration.ms")),
        delivery_count=int(value_of("share.delivery.count.limit")),
        record_locks=int(value_of("share.partition.max.record.locks")),
        may_renew=bool(value_of("share.renew.acknowledge.enable")),
    )
    committed = value_of("share.isolation.level") == "read_committed"
    reset = str(value_of("share.auto.offset.reset"))
    if reset.startswith(_BY_DURATION):
        return ShareRules(limits, committed, duration_ms(reset.removeprefix(_BY_DURATION)))
    return ShareRules(limits, committed, "earliest" if reset == "earliest" else "latest")


def duration_ms(text: str) -> int:
    """Return an ISO 8601 duration of days to seconds, in ms; parts of a ms are dropped."""
    found = _DURATION.fullmatch(text)
    assert found is not None, "the config is checked"
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups()[:4])
    fraction_ms = int(((found[5] or "") + "000")[:3])
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000 + fraction_ms
