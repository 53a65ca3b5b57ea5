"""Client quotas: how much of the broker a client may use, held by delay and not by errors (KIP-13, KIP-55,
KIP-124, KIP-219, KIP-546, KIP-599).

``_table`` says which quota is whose, ``_windows`` measures, ``_client_quotas`` brings the two together for
one client, ``_throttle`` is the one place where answers are delayed. Time comes in as an argument: seconds of
one clock that never goes backwards.
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
    "Throttle",
    "check_filter",
    "check_value",
    "entity_of",
    "told_ms",
]
