"""Configs of groups, set over the wire."""

from __future__ import annotations

from collections.abc import Mapping

from kohort.protocol import ApiKey, ErrorCode
from kohort.protocol.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource
from tests.broker.wire import Wire

#: Type of the resource, and the operation that sets a config.
_GROUP, _SET = 32, 0


def change_group_configs(wire: Wire, group: str, configs: Mapping[str, object]) -> ErrorCode:
    """Ask for these values; return the error of the answer, which is NONE if they are in force."""
    rows = [AlterableConfig(name, _SET, str(value)) for name, value in configs.items()]
    resource = AlterConfigsResource(_GROUP, group, rows)
    answer = wire.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource], validate_only=False)
    return ErrorCode(answer.responses[0].error_code)


def set_group_configs(bootstrap: str, group: str, **configs: object) -> None:
    """Set configs of a group, whose names have underscores here."""
    named = {name.replace("_", "."): value for name, value in configs.items()}
    with Wire(bootstrap, timeout_s=30) as wire:
        assert change_group_configs(wire, group, named) is ErrorCode.NONE
