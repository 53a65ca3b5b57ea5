"""Arguments of ``kohort groups``."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from .. import notation
from ..commands import add_commands, add_looks, names, positive_count, reader, run_program, whole
from ..screen import INTERRUPTED, OK

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
    _add_describe(command("describe", "groups' states, members, and lag by partition"))
    words = "how far behind groups are, in records and in time, and which are too far"
    _add_lag(command("lag", words))
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
    parser.add_argument("--lag", action="store_true", help="also members, unread records, and their age")


def _add_describe(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    # with a default it counts as given only where groups are named
    which.add_argument("groups", metavar="GROUP", nargs="*", default=[])
    which.add_argument("--all-groups", action="store_true", help="every group of the cluster")


def _add_lag(parser: argparse.ArgumentParser) -> None:
    add: Callable[..., object] = parser.add_argument
    add("groups", metavar="GROUP", nargs="*", help="(default: all)")
    add("--partitions", action="store_true", help="a row for each partition")
    words = "show groups with more than N unread records, and exit with 1 if there are any"
    add("--over", metavar="N", type=_offset_of, help=words)
    add("--older-than", metavar="5m", type=reader(notation.duration_ms), help="the same by the oldest's age")
    looks = parser.add_mutually_exclusive_group()
    words = "look twice, so long apart: also rates, when groups will have caught up, and what stands still"
    looks.add_argument("--during", metavar="10s", type=reader(notation.duration_ms), help=words)
    looks.add_argument("--watch", action="store_true", help="look again and again, until Ctrl-C")
    add_looks(parser, interval_s=5.0)


def _add_timeline(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--limit",
        metavar="N",
        type=positive_count,
        help="generations to show (default: 20; with --since or --until 10000)",
    )
    now_ms = round(time.time() * 1_000)
    for flags, dest, words in (
        (("--since", "--from"), "since", "yesterday, 24h, or an ISO time (UTC if it has no offset)"),
        (("--until", "--to"), "until", "the same"),
    ):
        moment = partial(notation.moment_ms, now_ms=now_ms, is_end=dest == "until")
        help_text = f"only what ended {dest} then: {words}"
        parser.add_argument(*flags, dest=dest, metavar="TIME", type=reader(moment), help=help_text)
    parser.add_argument(
        "--record", metavar="DIR", help="from the recording of kohort ui in this folder; no broker is asked"
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
        type=positive_count,
        default=500_000,
        help="most offsets of __consumer_offsets to read where the broker keeps no history "
        "(default: %(default)s)",
    )


def _add_reset(parser: argparse.ArgumentParser) -> None:
    to = parser.add_argument_group("where to (one of these)").add_mutually_exclusive_group(required=True)
    add: Callable[..., object] = to.add_argument
    add("--to-earliest", action="store_true", help="the first record there is")
    add("--to-latest", action="store_true", help="behind the last record")
    add("--to-timestamp", metavar="MS", type=_offset_of, help="first record at or after this time, in ms")
    add("--to-datetime", metavar="ISO", type=reader(notation.datetime_ms), help="the same; UTC if no offset")
    add("--by-duration", metavar="2h", type=reader(notation.duration_ms), help="the same, so long ago")
    add("--to-offset", metavar="N", type=_offset_of, help="this offset")
    add("--shift-by", metavar="N", type=int, help="so many records forward; below 0: back")
    add("--to-current", action="store_true", help="the committed offset, within what the log has")
    add(
        "--from-file",
        metavar="CSV",
        type=reader(_offsets_in),
        help="each partition to its own: lines of TOPIC,PARTITION,OFFSET",
    )
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
    which = parser if required else parser.add_mutually_exclusive_group()
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


def _offsets_in(path: str) -> dict[tuple[str, int], int]:
    try:
        # programs for tables begin such a file with a byte order mark
        with open(path, newline="", encoding="utf-8-sig") as file:
            return notation.offset_lines(file)
    except UnicodeDecodeError:
        raise ValueError(f"{path} is no text in UTF-8") from None
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None


def _topic_name(text: str) -> str:
    notation.topic_partitions([text])
    return text


def _check_names(text: str, known: Sequence[str], what: str) -> list[str]:
    """Names with commas between them, spelled as they are in ``known``. Raises ValueError for others."""
    spelled = {name.lower(): name for name in known}
    wanted = names(text)
    for name in wanted:
        if name.lower() not in spelled:
            raise ValueError(f"{name!r} is no {what} of a group: give {', '.join(known)}")
    return [spelled[name.lower()] for name in wanted]


def _offset_of(text: str) -> int:
    return whole(text, 0)


def run(options: argparse.Namespace) -> int:
    """Run a command that ``add_arguments`` has read; the exit code."""

    def perform() -> int:
        import asyncio

        from .actions import run_action

        return asyncio.run(run_action(options))

    looks_on = options.action == "watch" or getattr(options, "watch", False)
    return run_program("kohort groups", perform, interrupted=OK if looks_on else INTERRUPTED)
