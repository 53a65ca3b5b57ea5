"""The parts of docs/acls.md and docs/broker.md that are made from the files of APIs."""

from __future__ import annotations

from ..authorizer import Access, ResourceType
from . import served_apis
from .api_versions import ranges

_NAMES = {
    ResourceType.TOPIC: "topic",
    ResourceType.GROUP: "group",
    ResourceType.CLUSTER: "cluster",
    ResourceType.TRANSACTIONAL_ID: "transactional id",
}


def access_table() -> str:
    lines = [_line(api.name, access) for api in served_apis().values() for access in api.access]
    return "\n".join(
        (
            "| API | operation | resource | which | error without it |",
            "| --- | --- | --- | --- | --- |",
            *lines,
        )
    )


def _line(api: str, access: Access) -> str:
    error = "none: left out" if access.error is None else f"{access.error.name} ({int(access.error)})"
    operation = access.operation.name.title().replace("_", "")
    return f"| {api} | {operation} | {_NAMES[access.resource]} | {access.words} | {error} |"


def apis_table() -> str:
    apis = served_apis()
    lines = [
        f"| {row.api_key} | {apis[row.api_key].name} | {row.min_version}-{row.max_version} |"
        for row in ranges(apis.values())
    ]
    return "\n".join(("| number | API | versions |", "| --- | --- | --- |", *lines))
