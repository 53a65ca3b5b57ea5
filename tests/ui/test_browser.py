"""The page in a real browser: Debian's chromium and chromium-driver; skipped where they are not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from kohort.admin.pages.lanes_page import page
from kohort.testing import RunningBroker, running_broker
from tests.admin.pages.test_lanes import generation, group, member, picture
from tests.ui.chromium import missing_browser, open_chrome, served, sized
from tests.ui.conftest import commit
from tests.ui.members import grouped
from tests.waiting import wait_until

webdriver = pytest.importorskip("selenium.webdriver", reason="no selenium: pip install 'kohort[dev]'")

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

EVIL = "</script><img src=x onerror=alert(1)>"

pytestmark = pytest.mark.slow(12)


@pytest.fixture(scope="module")
def chrome() -> Iterator[Chrome]:
    if reason := missing_browser():
        pytest.skip(reason)
    with open_chrome() as chrome:
        yield chrome


@pytest.fixture(autouse=True)
def leave_last_page(chrome: Chrome) -> None:
    """The page of the test before may outlive its server, and complain of that."""
    chrome.get("about:blank")
    complaints(chrome)


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with running_broker() as running:
        yield running


@pytest.fixture(scope="module")
def address(broker: RunningBroker) -> Iterator[str]:
    with served("--bootstrap", broker.bootstrap) as address:
        yield address


def run(chrome: Chrome, script: str, *arguments: Any) -> Any:
    return chrome.execute_script(script, *arguments)


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
    with sized(chrome, width), grouped(broker, name, "widths", ["app-1", "app-2"]):
        for path in ("", "groups", f"group?name={name}", "topics", "topic?name=widths", "cluster"):
            chrome.get(address + path)
            shown = "return document.querySelector('[data-live], .facts') !== null"
            wait_until(lambda: bool(run(chrome, shown)), f"/{path} is shown")  # noqa: B023
            scroll = run(chrome, "return document.documentElement.scrollWidth")
            assert scroll <= width, path


NAMES = "return [...document.querySelectorAll('#rows tbody th')].map((th) => th.textContent)"


def test_a_heading_sorts_by_keyboard_and_the_address_keeps_it(
    chrome: Chrome, broker: RunningBroker, address: str
) -> None:
    for number in (1, 2, 10):
        commit(broker.bootstrap, f"sorted-{number}", {"sorting": 0})
        broker.produce("sorting", [number])
        commit(broker.bootstrap, f"sorted-{number}", {"sorting": number % 3})
    with sized(chrome, 1_600):
        chrome.get(f"{address}groups?q.groups=sorted")
        wait_until(lambda: run(chrome, NAMES) == ["sorted-1", "sorted-10", "sorted-2"], "all are listed")
        run(chrome, "window.same = true")
        run(chrome, "document.getElementById('sort-groups-group').focus()")
        press(chrome, webdriver.Keys.ENTER)
        wait_until(lambda: run(chrome, NAMES) == ["sorted-1", "sorted-2", "sorted-10"], "they are sorted")
        sort = "return document.querySelector('th[aria-sort]')?.getAttribute('aria-sort')"
        assert run(chrome, sort) == "ascending"
        assert run(chrome, "return document.activeElement.id") == "sort-groups-group"
        assert run(chrome, "return document.getElementById('news').textContent").startswith("3 ")
        press(chrome, webdriver.Keys.SPACE)
        wait_until(lambda: run(chrome, NAMES) == ["sorted-10", "sorted-2", "sorted-1"], "the other way")
        assert run(chrome, "return window.same")
        assert "sort.groups=-group" in chrome.current_url
        # what is new comes in its order
        commit(broker.bootstrap, "sorted-5", {"sorting": 0})
        expected = ["sorted-10", "sorted-5", "sorted-2", "sorted-1"]
        wait_until(lambda: run(chrome, NAMES) == expected, "the order is kept")
        chrome.get(chrome.current_url)
        assert run(chrome, NAMES) == expected
    assert complaints(chrome) == []


def test_on_a_phone_tables_are_sorted_and_filtered_above_their_cards(
    chrome: Chrome, broker: RunningBroker, address: str
) -> None:
    for name in ("phone-a", "phone-b", "other"):
        commit(broker.bootstrap, name, {"phones": 0})
    with sized(chrome, 390):
        chrome.get(f"{address}groups")
        wait_until(lambda: "phone-b" in run(chrome, NAMES), "groups are listed")
        assert run(chrome, "return getComputedStyle(document.querySelector('thead')).display") == "none"
        chrome.find_element("id", "q-groups").send_keys("phone")
        wait_until(lambda: run(chrome, NAMES) == ["phone-a", "phone-b"], "others are left out")
        assert run(chrome, "return document.activeElement.id") == "q-groups"
        chrome.find_element("css selector", "#s-groups option[value='-group']").click()
        wait_until(lambda: run(chrome, NAMES) == ["phone-b", "phone-a"], "they are sorted")
        assert run(chrome, "return document.getElementById('q-groups').value") == "phone"
        assert run(chrome, "return document.documentElement.scrollWidth") <= 390
    assert complaints(chrome) == []


def test_each_table_of_a_group_has_an_order_of_its_own(
    chrome: Chrome, broker: RunningBroker, address: str
) -> None:
    with grouped(broker, "tables", "ordered", ["app-1", "app-2"], partitions=12), sized(chrome, 1_600):
        for number in range(12):
            broker.produce("ordered", range(number), partition=number)
        chrome.get(f"{address}group?name=tables&sort.partitions=-lag&sort.members=-member")
        first = "return document.querySelector(`#${arguments[0]} tbody th`).textContent"
        wait_until(lambda: run(chrome, "return !!document.getElementById('partitions')"), "it is shown")
        wait_until(lambda: run(chrome, first, "partitions") == "ordered-11", "the largest lag is first")
        assert run(chrome, first, "members") == "app-2"
        broker.produce("ordered", range(50), partition=0)
        wait_until(lambda: run(chrome, first, "partitions") == "ordered-0", "the order follows the lag")
        lag = "return document.querySelector('#partitions tbody tr td:last-child').textContent"
        wait_until(lambda: run(chrome, lag) == "50", "a lag is told in its row")
        assert "name=tables" in chrome.current_url
    assert complaints(chrome) == []


def test_times_are_shown_in_the_zone_of_the_browser_once_that_is_chosen(
    chrome: Chrome, broker: RunningBroker, address: str
) -> None:
    shown = "return document.querySelector('#rebalances time').textContent"
    zone = "return document.querySelector('button.zone').textContent"
    with grouped(broker, "zoned", "zones", ["app-1", "app-2"]), sized(chrome, 390):
        chrome.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Tokyo"})
        try:
            chrome.get(f"{address}group?name=zoned")
            wait_until(lambda: bool(run(chrome, "return !!document.querySelector('#rebalances time')")), "it")
            assert run(chrome, zone) == "Times in UTC"
            utc = datetime.fromisoformat(run(chrome, shown))
            heading = "return document.querySelector('#partitions thead').textContent"
            assert "Since (UTC)" in run(chrome, heading)
            chrome.find_element("css selector", "button.zone").click()
            local = datetime.fromisoformat(run(chrome, shown))
            assert local - utc == timedelta(hours=9)
            # every place has it, and none the other
            assert "Since (Asia/Tokyo)" in run(chrome, heading)
            tables = "return [...document.querySelectorAll('.wide')].map((e) => e.outerHTML).join()"
            assert "(UTC)" not in run(chrome, tables)
            span = "return document.querySelector('#lanes .range').textContent"
            wait_until(lambda: run(chrome, span).endswith(" Asia/Tokyo"), "the picture has it")
            label = "return document.querySelector('#lanes [data-gen]').getAttribute('aria-label')"
            assert "Asia/Tokyo" in run(chrome, label)
            # on other pages, and after what is new
            chrome.get(f"{address}groups?q.groups=zoned")
            assert run(chrome, zone) == "Times in Asia/Tokyo"
            row = "return document.querySelector('#rows td time')?.textContent ?? ''"
            stamp = str(local)[:19]
            wait_until(lambda: run(chrome, row).startswith(stamp), "the list has it")
            commit(broker.bootstrap, "zoned-too", {"zones": 0})
            wait_until(lambda: "zoned-too" in run(chrome, NAMES), "the list is new")
            assert run(chrome, row).startswith(stamp)
            chrome.find_element("css selector", "button.zone").click()
            assert run(chrome, row).startswith(str(utc)[:19])
            assert run(chrome, "return document.documentElement.scrollWidth") <= 390
        finally:
            run(chrome, "localStorage.clear()")
            chrome.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})
    assert complaints(chrome) == []


@pytest.mark.parametrize("width", [390, 1_600])
def test_several_clusters_are_in_one_page_and_one_that_is_away_hides_no_other(
    chrome: Chrome, broker: RunningBroker, width: int
) -> None:
    commit(broker.bootstrap, "over-here", {"places": 0})
    text = "return document.querySelector('main').innerText"
    picked = "return [...document.querySelectorAll('.picker a')].map((a) => a.textContent)"
    with ExitStack() as ended, sized(chrome, width):
        second = ended.enter_context(running_broker())
        commit(second.bootstrap, "over-there", {"places": 0})
        clusters = {"here": broker.bootstrap, "there": second.bootstrap, "gone": "127.0.0.1:1"}
        given = [word for name, at in clusters.items() for word in ("--cluster", f"{name}={at}")]
        with served(*given, "--timeout", "2") as address:
            chrome.get(address)
            wait_until(lambda: "does not answer" in run(chrome, text), "the one that is away is said so")
            assert run(chrome, "return document.documentElement.scrollWidth") <= width
            assert run(chrome, NAMELESS) == []
            chrome.find_element("css selector", "#clusters a[href='at/here/']").click()
            chrome.find_element("link text", "Groups").click()
            wait_until(lambda: "over-here" in run(chrome, text), "groups of the first are shown")
            assert run(chrome, picked) == ["here", "there", "gone"]
            chrome.find_element("css selector", ".picker summary").click()
            assert run(chrome, "return document.documentElement.scrollWidth") <= width
            chrome.find_element("link text", "there").click()
            wait_until(lambda: "over-there" in run(chrome, text), "the same page of another")
            assert "over-here" not in run(chrome, text)
            assert chrome.current_url.endswith("/at/there/groups")
            # the first page follows each
            chrome.get(address)
            run(chrome, "window.same = true")
            sign = "return document.querySelectorAll(\"#clusters [data-state^='does not']\").length"
            wait_until(lambda: run(chrome, sign) == 1, "the others are there")
            ended.close()
            wait_until(lambda: run(chrome, sign) == 2, "another one is away")
            assert run(chrome, "return window.same")
            assert complaints(chrome) == []
    # the server has ended under the page
    complaints(chrome)


@pytest.mark.parametrize("width", [390, 1_600])
def test_another_time_is_chosen_and_drawn_from_its_beginning_to_its_end(
    chrome: Chrome, broker: RunningBroker, address: str, width: int
) -> None:
    span = "return document.querySelector('#lanes .range')?.textContent ?? ''"
    marks = 'return document.querySelectorAll("#lanes [data-gen]").length'
    with grouped(broker, f"past-{width}", "pasts", ["app-1", "app-2"]), sized(chrome, width):
        chrome.get(f"{address}group?name=past-{width}")
        wait_until(lambda: run(chrome, marks) > 0, "the present is drawn")
        assert run(chrome, "return document.documentElement.scrollWidth") <= width
        chrome.find_element("link text", "today").click()
        wait_until(lambda: run(chrome, marks) > 0, "the day is drawn")
        assert "day=" in chrome.current_url
        midnight = f"{datetime.now(UTC):%Y-%m-%d}"
        assert run(chrome, "return document.querySelector('[name=day]').value") == midnight
        assert run(chrome, "return document.querySelector('#past time').textContent").startswith(midnight)
        assert run(chrome, "return document.documentElement.scrollWidth") <= width
        assert run(chrome, NAMELESS) == []
        # a picture of the past does not follow the present
        assert "now" not in run(chrome, span)
        chrome.find_element("link text", "The group now").click()
        wait_until(lambda: "day=" not in chrome.current_url, "back")
    assert complaints(chrome) == []
