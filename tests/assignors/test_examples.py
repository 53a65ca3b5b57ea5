"""The example and its page in the docs say the same, and run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "custom_assignor.py"
PAGE = ROOT / "docs" / "assignors.md"


def test_the_example_runs() -> None:
    done = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "m1 reads acme.orders-0, acme.orders-2",
        "m2 reads acme.orders-1, acme.orders-3, zeta.orders-0, zeta.orders-1, zeta.orders-2",
        "m3 reads common-0, common-1",
        "conforms",
    ]


def test_the_page_shows_the_examples_code() -> None:
    (shown,) = (
        block for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S) if "(Assignor)" in block
    )
    assert shown.strip() in EXAMPLE.read_text()
    body = shown[: shown.index("\n\n\ndef serves")].splitlines()
    assert len([line for line in body if line]) <= 20
