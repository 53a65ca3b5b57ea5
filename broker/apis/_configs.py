"""Configs in requests: resources, their errors, the rights to them, and changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from functools import partial
from typing import Any, Final, Protocol, TypeAlias

from ...cluster import TopicImage
from ...coordinator.groups.group_config import ConfigValue
from ...protocol import ErrorCode, KafkaError
from ...protocol.messages.alter_configs import AlterConfigsRequest
from ...protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from ...settings import SettingsError, as_text
from ..authorizer import CLUSTER_NAME, Access, Operation, ResourceType, right
from ..event_loop.time_slices import in_slices
from ..metadata.topics import metadata_unsaved
from ..node import Node
from ..partitions.topic_names import check_name
from ._api import AnyRequest, Guard, T, make_result
from ._config_view import ConfigRow, broker_rows, group_rows, topic_rows
from ._errors import Level, in_elements, same_fields
from ._guards import Wanted, each


class ConfigResourceType(IntEnum):
    """Types of resources with configs in Apache Kafka; topics, brokers and groups have configs here."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


#: Operations on a config that is given without a value.
DELETE = 1

#: Returns the rows of a resource: few changes need them, and they are expensive.
Rows = Callable[[], list[ConfigRow]]

#: Makes the values to set, as text by Kafka's name, from the values set so far by field name, the rows of the
#: resource, and a request's changes.
Changed: TypeAlias = Callable[[Mapping[str, object], Rows, Sequence[Any]], dict[str, str]]

#: Rights and errors of AlterConfigs and IncrementalAlterConfigs.
_ALTER_RIGHTS: Final = (
    right(Operation.ALTER_CONFIGS, ResourceType.TOPIC, "each topic whose configs are changed"),
    right(Operation.ALTER_CONFIGS, ResourceType.CLUSTER, "settings of brokers"),
    right(Operation.ALTER_CONFIGS, ResourceType.GROUP, "each group whose configs are changed"),
)
ALTER_ERRORS: Final = in_elements(
    Level("resources", "responses", same_fields("resource_type", "resource_name"))
)


class Resource(Protocol):
    """Something with configs, as requests name it."""

    @property
    def resource_type(self) -> int:
        """Number of the ConfigResourceType."""

    @property
    def resource_name(self) -> str:
        """Name of the topic, broker or group."""


class AlteredConfig(Protocol):
    """A config to change."""

    @property
    def name(self) -> str:
        """Name of the config."""

    @property
    def value(self) -> str | None:
        """New value; None removes what is set."""


class Altered(Resource, Protocol):
    """A resource whose configs are to change."""

    @property
    def configs(self) -> Sequence[AlteredConfig]:
        """The configs to change."""


def times_named(resources: Iterable[Resource]) -> Mapping[tuple[int, str], int]:
    """Count how often a request names each resource: one named twice is refused."""
    return Counter((item.resource_type, item.resource_name) for item in resources)


def flaw_of(item: Altered, times: Mapping[tuple[int, str], int]) -> str | None:
    """Return the error of a resource of AlterConfigs or IncrementalAlterConfigs, in words; None without."""
    if times[item.resource_type, item.resource_name] > 1:
        return "each resource may be in the request once"
    if any(times > 1 for times in Counter(config.name for config in item.configs).values()):
        return "each config may be named once"
    for config in item.configs:
        if config.value is None and getattr(config, "config_operation", None) != DELETE:
            return f"{config.name} has no value: give one, or delete it"
    return None if has_configs(item) else no_configs(item)


def has_configs(item: Resource) -> bool:
    """Return whether resources of this kind have configs in Apache Kafka: there are rights to them."""
    return any(item.resource_type == kind for kind in ConfigResourceType)


def no_configs(item: Resource) -> str:
    """Return the error for a type of resources without configs, in words."""
    return f"resource type {item.resource_type}: topics (2), brokers (4) and groups (32) have configs"


def configs_guard(topic: Access, cluster: Access, group: Access, *, altering: bool) -> Guard:
    """Guard of a request whose outermost array has resources with configs; invalid resources are left to the
    handler.
    """

    async def guard(node: Node, request: AnyRequest) -> object:
        times = times_named(request.body.resources)
        if not altering and not all(map(has_configs, request.body.resources)):
            return await request.proceed(node)

        def wanted(item: Altered) -> Wanted:
            if altering and flaw_of(item, times):
                return None
            if item.resource_type == ConfigResourceType.TOPIC:
                return topic, item.resource_name
            if item.resource_type == ConfigResourceType.GROUP:
                return group, item.resource_name
            return cluster, CLUSTER_NAME

        return await each(node, request, wanted)

    return Guard((topic, cluster, group), guard)


def by_controller(node: Node, body: AlterConfigsRequest | IncrementalAlterConfigsRequest) -> bool:
    """Return whether the controller carries out a change; a broker changes its own settings itself."""
    own = (ConfigResourceType.BROKER, str(node.node_id))
    return any((item.resource_type, item.resource_name) != own for item in body.resources)


ALTER_GUARD: Final = configs_guard(*_ALTER_RIGHTS, altering=True)


async def alter(node: Node, request: AnyRequest, changed: Changed, make: Callable[..., T]) -> list[T]:
    """Change settings of the broker, the configs of all topics at once, and those of all groups at once.

    Return what ``make`` makes of the outcome for each resource, in the request's order.
    """
    times = times_named(request.body.resources)
    changes: dict[TopicImage, dict[str, ConfigValue]] = {}
    groups: dict[str, dict[str, ConfigValue]] = {}
    refused: dict[tuple[int, str], KafkaError] = {}
    async for item in in_slices(request.body.resources):
        key = item.resource_type, item.resource_name
        try:
            if reason := flaw_of(item, times):
                raise invalid_config(reason)
            if item.resource_type == ConfigResourceType.BROKER:
                await _alter_settings(node, item, changed, validate_only=request.body.validate_only)
            elif item.resource_type == ConfigResourceType.TOPIC:
                topic, configs = _topic_configs(node, item, changed)
                changes[topic] = configs
            elif item.resource_type == ConfigResourceType.GROUP:
                groups[item.resource_name] = _group_configs(node, item, changed)
            else:
                raise invalid_config(no_configs(item))
        except KafkaError as error:
            refused[key] = error
        except SettingsError as error:
            refused[key] = invalid_config(str(error))
        except OSError as error:
            node.logs.disk.on_refused(error)
            refused[key] = metadata_unsaved(error)
    try:
        if changes and not request.body.validate_only:
            await node.topics.alter(changes)
    except KafkaError as error:
        refused.update(((ConfigResourceType.TOPIC, topic.name), error) for topic in changes)
    try:
        if groups and not request.body.validate_only:
            await node.group_configs.replace(groups)
    except OSError as error:
        node.logs.disk.on_refused(error)
        refused.update(((ConfigResourceType.GROUP, name), metadata_unsaved(error)) for name in groups)
    return [
        make_result(
            make,
            refused.get((item.resource_type, item.resource_name)),
            resource_type=item.resource_type,
            resource_name=item.resource_name,
        )
        for item in request.body.resources
    ]


def _topic_configs(node: Node, item: Altered, changed: Changed) -> tuple[TopicImage, dict[str, ConfigValue]]:
    """A topic and its new configs. As in Apache Kafka, wrong values are reported before a missing topic."""
    name = item.resource_name
    if not name:
        raise invalid_config("there are no defaults of all topics to change: name a topic")
    check_name(name)
    topic = node.topics.get(name)
    before = {} if topic is None else topic.configs
    try:
        configs = node.topics.check_configs(changed(before, partial(topic_rows, node, before), item.configs))
    except SettingsError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
    return topic, configs


async def _alter_settings(node: Node, item: Altered, changed: Changed, *, validate_only: bool) -> None:
    if item.resource_name not in ("", str(node.node_id)):
        raise invalid_config(f"broker {item.resource_name!r} is not this one, which is {node.node_id}")
    for_all = item.resource_name == ""
    await node.live.change(
        lambda before: changed(before, partial(broker_rows, node), item.configs),
        for_all=for_all,
        validate_only=validate_only,
    )


def _group_configs(node: Node, item: Altered, changed: Changed) -> dict[str, ConfigValue]:
    """All configs that a group is to have, checked. Raises KafkaError."""
    name = item.resource_name
    if not name:
        raise invalid_config("Default group resources are not allowed.")

    own = {key: as_text(value) for key, value in node.group_configs.of(name).items()}
    return node.group_configs.check(changed(own, partial(group_rows, node, name), item.configs))


def invalid_config(reason: str) -> KafkaError:
    """Return INVALID_REQUEST with a reason."""
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)
