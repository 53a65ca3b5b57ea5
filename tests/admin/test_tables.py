"""Tables and texts, on any width."""

from __future__ import annotations

import pytest
from rich.console import Console

from kohort.admin.tables import assignment, table
from kohort.protocol import TopicPartition


def printed(part: object, width: int = 200) -> str:
    console = Console(width=width, highlight=False)
    with console.capture() as captured:
        console.print(part)
    return captured.get()


@pytest.mark.parametrize(
    ("partitions", "shown"),
    [
        (None, None),
        ([], "none"),
        ([("orders", 0)], "orders 0"),
        ([("orders", 2), ("orders", 0), ("orders", 1)], "orders 0-2"),
        ([("orders", 5), ("orders", 0), ("other", 1), ("orders", 1)], "orders 0-1,5; other 1"),
    ],
)
def test_assignments_in_short(partitions: list[tuple[str, int]] | None, shown: str | None) -> None:
    given = None if partitions is None else [TopicPartition(*partition) for partition in partitions]
    assert assignment(given) == shown


def test_names_are_shown_as_they_are_and_cannot_talk_to_the_terminal() -> None:
    name = "[red]x[/red]\x1b[2J\n"
    text = printed(table(["GROUP", "STATE"], [(name, "Empty")]))
    assert "[red]x[/red]\N{REPLACEMENT CHARACTER}[2J\N{REPLACEMENT CHARACTER}" in text
    assert len(text.splitlines()) == 2


def test_long_values_fold_and_lose_nothing() -> None:
    name = "x" * 300
    text = printed(table(["GROUP", "STATE"], [(name, "Empty")]), width=60)
    assert max(len(line) for line in text.splitlines()) <= 60
    assert text.count("x") == 300
