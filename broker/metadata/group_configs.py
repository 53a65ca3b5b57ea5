"""Configs of single consumer groups (resource type GROUP, KIP-848): checked, saved and in force at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ...cluster import Document
from ...protocol import ErrorCode, KafkaError
from ..settings import BrokerSettings

#: Names and descriptions.
GROUP_CONFIGS: Final = {
    "consumer.session.timeout.ms": "how long a member may be silent",
    "consumer.heartbeat.interval.ms": "time between two heartbeats of a member",
    "consumer.assignment.interval.ms": "least time between two assignments",
}


@dataclass(slots=True)
class GroupConfigs:
    """Configs of groups. ``of_group`` has those that were set, by group and name; the group need not
    exist.
    """

    settings: BrokerSettings
    file: Document
    of_group: dict[str, dict[str, int]] = field(default_factory=dict)

    def load(self) -> None:
        """Load what was saved and put it in force. Raises StateFileError."""
        self.of_group = self.file.load(_parse_configs) or {}

    def of(self, group_id: str) -> Mapping[str, int]:
        """The configs that were set for a group."""
        return self.of_group.get(group_id, {})

    def default(self, name: str) -> int:
        """The value of a config that was not set: the broker's."""
        value: int = getattr(self.settings, _setting(name))
        return value

    def check(self, given: Mapping[str, str]) -> dict[str, int]:
        """Check and convert the values that replace all configs of a group. Raises KafkaError."""
        values = {name: self._check_value(name, text) for name, text in given.items()}
        session, heartbeat, _ = (values.get(name, self.default(name)) for name in GROUP_CONFIGS)
        if session <= heartbeat:
            text = "consumer.session.timeout.ms must be greater than consumer.heartbeat.interval.ms"
            raise KafkaError(ErrorCode.INVALID_CONFIG, text)
        return values

    async def replace(self, changed: Mapping[str, dict[str, int]]) -> None:
        """Replace all configs of these groups, at once, by values that are checked. The caller makes changes
        one at a time, since each builds on the last. Raises OSError, and then changes nothing.
        """
        of_group = {name: values for name, values in {**self.of_group, **changed}.items() if values}
        await self.file.save({"groups": of_group})
        self.of_group = of_group

    def _check_value(self, name: str, text: str) -> int:
        if name not in GROUP_CONFIGS:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown group config name: {name}")
        try:
            value = int(text)
        except ValueError:
            why = f"Invalid value {text} for configuration {name}: Not a number of type INT"
            raise KafkaError(ErrorCode.INVALID_CONFIG, why) from None
        own = name.removeprefix("consumer.")
        least, most = (f"group.consumer.{bound}.{own}" for bound in ("min", "max"))
        if value < getattr(self.settings, least.replace(".", "_")):
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"{name} must be greater than or equal to {least}")
        if value > getattr(self.settings, most.replace(".", "_")):
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"{name} must be less than or equal to {most}")
        return value


def _setting(name: str) -> str:
    return f"group_{name.replace('.', '_')}"


def _parse_configs(content: Mapping[str, Mapping[str, Mapping[str, int]]]) -> dict[str, dict[str, int]]:
    return {
        str(group): {str(name): int(value) for name, value in values.items()}
        for group, values in content["groups"].items()
    }
