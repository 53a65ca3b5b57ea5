"""The page in a real browser: Debian's chromium and chromium-driver; skipped where they are not.

``KOHORT_SCREENSHOTS=1`` writes the pictures of docs/ui.md anew.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from kohort.admin.pages.lanes_page import page
from kohort.testing import RunningBroker, running_broker
from kohort.ui.server import PageServer
from tests.admin.pages.test_lanes import generation, group, member, picture
from tests.ui.conftest import commit, made
from tests.ui.members import grouped
from tests.waiting import wait_until

webdriver = pytest.importorskip("selenium.webdriver", reason="no selenium: pip install 'kohort[dev]'")

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
EVIL = "</script><img src=x onerror=alert(1)>"

pytestmark = pytest.mark.slow(12)


@pytest.fixture(scope="module")
def chrome() -> Iterator[Chrome]:
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip("no browser: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for word in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
    ):
        options.add_argument(word)
    options.add_argument("--window-size=1180,940")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with webdriver.Chrome(options=options, service=webdriver.ChromeService(driver)) as chrome:
        yield chrome


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with running_broker() as running:
        yield running


@contextmanager
def served(*words: str) -> Iterator[str]:
    """The page on a real socket, in a thread; the address to open."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listening:
        ui = made(*words, listening=listening.getsockname())
        server = PageServer(ui)
        server.config.timeout_graceful_shutdown = 1
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield ui.address
        finally:
            server.should_exit = True
            thread.join(30)


@pytest.fixture(scope="module")
def address(broker: RunningBroker) -> Iterator[str]:
    with served("--bootstrap", broker.bootstrap) as address:
        yield address


def run(chrome: Chrome, script: str, *arguments: Any) -> Any:
    return chrome.execute_script(script, *arguments)


def shot(chrome: Chrome, name: str) -> None:
    if os.environ.get("KOHORT_SCREENSHOTS"):
        IMAGES.mkdir(exist_ok=True)
        chrome.save_screenshot(str(IMAGES / f"{name}.png"))


def complaints(chrome: Chrome) -> list[str]:
    """What the browser has logged: scripts that failed, what the policy has refused."""
    return [entry["message"] for entry in chrome.get_log("browser")]  # type: ignore[no-untyped-call]


def press(chrome: Chrome, *keys: str) -> None:
    webdriver.ActionChains(chrome).send_keys(*keys).perform()


def test_no_name_of_a_client_is_run(chrome: Chrome, broker: RunningBroker, address: str) -> None:
    with grouped(broker, EVIL, "clicks", [EVIL]):
        shown = "return document.querySelector('main').innerText"
        for path in (f"group?{urlencode({'name': EVIL})}", "groups"):
            chrome.get(address + path)
            wait_until(lambda: EVIL in run(chrome, shown), "the group is shown")
            assert run(chrome, "return document.images.length") == 0
    assert complaints(chrome) == []


def _happen(more: Callable[[str], None]) -> None:
    """Something to see."""
    for client in ("app-4", "-app-2", "app-5", "-app-1"):
        time.sleep(2.5)
        more(client)
    time.sleep(4)


