"""Every row of the specification is named by a test or a scenario, and nothing else is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.rows import ROWS

TESTS = Path(__file__).resolve().parent


def marked(file: Path) -> Iterator[str]:
    """The rows that a test module names: the arguments of ``pytest.mark.row``."""
    text = file.read_text()
    if "pytest.mark.row(" not in text:
        return
    for node in ast.walk(ast.parse(text)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        # the name first: to write out every call takes ten times as long
        if node.func.attr == "row" and ast.unparse(node.func) == "pytest.mark.row":
            yield from (ast.literal_eval(argument) for argument in node.args)


def played(file: Path) -> Iterator[str]:
    """The rows that a scenario file names."""
    for line in file.read_text().splitlines():
        if line.startswith("# rows:"):
            yield from line.removeprefix("# rows:").split()


@cache
def named() -> dict[str, list[str]]:
    """Rows by the files that name them."""
    found: dict[str, list[str]] = {}
    for file in sorted(TESTS.rglob("test_*.py")):
        for row in marked(file):
            found.setdefault(row, []).append(file.name)
    for file in sorted((TESTS / "scenarios").glob("*.txt")):
        for row in played(file):
            found.setdefault(row, []).append(file.name)
    return found


def test_every_row_is_named_by_a_test_or_a_scenario() -> None:
    files = named()
    assert [row for row in ROWS if row not in files] == []


def test_no_row_is_named_that_there_is_not() -> None:
    assert {row: files for row, files in named().items() if row not in ROWS} == {}
