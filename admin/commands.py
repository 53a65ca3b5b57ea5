"""What all commands about a cluster share: arguments, the run, errors."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from .connection import add_connection_options
from .screen import INTERRUPTED, OK, REFUSED, UNREACHABLE, WRONG_USE, drop_output

TIMEOUT_S: Final = 15.0


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


def add_looks(parser: argparse.ArgumentParser, *, interval_s: float = 1.0) -> None:
    """Arguments of commands that look again and again."""
    parser.add_argument(
        "--interval",
        metavar="SECONDS",
        type=_positive_number,
        default=interval_s,
        help="(default: %(default)s)",
    )
    parser.add_argument("--count", metavar="N", type=positive_count, help="end after so many looks")


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


def whole(text: str, least: int) -> int:
    """Read a whole number from ``least`` up to 2**63 - 1. Raises ArgumentTypeError for all else."""
    if not (text.isascii() and text.isdigit() and least <= int(text) < 2**63):
        raise argparse.ArgumentTypeError(f"{text!r}: give a whole number from {least} on")
    return int(text)


def positive_count(text: str) -> int:
    """Read a whole number from 1 on; more than an int32 has counts as its most."""
    return min(whole(text, 1), 2**31 - 1)


def _positive_number(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 86_400:
        raise argparse.ArgumentTypeError(f"{text!r}: give seconds, more than 0 and at most 86400")
    return seconds


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
    from .errors import explain_error

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
        return refused, explain_error(error)
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
