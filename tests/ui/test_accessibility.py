"""axe-core finds nothing on any page, in a real browser, light and dark, on a phone and on a wide screen.

Skipped where chromium, or axe-core (the dev extra's), is not there.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from tests.ui.chromium import coloured, served, sized
from tests.ui.conftest import TOKEN, made
from tests.ui.demo_cluster import demo_cluster
from tests.ui.test_browser import chrome
from tests.waiting import wait_until

__all__ = ["chrome"]

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

pytestmark = pytest.mark.slow(30)

#: Every page, by its address; "#" and what is pressed there for pages that a form leads to.
PAGES = (
    "",
    "groups",
    "group?name=billing",
    "group?name=thumbnails",
    "group?name=spark-invoices",
    "group?name=reporting",
    "what-if?name=billing&assignor=range&join=1",
    "topics",
    "topic?name=orders",
    "records?name=orders",
    "record?name=orders&partition=0&offset=3",
    "cluster",
    "deadletters",
    "letters?name=orders.dlt",
    "archived?name=thumbnails",
    "group?name=reporting#form[action=reset-offsets] button",
    "letters?name=orders.dlt#button[value=all]",
    "no-such-page",
)
#: Routes that are no pages.
_NO_PAGES = {"/events", "/assets/{name}", "/value", "/export"}

#: What the scheme decides: between light and dark a page differs in its colours alone.
COLOUR_RULES = ["color-contrast", "link-in-text-block"]

AXE_RUN = """
    const [rules, done] = arguments;
    const only = rules && { runOnly: { type: "rule", values: rules } };
    axe.run(document, { resultTypes: ["violations"], ...only }).then(
      (found) => done(found.violations.map((each) =>
        [each.id, ...each.nodes.map((node) => `${node.html}: ${node.failureSummary}`)].join("; "))),
      (error) => done([String(error)]),
    );
"""


def _axe_source() -> str:
    found = importlib.util.find_spec("axe_playwright_python")
    if found is None or found.submodule_search_locations is None:
        pytest.skip("no axe-core: pip install 'kohort[dev]'")
    return (Path(found.submodule_search_locations[0]) / "axe.min.js").read_text("utf-8")


@pytest.fixture(scope="module")
def addresses() -> Iterator[tuple[str, str]]:
    """The page of a cluster with something of every kind, where changes are allowed, and that of two."""
    with demo_cluster() as demo, ExitStack() as stack:
        bootstrap = demo.broker.bootstrap
        one = served("--bootstrap", bootstrap, "--allow-changes", token=TOKEN)
        two = served(*("--cluster", f"here={bootstrap}", "--cluster", f"there={bootstrap}"))
        yield stack.enter_context(one), stack.enter_context(two)


def _open_page(chrome: Chrome, address: str, page: str) -> None:
    path, _, pressed = page.partition("#")
    chrome.get(address + path)
    shown = "return !document.getElementById('waiting') && document.readyState === 'complete'"
    wait_until(lambda: chrome.execute_script(shown), f"/{path} is shown")
    if pressed:
        title = chrome.title
        chrome.execute_script("document.querySelector(arguments[0]).click()", pressed)
        wait_until(lambda: chrome.title != title, f"the form of /{path} is sent")


def test_every_page_is_among_those_that_are_looked_at() -> None:
    routes: Any = made("--allow-changes", token=TOKEN).app
    paths = {route.path for route in routes._app.routes if "GET" in route.methods} - _NO_PAGES
    assert paths <= {f"/{urlsplit(page).path}" for page in PAGES}


@pytest.mark.parametrize("width", [390, 1_600])
def test_axe_finds_nothing(chrome: Chrome, addresses: tuple[str, str], width: int) -> None:
    axe, (address, overview) = _axe_source(), addresses
    found = {}
    with sized(chrome, width):
        chrome.delete_all_cookies()
        chrome.get(address)
        found["the page that asks for the token"] = _violations(chrome, axe)
        chrome.get(f"{address}?token={TOKEN}")
        for page in PAGES:
            _open_page(chrome, address, page)
            found[page] = _violations(chrome, axe)
        _open_page(chrome, overview, "")
        found["the page of several clusters"] = _violations(chrome, axe)
    assert {page: seen for page, seen in found.items() if seen} == {}


def _violations(chrome: Chrome, axe: str) -> list[str]:
    """What axe-core says of the page that is open, in the light and in the dark."""
    chrome.execute_script(axe)
    seen = []
    for scheme, rules in (("light", None), ("dark", COLOUR_RULES)):
        with coloured(chrome, scheme):
            seen += [f"{scheme}: {each}" for each in chrome.execute_async_script(AXE_RUN, rules)]
    return seen
