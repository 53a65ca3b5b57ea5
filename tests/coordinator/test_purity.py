"""The core takes time, ids and results as arguments: nothing in it can reach for them itself."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import kohort.coordinator

ROOM = Path(kohort.coordinator.__file__).parent
OUTSIDE = {
    "engine/events.py",
    "engine/runner.py",
    "engine/runtime.py",
    "group_coordinator.py",
    "consumer_groups/assignor_processes.py",
    "__init__.py",
}
FORBIDDEN = {"asyncio", "logging", "os", "random", "secrets", "selectors", "socket", "threading", "time"}


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            names.add(node.module.split(".")[0])
    return names


@pytest.mark.row("6.2/pure")
@pytest.mark.parametrize(
    "path", sorted(ROOM.rglob("*.py")), ids=lambda path: path.relative_to(ROOM).as_posix()
)
def test_only_the_runner_knows_the_world(path: Path) -> None:
    if path.relative_to(ROOM).as_posix() not in OUTSIDE:
        assert not imported(path) & FORBIDDEN


def test_importing_the_coordinator_loads_neither_kafka_python_nor_pydantic() -> None:
    code = "import sys, kohort.coordinator; print(sorted({'kafka', 'pydantic'} & sys.modules.keys()))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
