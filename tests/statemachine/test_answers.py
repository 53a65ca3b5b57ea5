"""What the page shows is what the tables say.

The one test here comes first by its name: mutation testing takes it for the one that runs what import runs.
"""

from __future__ import annotations

from pathlib import Path

from kohort.statemachine import consumer_member_diagram, group_diagram, member_diagram

PAGE = Path(__file__).resolve().parents[2] / "docs" / "statemachine.md"


def test_the_page_shows_the_life_cycles_as_they_are() -> None:
    page = PAGE.read_text()
    for made in (group_diagram, member_diagram, consumer_member_diagram):
        assert f"\n{made().strip()}\n" in page