def test_lanes_are_drawn_and_a_rebalance_is_opened_by_keyboard(
    chrome: Chrome, broker: RunningBroker, address: str
) -> None:
    with grouped(broker, "billing", "orders", ["app-1", "app-2"], partitions=6) as more:
        commit(broker.bootstrap, "other", {"payments": 0})
        chrome.get(f"{address}group?name=billing")
        lanes = 'return [...document.querySelectorAll("#lanes .rows .name")].map((t) => t.textContent)'
        wait_until(lambda: set(run(chrome, lanes)) == {"app-1", "app-2"}, "lanes are drawn")
        marks = 'return document.querySelectorAll("#lanes [data-gen]").length'
        before = run(chrome, marks)
        assert before >= 2
        # somebody joins, and the page is not loaded again
        run(chrome, "window.same = true")
        more("app-3")
        wait_until(lambda: run(chrome, marks) > before, "a new generation")
        wait_until(lambda: "app-3" in run(chrome, lanes), "a lane of the new member")
        spoken = wait_until(
            lambda: run(chrome, 'return document.getElementById("news").textContent'), "the news"
        )
        assert "member app-3" in spoken
        wait_until(
            lambda: "app-3" in run(chrome, 'return document.getElementById("members").textContent'), "a row"
        )
        lag = 'return document.querySelector("#facts [data-field=lag]").textContent'
        for number in range(6):
            broker.produce("orders", range(20 * number), partition=number)
        wait_until(lambda: run(chrome, lag) == "300", "lag follows")
        assert run(chrome, "return window.same")
        keys = webdriver.Keys
        run(chrome, "document.querySelector(\"#lanes [data-gen][tabindex='0']\").focus()")
        press(chrome, keys.END)
        label = run(chrome, 'return document.activeElement.getAttribute("aria-label")')
        assert "member app-3" in label
        press(chrome, keys.ARROW_LEFT)
        assert "app-2" in run(chrome, 'return document.activeElement.getAttribute("aria-label")')
        press(chrome, keys.ARROW_RIGHT)
        press(chrome, keys.ENTER)
        shown = run(chrome, 'return document.querySelector("details[open]").textContent')
        assert "the assignment is handed out" in shown
        assert run(chrome, "return document.activeElement.tagName") == "SUMMARY"
        shot(chrome, "ui-rebalance")
        if os.environ.get("KOHORT_SCREENSHOTS"):
            _happen(more)
            run(chrome, "scrollTo(0, 0)")
            shot(chrome, "ui-group")
        chrome.get(f"{address}groups")
        rows = 'return document.getElementById("rows").textContent'
        wait_until(lambda: "billing" in run(chrome, rows), "the group is listed")
    assert complaints(chrome) == []


def test_one_file_has_a_large_group_and_draws_what_is_seen(chrome: Chrome, tmp_path: Path) -> None:
    people = [member(f"pod-{n}", 2 * n, 2 * n + 1) for n in range(500)]
    had = [f"old-{n}" if n < 400 else f"pod-{n // 2}" for n in range(1_000)]
    first = generation(1, 1_000, *((n, None, owner) for n, owner in enumerate(had)))
    second = generation(2, 5_000, *((n, had[n], f"pod-{n // 2}") for n in range(400)), duration_ms=900)
    file = tmp_path / "large.html"
    file.write_text(page(picture(group(*people), first, second)), "utf-8")
    chrome.get(file.as_uri())
    count = 'return document.querySelectorAll("#lanes .rows svg *").length'
    labels = 'return [...document.querySelectorAll("#lanes .rows .label")].map((t) => t.textContent)'
    assert "orders-0" in wait_until(lambda: run(chrome, labels), "rows are drawn")
    assert run(chrome, count) < 600
    run(chrome, 'document.querySelector("#lanes .rows").scrollTop = 1e9')
    wait_until(lambda: "orders-999" in run(chrome, labels), "the last row is reached")
    assert run(chrome, count) < 600
    choose = """
        const rows = document.querySelector("#lanes select");
        rows.value = arguments[0];
        rows.dispatchEvent(new Event("change"));
    """
    run(chrome, choose, "moved")
    wait_until(lambda: "orders-399" in run(chrome, labels), "rows that did not move are left out")
    run(chrome, choose, "owner")
    run(chrome, 'document.querySelector("#lanes .rows").scrollTop = 0')
    wait_until(lambda: {"pod-0", "pod-1"} <= set(run(chrome, labels)), "a row for each owner")
    find = """
        const box = document.querySelector("#lanes input");
        box.value = "pod-42";
        box.dispatchEvent(new Event("input"));
    """
    run(chrome, find)
    wait_until(lambda: {"pod-42", "pod-420"} <= set(run(chrome, labels)), "the members are found")
    assert "pod-0" not in run(chrome, labels)
    assert complaints(chrome) == []


