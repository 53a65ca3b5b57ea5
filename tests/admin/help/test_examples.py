"""Each command's help ends with two examples, which can be typed."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator

import pytest

from kohort import cli
from kohort.admin.help.examples import examples_of


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from parsers(below)


EVERY = {parser.prog: parser for parser in parsers(cli._make_parser(tuple(cli._COMMANDS)))}


@pytest.mark.parametrize("command", EVERY)
def test_the_help_of_a_command_ends_with_two_examples(command: str) -> None:
    told = EVERY[command].format_help().partition("\nexamples:\n")[2].splitlines()
    assert [line.strip() for line in told] == examples_of(command)
    assert len(told) >= (2 if command != "kohort profiles" else 1)
    assert all(command in line for line in told)


@pytest.mark.parametrize("line", sorted({line for command in EVERY for line in examples_of(command)}))
def test_an_example_can_be_typed(line: str) -> None:
    found = re.search(r"kohort ([^|)]*)", line)
    assert found is not None
    words = shlex.split(found[1])
    assert cli._make_parser(words).parse_args(words).command == words[0]
