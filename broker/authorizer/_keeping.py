"""Storage of access rules, in a document of the metadata store: ``kohort-acls.json`` in a data folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum

from ...cluster import Document
from ...protocol import JsonObject
from ._acls import Acl, Operation, PatternType, Permission, ResourceType


class AclsFile:
    """Loads and saves access rules."""

    def __init__(self, document: Document) -> None:
        self._file = document

    def load(self) -> list[Acl]:
        """The rules that were saved last; [] if there is no document. Raises StateFileError."""
        return self._file.load(lambda content: list(map(_read_acl, content["acls"]))) or []

    def follow(self, changed: Callable[[list[Acl]], None]) -> None:
        """Call ``changed`` with the rules whenever another broker has saved them."""
        self._file.follow(lambda: changed(self.load()))

    async def save(self, acls: Sequence[Acl]) -> None:
        """Replace the rules, durably. Raises OSError; the old ones then stay."""
        await self._file.save({"acls": [_to_document(acl) for acl in acls]})


#: Fields of a rule in the order of the document, with the type of those that are written by name.
_FIELDS: dict[str, type[IntEnum] | None] = {
    "permission": Permission,
    "principal": None,
    "host": None,
    "operation": Operation,
    "resource_type": ResourceType,
    "pattern_type": PatternType,
    "name": None,
}


def _to_document(acl: Acl) -> dict[str, str]:
    return {name: getattr(acl, name).name if kind else getattr(acl, name) for name, kind in _FIELDS.items()}


def _read_acl(stored: Mapping[str, str]) -> Acl:
    fields: JsonObject = {
        name: kind[stored[name]] if kind else stored[name] for name, kind in _FIELDS.items()
    }
    return Acl(**fields)
