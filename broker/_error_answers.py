"""An error in the shape of the API it answers: at the top where the schema has a place, else each leaf."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from ..protocol import ApiKey, ErrorCode, response_type, struct_arrays
from ._requests import Request


@dataclass(frozen=True, slots=True)
class _Level:
    """One array of the request and the array of the response that mirrors it.

    ``copied`` maps request fields to response fields; "" is the element itself. ``fixed`` are other values of
    an element that stands for an error, ``for_null`` stands where a copied value is null.
    """

    request: str
    response: str
    copied: dict[str, str]
    fixed: dict[str, Any] = field(default_factory=dict)
    for_null: dict[str, Any] = field(default_factory=dict)


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


_TOPICS_BY_NAME = _Level("topics", "topics", _same("name"))
_PARTITIONS = _Level("partitions", "partitions", _same("partition_index"))

_CONFIG_RESOURCES = (_Level("resources", "responses", _same("resource_type", "resource_name")),)

_MIRRORS: dict[int, tuple[_Level, ...]] = {
    ApiKey.PRODUCE: (
        _Level("topic_data", "responses", _same("name", "topic_id")),
        _Level("partition_data", "partition_responses", _same("index"), {"base_offset": -1}),
    ),
    ApiKey.FETCH: (
        _Level("topics", "responses", _same("topic", "topic_id")),
        _Level("partitions", "partitions", {"partition": "partition_index"}, {"high_watermark": -1}),
    ),
    ApiKey.LIST_OFFSETS: (_TOPICS_BY_NAME, _PARTITIONS),
    ApiKey.METADATA: (_Level("topics", "topics", _same("name", "topic_id")),),
    ApiKey.OFFSET_COMMIT: (_Level("topics", "topics", _same("name", "topic_id")), _PARTITIONS),
    ApiKey.DESCRIBE_GROUPS: (_Level("groups", "groups", {"": "group_id"}),),
    ApiKey.OFFSET_DELETE: (_TOPICS_BY_NAME, _PARTITIONS),
    ApiKey.CREATE_ACLS: (_Level("creations", "results", {}),),
    ApiKey.DELETE_ACLS: (_Level("filters", "filter_results", {}),),
    ApiKey.CREATE_TOPICS: (_TOPICS_BY_NAME,),
    ApiKey.DELETE_RECORDS: (
        _TOPICS_BY_NAME,
        _Level("partitions", "partitions", _same("partition_index"), {"low_watermark": -1}),
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (
        _Level("topics", "topics", _same("topic")),
        _Level("partitions", "partitions", _same("partition")),
    ),
    ApiKey.DESCRIBE_CONFIGS: (_Level("resources", "results", _same("resource_type", "resource_name")),),
    ApiKey.ALTER_CONFIGS: _CONFIG_RESOURCES,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _CONFIG_RESOURCES,
    ApiKey.CREATE_PARTITIONS: (_Level("topics", "results", _same("name")),),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (_Level("users", "results", {}),),
    ApiKey.ALTER_CLIENT_QUOTAS: (_Level("entries", "entries", _same("entity")),),
    ApiKey.DELETE_GROUPS: (_Level("groups_names", "results", {"": "group_id"}),),
}

#: First and last version with an error at the top, where not all versions have it that have a field for it.
_TOP_VERSIONS: dict[int, tuple[int, int]] = {
    ApiKey.FETCH: (7, 18),
    ApiKey.METADATA: (13, 13),
    ApiKey.OFFSET_FETCH: (2, 7),
    ApiKey.FIND_COORDINATOR: (0, 3),
}

_FIND_COORDINATOR_MANY = (
    _Level("coordinator_keys", "coordinators", {"": "key"}, {"node_id": -1, "host": "", "port": -1}),
)
#: A null name is new in v12.
_METADATA_BELOW_12 = (_Level("topics", "topics", _same("name", "topic_id"), for_null={"name": ""}),)
_OFFSET_FETCH_MANY = (_Level("groups", "groups", _same("group_id")),)
_OFFSET_FETCH_V1 = (
    _TOPICS_BY_NAME,
    _Level(
        "partition_indexes", "partitions", {"": "partition_index"}, {"committed_offset": -1, "metadata": ""}
    ),
)
_DELETE_TOPICS_NAMES = (_Level("topic_names", "responses", {"": "name"}),)
_DELETE_TOPICS_IDS = (_Level("topics", "responses", _same("name", "topic_id")),)


def error_answer(request: Request, code: ErrorCode) -> Any:
    """The response body that says ``code`` to all of a request; None if the API has no answer to give."""
    if request.api.key == ApiKey.PRODUCE and request.body.acks == 0:
        return None
    message = response_type(request.api.key)
    first, last = _TOP_VERSIONS.get(request.api.key, (0, request.version))
    if "error_code" in message._fields and first <= request.version <= last:
        return request.answer(error_code=code, **_top_extras(request, code))
    if request.api.key == ApiKey.ALTER_USER_SCRAM_CREDENTIALS:
        users = dict.fromkeys(item.name for item in (*request.body.deletions, *request.body.upsertions))
        make = request.part("AlterUserScramCredentialsResult")
        return request.answer(results=[make(user=user, error_code=code) for user in users])
    levels = _levels(request)
    return request.answer(**_mirrored(message, request.body, levels, code))


def mirrored_arrays(request: Request) -> tuple[str, str]:
    """The names of the outermost array of a request and of the one that answers it."""
    level = _levels(request)[0]
    return level.request, level.response


def element_errors(request: Request, items: Iterable[Any], code: ErrorCode) -> list[Any]:
    """Elements for the outermost array of the answer that say ``code`` to these elements of the request."""
    levels = _levels(request)
    source = SimpleNamespace(**{levels[0].request: items})
    answered: list[Any] = _mirrored(response_type(request.api.key), source, levels, code)[levels[0].response]
    return answered


def _levels(request: Request) -> tuple[_Level, ...]:
    key, version = request.api.key, request.version
    if key == ApiKey.FIND_COORDINATOR:
        return _FIND_COORDINATOR_MANY
    if key == ApiKey.OFFSET_FETCH:
        return _OFFSET_FETCH_MANY if version >= 8 else _OFFSET_FETCH_V1
    if key == ApiKey.METADATA and version < 12:
        return _METADATA_BELOW_12
    if key == ApiKey.DELETE_TOPICS:
        return _DELETE_TOPICS_IDS if version >= 6 else _DELETE_TOPICS_NAMES
    return _MIRRORS[key]


def _top_extras(request: Request, code: ErrorCode) -> dict[str, Any]:
    key = request.api.key
    if key == ApiKey.FIND_COORDINATOR:
        return {"node_id": -1, "host": "", "port": -1}
    if key == ApiKey.DESCRIBE_CLIENT_QUOTAS:
        return {"entries": None}
    if key == ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS:
        return {"results": element_errors(request, request.body.users or (), code)}
    if key == ApiKey.INIT_PRODUCER_ID:
        return {"producer_epoch": -1}
    if key == ApiKey.JOIN_GROUP:
        # null is a protocol name from v7 on
        return {"member_id": request.body.member_id, "protocol_name": None if request.version >= 7 else ""}
    return {}


def _mirrored(message: Any, source: Any, levels: tuple[_Level, ...], code: ErrorCode) -> dict[str, Any]:
    level, rest = levels[0], levels[1:]
    element_type = struct_arrays(message)[level.response]
    elements = []
    for item in getattr(source, level.request) or ():
        values = {to: getattr(item, name) if name else item for name, to in level.copied.items()}
        values |= {to: value for to, value in level.for_null.items() if values[to] is None}
        values |= level.fixed
        if rest:
            values |= _mirrored(element_type, item, rest, code)
        else:
            values["error_code"] = code
        elements.append(element_type(**values))
    return {level.response: elements}
