"""Tables and texts for the terminal. Names come from clients: they are text, never parsed as markup."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from ..protocol import TopicPartition

if TYPE_CHECKING:
    from rich.table import Table

_UUID_TAIL: Final = re.compile(r"(?<=[0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")


_NUMBERS: Final = frozenset(
    {"PARTITION", "COMMITTED", "START", "END", "LAG", "CURRENT", "NEW", "GEN", "TOOK", "SEQ", "EPOCH"}
    | {"HELD", "AVAILABLE", "RECORDS", "BATCHES", "SEGMENTS", "BYTES"}
    | {"BEFORE", "AFTER", "WEIGHT BEFORE", "WEIGHT AFTER", "LEAST", "MOST", "MEAN", "SPREAD", "DEVIATION"}
    | {"BATCH", "PLANNED END", "LOG END", "HELD BACK", "RUN", "OFFSETS", "PARTITIONS", "LARGEST", "ROWS"}
    | {"PLAN", "READ", "SINK", "COMMIT", "BEHIND", "REPLAYS"}
    | {"MEMBERS", "OLDEST", "ARRIVE/S", "READ/S", "CAUGHT UP IN", "STANDS FOR", "UNREAD"}
    | {"LIGHTEST", "HEAVIEST", "MOVES", "PLACED", "ROUNDS", "TIME"}
)


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """A table whose cells fold if the terminal is too narrow. None is shown as "-"."""
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in headings:
        made.add_column(heading, justify="right" if heading in _NUMBERS else "left", overflow="fold")
    for row in rows:
        made.add_row(*(Text("-" if cell is None else clean(str(cell))) for cell in row))
    return made


def clean(text: str) -> str:
    """The text without control characters, which could control the terminal."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def pairs(rows: Iterable[tuple[str, object]]) -> Table:
    """Return a table of names and values, without headings."""
    made = table(["", ""], rows)
    made.show_header = False
    return made


def assignment(partitions: Iterable[TopicPartition] | None) -> str | None:
    """``orders 0-2,5; payments 1``; None for an assignment that cannot be read."""
    if partitions is None:
        return None
    by_topic: dict[str, list[int]] = defaultdict(list)
    for topic, number in sorted(partitions):
        by_topic[topic].append(number)
    return "; ".join(f"{topic} {_ranges_text(numbers)}" for topic, numbers in by_topic.items()) or "none"


def _ranges_text(numbers: Sequence[int]) -> str:
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def short(text: str) -> str:
    """A text with only the first part of the UUIDs that member ids end with."""
    return _UUID_TAIL.sub("", text)
