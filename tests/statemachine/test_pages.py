"""What the page shows is what the tables say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kohort.statemachine import group_diagram, member_diagram
from kohort.statemachine.answers import answers_table, errors_table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "statemachine.md"


@pytest.mark.parametrize("made", [group_diagram, member_diagram, answers_table, errors_table])
def test_the_page_shows_it_as_it_is_made(made: Callable[[], str]) -> None:
    assert f"\n{made().strip()}\n" in PAGE.read_text()
