"""Causes have kinds, and events are counted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kohort.broker.metrics._groups import CAUSES, OTHER, GroupCounters, kind_of
from kohort.coordinator import GroupEvent, MemberGone, Note, OffsetsRemoved, RebalanceNote


@pytest.mark.parametrize(
    ("cause", "kind"),
    [
        ("member a joined", "join"),
        ("static member i joined", "join"),
        ("member a left (closed)", "leave"),
        ("static member i was removed by its instance id", "leave"),
        ("session of member a expired after 10.0 s", "session_expired"),
        ("member a did not finish joining within 300.0 s", "late_join"),
        ("members a, b did not rejoin within 60.0 s", "late_join"),
        ("member a did not sync within 60.0 s", "late_sync"),
        ("leader a changed its metadata", "changed_subscription"),
        ("rejoin of static i from another host /10.0.0.2 with other subscriptions", "changed_subscription"),
        ("leader a asked for a rebalance (new partitions)", "asked_for"),
        ("the assignment could not be written: NOT_ENOUGH_REPLICAS", "not_written"),
        ("3 members loaded, group.max.size is 2", "too_large"),
        ("a test said so", OTHER),
        ("member a joined; session of member b expired after 10.0 s", "join"),
    ],
)
def test_a_cause_is_of_one_kind(cause: str, kind: str) -> None:
    assert kind_of(cause) == kind


def test_every_cause_of_the_documentation_has_a_kind() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "events.md").read_text()
    table = page.split("| of a rebalance |")[1].split("\n\n")[0]
    cells = [row.split("|")[1] for row in table.splitlines()[2:]]
    causes = [cause for cell in cells for cause in re.findall(r"`([^`]+)`", cell)]
    assert len(causes) > 10
    assert OTHER not in {kind_of(cause) for cause in causes if not cause.endswith("...")}
    assert {kind_of(cause) for cause in causes} >= {kind for kind, _ in CAUSES}


def test_events_are_counted_and_handed_on() -> None:
    seen: list[Note] = []
    counters = GroupCounters(seen.append)
    events: list[GroupEvent] = [
        RebalanceNote(
            "g", cause="member a joined", members=1, members_before=0, duration_ms=250, join_ms=1, sync_ms=1
        ),
        MemberGone("g", cause="session of member a expired after 10.0 s"),
        MemberGone("g", cause="member a left"),
        OffsetsRemoved("g", cause="expired", count=7),
    ]
    for event in events:
        counters.see(event)
    assert seen == events
    assert counters.rebalances == {"join": 1}
    assert counters.rebalance_times.figures().max_ms == 250.0
    assert (counters.expired_members, counters.offsets_removed) == (1, 7)
