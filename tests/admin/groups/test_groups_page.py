"""docs/groups.md says what there is."""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from kohort.admin import (
    Generation,
    GroupDescription,
    GroupHistory,
    HeldBack,
    HistoryEntry,
    ListedGroup,
    MemberDescription,
    OffsetChange,
    PartitionMove,
    PartitionOffsets,
    ResetPlan,
)
from kohort.admin.groups.commands import add_arguments

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "groups.md").read_text()
COMMANDS = re.findall(r"^(?:\$ )?kohort groups ([^|\n]*)(?: \|.*)?$", PAGE, flags=re.MULTILINE)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(exit_on_error=False)
    add_arguments(made)
    return made


@pytest.mark.parametrize("line", sorted(set(COMMANDS)))
def test_every_command_of_the_page_can_be_typed(line: str) -> None:
    assert parser().parse_args(shlex.split(line)).action


def test_every_action_is_on_the_page() -> None:
    [actions] = [action for action in parser()._actions if isinstance(action, argparse._SubParsersAction)]
    assert {line.split()[0] for line in COMMANDS} == set(actions.choices)


@pytest.mark.parametrize(
    "result",
    [
        ListedGroup,
        GroupDescription,
        MemberDescription,
        PartitionOffsets,
        GroupHistory,
        HeldBack,
        HistoryEntry,
        Generation,
        ResetPlan,
        OffsetChange,
    ],
)
def test_every_field_of_the_json_is_on_the_page(result: type) -> None:
    documented = set(re.findall(r"`(\w+)`", PAGE.partition("## JSON")[2]))
    assert {field.name for field in fields(result)} <= documented
    assert set(PartitionMove._fields) <= documented


@pytest.mark.kafka
def test_the_python_example_runs(bootstrap: str, tmp_path: Path) -> None:
    [code] = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    script = tmp_path / "example.py"
    script.write_text(code.replace("localhost:9092", bootstrap))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=250, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "lag" in done.stdout
