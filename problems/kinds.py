"""The kinds of problems. ``docs/alerts`` and ``docs/runbook.md`` have the same names and severities."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

Severity: TypeAlias = Literal["page", "warn"]

#: Somebody has to look now, or within a day or so.
PAGE: Final[Severity] = "page"
WARN: Final[Severity] = "warn"


class Kind(NamedTuple):
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
        Kind("PartitionsOffline", PAGE),
        Kind("PartitionsUnderMinIsr", PAGE),
        Kind("NotOneController", PAGE),
        Kind("BrokerDown", PAGE),
        Kind("DiskRefusesWrites", PAGE),
        Kind("ZooKeeperOutOfReach", PAGE),
        Kind("CertificateExpired", PAGE),
        Kind("DescriptorsRunOut", PAGE),
        Kind("OffsetsUnreadable", PAGE),
        Kind("PartitionsUnderReplicated", WARN),
        Kind("BrokerWithoutZooKeeper", WARN),
        Kind("SessionsExpire", WARN),
        Kind("IsrFlaps", WARN),
        Kind("DiskFills", WARN),
        Kind("CertificateEnds", WARN),
        Kind("LoginsRefused", WARN),
        Kind("RequestsWaitForMemory", WARN),
        Kind("AssignorFails", WARN),
        Kind("OldRequests", WARN),
        Kind("BuildsMixed", WARN),
        Kind("ServiceDown", PAGE),
        Kind("ServiceStandsStill", PAGE),
        Kind("NoBrokerAnswers", PAGE),
        Kind("GroupStandsStill", PAGE),
        Kind("GroupBehind", WARN),
        Kind("HandlerHangs", WARN),
        Kind("EventLoopBlocked", WARN),
        Kind("DeadLetters", WARN),
        Kind("CommitsFail", WARN),
        Kind("RebalancesTooOften", WARN),
        Kind("LocksLost", WARN),
    )
}
