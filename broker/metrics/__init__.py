"""Metrics: counted where things happen, computed when they are read.

Counting is one addition, timing increments one bucket. The requests that members send most are all counted,
and one in 64 is timed. Rates, averages and percentiles cover the last 30 to 60 seconds.
"""

from ._broker_metrics import BrokerMetrics
from ._logins import FailedLogins
from ._requests import SAMPLED, ApiMeter
from ._sensors import Histogram
from ._shares import ShareCounters, SharePartitionCounters
from ._snapshot import (
    BrokerSnapshot,
    DiskFigures,
    FetchSessionFigures,
    GroupFigures,
    LagFigures,
    MetadataFigures,
    PartitionFigures,
    QuotaFigures,
    ReplicaFigures,
    ShareFigures,
    SharePartitionFigures,
    TallyFigures,
)

__all__ = [
    "SAMPLED",
    "ApiMeter",
    "BrokerMetrics",
    "BrokerSnapshot",
    "DiskFigures",
    "FailedLogins",
    "FetchSessionFigures",
    "GroupFigures",
    "Histogram",
    "LagFigures",
    "MetadataFigures",
    "PartitionFigures",
    "QuotaFigures",
    "ReplicaFigures",
    "ShareCounters",
    "ShareFigures",
    "SharePartitionCounters",
    "SharePartitionFigures",
    "TallyFigures",
]
