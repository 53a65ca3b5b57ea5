"""docs/simulation.md: the mistakes of other coordinators, each carried by a test that exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.scripts import functions_in

TESTS = Path(__file__).resolve().parent
PAGE = TESTS.parent / "docs" / "simulation.md"
ROW = re.compile(r"^\| ([\w#./-]+) \| ([^|]+) \| `(tests/)?([\w/.-]+?)(?:::(\w+))?` \|$", flags=re.MULTILINE)

#: What must be carried.
NAMES = (
    "KAFKA-13636",
    "KAFKA-8069",
    "KAFKA-20938",
    "KAFKA-12890",
    "KAFKA-7909",
    "KAFKA-9752",
    "KAFKA-12759",
    "KAFKA-9801",
    "KAFKA-19163",
    "KAFKA-19164",
    "KAFKA-12984",
    "KAFKA-8653",
    "KAFKA-20845",
    "kop#380",
    "SeaweedFS",
    "librdkafka#5586",
)


def rows() -> dict[str, tuple[str, str]]:
    """Name to (file, test); no test for a file of a scenario."""
    return {name: (file, test) for name, _, _, file, test in ROW.findall(PAGE.read_text()) if name in NAMES}


def test_every_mistake_has_a_row() -> None:
    assert list(rows()) == list(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_test_that_carries_it_exists_and_says_so(name: str) -> None:
    file, test = rows()[name]
    path = TESTS / file
    assert path.exists()
    word = re.sub(r"\W", "_", name).lower()
    if path.suffix == ".py":
        assert test in functions_in(path)
        assert test.endswith(word)
    else:
        # every file of the folder is run by coordinator/test_scenarios.py
        assert name in path.read_text()
