"""The table of quotas, and the lookup of a client's: the most specific one (KIP-55)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ...protocol import JsonObject
from ._entities import CLIENT_ID, DEFAULT_NAME, USER, QuotaEntity, QuotaKey, entity_of

#: Types and names of an entity: a user and a client id, either of which may be left out.
_Path = tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class Found:
    """A client's quota. ``user`` and ``client_id`` say who shares it; None stands for all of them."""

    limit: float
    entity: QuotaEntity
    user: str | None
    client_id: str | None


@dataclass(slots=True)
class QuotaTable:
    values: dict[QuotaEntity, dict[QuotaKey, float]] = field(default_factory=dict)

    def change(self, entity: QuotaEntity, changes: Mapping[QuotaKey, float | None]) -> None:
        """Set values, None removes one."""
        values = {**self.values.get(entity, {}), **changes}
        kept = {key: value for key, value in values.items() if value is not None}
        if kept:
            self.values[entity] = kept
        else:
            self.values.pop(entity, None)

    def names_client(self, client_id: str) -> bool:
        """Return whether there is a quota of this client id alone."""
        return any(entity.names.get(CLIENT_ID) == client_id for entity in self.values)

    def find(self, key: QuotaKey, user: str, client_id: str) -> Found | None:
        """The quota of a client, None if there is none.

        It is the first of: user and client id, user with any client id, user; the same for any user; client
        id; any client id.
        """
        for path in _lookup_paths(user, client_id):
            entity = QuotaEntity(path)
            limit = self.values.get(entity, {}).get(key)
            if limit is not None:
                kinds = entity.names
                shared_user = user if USER in kinds else None
                return Found(limit, entity, shared_user, client_id if CLIENT_ID in kinds else None)
        return None

    def limit_of(self, key: QuotaKey, user: str | None, client_id: str | None) -> float | None:
        """The quota that clients of a user, a client id or both (None: any) share; None if there is none."""
        users = [((USER, name),) for name in (user, DEFAULT_NAME)] if user is not None else [()]
        ids = [((CLIENT_ID, name),) for name in (client_id, DEFAULT_NAME)] if client_id is not None else [()]
        entities = (QuotaEntity(of_user + of_id) for of_user in users for of_id in ids)
        limits = (self.values.get(entity, {}).get(key) for entity in entities)
        return next((limit for limit in limits if limit is not None), None)

    def to_stored(self) -> dict[str, object]:
        """Return the table as it is saved in the metadata store."""
        entries = [
            {
                "entity": [list(part) for part in entity.parts],
                "values": {str(key): value for key, value in values.items()},
            }
            for entity, values in self.values.items()
        ]
        return {"quotas": entries}

    @classmethod
    def parse(cls, document: JsonObject) -> QuotaTable:
        """Read a JSON document. Raises ValueError, KeyError, TypeError or AttributeError."""
        table = cls()
        for entry in document["quotas"]:
            entity = entity_of((kind, name) for kind, name in entry["entity"])
            table.values[entity] = {QuotaKey(key): float(value) for key, value in entry["values"].items()}
        return table


def _lookup_paths(user: str, client_id: str) -> Iterator[_Path]:
    for name in (user, DEFAULT_NAME):
        yield (USER, name), (CLIENT_ID, client_id)
        yield (USER, name), (CLIENT_ID, DEFAULT_NAME)
        yield ((USER, name),)
    yield ((CLIENT_ID, client_id),)
    yield ((CLIENT_ID, DEFAULT_NAME),)
