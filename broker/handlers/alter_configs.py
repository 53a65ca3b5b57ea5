"""AlterConfigs (33), v0-2, and IncrementalAlterConfigs (44), v0-1: the configs of topics (KIP-133, KIP-339).

The settings of this broker cannot be changed while it runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...protocol import ApiKey, ErrorCode, KafkaError
from .._config_view import topic_rows
from .._requests import Request
from .._validation import SettingsError

if TYPE_CHECKING:
    from .._node import Node
    from .._topics import Topic

_TOPIC, _BROKER = 2, 4
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)

#: Configs that are lists: the ones that can be appended to and subtracted from.
_LISTS = frozenset(
    {
        "cleanup.policy",
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
    }
)

#: What was set for a topic, as text by Kafka's name.
_Given = dict[str, str]


async def handle(node: Node, request: Request) -> Any:
    made = request.part("AlterConfigsResourceResponse")
    changed = _incremental if request.api.key == ApiKey.INCREMENTAL_ALTER_CONFIGS else _whole
    times = Counter((item.resource_type, item.resource_name) for item in request.body.resources)
    responses = []
    for item in request.body.resources:
        code, message = ErrorCode.NONE, None
        try:
            if times[item.resource_type, item.resource_name] > 1:
                raise _refused("each resource may be in the request once")
            _alter(node, item, changed, validate_only=request.body.validate_only)
        except KafkaError as error:
            code, message = error.code, error.message
        responses.append(
            made(
                error_code=code,
                error_message=message,
                resource_type=item.resource_type,
                resource_name=item.resource_name,
            )
        )
    return request.answer(responses=responses)


def _alter(
    node: Node, item: Any, changed: Callable[[Node, Topic, Any], _Given], *, validate_only: bool
) -> None:
    topic = _topic(node, item)
    if any(times > 1 for times in Counter(config.name for config in item.configs).values()):
        raise _refused("each config may be named once")
    try:
        configs = node.topics.check_configs(changed(node, topic, item.configs))
    except SettingsError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None
    if not validate_only:
        node.topics.alter(topic, configs)


def _topic(node: Node, item: Any) -> Topic:
    name = item.resource_name
    if item.resource_type == _BROKER:
        raise _refused("settings of a broker cannot be changed while it runs: start it with others")
    if item.resource_type != _TOPIC:
        raise _refused(f"resource type {item.resource_type}: only the configs of topics (2) can be changed")
    if not name:
        raise _refused("there are no defaults of all topics to change: name a topic")
    node.topics.check_name(name)
    topic = node.topics.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
    return topic


def _whole(_node: Node, _topic: Topic, configs: Any) -> _Given:
    """All configs anew: what is not named has its default again."""
    return {config.name: _value(config) for config in configs}


def _incremental(node: Node, topic: Topic, configs: Any) -> _Given:
    """What was set, with these changes."""
    rows = {row.name: row for row in topic_rows(node, topic.configs)}
    given = {name.replace("_", "."): rows[name.replace("_", ".")].value or "" for name in topic.configs}
    for config in configs:
        if config.config_operation == _SET:
            given[config.name] = _value(config)
        elif config.config_operation == _DELETE:
            given.pop(config.name, None)
        elif config.config_operation in (_APPEND, _SUBTRACT):
            row = rows.get(config.name)
            given[config.name] = _list(config, "" if row is None else row.value or "")
        else:
            raise _refused(f"operation {config.config_operation} on {config.name}: 0 to 3 are known")
    return given


def _list(config: Any, before: str) -> str:
    named = _value(config).split(",")
    if config.name not in _LISTS:
        verb = "appended to" if config.config_operation == _APPEND else "subtracted from"
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"{config.name} is no list: it cannot be {verb}, set it")
    items = [item for item in before.split(",") if item]
    if config.config_operation == _APPEND:
        return ",".join(dict.fromkeys(items + named))
    return ",".join(item for item in items if item not in named)


def _value(config: Any) -> str:
    if config.value is None:
        raise _refused(f"{config.name} has no value: give one, or delete it")
    value: str = config.value
    return value


def _refused(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)
