"""Records of a share group, as kohort's brokers tell them to ``kohort groups`` and to its page.

Covers: admin/groups/share_groups.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from kohort.admin import GroupAdmin
from kohort.admin.groups.results import HistoryEntry
from kohort.protocol import EventName
from tests.admin.conftest import Groups, id_of
from tests.broker.apis.share_members import ACCEPT, REJECT, RELEASE, ShareMember, acquired
from tests.broker.share_requests import join_share_group, share_beat
from tests.broker.test_share_cluster import sharing
from tests.broker.wire import Wire

REJECTED = "1 record of {}-0 was rejected: nobody is given it again; offset 2, delivery 1, member m1"


@pytest.fixture
def worked_on(queue: str, wire: Wire, jobs: str, bootstrap: str) -> Iterator[str]:
    """A share group whose member has taken six records: accepted two, rejected one and released two."""
    join_share_group(wire, queue, "m1", jobs)
    place = id_of(wire, jobs)
    with ShareMember(bootstrap, queue, "m1") as member:
        member.fetch(place, 0, max_records=6, share_acquire_mode=1)
        assert member.acknowledge(
            place, (0, 0, [ACCEPT]), (2, 2, [REJECT]), (3, 3, [ACCEPT]), (4, 5, [RELEASE])
        ) == (0, None)
        yield queue
    share_beat(wire, queue, "m1", -1)


def test_records_in_flight_are_described(worked_on: str, groups: Groups) -> None:
    row, other = groups("describe", worked_on, "--json").document["shared"]
    assert (row["start_offset"], row["lag"]) == (1, 17)
    found = row["in_flight"]
    assert found["held"] == [{"member": "m1", "records": 1}]
    assert (found["end_offset"], found["available"], found["done"]) == (6, 2, 2)
    assert found["deliveries"] == [{"delivery_count": 1, "records": 3}]
    assert (found["rejected"], found["exhausted"], found["lost_locks"]) == (1, 0, 0)
    assert found["stalled_since_ms"] is None
    assert other["in_flight"] is None, "nobody reads it"
    table = groups("describe", worked_on).rows()
    assert next(row for row in table if row[0] == "TOPIC")[5:] == [
        *("HELD", "AVAILABLE", "DELIVERIES", "STALLED", "FOR", "MEMBERS")
    ]
    assert next(row for row in table if row[1:2] == ["0"])[5:] == ["1", "2", "3", "x", "1", "-", "m1", "(1)"]


def test_the_timeline_tells_members_assignment_and_what_became_of_records(
    worked_on: str, jobs: str, groups: Groups
) -> None:
    shown = groups("timeline", worked_on, "--json").document
    assert shown["source"] == "coordinator"
    rows = shown["generations"]
    assert [(row["members"], row["cause"]) for row in rows][:1] == [(1, "member m1 joined")]
    assert sum(row["partitions_moved"] for row in rows) == 2, "both partitions came to the member"
    assert rows[0]["joined"] == ["m1"]
    moves = [move for row in rows for move in row["moves"]]
    assert {(move["partition"], move["from_owner"], move["to_owner"]) for move in moves} == {
        (0, None, "m1"),
        (1, None, "m1"),
    }
    assert f"{jobs} 0-1 to m1" in groups("timeline", worked_on).out
    last = shown["entries"][-1]
    assert (last["kind"], last["member"]) == (EventName.SHARE_RECORDS_REJECTED, "m1")
    assert last["cause"] == REJECTED.format(jobs)
    assert (last["details"]["topic"], last["details"]["partition"], last["details"]["records"]) == (
        jobs,
        0,
        1,
    )
    times = [row["timestamp_ms"] for row in shown["entries"]]
    assert times == sorted(times)
    assert REJECTED.format(jobs) in groups("timeline", worked_on).out
    assert REJECTED.format(jobs) in groups("timeline", worked_on, "--events").out


def test_a_watch_tells_what_became_of_records_once(worked_on: str, jobs: str, groups: Groups) -> None:
    shown = groups("watch", worked_on, "--count", "2", "--interval", "0.1")
    assert shown.out.count(REJECTED.format(jobs)) == 1


def test_the_picture_of_a_share_group_is_a_table(
    worked_on: str, jobs: str, groups: Groups, tmp_path: Path
) -> None:
    assert groups("timeline", worked_on, "--html", tmp_path / "page.html").code == 0
    text = (tmp_path / "page.html").read_text()
    assert "Share partitions (2)" in text
    assert REJECTED.format(jobs) in text
    assert 'id="lanes"' not in text


async def test_what_became_of_records_stays_when_nobody_reads_any_more(
    admin: GroupAdmin, queue: str, wire: Wire, jobs: str, bootstrap: str
) -> None:
    place = id_of(wire, jobs)
    with ShareMember(bootstrap, queue, "m1") as member:
        member.fetch(place, 0, max_records=3, share_acquire_mode=1)
        member.acknowledge(place, (2, 2, [REJECT]))
        member.acknowledge_all(place, epoch=-1)
    (event,) = await admin.share_events(queue)
    assert event.cause == REJECTED.format(jobs)
    assert (await admin.describe([queue]))[queue].shared[0].in_flight is None


def test_every_broker_of_a_cluster_is_asked() -> None:
    with sharing() as (nodes, place):
        leader = nodes.leader_of("t")
        others = [node.bootstrap for number, node in nodes.brokers.items() if number != leader]

        async def ask() -> list[HistoryEntry]:
            async with GroupAdmin(others) as admin:
                return await admin.share_events("g")

        with ShareMember(nodes.brokers[leader].bootstrap, "g", "m1") as member:
            assert acquired(member.fetch(place, 0)) == [(0, 2, 1)]
            assert member.acknowledge(place, (1, 1, [REJECT])) == (0, None)
            (event,) = asyncio.run(ask())
        assert (event.kind, event.member, event.details["first_offset"]) == (
            EventName.SHARE_RECORDS_REJECTED,
            "m1",
            1,
        )
