"""Configs that may be set for a single group (resource type GROUP): what a type of groups says of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from ...protocol import ErrorCode, KafkaError
from ..settings import GroupSettings

#: The value of a config, as it is checked and saved.
ConfigValue: TypeAlias = int | str | bool


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """A config by Kafka's name, with its type and a description. ``setting`` is Kafka's name of the broker's
    setting that is in force for groups without their own; "" for none. ``default`` returns that value, and
    ``parse`` checks and converts a text; it raises KafkaError.
    """

    name: str
    type: type[ConfigValue]
    doc: str
    setting: str
    default: Callable[[GroupSettings], ConfigValue]
    parse: Callable[[str, GroupSettings], ConfigValue]


@dataclass(frozen=True, slots=True)
class GroupConfigTable:
    """The configs of one type, by name. ``check`` is given the values of all of them, set or not, and
    returns what is wrong with them together; "" for nothing.
    """

    rows: Mapping[str, GroupConfig]
    check: Callable[[Mapping[str, ConfigValue]], str]


def bounded_number(prefix: str, own: str, doc: str, *, floor: int | None = None) -> GroupConfig:
    """A whole number ``<prefix>.<own>`` whose default and bounds are settings of the broker:
    ``group.<prefix>.<own>``, ``group.<prefix>.min.<own>`` and ``group.<prefix>.max.<own>``. A value below the
    ``floor`` is refused whatever these are.
    """
    name = f"{prefix}.{own}"
    least, most = (f"group.{prefix}.{bound}.{own}" for bound in ("min", "max"))

    def parse(text: str, settings: GroupSettings) -> int:
        try:
            value = int(text)
        except ValueError:
            why = f"Invalid value {text} for configuration {name}: Not a number of type INT"
            raise KafkaError(ErrorCode.INVALID_CONFIG, why) from None
        if floor is not None and value < floor:
            why = f"Invalid value {value} for configuration {name}: Value must be at least {floor}"
            raise KafkaError(ErrorCode.INVALID_CONFIG, why)
        if value < _value_of(settings, least):
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"{name} must be greater than or equal to {least}")
        if value > _value_of(settings, most):
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"{name} must be less than or equal to {most}")
        return value

    setting = f"group.{name}"
    return GroupConfig(name, int, doc, setting, lambda settings: _value_of(settings, setting), parse)


def _value_of(settings: GroupSettings, kafka_name: str) -> int:
    value: int = getattr(settings, kafka_name.replace(".", "_"))
    return value
