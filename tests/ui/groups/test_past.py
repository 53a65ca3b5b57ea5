"""A group in another time: what is asked, what is read, and what is said to be missing.

Covers: ui/groups/past_pages.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from kohort.admin import Generation, GroupAdmin, GroupHistory, PartitionMove
from kohort.admin.groups.results import TimeStretch
from kohort.admin.pages.lanes import UNKNOWN
from kohort.protocol import ErrorCode, KafkaError
from kohort.recording import LagSample, Recorder
from kohort.testing import RunningBroker
from kohort.ui.groups import past
from kohort.ui.groups.past import AskedTime, PastView, asked_time
from kohort.ui.observer import Observer
from kohort.ui.recording import ClusterRecorder, row_of_generation
from tests.ui.conftest import Browser
from tests.ui.members import grouped
from tests.ui.test_app import words
from tests.waiting import wait_until

DAY = 86_400_000
NOON = 1_770_120_000_000 // DAY * DAY + DAY // 2  # of 2026-02-03


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, None),
        ({"day": "2026-02-03"}, (NOON - DAY // 2, NOON + DAY // 2 - 1)),
        # the day is what is meant, whatever the other fields still have
        ({"day": "2026-02-03", "since": "24h"}, (NOON - DAY // 2, NOON + DAY // 2 - 1)),
        ({"since": "24h"}, (NOON - DAY, -1)),
        ({"until": "2026-02-03T11:59"}, (0, NOON - 60_000)),
        ({"since": "yesterday", "until": "yesterday"}, (NOON - DAY // 2 - DAY, NOON - DAY // 2 - 1)),
        ({"since": " 2026-02-03T11:00+01:00 "}, (NOON - 2 * DAY // 24, -1)),
    ],
)
def test_a_stretch_is_a_day_or_has_ends(asked: dict[str, str], expected: tuple[int, int] | None) -> None:
    assert asked_time(asked).stretch(NOON) == expected


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (AskedTime(day="soon"), "'soon' is no time"),
        (AskedTime(since="2026-99-01"), "is no time"),
        (AskedTime(since="1h", until="2h"), "'2h' is before '1h'"),
    ],
)
def test_a_stretch_that_is_none_is_refused(asked: AskedTime, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        asked.stretch(NOON)


class Admin:
    """A cluster that has forgotten."""

    def __init__(self) -> None:
        self.asked: list[TimeStretch] = []

    async def history(self, group: str, *_: object, stretch: TimeStretch, **__: object) -> GroupHistory:
        self.asked.append(stretch)
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"records of {group}")


def recorded(folder: Path, rows: list[Generation]) -> ClusterRecorder:
    """A recorder whose folder has these generations, each with the lag at that time."""
    writer: Recorder[Generation] = Recorder(
        folder, lambda row: row_of_generation("g", row), now_ms=lambda: rows[-1].timestamp_ms + 1
    )
    writer.start()
    writer.watch()
    for row in rows:
        writer.record_event(row, lasting=True)
        writer.record_samples([LagSample("g", row.timestamp_ms, 7 * row.generation, None, 1)])
    assert writer.flush()
    writer.close()
    return ClusterRecorder(Observer(lambda: GroupAdmin("localhost:1")), folder)


def generations(first_ms: int, *numbers: int) -> list[Generation]:
    return [
        Generation(
            number,
            first_ms + number * 60_000,
            "Stable",
            f"cause {number}",
            members=1,
            moves=(PartitionMove("orders", 0, f"m{number - 1}", f"m{number}"),),
            partitions_moved=1,
        )
        for number in numbers
    ]


async def test_only_what_happened_then_is_shown_and_it_is_read_once(tmp_path: Path) -> None:
    today = time.time_ns() // 1_000_000 // DAY * DAY
    rows = [*generations(today - 2 * DAY, 1, 2), *generations(today - DAY, 3, 4)]
    recorder = recorded(tmp_path, rows)
    admin, stretch = Admin(), TimeStretch(today - 2 * DAY, today - DAY - 1)
    view = PastView("g", stretch, recorder)
    for _ in range(2):
        await view.look(cast("Any", admin))
    assert admin.asked == [stretch]
    lanes = view.lanes
    assert lanes is not None
    assert [row.generation for row in lanes.generations] == [1, 2]
    assert (lanes.since_ms, lanes.now_ms) == (stretch.from_ms, stretch.until_ms)
    # of lag that is older the highest of ten minutes is kept
    assert [sample.lag for sample in lanes.samples] == [14]
    assert [row.cause for row in lanes.generations] == ["cause 1", "cause 2"]
    assert any("causes are kept, but not what moved" in words for words in lanes.unknown)
    assert any("records cannot be read" in words for words in lanes.unknown)
    assert any("nobody recorded this group" in words for words in lanes.unknown)


async def test_lanes_begin_and_end_with_the_stretch(tmp_path: Path) -> None:
    first_ms = time.time_ns() // 1_000_000 - 3_600_000
    recorder = recorded(tmp_path, generations(first_ms, 1, 2, 3))
    view = PastView("g", TimeStretch(first_ms, first_ms + 150_000), recorder)
    await view.look(cast("Any", Admin()))
    assert view.lanes is not None
    [lane] = view.lanes.lanes
    owners = [(each.start_ms - first_ms, view.lanes.owners[each.owner].name) for each in lane.spans[:-1]]
    assert owners == [(0, "m0"), (60_000, "m1"), (120_000, "m2")]
    # nobody watched at the end of it
    assert lane.spans[-1] == (first_ms + 150_000, UNKNOWN)
    assert view.lanes.now_ms == first_ms + 150_000


async def test_what_is_dropped_is_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past, "MOST_PAST", 3)
    today = time.time_ns() // 1_000_000 // DAY * DAY
    recorder = recorded(tmp_path, generations(today - DAY, *range(1, 8)))
    for until_ms, cut in ((today - 1, True), (today - DAY + 3 * 60_000, False)):
        view = PastView("g", TimeStretch(today - DAY, until_ms), recorder)
        await view.look(cast("Any", Admin()))
        assert view.lanes is not None
        assert [row.generation for row in view.lanes.generations] == ([5, 6, 7] if cut else [1, 2, 3])
        assert ("more generations ended in this time than the 3" in str(view.lanes.unknown)) == cut


def test_a_page_of_another_time_says_which_and_leads_back(
    broker: RunningBroker, browser: Callable[..., Browser]
) -> None:
    page = browser("--bootstrap", broker.bootstrap)
    with grouped(broker, "remembered", "orders", ["app-1", "app-2"]):
        shown = page.get("/group?name=remembered")
        assert 'type="date"' in shown.text
        assert ">yesterday</a>" in shown.text
        found = page.get("/group?name=remembered&since=1h")
        text = words(found)
        assert "member app-1" in text
        assert "The group now" in text
        assert " data-past>" in found.text
        assert 'data-events="events?of=past&amp;name=remembered&amp;since=1h' in found.text
        before = words(page.get("/group?name=remembered&day=2020-01-01"))
    assert "From 2020-01-01 00:00:00.000 UTC to 2020-01-01 23:59:59.999 UTC" in before
    assert "No rebalance is known." in before
    for odd in ("day=x", "since=1h&until=2h", "until=%00"):
        assert page.get(f"/group?name=remembered&{odd}").status_code == 400
        assert page.get(f"/events?of=past&name=remembered&{odd}").status_code == 400


def test_a_page_of_another_time_is_kept_up_to_date_while_that_goes_on(
    broker: RunningBroker, browser: Callable[..., Browser]
) -> None:
    page = browser("--bootstrap", broker.bootstrap)

    async def view() -> PastView:
        asked = AskedTime(since="1h")
        return page.observer.view(("past", "going-on", asked), lambda: pytest.fail("it is there"))

    with grouped(broker, "going-on", "orders", ["app-1"]) as more:
        assert "member app-2" not in words(page.get("/group?name=going-on&since=1h"))
        more("app-2")

        def is_shown() -> bool:
            page.look(page.run(view()))
            return "member app-2" in words(page.get("/group?name=going-on&since=1h"))

        wait_until(is_shown, "the new member is shown")
