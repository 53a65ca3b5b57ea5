"""AlterConfigs (33), v0-2, and IncrementalAlterConfigs (44), v0-1: the configs of topics and the settings of
the broker that may change while it runs (KIP-133, KIP-226, KIP-339).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ...cluster import TopicImage
from ...protocol import ApiKey, ErrorCode, KafkaError
from ...settings import SettingsError, as_text
from .._config_request import DELETE, ConfigResource, flaw, no_configs, times_named
from .._config_view import ConfigRow, broker_rows, topic_rows
from .._live_settings import kafka_name
from .._requests import Request
from ..security._listeners import PREFIX

if TYPE_CHECKING:
    from .._node import Node

_SET, _APPEND, _SUBTRACT = 0, 2, 3

#: Configs that are lists: the ones that can be appended to and subtracted from.
_LISTS = frozenset(
    {
        "cleanup.policy",
        "log.cleanup.policy",
        "max.connections.per.ip.overrides",
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
    }
)

#: What is to be set for topics, by field name.
_Changes = dict[TopicImage, dict[str, Any]]

#: What is set, as text by Kafka's name.
_Given = dict[str, str]

#: Makes it from what was set by field name, the rows that are shown, and the changes of a request.
_Changed = Callable[[Mapping[str, Any], list[ConfigRow], Any], _Given]


async def handle(node: Node, request: Request) -> Any:
    """Settings of the broker are changed one after the other, the configs of all topics at once."""
    made = request.part("AlterConfigsResourceResponse")
    changed = _incremental if request.api.key == ApiKey.INCREMENTAL_ALTER_CONFIGS else _whole
    times = times_named(request.body.resources)
    changes: _Changes = {}
    refused: dict[tuple[int, str], KafkaError] = {}
    for item in request.body.resources:
        try:
            if reason := flaw(item, times):
                raise _refused(reason)
            _alter(node, item, changed, changes, validate_only=request.body.validate_only)
        except KafkaError as error:
            refused[item.resource_type, item.resource_name] = error
    try:
        if changes and not request.body.validate_only:
            await node.topics.alter(changes)
    except KafkaError as error:
        refused.update(((ConfigResource.TOPIC, topic.name), error) for topic in changes)
    responses = []
    for item in request.body.resources:
        refusal = refused.get((item.resource_type, item.resource_name))
        responses.append(
            made(
                error_code=ErrorCode.NONE if refusal is None else refusal.code,
                error_message=None if refusal is None else refusal.message,
                resource_type=item.resource_type,
                resource_name=item.resource_name,
            )
        )
    return request.answer(responses=responses)


def _alter(
    node: Node,
    item: Any,
    changed: _Changed,
    changes: _Changes,
    *,
    validate_only: bool,
) -> None:
    if item.resource_type == ConfigResource.BROKER:
        try:
            _alter_settings(node, item, changed, validate_only=validate_only)
        except SettingsError as error:
            raise _refused(str(error)) from None
    elif item.resource_type == ConfigResource.TOPIC:
        topic, configs = _topic_configs(node, item, changed)
        changes[topic] = configs
    else:
        raise _refused(no_configs(item))


def _topic_configs(node: Node, item: Any, changed: _Changed) -> tuple[TopicImage, dict[str, Any]]:
    """A topic and what is to be set for it. What is wrong with the values is told before that there is no
    such topic, as Apache Kafka does.
    """
    name = item.resource_name
    if not name:
        raise _refused("there are no defaults of all topics to change: name a topic")
    node.topics.check_name(name)
    topic = node.topics.get(name)
    before = {} if topic is None else topic.configs
    try:
        configs = node.topics.check_configs(changed(before, topic_rows(node, before), item.configs))
    except SettingsError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
    return topic, configs


def _alter_settings(node: Node, item: Any, changed: _Changed, *, validate_only: bool) -> None:
    if item.resource_name not in ("", str(node.node_id)):
        raise _refused(f"broker {item.resource_name!r} is not this one, which is {node.node_id}")
    for_all = item.resource_name == ""
    before = node.live.of_all if for_all else node.live.of_broker
    values = node.live.check(changed(before, broker_rows(node), item.configs), for_all=for_all)
    if not validate_only:
        node.live.set(for_all=for_all, values=values)


def _whole(_before: Mapping[str, Any], _rows: list[ConfigRow], configs: Any) -> _Given:
    """All configs anew: what is not named has its default again."""
    return {config.name: config.value for config in configs}


def _incremental(before: Mapping[str, Any], shown: list[ConfigRow], configs: Any) -> _Given:
    """What was set, with these changes."""
    rows = {row.name: row for row in shown}
    given = {kafka_name(name): as_text(value) or "" for name, value in before.items()}
    for config in configs:
        name = kafka_name(config.name) if config.name.startswith(PREFIX) else config.name
        if config.config_operation == _SET:
            given[name] = config.value
        elif config.config_operation == DELETE:
            given.pop(name, None)
        elif config.config_operation in (_APPEND, _SUBTRACT):
            row = rows.get(name)
            given[name] = _list(config, "" if row is None else row.value or "")
        else:
            raise _refused(f"operation {config.config_operation} on {config.name}: 0 to 3 are known")
    return given


def _list(config: Any, before: str) -> str:
    named = config.value.split(",")
    if config.name not in _LISTS:
        verb = "appended to" if config.config_operation == _APPEND else "subtracted from"
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"{config.name} is no list: it cannot be {verb}, set it")
    items = [item for item in before.split(",") if item]
    if config.config_operation == _APPEND:
        return ",".join(dict.fromkeys(items + named))
    return ",".join(item for item in items if item not in named)


def _refused(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)
