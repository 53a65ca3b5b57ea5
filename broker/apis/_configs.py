"""Requests about configs: what is wrong with a resource whoever asks, and whether it is there or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Any


class ConfigResource(IntEnum):
    """Kinds of resources on the wire that have configs in Apache Kafka; here topics and brokers do."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


#: What a change does to a config that is given with no value.
DELETE = 1

Resource = tuple[int, str]


def times_named(resources: Iterable[Any]) -> Mapping[Resource, int]:
    """How often each resource is in the request."""
    return Counter((item.resource_type, item.resource_name) for item in resources)


def flaw(item: Any, times: Mapping[Resource, int]) -> str | None:
    """Why this resource of AlterConfigs or IncrementalAlterConfigs cannot be meant; None if it can."""
    if times[item.resource_type, item.resource_name] > 1:
        return "each resource may be in the request once"
    if any(times > 1 for times in Counter(config.name for config in item.configs).values()):
        return "each config may be named once"
    for config in item.configs:
        if config.value is None and getattr(config, "config_operation", None) != DELETE:
            return f"{config.name} has no value: give one, or delete it"
    return None if has_configs(item) else no_configs(item)


def has_configs(item: Any) -> bool:
    """Whether resources of this kind have configs somewhere, so that there are rights to them."""
    return any(item.resource_type == kind for kind in ConfigResource)


def no_configs(item: Any) -> str:
    return f"resource type {item.resource_type}: topics (2) and brokers (4) have configs"
