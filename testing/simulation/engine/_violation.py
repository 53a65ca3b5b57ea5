"""The invariants that are checked, and the exception for one that does not hold."""

from __future__ import annotations

from typing import Final

#: What must hold, by the name that a failure gives.
INVARIANTS: Final[dict[str, str]] = {
    "S0": "the coordinator, the log and the member raise nothing that nobody expects",
    "S1": "an acknowledged commit is what every later fetch and every reload has, until it is overwritten, "
    "deleted or expired",
    "S2": "a commit is acknowledged only to a member of the current generation, or for an Empty group",
    "S3": "a generation never decreases, and a reload never falls below the last one that was handed out",
    "S4": "in one generation a partition has at most one owner, and every subscribed one has an owner once "
    "an eager group is Stable",
    "S5": "a group moves only along the rows of the state machine's table",
    "S6": "every request gets one answer, and none before what it promises is durable",
    "S7": "what is read back from the log is what the live coordinator knew, compacted or not",
    "S8": "no session ends early, every member that is not waited for has a running session, and no timer is "
    "left for who is gone",
    "S9": "an instance id has one member id",
    "S10": "members and parked requests stay within their limits",
    "S11": "a member delivers only while it is joined and only what it was assigned, skips nothing, and "
    "commits nothing that is not done",
    "S12": "no acknowledged commit is followed by a lower one, unless the log was cut or recreated",
    "S13": "what has begun is finished within the drain, and a stop takes no longer than notice and drain",
    "S14": "without a fault every record is handled once, and only poison is set aside",
    "S15": "partitions do not wait for each other",
    "S16": "what a consumer holds is bounded by its settings",
    "S17": "nobody repeats requests without a pause, or goes round in a circle",
    "S18": "under exactly once every record takes effect once",
    "S19": "a heartbeat that is held is answered as soon as there is news of its member, and a member "
    "that is settled has all of its target",
    "S20": "what a member has given up behind its commit is committed",
    "S21": "a plug-in that fails leaves its group's members, what they have and their targets as they are",
    "T1": "no record of an aborted transaction is read under read_committed",
    "T2": "no record is read before its transaction is committed, and of a transaction all or none",
    "T3": "every record of a transaction whose commit was acknowledged is read once, in its order",
    "T4": "committed offsets and output go together: each record of the input has its output once",
    "T5": "a last stable offset never goes back, and none stays behind once all is well",
    "T6": "a transactional id's records follow the table, and its epoch never goes back",
    "T7": "no commit of a producer is acknowledged once a newer one of its id is known",
    "B1": "what was acknowledged with acks=all is in the log of every later leader, as long as at most one "
    "broker's disk loses what it has, and after an unclean election in other partitions",
    "B2": "no record of an idempotent producer is in a log twice, unless an unclean election may have lost "
    "what it sent",
    "B3": "what somebody has read at an offset is what everybody reads there, and nothing behind the high "
    "watermark is read",
    "B4": "in one epoch a partition has at most one leader",
    "B5": "in one epoch the high watermark never goes back",
    "B6": "an acknowledged commit is what every later coordinator of the group has",
    "B7": "when the faults are over, all replicas have the same bytes",
    "B8": "when the faults are over, all brokers serve, all replicas get in sync, and clients get on",
    "B9": "a coordinator knows the members of the last generation that was handed out, under their ids, and "
    "puts none out before its session is over; nobody gets what another member has not given up",
    "Q1": "a record of a share group is not given again once an acknowledgement that ends it was answered",
    "Q2": "no record of a share group has two owners at one leader; its owner may acknowledge it, and nobody "
    "else",
    "Q3": "the stored start offset of a share partition never goes back, unless offsets are altered",
    "Q4": "each delivery of a record of a share group counts once, and none that was not sent; there are no "
    "more than its limit",
    "Q5": "every record of a topic is given to a member of its share group",
    "Q6": "what is done in a share group was accepted or rejected, or given as often as its limit is",
    "Q7": "a fetch of a share group gives whole records of the partitions in its session, no more than it "
    "asks for and no more than the group may have in flight",
    "Q8": "a share group that reads what is committed is given nothing else",
    "Q9": "of sessions that are closed, and of topics and groups that are deleted, nothing is left at "
    "leaders and share coordinators; and what these know says that all is done, once all is done",
    "Q10": "a share group puts no member out before its session is over, and no epoch goes back; when the "
    "faults are over, it has the members that live, and each partition as many of them as any other",
    "Q11": "a share consumer says to brokers what its application says of records, releases those that it "
    "has not delivered, and says nothing else",
    "Q12": "a share consumer delivers records whose lock has not ended, as brokers have given them",
    "Q13": "each delivery ends with a true answer, the event of a lost lock, or its process; of a record one "
    "at most is accepted or rejected and counts, and none is handled again though no lock has ended",
    "Q14": "what is done in a share group was accepted or rejected by an application, or given as often as "
    "its limit is",
    "Q15": "without a fault no share consumer loses a lock, fails, or leaves something behind",
    "Q16": "a share coordinator carries out nothing with a leader epoch or a state epoch that is lower than "
    "one that it was told of before",
    "Q17": "what a share coordinator has answered is what leaders read later",
    "Q18": "the log of share states is cut below the snapshots that are needed, and these do not get old",
    "L1": "when the faults are over, all members are in one Stable generation within a rebalance timeout, a "
    "session timeout and two heartbeats",
    "L2": "then no request is left unanswered",
    "L3": "then all records are done and committed",
    "L4": "then no rebalance follows",
    "L5": "who closes a consumer, or ends, has left the group and leaves nothing running",
    "L6": "when the faults are over, all transactions end, and all input is done",
    "A": "the assignor and the application under test do nothing wrong",
}


def invariants_table() -> str:
    """The invariants, as a Markdown table."""
    lines = ["| | holds |", "| --- | --- |", *(f"| {name} | {text} |" for name, text in INVARIANTS.items())]
    return "\n".join(lines) + "\n"


class Violation(Exception):  # noqa: N818
    """An invariant does not hold; ``name`` is its key in INVARIANTS."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name} does not hold ({INVARIANTS[name]}): {text}")
        self.name = name
        self.text = text
