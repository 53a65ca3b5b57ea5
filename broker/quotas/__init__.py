"""Client quotas: how much of the broker a client may use, enforced by delays, not by errors (KIP-13, KIP-55,
KIP-124, KIP-219, KIP-546, KIP-599).

``_table`` holds the quotas, ``_windows`` measures, ``_client_quotas`` combines the two for a client,
``_throttle`` computes delays. Time is an argument: seconds of a clock that never goes backwards.
"""

from ._client_quotas import ClientQuotas
from ._entities import (
    CLIENT_ID,
    DEFAULT_NAME,
    USER,
    QuotaEntity,
    QuotaKey,
    check_filter,
    check_value,
    entity_of,
)
from ._replication import ReplicationThrottle, are_replicas
from ._table import QuotaTable
from ._throttle import Throttle, told_ms
from ._windows import Gauge, QuotaWindows

__all__ = [
    "CLIENT_ID",
    "DEFAULT_NAME",
    "USER",
    "ClientQuotas",
    "Gauge",
    "QuotaEntity",
    "QuotaKey",
    "QuotaTable",
    "QuotaWindows",
    "ReplicationThrottle",
    "Throttle",
    "are_replicas",
    "check_filter",
    "check_value",
    "entity_of",
    "told_ms",
]
