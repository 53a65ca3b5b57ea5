"""The part of docs/acls.md that is made from the table of rights."""

from __future__ import annotations

from ...protocol import APIS
from ._access import ACCESS, Access
from ._acls import ResourceType

_NAMES = {
    ResourceType.TOPIC: "topic",
    ResourceType.GROUP: "group",
    ResourceType.CLUSTER: "cluster",
    ResourceType.TRANSACTIONAL_ID: "transactional id",
}


def access_table() -> str:
    """What every API asks for."""
    lines = [_line(APIS[key].name, access) for key, rows in sorted(ACCESS.items()) for access in rows]
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
