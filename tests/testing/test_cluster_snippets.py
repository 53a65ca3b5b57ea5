"""The tests of services in docs/testing.md, as they stand there: a coordinator that dies, a leader that
moves, a broker that is cut off.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kohort.testing import RunningCluster

PAGE = Path(__file__).resolve().parents[2] / "docs" / "testing.md"


def snippets() -> dict[str, Callable[[RunningCluster], None]]:
    """The test functions of the section about clusters, by name."""
    section = PAGE.read_text().partition("## A cluster\n")[2].partition("\n## ")[0]
    names: dict[str, Any] = {}
    for snippet in re.findall(r"```python\n(.*?)```", section, re.DOTALL):
        if "def " in snippet:
            exec(compile(snippet, PAGE.name, "exec"), names)
    return {name: found for name, found in names.items() if name.startswith("test_")}


@pytest.mark.slow(4)
@pytest.mark.parametrize("name", snippets())
def test_a_service_in_a_cluster_does_as_the_page_says(name: str, kohort_cluster: RunningCluster) -> None:
    snippets()[name](kohort_cluster)


def test_the_page_has_three_of_them() -> None:
    assert len(snippets()) == 3
