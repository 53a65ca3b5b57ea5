"""Metrics: counted where things happen, worked out when somebody looks.

A counter is one addition, a time one more in a list of buckets. Of the requests that members send most, all
are counted and one in 64 is timed. Rates, averages and percentiles are of the newest 30 to 60 seconds.
"""

from ._broker_metrics import BrokerMetrics
from ._requests import SAMPLED, ApiMeter
from ._sensors import Histogram
from ._snapshot import BrokerSnapshot, GroupFigures, PartitionFigures, QuotaFigures, ReplicaFigures

__all__ = [
    "SAMPLED",
    "ApiMeter",
    "BrokerMetrics",
    "BrokerSnapshot",
    "GroupFigures",
    "Histogram",
    "PartitionFigures",
    "QuotaFigures",
    "ReplicaFigures",
]
