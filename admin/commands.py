"""Arguments of ``kohort groups``, and what all commands about a cluster share, errors included."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from . import notation
from .connection import add_connection_options
from .screen import INTERRUPTED, OK, REFUSED, UNREACHABLE, WRONG_USE, drop_output

TIMEOUT_S: Final = 15.0

#: Apache Kafka's words for states and types of groups (KIP-518, KIP-848, KIP-932, KIP-1071), also those that
#: kohort lacks. For any other name a broker lists no group at all. They are not taken from the coordinator's
#: types: loading these takes longer than the command.
_STATES: Final = (
    *("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty"),
    *("Assigning", "Reconciling", "NotReady"),
)
_TYPES: Final = ("classic", "consumer", "share", "streams")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give ``kohort groups`` its commands."""
    command = add_commands(parser)
    _add_list(command("list", "all groups of all brokers"))
    command("describe", "a group's state, members, and lag by partition", "group")
    _add_timeline(command("timeline", "a group's last generations: when, why, how long, who moved", "group"))
    watch = command("watch", "a group as it changes, until Ctrl-C", "group")
    add_looks(watch)
    words = "what a reset of a group's offsets would do; --execute does it"
    _add_reset(command("reset-offsets", words, "group"))
    words = "what moving a group's offsets from ZooKeeper to the brokers would do; --execute does it"
    _add_import(command("import", words, "group"))
    delete = command("delete", "delete groups that have no members, with their offsets")
    delete.add_argument("groups", metavar="GROUP", nargs="+")
    words = "delete a group's offsets of topics that no member reads"
    _add_topics(command("delete-offsets", words, "group"), required=True)


def add_commands(parser: argparse.ArgumentParser) -> Callable[..., argparse.ArgumentParser]:
    """Give ``parser`` actions. The result adds one: its name, its description and its arguments."""
    add_common(parser)
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    def command(name: str, words: str, *arguments: str) -> argparse.ArgumentParser:
        made = commands.add_parser(
            # an action may have a --config of its own, as that of a topic
            name,
            help=words,
            description=f"{words[0].upper()}{words[1:]}.",
            conflict_handler="resolve",
        )
        # also after the action, where an omitted option keeps the value given before it
        add_common(made, again=True)
        for argument in arguments:
            made.add_argument(argument, metavar=argument.upper())
        return made

    return command


def add_looks(parser: argparse.ArgumentParser) -> None:
    """Arguments of commands that look again and again."""
    parser.add_argument(
        "--interval", metavar="SECONDS", type=_positive_number, default=1.0, help="(default: %(default)s)"
    )
    parser.add_argument("--count", metavar="N", type=_positive_count, help="end after so many looks")


def add_common(parser: argparse.ArgumentParser, *, again: bool = False) -> None:
    """Arguments of every command. ``again``: an omitted option keeps the value that was given before."""
    add_connection(parser, again=again)
    parser.add_argument(
        "--json",
        action="store_true",
        default=argparse.SUPPRESS if again else False,
        help="one JSON document instead of tables",
    )


def add_connection(parser: argparse.ArgumentParser, *, again: bool = False) -> None:
    """Arguments for where the brokers are, how to reach them, and how long to wait for them."""
    add_connection_options(parser, again=again)
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=_positive_number,
        default=argparse.SUPPRESS if again else TIMEOUT_S,
        help=f"longest time to wait for an answer, retries included (default: {TIMEOUT_S:g})",
    )


def _add_list(parser: argparse.ArgumentParser) -> None:
    for what, known in (("state", _STATES), ("type", _TYPES)):
        parser.add_argument(
            f"--{what}",
            dest=f"{what}s",
            metavar=f"{what.upper()},...",
            type=reader(partial(_check_names, known=known, what=what)),
            default=[],
            help=f"of {', '.join(known)}",
        )


def _add_timeline(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--limit",
        metavar="N",
        type=_positive_count,
        default=20,
        help="generations to show (default: %(default)s)",
    )
    parser.add_argument(
        "--events", action="store_true", help="every event, not only generations (kohort brokers)"
    )
    parser.add_argument(
        "--html", metavar="FILE", help="also a picture: one page that needs no network, who had what when"
    )
    parser.add_argument(
        "--max-offsets",
        metavar="N",
        type=_positive_count,
        default=500_000,
        help="most offsets of __consumer_offsets to read where the broker keeps no history "
        "(default: %(default)s)",
    )


def _add_reset(parser: argparse.ArgumentParser) -> None:
    to = parser.add_argument_group("where to (one of these)").add_mutually_exclusive_group(required=True)
    add: Callable[..., Any] = to.add_argument
    add("--to-earliest", action="store_true", help="the first record there is")
    add("--to-latest", action="store_true", help="behind the last record")
    add("--to-timestamp", metavar="MS", type=_offset_of, help="first record at or after this time, in ms")
    add("--to-datetime", metavar="ISO", type=reader(notation.datetime_ms), help="the same; UTC if no offset")
    add("--by-duration", metavar="2h", type=reader(notation.duration_ms), help="the same, so long ago")
    add("--to-offset", metavar="N", type=_offset_of, help="this offset")
    add("--shift-by", metavar="N", type=int, help="so many records forward; below 0: back")
    add("--to-current", action="store_true", help="the committed offset, within what the log has")
    _add_topics(parser, required=False)
    words = "a share group: needed only to make one that does not exist yet"
    parser.add_argument("--share", action="store_true", help=words)
    _add_doing(parser)


