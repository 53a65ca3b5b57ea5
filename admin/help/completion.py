"""``kohort completion``: scripts that complete commands, actions and options, made from the parser."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from typing import Final, NamedTuple

SHELLS: Final = ("bash", "zsh", "fish")


class _Option(NamedTuple):
    name: str
    words: str
    choices: tuple[str, ...]


class _Command(NamedTuple):
    """A command, or an action of one, by the words that lead to it."""

    at: str
    commands: dict[str, str]
    options: list[_Option]

    def candidates(self) -> list[str]:
        return [*self.commands, *(option.name for option in self.options)]


def add_completion_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``kohort completion``."""
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=", ".join(SHELLS))


def completion_script(shell: str, parser: argparse.ArgumentParser) -> str:
    """The script of a shell for the commands of ``parser``."""
    commands = list(_walk(parser, parser.prog))
    make = {"bash": _bash_script, "zsh": _zsh_script, "fish": _fish_script}[shell]
    return "\n".join(make(parser.prog, commands)) + "\n"


def _walk(parser: argparse.ArgumentParser, at: str) -> Iterator[_Command]:
    below: dict[str, argparse.ArgumentParser] = {}
    words: dict[str, str] = {}
    options = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            below = dict(action.choices)
            words = {each.dest: each.help or "" for each in action._choices_actions}
            continue
        # an option that the help does not show, as those of TLS behind an action, is not offered either
        names = [name for name in action.option_strings if name.startswith("--")]
        if names and action.help != argparse.SUPPRESS:
            text = (action.help or "") % {"default": action.default, "prog": parser.prog}
            options.append(_Option(names[0], text, tuple(map(str, action.choices or ()))))
    yield _Command(at, {name: words.get(name, "") for name in below}, options)
    for name, each in below.items():
        yield from _walk(each, f"{at} {name}")


def _cases(commands: list[_Command], line: str) -> Iterator[str]:
    """The arms of a ``case`` that finds what may follow; ``line`` has a place for the words."""
    for each in commands:
        yield f"        {shlex.quote(each.at)}) {line.format(' '.join(each.candidates()))} ;;"


def _paths(commands: list[_Command]) -> str:
    return "|".join(shlex.quote(each.at) for each in commands[1:])


def _choices(commands: list[_Command]) -> Iterator[tuple[str, str]]:
    """Words that lead to an option, and what it may be."""
    for each in commands:
        for option in each.options:
            if option.choices:
                yield f"{each.at} {option.name}", " ".join(option.choices)


def _bash_script(prog: str, commands: list[_Command]) -> Iterator[str]:
    yield f"# {prog} in bash: source <({prog} completion bash)"
    yield f"_{prog}() {{"
    yield f"    local current=${{COMP_WORDS[COMP_CWORD]}} at={prog} words='' i"
    yield "    for ((i = 1; i < COMP_CWORD; i++)); do"
    yield '        case "$at ${COMP_WORDS[i]}" in'
    yield f'        {_paths(commands)}) at="$at ${{COMP_WORDS[i]}}" ;;'
    yield "        esac"
    yield "    done"
    yield '    case "$at" in'
    yield from _cases(commands, "words='{}'")
    yield "    esac"
    yield '    case "$at ${COMP_WORDS[COMP_CWORD - 1]}" in'
    for option, choices in _choices(commands):
        yield f"        {shlex.quote(option)}) words='{choices}' ;;"
    yield "    esac"
    yield '    COMPREPLY=($(compgen -W "$words" -- "$current"))'
    yield "}"
    yield f"complete -o default -F _{prog} {prog}"


def _zsh_script(prog: str, commands: list[_Command]) -> Iterator[str]:
    yield f"#compdef {prog}"
    yield f"# {prog} in zsh: source <({prog} completion zsh), or this file as _{prog} in a folder of $fpath"
    yield f"_{prog}() {{"
    yield f"    local at={prog} word"
    yield "    local -a found"
    yield "    for word in ${words[2,CURRENT-1]}; do"
    yield '        case "$at $word" in'
    yield f'        {_paths(commands)}) at="$at $word" ;;'
    yield "        esac"
    yield "    done"
    yield '    case "$at" in'
    yield from _cases(commands, "found=({})")
    yield "    esac"
    yield '    case "$at ${words[CURRENT-1]}" in'
    for option, choices in _choices(commands):
        yield f"        {shlex.quote(option)}) found=({choices}) ;;"
    yield "    esac"
    yield "    compadd -- $found || _files"
    yield "}"
    yield f"(( $+functions[compdef] )) && compdef _{prog} {prog}"


def _fish_script(prog: str, commands: list[_Command]) -> Iterator[str]:
    yield f"# {prog} in fish: {prog} completion fish | source"
    yield f"function __{prog}_at"
    yield f"    set -l at {prog}"
    yield "    for word in (commandline -opc)[2..]"
    yield '        switch "$at $word"'
    yield f"            case {' '.join(shlex.quote(each.at) for each in commands[1:])}"
    yield '                set at "$at $word"'
    yield "        end"
    yield "    end"
    yield '    test "$at" = "$argv"'
    yield "end"
    for each in commands:
        where = f"complete -c {prog} -n {shlex.quote(f'__{prog}_at {each.at}')}"
        for name, words in each.commands.items():
            yield f"{where} -f -a {name} -d {_fish_text(words)}"
        for option in each.options:
            more = f" -x -a {shlex.quote(' '.join(option.choices))}" if option.choices else ""
            yield f"{where} -l {option.name[2:]}{more} -d {_fish_text(option.words)}"


def _fish_text(words: str) -> str:
    return "'" + " ".join(words.split()).replace("\\", "\\\\").replace("'", "\\'") + "'"
