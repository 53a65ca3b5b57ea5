"""Configs of single groups (resource type GROUP, KIP-848): checked, saved and in force at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ...cluster import Document
from ...coordinator.groups.group_config import ConfigValue, GroupConfig
from ...coordinator.groups.kinds import KINDS
from ...protocol import ErrorCode, KafkaError
from ..settings import BrokerSettings

#: The configs of every type of groups, by name.
GROUP_CONFIGS: Final = {
    name: row for kind in KINDS if kind.configs is not None for name, row in kind.configs.rows.items()
}


@dataclass(slots=True)
class GroupConfigs:
    """Configs of groups. ``of_group`` has those that were set, by group and name; the group need not
    exist.
    """

    settings: BrokerSettings
    file: Document
    of_group: dict[str, dict[str, ConfigValue]] = field(default_factory=dict)

    def load(self) -> None:
        """Load what was saved and put it in force. Raises StateFileError."""
        self.of_group = self.file.load(_parse_configs) or {}

    def of(self, group_id: str) -> Mapping[str, ConfigValue]:
        """The configs that were set for a group."""
        return self.of_group.get(group_id, {})

    def value(self, group_id: str, name: str) -> ConfigValue:
        """The value of a config that is in force for a group, its own or the broker's."""
        own = self.of(group_id).get(name)
        return self.default(GROUP_CONFIGS[name]) if own is None else own

    def default(self, config: GroupConfig) -> ConfigValue:
        """The value of a config that was not set."""
        return config.default(self.settings)

    def check(self, given: Mapping[str, str]) -> dict[str, ConfigValue]:
        """Check and convert the values that replace all configs of a group. Raises KafkaError."""
        values: dict[str, ConfigValue] = {}
        for name, text in given.items():
            config = GROUP_CONFIGS.get(name)
            if config is None:
                raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown group config name: {name}")
            values[name] = config.parse(text, self.settings)
        for kind in KINDS:
            if kind.configs is not None:
                all_values = {
                    name: values.get(name, self.default(config)) for name, config in kind.configs.rows.items()
                }
                if why := kind.configs.check(all_values):
                    raise KafkaError(ErrorCode.INVALID_CONFIG, why)
        return values

    async def replace(self, changed: Mapping[str, dict[str, ConfigValue]]) -> None:
        """Replace all configs of these groups, at once, by values that are checked. The caller makes changes
        one at a time, since each builds on the last. Raises OSError, and then changes nothing.
        """
        of_group = {name: values for name, values in {**self.of_group, **changed}.items() if values}
        await self.file.save({"groups": of_group})
        self.of_group = of_group


def _parse_configs(
    content: Mapping[str, Mapping[str, Mapping[str, ConfigValue]]],
) -> dict[str, dict[str, ConfigValue]]:
    return {
        str(group): {str(name): _checked_type(name, value) for name, value in values.items()}
        for group, values in content["groups"].items()
    }


def _checked_type(name: str, value: ConfigValue) -> ConfigValue:
    config = GROUP_CONFIGS.get(name)
    # one that is not known here comes from another version, and stays as it is
    return value if config is None else config.type(value)