def _add_import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--zookeeper",
        metavar="HOST:PORT[,...][/CHROOT]",
        required=True,
        type=lambda text: text.removeprefix("zookeeper://"),
        help="where members kept their offsets: as in their coordination=",
    )
    _add_doing(parser)


def _add_doing(parser: argparse.ArgumentParser) -> None:
    doing = parser.add_mutually_exclusive_group()
    doing.add_argument("--execute", action="store_true", help="commit the new offsets")
    doing.add_argument("--dry-run", action="store_true", help="only show them (the default)")


def _add_topics(parser: argparse.ArgumentParser, *, required: bool) -> None:
    words = "a topic, or some partitions of it; may be given many times"
    which = parser if required else parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--topic",
        dest="topics",
        metavar="TOPIC[:P,...]",
        action="append",
        type=reader(_topic_name),
        required=required,
        help=words,
    )
    if not required:
        which.add_argument("--all-topics", action="store_true", help="every partition with an offset")


def _topic_name(text: str) -> str:
    notation.topic_partitions([text])
    return text


def reader(read_text: Callable[[str], object]) -> Callable[[str], object]:
    """A reader whose error text reaches the user: argparse drops the text of a ValueError."""

    def read(text: str) -> Any:
        try:
            return read_text(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read


def names(text: str) -> list[str]:
    """Read names with commas between them; empty ones are left out."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _check_names(text: str, known: Sequence[str], what: str) -> list[str]:
    """Names with commas between them, spelled as they are in ``known``. Raises ValueError for others."""
    spelled = {name.lower(): name for name in known}
    wanted = names(text)
    for name in wanted:
        if name.lower() not in spelled:
            raise ValueError(f"{name!r} is no {what} of a group: give {', '.join(known)}")
    return [spelled[name.lower()] for name in wanted]


def whole(text: str, least: int) -> int:
    """Read a whole number from ``least`` up to 2**63 - 1. Raises ArgumentTypeError for all else."""
    if not (text.isascii() and text.isdigit() and least <= int(text) < 2**63):
        raise argparse.ArgumentTypeError(f"{text!r}: give a whole number from {least} on")
    return int(text)


def _positive_count(text: str) -> int:
    return min(whole(text, 1), 2**31 - 1)


def _offset_of(text: str) -> int:
    return whole(text, 0)


def _positive_number(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 86_400:
        raise argparse.ArgumentTypeError(f"{text!r}: give seconds, more than 0 and at most 86400")
    return seconds


def run(options: argparse.Namespace) -> int:
    """Run a command that ``add_arguments`` has read; the exit code."""

    def perform() -> int:
        import asyncio

        from ._actions import run_action

        return asyncio.run(run_action(options))

    return run_program("kohort groups", perform, interrupted=OK if options.action == "watch" else INTERRUPTED)


def run_program(
    program: str, perform: Callable[[], int], *, refused: int = REFUSED, interrupted: int = INTERRUPTED
) -> int:
    """Run ``perform``; the exit code. Errors are one line on standard error, behind the program's name."""
    try:
        code, words = _run_command(perform, refused)
    except BrokenPipeError:  # the reader of the output has closed the pipe
        drop_output()
        return OK
    except KeyboardInterrupt:
        return interrupted
    if words:
        with suppress(OSError):
            print(f"{program}:", " ".join(words.split()), file=sys.stderr)
    return code


def _run_command(perform: Callable[[], int], refused: int) -> tuple[int, str]:
    """The exit code, and what is to be said."""
    from ..client import BrokerConnectionError, ConfigError, ZooKeeperConnectionError
    from ..protocol import KafkaError, KohortError
    from ._errors import ADVICE

    if sys.stdout is None:
        return WRONG_USE, "standard output is closed: give it a file, or /dev/null"
    try:
        code = perform()
        sys.stdout.flush()
        return code, ""
    except BrokenPipeError:
        raise
    except ConfigError as error:
        return WRONG_USE, str(error)
    except ZooKeeperConnectionError as error:
        return UNREACHABLE, str(error)
    except BrokerConnectionError as error:
        return UNREACHABLE, f"cannot reach the cluster: {error}; is --bootstrap right?"
    except KafkaError as error:
        advice = "" if "; " in str(error) else ADVICE.get(error.code)
        return refused, f"{error}; {advice}" if advice else str(error)
    except KohortError as error:
        return refused, str(error)
    except UnicodeEncodeError as error:
        if error.encoding == "utf-8":
            return WRONG_USE, "an argument or a variable is no text in UTF-8: check the names"
        return WRONG_USE, f"standard output takes only {error.encoding}: use --json, or set PYTHONUTF8=1"
    except OSError as error:
        if error.filename is None:
            drop_output()
        return WRONG_USE, f"{error.filename or 'standard output'}: {error.strerror or error}"
