"""The tests in docs/testing.md, as they stand there: of services in a cluster (a coordinator that dies, a
leader that moves, a broker that is cut off), and of a queue whose locks end.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kohort.testing import RunningBroker, RunningCluster

PAGE = Path(__file__).resolve().parents[2] / "docs" / "testing.md"


def snippets(title: str) -> dict[str, Callable[[Any], None]]:
    """The test functions of a section, by name."""
    section = PAGE.read_text().partition(f"## {title}\n")[2].partition("\n## ")[0]
    names: dict[str, Any] = {}
    for snippet in re.findall(r"```python\n(.*?)```", section, re.DOTALL):
        if "def " in snippet:
            exec(compile(snippet, PAGE.name, "exec"), names)
    return {name: found for name, found in names.items() if name.startswith("test_")}


@pytest.mark.slow(4)
@pytest.mark.parametrize("name", snippets("A cluster"))
def test_a_service_in_a_cluster_does_as_the_page_says(name: str, kohort_cluster: RunningCluster) -> None:
    snippets("A cluster")[name](kohort_cluster)


@pytest.mark.parametrize("name", snippets("A queue"))
def test_a_queue_does_as_the_page_says(name: str, kohort_broker: RunningBroker) -> None:
    snippets("A queue")[name](kohort_broker)


def test_the_page_has_as_many_of_them_as_are_run() -> None:
    assert [len(snippets(title)) for title in ("A cluster", "A queue")] == [3, 2]
