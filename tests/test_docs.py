"""Pages that are made from the code say what the code does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINK = re.compile(r"\[[^\]]+\]\((?!https?:)([^)#]+)")


def test_the_generated_parts_are_current() -> None:
    script = ROOT / "scripts" / "generated_docs.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    targets = LINK.findall(page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []
