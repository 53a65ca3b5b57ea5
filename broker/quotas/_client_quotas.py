"""The quotas of each client and its use of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from ._entities import QuotaKey
from ._table import QuotaTable
from ._windows import Gauge, MutationGauge, QuotaWindows

#: Most clients known by name; beyond that, idle gauges are dropped.
MAX_KNOWN: Final = 10_000

#: Client ids whose first characters, this many, are equal count as one client, unless they have their own
#: quota.
MAX_KNOWN_NAME: Final = 249

_USER_PREFIX: Final = "User:"


@dataclass(slots=True)
class ClientUse:
    """The gauges of one client, in the order of the keys; None without a quota."""

    produce: Gauge | None = None
    fetch: Gauge | None = None
    request: Gauge | None = None
    mutation: MutationGauge | None = None


#: A quota key, and the user and client id that share its gauge; None stands for all of them.
Shared: TypeAlias = tuple[QuotaKey, str | None, str | None]


class ClientQuotas:
    """Finds the gauges of each client. ``epoch`` changes whenever a quota does: cached gauges are then
    invalid. ``active`` is False while there is no quota at all.
    """

    def __init__(
        self,
        table: QuotaTable,
        windows: QuotaWindows | None = None,
        mutation_windows: QuotaWindows | None = None,
    ) -> None:
        self._windows = windows or QuotaWindows()
        self._mutation_windows = mutation_windows or QuotaWindows()
        self.table = table
        self.epoch = 0
        self.active = bool(table.values)
        self._clients: dict[tuple[str, str], ClientUse] = {}
        self._gauges: dict[Shared, Gauge | MutationGauge] = {}

    def __repr__(self) -> str:
        return f"ClientQuotas({len(self.table.values)} entities, {len(self._clients)} clients)"

    def replace(self, table: QuotaTable, now: float) -> None:
        """Put other quotas in force; gauges of quotas that still exist keep their use."""
        self.table = table
        self.active = bool(table.values)
        self._forget_lookups(now)
        for shared, gauge in list(self._gauges.items()):
            limit = table.limit_of(*shared)
            if limit is None:
                del self._gauges[shared]
            else:
                gauge.limit = limit

    def _forget_lookups(self, now: float) -> None:
        """Drop all lookups, and gauges that are not in use."""
        self.epoch += 1
        self._clients.clear()
        self._gauges = {shared: gauge for shared, gauge in self._gauges.items() if not gauge.is_blank(now)}

    def of(self, principal: str, client_id: str, now: float) -> ClientUse:
        """The gauges of a client; those without an id share the empty one."""
        if len(client_id) > MAX_KNOWN_NAME and not self.table.names_client(client_id):
            client_id = client_id[:MAX_KNOWN_NAME]
        key = (principal, client_id)
        found = self._clients.get(key)
        if found is None:
            if len(self._clients) >= MAX_KNOWN:
                self._forget_lookups(now)
            found = self._clients[key] = self._resolve_client(principal.removeprefix(_USER_PREFIX), client_id)
        return found

    def fetch_limit(self, use: ClientUse) -> int | None:
        """Most bytes of one Fetch response: more than the windows allow would always exceed the quota."""
        if use.fetch is None:
            return None
        windows = self._windows
        return max(1, int(use.fetch.limit * max(1, windows.num - 1) * windows.size_s))

    @property
    def max_request_delay_s(self) -> float:
        """Longest delay for request time: one window, as in Apache Kafka."""
        return self._windows.size_s

    def gauges(self) -> list[tuple[Shared, Gauge | MutationGauge]]:
        """Return every gauge with its quota and the clients that share it."""
        return list(self._gauges.items())

    def _resolve_client(self, user: str, client_id: str) -> ClientUse:
        """The gauges of a client, created for the first client of each."""
        found: dict[QuotaKey, Any] = {}
        for key in QuotaKey:
            if (quota := self.table.find(key, user, client_id)) is not None:
                shared = (key, quota.user, quota.client_id)
                if shared not in self._gauges:
                    if key is QuotaKey.CONTROLLER_MUTATION_RATE:
                        self._gauges[shared] = MutationGauge(self._mutation_windows)
                    else:
                        self._gauges[shared] = Gauge(self._windows)
                found[key] = self._gauges[shared]
                found[key].limit = quota.limit
        return ClientUse(*map(found.get, QuotaKey))
