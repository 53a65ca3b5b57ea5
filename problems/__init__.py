"""What is wrong with a cluster, its brokers and services, in one shape for commands, pages and alerts.

Pure: whoever has asked brokers, or has read their metrics, gives what was found. Each kind of problem has a
rule for Prometheus and an entry in the runbook of the same name.
"""

from .cluster import BrokerSeen, ClusterSeen, PartitionSeen, find_in_cluster
from .exposition import Samples, find_in_metrics, name_process, read_samples
from .groups import OLD_MS, ShareSeen, find_in_groups, find_in_rebalances, find_in_shares
from .kinds import KINDS, PAGE, WARN, ProblemKind, Severity
from .letters import LettersSeen, find_in_letters
from .problem import FoundProblem, keep_since, most_severe_first
from .transactions import TransactionSeen, find_in_transactions

__all__ = [
    "KINDS",
    "OLD_MS",
    "PAGE",
    "WARN",
    "BrokerSeen",
    "ClusterSeen",
    "FoundProblem",
    "LettersSeen",
    "PartitionSeen",
    "ProblemKind",
    "Samples",
    "Severity",
    "ShareSeen",
    "TransactionSeen",
    "find_in_cluster",
    "find_in_groups",
    "find_in_letters",
    "find_in_metrics",
    "find_in_rebalances",
    "find_in_shares",
    "find_in_transactions",
    "keep_since",
    "most_severe_first",
    "name_process",
    "read_samples",
]
