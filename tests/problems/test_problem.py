"""Problems over several looks, their order, and the names that alerts and the runbook have.

Covers: problems/kinds.py.
"""

from __future__ import annotations

from kohort.problems import KINDS, PAGE, WARN, FoundProblem, keep_since, most_severe_first

FULL = FoundProblem("DiskRefusesWrites", "broker 1", "its disk is full")
LOW = FoundProblem("DiskFills", "broker 2", "1% free")
GONE = FoundProblem("BrokerDown", "broker 3", "it does not answer")


def test_a_problem_begins_with_the_look_that_found_it_first() -> None:
    first = keep_since([], [FULL], 1_000)
    second = keep_since(first, [FoundProblem(FULL.kind, FULL.about, "still full"), LOW], 2_000)
    assert [each.since_ms for each in first + second] == [1_000, 1_000, 2_000]
    assert second[0].text == "still full"
    later = keep_since(keep_since(second, [LOW], 3_000), [FULL, LOW], 4_000)
    assert [each.since_ms for each in later] == [4_000, 2_000], "one that was over begins again"


def test_a_beginning_that_is_known_stays() -> None:
    expired = FoundProblem("CertificateExpired", "broker 1", "expired", 500)
    assert keep_since([], [expired], 1_000) == [expired]


def test_each_is_there_once_and_the_most_severe_come_first() -> None:
    again = FoundProblem("DiskFills", "broker 2", "0% free")
    other = FoundProblem("DiskFills", "broker 1", "2% free")
    assert most_severe_first([LOW, FULL, again, other, GONE]) == [GONE, FULL, other, LOW]


def test_a_kind_has_the_name_of_its_alert_and_of_its_place_in_the_runbook() -> None:
    kind = LOW.described
    assert (kind.alert, kind.anchor, kind.severity) == ("KohortDiskFills", "diskfills", WARN)
    assert FULL.described.severity == PAGE
    assert all(name == each.name for name, each in KINDS.items())
