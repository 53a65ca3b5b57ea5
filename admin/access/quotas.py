"""Client quotas (KIP-546, KIP-612): the requests about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ...client import Cluster
from ...client.requests import controller, error_of
from ...protocol import ApiKey
from ...protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from ...protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest

_EXACT, _DEFAULT = 0, 1
#: Kafka's words for the parts of an entity, in the order in which they are shown.
_KINDS: Final[tuple[str, ...]] = ("user", "client-id", "ip")


@dataclass(frozen=True, slots=True)
class ClientQuota:
    """Quotas of an entity: of a ``user``, a ``client-id``, both, or an ``ip``, each by its name, or None for
    the default of all that have no own.
    """

    entity: Mapping[str, str | None]
    quotas: Mapping[str, float]


def entity_words(entity: Mapping[str, str | None]) -> str:
    """Name an entity: ``user alice, client-id (default)``."""
    return ", ".join(f"{kind} {'(default)' if name is None else name}" for kind, name in entity.items())


async def list_quotas(
    cluster: Cluster, entity: Mapping[str, str | None], *, exact: bool
) -> list[ClientQuota]:
    """The quotas of all entities that have these parts; with ``exact`` no others. Raises KafkaError."""
    parts = [ComponentData(kind, _DEFAULT if name is None else _EXACT, name) for kind, name in entity.items()]
    body = DescribeClientQuotasRequest(parts, exact)

    async def attempt() -> list[ClientQuota]:
        answer = await cluster.request(None, ApiKey.DESCRIBE_CLIENT_QUOTAS, body)
        if answer.error_code:
            raise error_of(answer, "quotas")
        found = []
        for row in answer.entries or ():
            named = {part.entity_type: part.entity_name for part in row.entity}
            known = {kind: named.pop(kind) for kind in _KINDS if kind in named}
            values = {one.key: one.value for one in sorted(row.values)}
            found.append(ClientQuota({**known, **named}, values))
        return sorted(found, key=lambda quota: [(k, n is not None, n or "") for k, n in quota.entity.items()])

    return await cluster.retrying(attempt)


async def alter_quotas(
    cluster: Cluster,
    entity: Mapping[str, str | None],
    changes: Mapping[str, float | None],
    *,
    only_ask: bool = False,
) -> None:
    """Set quotas of an entity; None removes one. Raises KafkaError, and then sets none."""
    parts = [EntityData(kind, name) for kind, name in entity.items()]
    rows = [OpData(key, 0.0 if value is None else value, value is None) for key, value in changes.items()]
    body = AlterClientQuotasRequest([RequestEntryData(parts, rows)], only_ask)

    async def attempt() -> None:
        answer = await cluster.request(await controller(cluster), ApiKey.ALTER_CLIENT_QUOTAS, body)
        for row in answer.entries:
            if row.error_code:
                raise error_of(row, "quotas")

    await cluster.retrying(attempt)
