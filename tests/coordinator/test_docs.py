"""The tables that pages show of the coordinator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import kohort.coordinator
from kohort.coordinator import CauseKind
from kohort.coordinator._docs import _kinds, append_errors_table, events_table, fields_table, unready_table

PAGES = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize(
    ("page", "table"),
    [
        ("events.md", events_table),
        ("events.md", fields_table),
        ("statemachine.md", unready_table),
        ("statemachine.md", append_errors_table),
    ],
)
def test_a_page_shows_the_table_as_it_is_made(page: str, table: Callable[[], str]) -> None:
    assert f"\n\n{table().strip()}\n\n" in (PAGES / page).read_text()


def rows(table: str) -> dict[str, list[str]]:
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    return {cells[0].strip("`"): cells[1:] for cells in lines}


def test_every_event_says_when_it_appears_and_at_which_level() -> None:
    table = rows(events_table())
    assert all(when and level in ("debug", "info", "warning") for when, _, level, _ in table.values())
    assert table["MemberReplaced"][1:] == ["`old_member` str", "info", "members"]
    assert "GroupEvent" not in table, "only what is told"
    assert "Refusal" not in table


def test_every_event_is_public_and_has_a_name_of_its_own() -> None:
    kinds = _kinds()
    assert len({kind.name for kind in kinds}) == len(kinds)
    assert [kind.__name__ for kind in kinds if not hasattr(kohort.coordinator, kind.__name__)] == []


def test_the_fields_in_common_have_types() -> None:
    assert rows(fields_table())["instance_id"] == ["str or None"]
    assert list(rows(fields_table()))[:3] == ["group", "sequence", "timestamp_ms"]


def test_every_kind_of_cause_is_on_the_page() -> None:
    page = (PAGES / "events.md").read_text()
    table = page.split("| of a rebalance |")[1].split("\n\n")[0]
    assert {line.split("|")[2].strip(" `") for line in table.splitlines()[2:]} | {"other"} == set(CauseKind)
