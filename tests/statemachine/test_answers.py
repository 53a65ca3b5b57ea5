"""What the page shows is what the tables say.

The one test here comes first by its name: mutation testing takes it for the one that runs what import runs.
"""

from __future__ import annotations

from pathlib import Path

from kohort.statemachine import group_diagram, member_diagram
from kohort.statemachine.answers import answers_table, errors_table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "statemachine.md"


def test_the_page_shows_both_life_cycles_and_all_answers_as_they_are() -> None:
    page = PAGE.read_text()
    for made in (group_diagram, member_diagram, answers_table, errors_table):
        assert f"\n{made().strip()}\n" in page
