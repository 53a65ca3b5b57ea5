"""``make screenshots``: writes the pictures of docs/ui.md anew, of a cluster with something of all kinds."""

from __future__ import annotations

import struct
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tests.ui.chromium import coloured, missing_browser, open_chrome, served, sized
from tests.ui.conftest import TOKEN
from tests.ui.demo_cluster import demo_cluster
from tests.waiting import wait_until

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
#: Most bytes of a picture: who reads the docs loads all of them.
MOST_BYTES = 150_000
_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def main() -> int:
    """Write every picture; return the exit code."""
    if reason := missing_browser():
        print(reason, file=sys.stderr)
        return 1
    with (
        demo_cluster() as demo,
        served("--bootstrap", demo.broker.bootstrap, "--allow-changes", token=TOKEN) as address,
        open_chrome() as chrome,
        sized(chrome, 1_180, 820),
    ):
        chrome.get(f"{address}?token={TOKEN}")
        _open(chrome, f"{address}group?name=billing", "#lanes .rows .name")
        for client in ("app-4", "-app-2", "app-5", "-app-1"):
            time.sleep(2.5)  # lanes are as long as the time between two changes
            demo.told(client)
        time.sleep(4)
        with coloured(chrome, "light"):
            _shoot(chrome, "ui-group")
            chrome.execute_script("document.querySelector('#rebalances details').open = true")
            chrome.execute_script("document.querySelector('#rebalances').scrollIntoView()")
            _shoot(chrome, "ui-rebalance")
            _open(chrome, f"{address}letters?name=orders.dlt", "#letters input")
            chrome.execute_script("document.querySelector('#letters details').open = true")
            chrome.execute_script("document.querySelectorAll('#letters input')[1].click()")
            _shoot(chrome, "ui-letters")
            _open(chrome, f"{address}group?name=thumbnails", "#shared td")
            _shoot(chrome, "ui-share")
        with coloured(chrome, "dark"):
            _open(chrome, f"{address}group?name=billing", "#lanes .rows .name")
            _shoot(chrome, "ui-dark")
    return 0


def _open(chrome: Chrome, address: str, awaited: str) -> None:
    chrome.get(address)
    there = "return document.querySelector(arguments[0]) !== null"
    wait_until(lambda: chrome.execute_script(there, awaited), f"{awaited} of {address}")
    time.sleep(1.5)  # what a page draws after its first look


def _shoot(chrome: Chrome, name: str) -> None:
    picture = compressed(chrome.get_screenshot_as_png())
    assert len(picture) <= MOST_BYTES, f"{name}.png has {len(picture):,} bytes: show less"
    (IMAGES / f"{name}.png").write_bytes(picture)
    print(f"{name}.png {len(picture):,} bytes")


def compressed(picture: bytes) -> bytes:
    """The same PNG, without its remarks, and with its data compressed as far as zlib can."""
    kept = [
        (kind, data) for kind, data in _chunks_of(picture) if kind in (b"IHDR", b"PLTE", b"IDAT", b"IEND")
    ]
    pixels = zlib.decompress(b"".join(data for kind, data in kept if kind == b"IDAT"))
    before = [chunk for chunk in kept if chunk[0] in (b"IHDR", b"PLTE")]
    chunks = [*before, (b"IDAT", zlib.compress(pixels, 9)), (b"IEND", b"")]
    return _SIGNATURE + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


def _chunks_of(picture: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Kind and data of each chunk."""
    at = len(_SIGNATURE)
    while at < len(picture):
        (size,) = struct.unpack_from(">I", picture, at)
        yield picture[at + 4 : at + 8], picture[at + 8 : at + 8 + size]
        at += size + 12


if __name__ == "__main__":
    sys.exit(main())
