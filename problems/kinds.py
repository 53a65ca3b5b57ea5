"""The kinds of problems. ``docs/alerts`` and ``docs/runbook.md`` have the same names and severities."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

Severity: TypeAlias = Literal["page", "warn"]

#: Somebody has to look now, or within a day or so.
PAGE: Final[Severity] = "page"
WARN: Final[Severity] = "warn"


class ProblemKind(NamedTuple):
    """A kind of problem, and how severe it is."""

    name: str
    severity: Severity

    @property
    def alert(self) -> str:
        """The name of its rule for Prometheus."""
        return f"Kohort{self.name}"

    @property
    def anchor(self) -> str:
        """Where the runbook tells what to do."""
        return self.name.lower()


#: Of brokers and clusters, then of services and groups; each the worst first.
KINDS: Final = {
    kind.name: kind
    for kind in (
        ProblemKind("PartitionsOffline", PAGE),
        ProblemKind("PartitionsUnderMinIsr", PAGE),
        ProblemKind("NotOneController", PAGE),
        ProblemKind("BrokerDown", PAGE),
        ProblemKind("DiskRefusesWrites", PAGE),
        ProblemKind("DiskHangs", PAGE),
        ProblemKind("ZooKeeperOutOfReach", PAGE),
        ProblemKind("CertificateExpired", PAGE),
        ProblemKind("DescriptorsRunOut", PAGE),
        ProblemKind("OffsetsUnreadable", PAGE),
        ProblemKind("TransactionHangs", PAGE),
        ProblemKind("PartitionsUnderReplicated", WARN),
        ProblemKind("BrokerWithoutZooKeeper", WARN),
        ProblemKind("SessionsExpire", WARN),
        ProblemKind("IsrFlaps", WARN),
        ProblemKind("DiskFills", WARN),
        ProblemKind("CertificateEnds", WARN),
        ProblemKind("LoginsRefused", WARN),
        ProblemKind("RequestsWaitForMemory", WARN),
        ProblemKind("AssignorFails", WARN),
        ProblemKind("RecordingFails", WARN),
        ProblemKind("OldRequests", WARN),
        ProblemKind("BuildsMixed", WARN),
        ProblemKind("ServiceDown", PAGE),
        ProblemKind("ServiceStandsStill", PAGE),
        ProblemKind("NoBrokerAnswers", PAGE),
        ProblemKind("GroupStandsStill", PAGE),
        ProblemKind("GroupBehind", WARN),
        ProblemKind("HandlerHangs", WARN),
        ProblemKind("EventLoopBlocked", WARN),
        ProblemKind("DeadLetters", WARN),
        ProblemKind("CommitsFail", WARN),
        ProblemKind("RebalancesTooOften", WARN),
        ProblemKind("LocksLost", WARN),
        ProblemKind("SharePartitionStalls", WARN),
        ProblemKind("LastDeliveries", WARN),
    )
}
