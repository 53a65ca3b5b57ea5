"""The access rules of a data folder, in a document of their own: ``kohort-acls.json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...cluster import Document
from ._acls import Acl, Operation, PatternType, Permission, ResourceType


class AclsFile:
    """Loads and saves the rules of a data folder."""

    def __init__(self, document: Document) -> None:
        self._file = document

    def load(self) -> list[Acl]:
        """The rules that were saved last; none if there is no file. Raises StateFileError."""
        return self._file.load(_acls) or []

    def save(self, acls: Sequence[Acl]) -> None:
        """Replace the rules, durably. Raises OSError; the old ones then still stand."""
        self._file.save({"acls": [_written(acl) for acl in acls]})


def _written(acl: Acl) -> dict[str, str]:
    return {
        "permission": acl.permission.name,
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation.name,
        "resource_type": acl.resource_type.name,
        "pattern_type": acl.pattern_type.name,
        "name": acl.name,
    }


def _acls(content: Mapping[str, Any]) -> list[Acl]:
    return [
        Acl(
            ResourceType[stored["resource_type"]],
            stored["name"],
            PatternType[stored["pattern_type"]],
            stored["principal"],
            stored["host"],
            Operation[stored["operation"]],
            Permission[stored["permission"]],
        )
        for stored in content["acls"]
    ]
