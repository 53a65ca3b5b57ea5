"""docs/complaints.md: 46 rows, and every test and row of the coordinator that it names exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.rows import ROWS

TESTS = Path(__file__).resolve().parent
PAGE = TESTS.parent / "docs" / "complaints.md"
ROW = re.compile(r"^\| (\d+) \| (.+?) \| (.+?) \| (.+) \|$", flags=re.MULTILINE)


def rows() -> dict[int, tuple[str, str]]:
    """Number to (thread, what holds it)."""
    return {int(number): (thread, held) for number, thread, _, held in ROW.findall(PAGE.read_text())}


@cache
def names_in(file: str) -> frozenset[str]:
    """The names of a module's tests."""
    tree = ast.parse((TESTS / file).read_text())
    found = (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return frozenset(node.name for node in found if node.name.startswith("test_"))


def test_every_complaint_has_a_row() -> None:
    assert sorted(rows()) == list(range(1, 47))


@pytest.mark.parametrize("number", sorted(rows()))
def test_what_holds_it_exists(number: int) -> None:
    thread, held = rows()[number]
    assert "#" in thread
    tests = re.findall(r"`([\w/]+\.py)::(\w+)`", held)
    coordinator = re.findall(r"row `(9/\d+)`", held)
    assert [f"{file}::{name}" for file, name in tests if name not in names_in(file)] == []
    assert [row for row in coordinator if row not in ROWS] == []
    assert tests or coordinator or held.startswith("no test: "), "named by nothing"


def test_no_complaint_is_tried_that_has_no_row() -> None:
    tried = {int(name[5:7]) for name in names_in("consumer/test_complaints.py")}
    named = {
        number
        for number, (_, held) in rows().items()
        for file, _ in re.findall(r"`([\w/]+\.py)::(\w+)`", held)
        if file == "consumer/test_complaints.py"
    }
    assert tried == named - {43}, "43 is row 1 over again"
