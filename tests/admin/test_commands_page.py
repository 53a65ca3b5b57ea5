"""docs/commands.md says what can be typed."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path

import pytest

from kohort import cli
from kohort.admin.topics import commands

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "commands.md").read_text()
LINES = re.findall(r"^(?:\$ )?(?:[^|\n]* \| )?kohort ([^|<>\n]*)", PAGE, flags=re.MULTILINE)


@pytest.mark.parametrize("line", sorted(set(LINES)))
def test_every_command_of_the_page_can_be_typed(line: str) -> None:
    words = shlex.split(line, comments=True)
    assert cli._make_parser(words).parse_args(words).command == words[0]


def test_every_action_on_topics_is_on_the_page() -> None:
    parser = argparse.ArgumentParser()
    commands.add_arguments(parser)
    [actions] = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    assert {line.split()[1] for line in LINES if line.startswith("topics ")} == set(actions.choices)
