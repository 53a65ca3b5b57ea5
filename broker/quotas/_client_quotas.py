"""The quotas of each client with what it has used of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from ._entities import QuotaKey
from ._table import QuotaTable
from ._windows import RateWindows, TokenBucket

#: Clients known by name; when there are more, what is idle is forgotten.
MAX_KNOWN: Final = 10_000

#: Client ids that are equal up to here are one client, but for those that have a quota by name.
MAX_KNOWN_NAME: Final = 249

_USER_PREFIX: Final = "User:"


@dataclass(frozen=True, slots=True)
class QuotaWindows:
    """``num`` windows of ``size_s`` seconds."""

    num: int = 11
    size_s: float = 1.0


class Gauge:
    """A rate with its quota, shared by all who have it in common."""

    __slots__ = ("_span_s", "_windows", "limit", "throttled_s", "used_s")

    def __init__(self, windows: QuotaWindows) -> None:
        self._windows = RateWindows(windows.num, windows.size_s)
        self._span_s = windows.num * windows.size_s
        self.limit = 0.0
        #: Time of the last use, and all the delays it has caused, in seconds.
        self.used_s = 0.0
        self.throttled_s = 0.0

    def record(self, value: float, now: float) -> float:
        """Count something that is done; the delay for it in seconds."""
        self.used_s = now
        return self._windows.record(value, self.limit, now)

    def take_back(self, value: float) -> None:
        """Take back the last record: it is not done after all."""
        self._windows.unrecord(value)

    def used(self, now: float) -> float:
        """Use of the quota by the second, in its unit."""
        return self._windows.rate(now)

    def is_blank(self, now: float) -> bool:
        """Return whether nothing is lost when it is forgotten."""
        return now - self.used_s > self._span_s


class MutationGauge:
    """A bucket with its quota: partitions made or deleted, shared by all who have it in common."""

    __slots__ = ("_bucket", "limit", "throttled_s", "used_s")

    def __init__(self, windows: QuotaWindows) -> None:
        self._bucket = TokenBucket(windows.num * windows.size_s)
        self.limit = 0.0
        self.used_s = 0.0
        self.throttled_s = 0.0

    def may(self, now: float) -> bool:
        """Return whether there is no debt: then anything may be done."""
        return self._bucket.tokens(self.limit, now) >= 0

    def record(self, value: float, now: float) -> None:
        """Count something that is done."""
        self._bucket.take(value, self.limit, now)
        self.used_s = now

    def delay_s(self, now: float) -> float:
        """Seconds until there is no debt."""
        return self._bucket.delay_s(self.limit, now)

    def used(self, now: float) -> float:
        """Tokens left in the bucket, as Apache Kafka shows them; below 0 is debt."""
        return self._bucket.tokens(self.limit, now)

    def is_blank(self, now: float) -> bool:
        """Return whether nothing is lost when it is forgotten: it is full."""
        return self._bucket.is_full(self.limit, now)


@dataclass(slots=True)
class ClientUse:
    """The gauges of one client, in the order of the keys; None where it has no quota."""

    produce: Gauge | None = None
    fetch: Gauge | None = None
    request: Gauge | None = None
    mutation: MutationGauge | None = None


#: A quota key, and the user and client id that share its gauge; None is everybody of that kind.
Shared: TypeAlias = tuple[QuotaKey, str | None, str | None]


class ClientQuotas:
    """Gives each client its gauges. ``epoch`` changes whenever a quota does: what was given is then asked for
    anew. ``active`` is False while there is no quota at all.
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
        """Other quotas are in force from here on; what was used stays where there still is one."""
        self.table = table
        self.active = bool(table.values)
        self._forget(now)
        for shared, gauge in list(self._gauges.items()):
            limit = table.limit_of(*shared)
            if limit is None:
                del self._gauges[shared]
            else:
                gauge.limit = limit

    def _forget(self, now: float) -> None:
        """Look everything up anew; what nobody uses is measured no longer."""
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
                self._forget(now)
            found = self._clients[key] = self._resolve(principal.removeprefix(_USER_PREFIX), client_id)
        return found

    def fetch_limit(self, use: ClientUse) -> int | None:
        """Most bytes of one Fetch answer: more than the windows hold could never be within the quota."""
        if use.fetch is None:
            return None
        windows = self._windows
        return max(1, int(use.fetch.limit * max(1, windows.num - 1) * windows.size_s))

    @property
    def max_request_delay_s(self) -> float:
        """Longest delay for time used: one window, as in Apache Kafka."""
        return self._windows.size_s

    def gauges(self) -> list[tuple[Shared, Gauge | MutationGauge]]:
        """All that is measured."""
        return list(self._gauges.items())

    def _resolve(self, user: str, client_id: str) -> ClientUse:
        """The gauges of a client, made where it is the first who has them."""
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
