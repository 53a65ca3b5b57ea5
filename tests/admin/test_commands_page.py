"""docs/commands.md, docs/operator.md and docs/connections.md say what can be typed."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest

from kohort import cli
from kohort.admin.access import acl_commands, config_commands, quota_commands, user_commands
from kohort.admin.topics import commands as topic_commands

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = "".join((DOCS / name).read_text() for name in ("commands.md", "operator.md", "connections.md"))
LINES = re.findall(r"^(?:\$ )?(?:[^|\n]* \| )?kohort ([^|<>\n]*)", PAGES, flags=re.MULTILINE)


@pytest.mark.parametrize("line", sorted(set(LINES)))
def test_every_command_of_the_pages_can_be_typed(line: str) -> None:
    words = shlex.split(line, comments=True)
    assert cli._make_parser(words).parse_args(words).command == words[0]


@pytest.mark.parametrize(
    ("command", "module"),
    [
        ("topics", topic_commands),
        ("acls", acl_commands),
        ("users", user_commands),
        ("quotas", quota_commands),
        ("configs", config_commands),
    ],
)
def test_every_action_is_on_a_page(command: str, module: ModuleType) -> None:
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    [actions] = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    assert {line.split()[1] for line in LINES if line.startswith(f"{command} ")} == set(actions.choices)
