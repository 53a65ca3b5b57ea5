"""The page on any cluster: tables, several clusters and another time. ``--bootstrap`` names an Apache Kafka.

Covers: ui/problems/overview.py, ui/groups/past.py.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from kohort.producer import Producer
from tests.ui.conftest import Browser, commit
from tests.ui.members import grouped
from tests.ui.test_app import words
from tests.waiting import wait_until

if TYPE_CHECKING:
    from kohort.testing import RunningBroker


def write(bootstrap: str, topic: str, count: int) -> None:
    async def run() -> None:
        async with Producer(bootstrap=bootstrap) as producer:
            for _ in range(count):
                await producer.send(topic, b"x", partition=0)

    asyncio.run(run())


def test_groups_are_sorted_by_lag_and_a_group_is_shown_in_another_time(
    bootstrap: str,
    browser: Callable[..., Browser],
    topic: Callable[[str], str],
    group: Callable[[str], str],
) -> None:
    records, prefix = topic("sorted"), group("sorted")
    commit(bootstrap, f"{prefix}-b", {records: 0})
    write(bootstrap, records, 12)
    for number, name in enumerate("acd"):
        commit(bootstrap, f"{prefix}-{name}", {records: 3 * number})
    page = browser("--cluster", f"here={bootstrap}", "--cluster", "gone=127.0.0.1:1", "--timeout", "10")
    asked = {"q.groups": prefix.upper(), "sort.groups": "-lag"}

    def listed() -> list[str]:
        shown = page.get("/at/here/groups", params=asked).text
        return re.findall(rf"{prefix}-(\w)</a></th>", shown)

    wait_until(lambda: sorted(listed()) == [*"abcd"], "the groups are listed")
    wait_until(lambda: listed()[-2:] == [*"cd"], "those with the least lag are last")
    first = words(page.get("/"))
    assert "gone does not answer" in first
    assert "here does not answer" not in first
    with grouped(cast("RunningBroker", SimpleNamespace(bootstrap=bootstrap)), prefix, records, ["app-1"]):
        wait_until(
            lambda: "No rebalance" not in words(page.get(f"/at/here/group?name={prefix}&since=1h")),
            "the rebalance is remembered",
        )
        before = words(page.get(f"/at/here/group?name={prefix}&day=2020-01-01"))
    assert "No rebalance is known." in before
