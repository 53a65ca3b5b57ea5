"""Debian's chromium, driven by its chromium-driver, and the page on a socket that it opens."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kohort.ui.server import PageServer
from tests.ui.conftest import made

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

_SWITCHES = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--hide-scrollbars",
    "--window-size=1180,940",
)


def missing_browser() -> str:
    """What is missing for a browser, and how to install it; "" if nothing is."""
    try:
        import selenium.webdriver  # noqa: F401 - only whether it is there
    except ImportError:
        return "no selenium: pip install 'kohort[dev]'"
    if shutil.which("chromium") is None or shutil.which("chromedriver") is None:
        return "no browser: apt-get install chromium chromium-driver"
    return ""


@contextmanager
def open_chrome() -> Iterator[Chrome]:
    """A browser without a window, of 1180 by 940 pixels, that keeps what pages log."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for word in _SWITCHES:
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    with webdriver.Chrome(options=options, service=service) as chrome:
        yield chrome


@contextmanager
def served(*words: str, token: str | None = None) -> Iterator[str]:
    """The page on a real socket, in a thread; the address to open."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        ui = made(*words, token=token, listening=listening.getsockname())
        server = PageServer(ui)
        server.config.timeout_graceful_shutdown = 1
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield ui.address
        finally:
            server.should_exit = True
            thread.join(30)


@contextmanager
def sized(chrome: Chrome, width: int, height: int = 844) -> Iterator[None]:
    """A screen of this size."""
    screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    try:
        yield
    finally:
        chrome.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@contextmanager
def coloured(chrome: Chrome, scheme: str) -> Iterator[None]:
    """A reader who prefers this scheme: "light" or "dark"."""
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    try:
        yield
    finally:
        chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
