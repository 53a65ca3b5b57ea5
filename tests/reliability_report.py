"""docs/reports/reliability.md: each long run that is given ``--report FILE`` writes its section there."""

from __future__ import annotations

import re
from pathlib import Path

TITLE = "# What the long runs found\n"


def write_section(path: Path, name: str, text: str) -> None:
    """Replace the section ``name`` of the report, or add it at the end; the others stay."""
    opening, closing = f"<!-- section {name} -->", f"<!-- end of section {name} -->"
    made = f"{opening}\n\n{text.strip()}\n\n{closing}"
    old = path.read_text() if path.exists() else TITLE
    pattern = re.compile(re.escape(opening) + ".*?" + re.escape(closing), re.S)
    if not pattern.search(old):
        old = f"{old.rstrip()}\n\n{opening}{closing}\n"
    path.write_text(pattern.sub(lambda _: made, old))


def table(head: tuple[str, ...], rows: list[tuple[object, ...]]) -> str:
    """Rows in Markdown."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)
