"""Files that are not imported have no test that is meant."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.meant_files import WRITTEN_OUT, means_none_of

ROOT = Path(__file__).resolve().parent.parent
QUICK = "check or not (slow or spark or clients or kafka)"
ON_LINES = """pytestmark = [
    pytest.mark.timeout(60),
    pytest.mark.kafka,
]
"""
OTHERS = "pytestmark = pytest.mark.timeout(60)\n\n\n@pytest.mark.kafka\ndef test_it() -> None: ...\n"


def test_the_quick_tests_are_those_of_the_makefile() -> None:
    found = re.search(r"^QUICK := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert found is not None
    assert found[1] == QUICK


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (QUICK, "pytestmark = pytest.mark.kafka"),
        (QUICK, "pytestmark = [pytest.mark.timeout(60), pytest.mark.slow(25)]"),
        (QUICK, ON_LINES),
        ("not kafka", ON_LINES),
        ("kafka and not timeout", ON_LINES),
    ],
)
def test_none_of_a_file_is_meant(expression: str, text: str) -> None:
    assert means_none_of(expression, text)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("", ON_LINES),
        (QUICK, ""),
        (QUICK, OTHERS),
        # one of its tests is meant all the same
        (QUICK, f"{ON_LINES}\n\n@pytest.mark.{WRITTEN_OUT}\ndef test_it() -> None: ..."),
        ("kafka", ON_LINES),
        # the mark may come with a decorator of another module
        ("slow", ON_LINES),
        ("kafka and slow", ON_LINES),
    ],
)
def test_some_of_a_file_may_be_meant(expression: str, text: str) -> None:
    assert not means_none_of(expression, text)


def test_the_mark_that_is_looked_for_in_a_files_text_comes_from_nowhere_else() -> None:
    helpers = [path for path in (ROOT / "tests").rglob("*.py") if not path.name.startswith("test_")]
    assert [path.name for path in helpers if f"mark.{WRITTEN_OUT}" in path.read_text()] == []
