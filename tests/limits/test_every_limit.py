"""docs/reports/evidence.md: each limit has a test that exists; and what has no place of its own elsewhere."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.scripts import functions_in

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
PAGE = ROOT / "docs" / "reports" / "evidence.md"
_SECTION = re.compile(r"^## Limits\n(.*?)^### ", re.S | re.M)
_TEST = re.compile(r"`([\w/]+\.py)::(\w+)`")

#: How many rows the table has at least: those that the limits were agreed on by.
ROWS = 28

#: What must not be compared byte by byte until the first difference.
_SECRETS = re.compile(r"password|proof|digest|stored_key|server_key|token")


def rows() -> list[list[tuple[str, str]]]:
    """The tests of each row of the table, by file and name."""
    (section,) = _SECTION.findall(PAGE.read_text())
    lines = [line for line in section.splitlines() if line.startswith("| ")][2:]
    return [_TEST.findall(line) for line in lines]


def test_every_limit_names_its_tests() -> None:
    assert len(rows()) >= ROWS
    assert all(rows())


@pytest.mark.parametrize(("file", "name"), sorted({test for row in rows() for test in row}))
def test_the_test_of_a_limit_exists(file: str, name: str) -> None:
    assert name in functions_in(TESTS / file)


def test_secrets_are_compared_in_constant_time_alone() -> None:
    folder = ROOT / "broker" / "security"
    trees = {path.name: ast.parse(path.read_text()) for path in sorted(folder.glob("*.py"))}
    plain = [
        f"{name}:{node.lineno} {ast.unparse(node)}"
        for name, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq) and _is_secret(node)
    ]
    assert plain == []
    safe = [name for name, tree in trees.items() if "compare_digest" in ast.unparse(tree)]
    assert {"_exchange.py", "_scram.py"} <= set(safe)


def _is_secret(node: ast.Compare) -> bool:
    sides = [ast.unparse(side) for side in (node.left, *node.comparators)]
    return any(_SECRETS.search(side) and not side.startswith("len(") for side in sides)
