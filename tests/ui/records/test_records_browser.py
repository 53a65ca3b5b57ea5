"""Topics and records in a real browser: found by the form, page by page, on a narrow screen, too.

Covers: ui/records/pages.py, ui/topics/pages.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from kohort.producer import Producer
from tests.ui.chromium import served, sized
from tests.ui.test_browser import NAMELESS, chrome, complaints, run
from tests.waiting import wait_until

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

pytestmark = [pytest.mark.slow(12), pytest.mark.kafka]

__all__ = ["chrome"]

EVIL = b"</td></table><script>alert(1)</script><img src=x onerror=alert(1)>"
PLACES = "return [...document.querySelectorAll('tbody th a')].map((a) => a.textContent)"
TEXT = "return document.querySelector('main').innerText"


def fill(bootstrap: str, topic: str) -> None:
    async def write() -> None:
        async with Producer(bootstrap=bootstrap) as producer:
            for number in range(120):
                headers = [("trace", b"t-%d" % number), (EVIL.decode(), EVIL)]
                value = b'{"number": %d}' % number if number % 2 else EVIL + b"x" * 5_000
                await producer.send(topic, value, key=b"k%d" % number, partition=0, headers=headers)
            await producer.flush()

    asyncio.run(write())


def follow(chrome: Chrome, words: str) -> None:
    """Click on a link; an element may be another one by then, as the page is kept up to date."""
    run(chrome, "[...document.links].find((each) => each.textContent === arguments[0]).click()", words)


def test_records_are_found_by_the_form_and_page_by_page(
    chrome: Chrome,
    bootstrap: str,
    new_topic: Callable[..., str],
) -> None:
    topic = new_topic("seen", partitions=2)
    fill(bootstrap, topic)
    with served("--bootstrap", bootstrap) as address:
        chrome.get(f"{address}topics?{urlencode({'q.topics': topic})}")
        wait_until(lambda: topic in run(chrome, TEXT), "the topic is listed")
        follow(chrome, topic)
        wait_until(lambda: "cleanup.policy" in run(chrome, TEXT), "details come without a reload")
        follow(chrome, "Look at its records")
        newest = [f"0 at {offset}" for offset in range(119, 69, -1)]
        wait_until(lambda: run(chrome, PLACES) == newest, "the newest are shown")
        follow(chrome, "Further records")
        wait_until(lambda: run(chrome, PLACES)[:1] == ["0 at 69"], "older ones are shown")
        chrome.find_element("name", "text").send_keys('"number": 77\n')
        wait_until(lambda: run(chrome, PLACES) == ["0 at 77"], "the one record is found")
        assert "120 of 120 offsets looked at (100%)" in run(chrome, TEXT)
        follow(chrome, "0 at 77")
        shown = "return document.querySelector('[aria-label=Value]')?.textContent ?? ''"
        wait_until(lambda: run(chrome, shown) == '{\n  "number": 77\n}', "the record is shown")
        follow(chrome, "previous offset")
        wait_until(lambda: run(chrome, shown).startswith(EVIL.decode()), "the one before is text")
        assert run(chrome, "return document.images.length + document.scripts.length") == 1
        assert complaints(chrome) == []


@pytest.mark.parametrize("width", [390, 1_600])
def test_no_page_of_records_is_wider_than_the_screen(
    chrome: Chrome,
    bootstrap: str,
    new_topic: Callable[..., str],
    width: int,
) -> None:
    topic = new_topic("a-topic-whose-name-is-quite-long-but-not-unusual-for-a-team", partitions=3)
    fill(bootstrap, topic)
    with sized(chrome, width), served("--bootstrap", bootstrap) as address:
        one = {"name": topic, "partition": 0}
        for path in (
            f"topic?{urlencode({'name': topic})}",
            f"records?{urlencode({'name': topic, 'text': 'alert'})}",
            f"record?{urlencode({**one, 'offset': 2})}",
            f"records?{urlencode({**one, 'offset': 'x'})}",
        ):
            chrome.get(address + path)
            wait_until(lambda: topic in run(chrome, TEXT), f"/{path} is shown")
            assert run(chrome, "return document.documentElement.scrollWidth") <= width, path
            assert run(chrome, NAMELESS) == [], path
            assert run(chrome, "return document.querySelectorAll('table:not(:has(caption))').length") == 0
