"""``kohort assignors``: the workbench's arguments."""

from __future__ import annotations

import argparse
from typing import NamedTuple

from ..commands import add_commands, names, reader, run_program, whole

#: As much as a test broker and a laptop can take: a typing mistake must not fill the memory.
_MOST_MEMBERS, _MOST_PARTITIONS = 10_000, 1_000_000


class Joining(NamedTuple):
    """``--join``: this many members, and their topics where these are given."""

    members: int
    topics: tuple[str, ...] = ()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give ``kohort assignors`` its commands."""
    command = add_commands(parser)
    command("list", "assignors that consumers here can name, and where each comes from")
    trying = command("try", "what a group would get from an assignor, and what would move")
    trying.add_argument(
        "--assignor",
        metavar="NAME",
        required=True,
        help="a name, package.module.Class, with options: NAME?option=value,...",
    )
    _add_group(trying)
    trying.add_argument("--moves", action="store_true", help="every partition that moves")
    compare = command("compare", "several assignors on one group, side by side")
    compare.add_argument("assignors", metavar="NAME", nargs="+", help="as of try --assignor")
    _add_group(compare)
    compare.add_argument("--html", metavar="FILE", help="also a page with load bars and matrices of moves")
    _add_group(command("explain", "why a group's balance cannot be better than it is"))


def _add_group(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--group", metavar="GROUP", help="a live group; it is only looked at")
    which.add_argument("--file", metavar="FILE", help="a group in JSON or YAML")
    parser.add_argument(
        "--leave", metavar="MEMBER", action="append", default=[], help="what if this member left; many times"
    )
    parser.add_argument(
        "--join",
        metavar="N[:TOPIC,...]",
        type=reader(_joining),
        default=Joining(0),
        help="what if so many joined, subscribed to these topics or to what most members are",
    )
    parser.add_argument(
        "--topic",
        dest="topics",
        metavar="TOPIC=N",
        action="append",
        type=reader(_parse_size),
        default=[],
        help="what if the topic had so many partitions; many times",
    )
    parser.add_argument(
        "--weights",
        choices=("lag", "throughput"),
        help="measure what partitions weigh, and show loads by weight too (of a live group)",
    )


def _joining(text: str) -> Joining:
    count, separator, topics = text.partition(":")
    found = tuple(names(topics))
    if separator and not found:
        raise ValueError(f"{text!r}: give N or N:TOPIC,TOPIC")
    return Joining(_at_most(whole(count, 1), _MOST_MEMBERS, text), found)


def _parse_size(text: str) -> tuple[str, int]:
    topic, separator, count = text.rpartition("=")
    if not separator or not topic:
        raise ValueError(f"{text!r}: give TOPIC=N")
    return topic, _at_most(whole(count, 0), _MOST_PARTITIONS, text)


def _at_most(number: int, most: int, text: str) -> int:
    if number > most:
        raise ValueError(f"{text!r}: give at most {most}")
    return number


def run(options: argparse.Namespace) -> int:
    """Run a command that ``add_arguments`` has read; the exit code."""

    def perform() -> int:
        import asyncio

        from .actions import run_assignor_action

        return asyncio.run(run_assignor_action(options))

    return run_program("kohort assignors", perform)
