"""What is wrong with a cluster, its brokers and services, in one shape for commands, pages and alerts.

Pure: whoever has asked brokers, or has read their metrics, gives what was found. Each kind of problem has a
rule for Prometheus and an entry in the runbook of the same name.
"""

from .cluster import BrokerSeen, ClusterSeen, PartitionSeen, find_in_cluster
from .exposition import Samples, find_in_metrics, read_samples
from .groups import OLD_MS, find_in_groups
from .kinds import KINDS, PAGE, WARN, ProblemKind, Severity
from .problem import FoundProblem, keep_since, most_severe_first

__all__ = [
    "KINDS",
    "OLD_MS",
    "PAGE",
    "WARN",
    "BrokerSeen",
    "ClusterSeen",
    "FoundProblem",
    "PartitionSeen",
    "ProblemKind",
    "Samples",
    "Severity",
    "find_in_cluster",
    "find_in_groups",
    "find_in_metrics",
    "keep_since",
    "most_severe_first",
    "read_samples",
]
