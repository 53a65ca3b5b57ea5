"""IncrementalAlterConfigs (44), v0-1: changes of single configs of topics and the broker (KIP-339)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...protocol import ApiKey, ErrorCode, KafkaError
from ...protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ...settings import as_text
from ..metadata.live_settings import kafka_name
from ..node import Node
from ..security._listeners import PREFIX
from ._api import Request, ServedApi
from ._configs import ALTER_ERRORS, ALTER_GUARD, DELETE, Rows, alter, by_controller, invalid_config

_SET, _APPEND, _SUBTRACT = 0, 2, 3

#: Configs that are lists, to which values can be appended, and from which they can be subtracted.
_LISTS = frozenset(
    {
        "cleanup.policy",
        "log.cleanup.policy",
        "max.connections.per.ip.overrides",
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
    }
)


async def handle(
    node: Node, request: Request[IncrementalAlterConfigsRequest]
) -> IncrementalAlterConfigsResponse:
    """Set, delete, append to or subtract from single configs (KIP-339)."""
    return IncrementalAlterConfigsResponse(
        responses=await alter(node, request, _apply_changes, AlterConfigsResourceResponse)
    )


def _apply_changes(
    before: Mapping[str, object], shown: Rows, configs: Sequence[AlterableConfig]
) -> dict[str, str]:
    """Apply changes to the configs that are set."""
    given = {kafka_name(name): as_text(value) or "" for name, value in before.items()}
    for config in configs:
        name = kafka_name(config.name) if config.name.startswith(PREFIX) else config.name
        if config.config_operation == _SET:
            given[name] = config.value or ""
        elif config.config_operation == DELETE:
            given.pop(name, None)
        elif config.config_operation in (_APPEND, _SUBTRACT):
            value = next((row.value for row in shown() if row.name == name), None)
            given[name] = _list_value(config, value or "")
        else:
            raise invalid_config(f"operation {config.config_operation} on {config.name}: 0 to 3 are known")
    return given


def _list_value(config: AlterableConfig, before: str) -> str:
    named = (config.value or "").split(",")
    if config.name not in _LISTS:
        verb = "appended to" if config.config_operation == _APPEND else "subtracted from"
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"{config.name} is no list: it cannot be {verb}, set it")
    items = [item for item in before.split(",") if item]
    if config.config_operation == _APPEND:
        return ",".join(dict.fromkeys(items + named))
    return ",".join(item for item in items if item not in named)


API = ServedApi(
    key=ApiKey.INCREMENTAL_ALTER_CONFIGS,
    versions=(0, 1),
    handler=handle,
    guard=ALTER_GUARD,
    errors=ALTER_ERRORS,
    by_controller=by_controller,
    one_at_a_time=True,
)
