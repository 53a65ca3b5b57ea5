"""A group's picture as HTML: what it says without the script; no name becomes part of the page."""

from __future__ import annotations

import asyncio
import html
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from kohort.admin import GroupAdmin
from kohort.admin.groups.results import (
    SHARE,
    DeliveredRecords,
    GroupDescription,
    HeldRecords,
    HoldUp,
    RecordsInFlight,
    ShareOffsets,
)
from kohort.admin.pages.lanes import Lanes
from kohort.admin.pages.lanes_page import page, parts
from kohort.protocol import TopicPartition
from tests.admin.conftest import Groups, stable
from tests.admin.groups.test_commands import Name, NewTopic
from tests.admin.pages import test_lanes as made
from tests.consumer.members import Maker

EVIL = "<script>alert(1)</script>\"'&</script>"


def words(text: str) -> str:
    """What a reader reads."""
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", text)))


def test_the_page_says_in_tables_what_the_picture_shows() -> None:
    found = made.picture(
        made.group(made.member("pod-1", 0), made.member("pod-2", 1)),
        made.generation(1, 1_000, (0, None, "pod-1"), (1, None, "pod-1"), cause="static member pod-1 joined"),
        made.generation(
            *(2, 4_000, (1, "pod-1", "pod-2")),
            cause="static member pod-2 joined",
            duration_ms=1_500,
            join_ms=1_000,
            client_id="app",
            client_host="/10.0.0.7",
        ),
    )
    shown = words(page(found))
    assert "static member pod-2 joined; took 1.5 s; 1 moved" in shown
    assert "Who app at /10.0.0.7" in shown
    assert "members join: 1.0 s the assignment is handed out: 500 ms" in shown
    assert "pod-1 pod-2 1 orders 1" in shown  # from, to, count, partitions
    assert "orders-1 pod-2 1970-01-01 00:00:04.000" in shown


def test_no_name_of_a_client_becomes_part_of_the_page() -> None:
    found = made.picture(
        made.group(made.member(EVIL, 0, client_id=EVIL), epoch=3, hold_ups=(HoldUp(EVIL, EVIL, ()),)),
        made.generation(1, 1_000, (0, EVIL, None), cause=EVIL, client_id=EVIL, joined=(EVIL,), protocol=EVIL),
    )
    shown = page(found)
    assert "<script>alert" not in shown
    assert shown.count("<script") == 2  # the data and our own
    [data] = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', shown)
    assert json.loads(data)["owners"][0][1] == EVIL
    assert not re.search(r'="[^"]*<', shown.split("<style>")[0])


def test_records_in_flight_of_a_share_group_are_shown_with_those_at_their_last_delivery() -> None:
    held, deliveries = (HeldRecords("w1", 8),), (DeliveredRecords(1, 10), DeliveredRecords(5, 2))
    told = RecordsInFlight(20, held, 3, 2, deliveries, 1, 4, 7, None)
    now = group_of_shares(ShareOffsets("jobs", 0, 6, 30, 22, ("w1",), told))
    shown = words(parts(now, delivery_limit=5))
    assert (
        "jobs-0 6 30 22 8 3 10 x 1, 2 x 5 2 1 rejected, 4 delivered too often, 7 locks lost - w1 (8)" in shown
    )
    assert "Member Partition Records w1 jobs-0 8" in shown
    assert "2 x 5 - 1 rejected" in words(parts(now))


def test_a_share_group_of_other_brokers_has_its_offsets_and_a_word_on_the_rest() -> None:
    shown = words(parts(group_of_shares(ShareOffsets("jobs", 0, 6, 30, 22, ("w1",)))))
    assert "Partition Start End Lag Members jobs-0 6 30 22 w1" in shown
    assert "No leader tells of records in flight" in shown


def group_of_shares(*shared: ShareOffsets) -> Lanes:
    now: GroupDescription = made.group()
    return made.picture(replace(now, group_type=SHARE, shared=shared))


def test_the_page_may_load_and_send_nothing() -> None:
    shown = page(made.picture(made.group(made.member("a", 0))))
    assert "default-src 'none'" in html.unescape(shown)
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", shown)


def test_who_waits_for_whom_is_said() -> None:
    hold_up = HoldUp("a", "b", (TopicPartition("orders", 3),), 1_400)
    found = made.picture(made.group(made.member("a", 0), made.member("b", 3), epoch=2, hold_ups=(hold_up,)))
    assert "a waits for b to give up orders 3, for 1.4 s" in words(page(found))


@pytest.mark.kafka
async def test_a_timeline_is_written_as_one_file(
    groups: Groups, new_topic: NewTopic, group: Name, member: Maker, admin: GroupAdmin, tmp_path: Path
) -> None:
    topic, name = new_topic("orders", partitions=2), group("billing")
    await member(topic, group=name, client_id="app-1", assignor="range")
    await stable(admin, name, 1)
    file = tmp_path / "billing.html"
    done = await asyncio.to_thread(groups, "timeline", name, "--html", file)
    assert done.code == 0, done.err
    assert "the picture is in" in done.err
    [data] = re.findall(r'id="model">(.*?)</script>', file.read_text("utf-8"))
    model = json.loads(data)
    assert [owner[0] for owner in model["owners"]] == ["app-1"]
    assert [(topic, number, spans[-1][1]) for topic, number, _, spans in model["lanes"]] == [
        (topic, 0, 0),
        (topic, 1, 0),
    ]
