"""Every scenario file, played on a shard with a virtual clock, happens as it is written down.

``python -m pytest tests/coordinator/test_scenarios.py`` with KOHORT_REWRITE_SCENARIOS=1 in the environment
writes the traces anew; the difference is then to be read like any change.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.coordinator.scenario import COMMANDS, played

FOLDER = Path(__file__).resolve().parent.parent / "scenarios"
FILES = sorted(FOLDER.glob("*.txt"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_happens_as_it_is_written_down(file: Path) -> None:
    text = file.read_text()
    now = played(text)
    if os.environ.get("KOHORT_REWRITE_SCENARIOS"):
        file.write_text(now)
    else:
        assert now.splitlines() == text.splitlines()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_says_what_it_shows_and_asks_something(file: Path) -> None:
    lines = file.read_text().splitlines()
    assert lines[0].startswith("# ")
    assert any(line.startswith("    ") for line in lines)


def test_every_command_is_used() -> None:
    used = {
        line[2:].split()[0]
        for file in FILES
        for line in file.read_text().splitlines()
        if line.startswith("> ")
    }
    assert used == set(COMMANDS)
