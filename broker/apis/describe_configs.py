"""DescribeConfigs (32), v1-4: the configs of topics, groups and this broker (KIP-133, KIP-226, KIP-569)."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial

from ...coordinator import RepeatLimit
from ...protocol import ApiKey, KafkaError, PreparedArray
from ...protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from ..authorizer import Operation, ResourceType, right
from ..event_loop.time_slices import in_slices
from ..node import Node
from ..partitions.topic_names import check_name
from ._api import Request, ServedApi, make_result
from ._config_view import ConfigRow, broker_rows, default_rows, group_rows, topic_rows
from ._configs import ConfigResourceType, configs_guard, has_configs, invalid_config, no_configs
from ._errors import Level, in_elements, same_fields
from ._lookup import find_topic


async def handle(node: Node, request: Request[DescribeConfigsRequest]) -> DescribeConfigsResponse:
    """List the configs of each resource with their sources; from v1 synonyms, from v3 documentation."""
    # as in Apache Kafka, one invalid type of resource makes the whole request an error
    wrong = next((item for item in request.body.resources if not has_configs(item)), None)
    repeats = RepeatLimit()
    results = []
    # configs are made and encoded once for topics with the same ones: most topics are of few kinds
    shown: dict[Hashable, PreparedArray] = {}
    async for resource in in_slices(request.body.resources):
        refused = None
        configs: PreparedArray | tuple[()] = ()
        try:
            if repeats.refuses((resource.resource_type, resource.resource_name)):
                raise invalid_config("it is in the request too often: name it once")
            configs_of, rows_of = _describe_resource(node, wrong or resource)
            keys = frozenset(resource.configuration_keys or ())
            kind = (configs_of, keys)
            if kind not in shown:
                rows = [row for row in rows_of() if not keys or row.name in keys]
                shown[kind] = PreparedArray([_show_config(request, row) for row in rows])
            configs = shown[kind]
        except KafkaError as error:
            refused = error
        results.append(
            make_result(
                DescribeConfigsResult,
                refused,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                configs=configs,
            )
        )
    return DescribeConfigsResponse(results=results)


def _describe_resource(
    node: Node, resource: DescribeConfigsResource
) -> tuple[Hashable, Callable[[], list[ConfigRow]]]:
    """A key that resources with the same configs share, and a function that makes their rows."""
    name = resource.resource_name
    if resource.resource_type == ConfigResourceType.TOPIC:
        check_name(name)
        topic = find_topic(node, name)
        return repr(sorted(topic.configs.items())), partial(topic_rows, node, topic.configs)
    if resource.resource_type == ConfigResourceType.BROKER:
        if name == "":
            return default_rows, partial(default_rows, node)
        if name != str(node.node_id):
            raise invalid_config(f"broker {name!r} is not this one, which is {node.node_id}")
        return broker_rows, partial(broker_rows, node)
    if resource.resource_type == ConfigResourceType.GROUP:
        if not name:
            raise invalid_config("Group name must not be empty")
        return ("group", name), partial(group_rows, node, name)
    raise invalid_config(no_configs(resource))


def _show_config(request: Request[DescribeConfigsRequest], row: ConfigRow) -> DescribeConfigsResourceResult:
    body = request.body
    synonyms = row.synonyms if body.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=row.name,
        value=row.value,
        read_only=row.read_only,
        config_source=row.source,
        is_sensitive=row.sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=name, value=value, source=source) for name, value, source in synonyms
        ],
        config_type=row.type,
        documentation=row.doc if body.include_documentation else None,
    )


API = ServedApi(
    key=ApiKey.DESCRIBE_CONFIGS,
    versions=(1, 4),
    handler=handle,
    guard=configs_guard(
        right(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, "each topic"),
        right(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, "settings of brokers"),
        right(Operation.DESCRIBE_CONFIGS, ResourceType.GROUP, "each group"),
        altering=False,
    ),
    errors=in_elements(Level("resources", "results", same_fields("resource_type", "resource_name"))),
    reads_only=True,
)
