"""The first screen: its program runs; and install lines work from a checkout as from a release."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.scripts import ROOT

EXTRAS = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_first_program_of_the_site_runs_as_it_stands_there(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "index.md").read_text()
    (program,) = re.findall(r"```python\n# first_screen\n(.*?)```", page, re.DOTALL)
    # before the first table
    assert page.index("first_screen") < page.index("\n| ")
    (tmp_path / "first.py").write_text(program)
    command = [sys.executable, str(tmp_path / "first.py")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ['b\'{"id": 1, "amount": 9.5}\'', 'b\'{"id": 2, "amount": 3}\'']


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_install_lines_name_extras_that_are_there_and_no_folder(page: Path) -> None:
    lines = re.findall(r"pip install[^\n`]*", page.read_text())
    named = {
        extra
        for line in lines
        for found in re.findall(r"kohort\[([\w,-]+)\]", line)
        for extra in found.split(",")
    }
    assert named <= EXTRAS
    assert [line for line in lines if "./kohort" in line] == []


def test_an_extras_line_adds_to_what_is_installed_wherever_that_came_from() -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    # no index: neither kohort nor what the extra needs is looked for elsewhere
    done = subprocess.run(
        [*pip, "install", "--no-index", "--dry-run", "kohort[workbench]"],
        cwd=ROOT / "docs",
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"already satisfied: kohort\[workbench\]", done.stdout)
