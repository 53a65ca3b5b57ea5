"""Configs of topics, groups, brokers and client metrics: the requests about them."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from ...client import Cluster
from ...client.requests import error_of
from ...protocol import ApiKey, ErrorCode, KafkaError, UnsupportedVersionError
from ...protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ...protocol.messages.list_config_resources import ListConfigResourcesRequest
from ..topics.requests import CONFIG_SOURCES, set_configs, topic_rows

#: Kafka's numbers of the kinds of resources, and the source of what is set on one itself.
_KINDS: Final = {"topic": 2, "broker": 4, "client-metrics": 16, "group": 32}
_OWN_SOURCES: Final = {"topic": 1, "broker": 2, "client-metrics": 7, "group": 8}
_DEFAULT_OF_BROKERS: Final = 3


class ConfiguredResource(NamedTuple):
    """What has configs: a "topic", "group", "broker" or "client-metrics" subscription by its name. The broker
    with the name "" is the default of all brokers.
    """

    kind: str
    name: str

    def __str__(self) -> str:
        return "all brokers" if self == ("broker", "") else f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class ConfigValue:
    """A config as a resource has it now. ``own``: it is set on the resource itself, not where ``source`` says
    that it comes from else. ``value`` is None where it is ``sensitive``, and brokers do not tell it.
    """

    name: str
    value: str | None
    source: str
    own: bool
    sensitive: bool
    read_only: bool


async def describe_configs(
    cluster: Cluster, resources: Iterable[ConfiguredResource]
) -> dict[ConfiguredResource, list[ConfigValue]]:
    """All configs of each resource, by name. Raises KafkaError, also for a broker that is not there."""
    by_node: dict[int | None, list[ConfiguredResource]] = defaultdict(list)
    wanted = list(dict.fromkeys(resources))
    for one in wanted:
        by_node[await broker_of(cluster, one)].append(one)
    answers = await asyncio.gather(*(_ask_node(cluster, node, part) for node, part in by_node.items()))
    found = {resource: values for answer in answers for resource, values in answer.items()}
    return {one: found[one] for one in wanted}


async def broker_of(cluster: Cluster, resource: ConfiguredResource) -> int | None:
    """The broker that has to be asked about a resource; None: any. Raises KafkaError if it is not there."""
    if resource.kind != "broker" or not resource.name:
        return None
    known = await cluster.metadata([])
    if not resource.name.isdigit() or int(resource.name) not in known.nodes:
        words = f"there is no broker {resource.name}; `kohort cluster status` shows which there are"
        raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, words)
    return int(resource.name)


async def _ask_node(
    cluster: Cluster, node: int | None, resources: list[ConfiguredResource]
) -> dict[ConfiguredResource, list[ConfigValue]]:
    rows = [DescribeConfigsResource(_KINDS[kind], name, None) for kind, name in resources]
    body = DescribeConfigsRequest(rows)

    async def attempt() -> dict[ConfiguredResource, list[ConfigValue]]:
        answer = await cluster.request(node, ApiKey.DESCRIBE_CONFIGS, body)
        found = {}
        for resource, row in zip(resources, answer.results, strict=True):
            if row.error_code:
                raise error_of(row, f"configs of {resource}")
            own = _OWN_SOURCES[resource.kind] if resource.name else _DEFAULT_OF_BROKERS
            found[resource] = [
                ConfigValue(
                    one.name,
                    one.value,
                    CONFIG_SOURCES.get(one.config_source, "unknown"),
                    one.config_source == own,
                    one.is_sensitive,
                    one.read_only,
                )
                for one in sorted(row.configs, key=lambda one: one.name)
            ]
        return found

    return await cluster.retrying(attempt)


async def alter_configs(
    cluster: Cluster,
    resource: ConfiguredResource,
    changes: Mapping[str, str | None],
    *,
    only_ask: bool = False,
) -> None:
    """Set configs of a resource; None deletes one. Raises KafkaError, and then nothing is changed."""
    node = await broker_of(cluster, resource)
    key = _KINDS[resource.kind], resource.name
    await set_configs(cluster, node, key, changes, only_ask=only_ask)


async def list_config_resources(cluster: Cluster) -> list[ConfiguredResource]:
    """All that may have configs: brokers, topics, and groups and client metrics with configs of their own, if
    the brokers list them. Raises KafkaError.
    """
    known = await cluster.metadata([])
    brokers = [ConfiguredResource("broker", name) for name in ("", *map(str, sorted(known.nodes)))]
    topics = [ConfiguredResource("topic", name) for name in await topic_rows(cluster, None)]
    kinds = {number: kind for kind, number in _KINDS.items() if kind in ("group", "client-metrics")}

    async def attempt() -> list[ConfiguredResource]:
        body = ListConfigResourcesRequest(list(kinds))
        answer = await cluster.request(None, ApiKey.LIST_CONFIG_RESOURCES, body)
        if answer.error_code:
            raise KafkaError(answer.error_code, "the resources that have configs")
        rows = [(kinds.get(row.resource_type), row.resource_name) for row in answer.config_resources]
        return sorted(ConfiguredResource(kind, name) for kind, name in rows if kind is not None)

    try:
        return [*brokers, *topics, *await cluster.retrying(attempt)]
    except UnsupportedVersionError:
        return [*brokers, *topics]