CONTRAST = """
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const light = (colour) => {
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map((v) => v / 255)
        .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(name).trim();
    const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const found = {};
    for (const ink of ["--ink", "--quiet", "--link", "--good", "--warn", "--bad"])
      for (const paper of ["--paper", "--soft"])
        found[ink + " on " + paper] = ratio(light(of(ink)), light(of(paper)));
    for (let hue = 0; hue < 360; hue += 10) {
      const lane = light(`oklch(${of("--lane-l")} ${of("--lane-c")} ${hue})`);
      found["name on " + hue] = ratio(light(of("--lane-ink")), lane);
    }
    return found;
"""


def test_text_stands_out_in_the_light_and_in_the_dark(
    chrome: Chrome, broker: RunningBroker, address: str
) -> None:
    with grouped(broker, "dark", "orders", ["app-1", "app-2", "app-3"]):
        chrome.get(f"{address}group?name=dark")
        for scheme in ("light", "dark"):
            media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
            chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
            faint = {what: ratio for what, ratio in run(chrome, CONTRAST).items() if ratio < 4.5}
            assert faint == {}, scheme
        shot(chrome, "ui-dark")
    chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


NAMELESS = """
    const controls = "a, button, input:not([type=hidden]), select, [role=button], [role=region]";
    const label = (e) => e.getAttribute("aria-label") || e.textContent || e.labels?.[0]?.textContent || "";
    return [...document.querySelectorAll(controls)].filter((e) => !label(e).trim()).map((e) => e.outerHTML);
"""


def test_every_control_has_a_name_and_every_table_a_caption(
    chrome: Chrome, broker: RunningBroker, address: str
) -> None:
    commit(broker.bootstrap, "named", {"payments": 0})
    for path in ("", "topics", "topic?name=payments", "cluster", "group?name=named"):
        chrome.get(address + path)
        assert run(chrome, NAMELESS) == [], path
        assert run(chrome, "return document.documentElement.lang") == "en"
        assert run(chrome, "return document.querySelectorAll('h1').length") == 1
        assert run(chrome, "return document.querySelectorAll('table:not(:has(caption))').length") == 0
        assert run(chrome, "return document.documentElement.scrollWidth <= innerWidth"), path
    assert complaints(chrome) == []


def test_a_page_says_that_the_cluster_is_away_and_when_it_is_back(
    chrome: Chrome, broker: RunningBroker
) -> None:
    said = 'return document.getElementById("trouble").textContent'
    commit(broker.bootstrap, "waits", {"payments": 3})
    with served("--bootstrap", broker.bootstrap, "--timeout", "0.5") as address:
        with broker.coordinator_stopped():
            chrome.get(f"{address}group?name=waits")
            assert "Waiting for the cluster" in run(chrome, "return document.body.textContent")
        wait_until(
            lambda: run(chrome, 'return !!document.getElementById("partitions")'), "the group is shown"
        )
        with broker.coordinator_stopped():
            wait_until(lambda: "What is shown is from" in run(chrome, said), "the trouble is said")
            assert "payments-0" in run(chrome, 'return document.getElementById("partitions").textContent')
        wait_until(lambda: run(chrome, said) == "", "the cluster's return is noticed")
    # the server is gone, too
    wait_until(lambda: "kohort ui does not answer" in run(chrome, said), "the trouble is said")
    complaints(chrome)


@pytest.mark.parametrize("width", [390, 1_600])
def test_no_page_is_wider_than_the_screen(
    chrome: Chrome, broker: RunningBroker, address: str, width: int
) -> None:
    name = "a-group-whose-name-is-quite-long-but-not-unusual"
    chrome.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 600},
    )
    try:
        with grouped(broker, name, "widths", ["app-1", "app-2"]):
            for path in ("", "groups", f"group?name={name}", "topics", "topic?name=widths", "cluster"):
                chrome.get(address + path)
                shown = "return document.querySelector('[data-live], .facts') !== null"
                wait_until(lambda: bool(run(chrome, shown)), f"/{path} is shown")  # noqa: B023
                scroll = run(chrome, "return document.documentElement.scrollWidth")
                assert scroll <= width, path
    finally:
        chrome.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
