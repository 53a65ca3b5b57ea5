"""The cores take time, chance and results as arguments: nothing in them can reach for them itself."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FORBIDDEN = {"asyncio", "logging", "os", "random", "secrets", "selectors", "socket", "threading", "time"}
#: The rooms that are cores, and their files that know the world.
OUTSIDE: dict[str, set[str]] = {
    "consumer": {
        *("blocking.py", "consumer.py", "event_lines.py", "events.py"),
        *("done/committer.py", "group/partition_weights.py", "group/zookeeper.py"),
        *("reading/fetched_records.py", "reading/fetcher.py", "reading/user_decoders.py"),
        *("run/closing.py", "run/driver.py", "run/handover.py", "run/watchdogs.py"),
        *("share/blocking.py", "share/consumer.py", "share/event_lines.py", "share/exchange.py"),
        *("share/member.py", "share/peers.py"),
    },
    "coordinator": {
        *("engine/events.py", "engine/runner.py", "engine/runtime.py"),
        "consumer_groups/assignor_processes.py",
    },
    "lag": set(),
    "offsets_topic": set(),
    "problems": set(),
    "replication": set(),
    "share_partitions": set(),
    "share_state": {"coordinator.py"},
    "transactions": {"coordinator.py"},
}
#: A ``Random`` is handed in. Ids of sessions only have to differ; memory for Arrow belongs to a thread.
ALLOWED = {
    "random.Random": "",
    "secrets.randbits": "consumer/done/tracker.py",
    "threading.local": "consumer/reading/arrow.py",
}


def find_forbidden(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    allowed = {name for name, where in ALLOWED.items() if path.as_posix().endswith(where)}
    return {name for name in names - allowed if name.split(".")[0] in FORBIDDEN}


@pytest.mark.row("6.2/pure")
@pytest.mark.parametrize("room", OUTSIDE)
def test_only_the_files_that_run_a_core_know_the_world(room: str) -> None:
    found = {
        path.relative_to(ROOT / room).as_posix(): names
        for path in (ROOT / room).rglob("*.py")
        if (names := find_forbidden(path))
    }
    assert found.keys() == OUTSIDE[room], found


def test_importing_the_coordinator_loads_neither_kafka_python_nor_pydantic() -> None:
    code = "import sys, kohort.coordinator; print(sorted({'kafka', 'pydantic'} & sys.modules.keys()))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
