"""``kohort deadletters``: records that services have set aside, or that a share group archived, with the
reasons, and their replay.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack, aclosing, contextmanager
from typing import TYPE_CHECKING, Final

from ...protocol import JsonObject
from ..commands import add_commands, run_program, whole
from ..screen import OK, REFUSED, Screen

if TYPE_CHECKING:
    from .letter_topics import LetterTopic
    from .letters import Letter, LetterFilter, Replay

#: Most characters of a key or a value in a table.
_SHOWN: Final = 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give ``kohort deadletters`` its commands."""
    command = add_commands(parser)
    command("topics", "topics whose newest records are letters")
    listing = command("list", "the letters of a topic: where they come from, and why")
    listing.add_argument(
        "--limit", metavar="N", type=lambda text: whole(text, 0), default=100, help="(default: %(default)s)"
    )
    listing.add_argument("--stacks", action="store_true", help="with the stack of each error")
    replay = command("replay", "write letters to the topics they come from; --execute does it")
    replay.add_argument("--execute", action="store_true", help="write; without it only say what would be")
    replay.add_argument("--to", metavar="TOPIC", help="write all of them to this topic instead")
    replay.add_argument(
        "--progress-group",
        metavar="GROUP",
        help="group that keeps how far replays are (default: kohort-deadletters-TOPIC)",
    )
    for made in (listing, replay):
        made.add_argument("topic", metavar="TOPIC", nargs="?", help="topic of dead letters")
        made.add_argument(
            "--share",
            action="store_true",
            help="not those of a topic: what the share group --group archived, as kohort's brokers tell",
        )
        chosen = made.add_argument_group("which letters (all of them, by default)")
        chosen.add_argument(
            "--error",
            metavar="CLASS",
            help="of these errors, such as builtins.KeyError or '*Timeout*'; of a share group: rejected or "
            "delivery-limit",
        )
        chosen.add_argument("--group", metavar="GROUP", help="of this group's services")
        chosen.add_argument("--origin", metavar="TOPIC", help="that come from this topic")


def run(options: argparse.Namespace) -> int:
    """Run a command that ``add_arguments`` has read; return the exit code."""

    def perform() -> int:
        import asyncio

        if options.action == "topics":
            return asyncio.run(_list_letter_topics(options, Screen(as_json=options.json)))
        _check_options(options)
        if options.action == "list":
            action = _list_archived if options.share else _list_letters
        else:
            action = _replay_archived if options.share else _replay_letters
        return asyncio.run(action(options, Screen(as_json=options.json)))

    return run_program("kohort deadletters", perform)


def _check_options(options: argparse.Namespace) -> None:
    from ...client import ConfigError

    if options.share and (options.group is None or options.topic is not None):
        raise ConfigError("--share: name the share group with --group, and no topic (--origin chooses one)")
    if not options.share and options.topic is None:
        raise ConfigError("name the topic of the letters, or a share group: --group GROUP --share")
    if options.action == "replay":
        if options.progress_group is not None and (options.share or not _letter_filter(options).takes_all):
            text = (
                "--progress-group is for replays of all letters of a topic: it keeps one place for them all"
            )
            raise ConfigError(text)
        if options.to is not None and options.to == options.topic:
            raise ConfigError(f"--to {options.to} is the topic of the letters themselves: a loop")


def _letter_filter(options: argparse.Namespace) -> LetterFilter:
    from .letters import LetterFilter

    return LetterFilter(options.error, options.group, options.origin)


async def _list_letter_topics(options: argparse.Namespace, screen: Screen) -> int:
    from ..connection import open_cluster
    from ..notation import utc
    from ..tables import table
    from ..topics.requests import list_topics
    from ..visibility import ask_hidden_topics, hidden_field
    from .letter_topics import LetterTopicFinder
    from .letters import LETTERS_CLIENT

    async with open_cluster(options, LETTERS_CLIENT) as cluster:
        finder = LetterTopicFinder()
        found = await finder.find(cluster)
        hidden = await ask_hidden_topics(cluster)
        is_blind = bool(hidden) and not await list_topics(cluster)
    if finder.unreadable:
        screen.remark(f"not known of topics that could not be read: {', '.join(finder.unreadable)}")
    screen.remark(*hidden)
    code = REFUSED if is_blind else OK
    if screen.as_json:
        screen.document({"topics": [_letter_topic_row(each) for each in found], **hidden_field(hidden)})
        return code
    if not found:
        which = "no topic that this user may see has letters as its newest records"
        screen.show(f"({which})" if hidden else "(no topic's newest records are letters)")
        return code
    rows = [
        (each.topic, each.records, utc(each.written_ms), each.newest.group, each.newest.error_class)
        for each in found
    ]
    screen.show(table(["TOPIC", "RECORDS", "NEWEST (UTC)", "GROUP", "ERROR"], rows))
    return OK


def _letter_topic_row(found: LetterTopic) -> JsonObject:
    newest = found.newest
    return {
        "topic": found.topic,
        "records": found.records,
        "newest": found.written_ms,
        "group": newest.group,
        "error": newest.error_class,
        "message": newest.error_message,
    }


async def _list_letters(options: argparse.Namespace, screen: Screen) -> int:
    from ..connection import open_cluster
    from ..tables import clean, table
    from .letters import LETTERS_CLIENT, letter_ranges, read_letters

    wanted = _letter_filter(options)
    counts: Counter[str] = Counter()
    shown: list[Letter] = []
    async with open_cluster(options, LETTERS_CLIENT, [options.topic]) as cluster:
        starts, ends = await letter_ranges(cluster, options.topic)
        async with aclosing(read_letters(cluster, starts, ends, options.timeout, screen.remark)) as read:
            async for letters in read:
                for letter in letters:
                    if letter.says is None or not wanted.takes(letter.says):
                        continue
                    counts[letter.says.error_class] += 1
                    if len(shown) < options.limit:
                        shown.append(letter)
                screen.status(f"{counts.total():,} letters")
    rows = [_letter_row(letter, stacks=options.stacks) for letter in shown]
    if screen.as_json:
        screen.document({"topic": options.topic, "letters": rows, "errors": dict(counts.most_common())})
        return OK
    if not counts:
        screen.show(f"(no letters in {options.topic})")
        return OK
    headings = ["PARTITION", "OFFSET", "FROM", "GROUP", "ATTEMPTS", "ERROR", "MESSAGE"]
    cells, stacks = [], []
    for row in rows:
        origin = "{topic}-{partition} at {offset}".format(**row["origin"])
        words = " ".join(row["message"].split())
        cells.append(
            (row["partition"], row["offset"], origin, row["group"], row["attempts"], row["error"], words)
        )
        if lines := row.get("stack", "").splitlines():
            stacks.append("\n".join((f"{origin}:", *map(clean, lines))))
    screen.show(
        table(headings, cells),
        *stacks,
        table(["ERROR", "LETTERS"], counts.most_common()),
        *([f"{counts.total() - len(rows):,} more: --limit N"] if counts.total() > len(rows) else []),
    )
    return OK


def _letter_row(letter: Letter, *, stacks: bool) -> JsonObject:
    record, says, _ = letter
    assert says is not None, "only letters are shown"
    row: JsonObject = {
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        "origin": {"topic": says.topic, "partition": says.partition, "offset": says.offset},
        "group": says.group,
        "attempts": says.attempts,
        "error": says.error_class,
        "message": says.error_message,
    }
    return row | ({"stack": says.error_stack} if stacks else {})


async def _replay_letters(options: argparse.Namespace, screen: Screen) -> int:
    from ..connection import connection_of, open_cluster
    from .letters import (
        LETTERS_CLIENT,
        Replay,
        letter_ranges,
        open_letter_producer,
        progress_group,
        read_letters,
        skip_replayed,
    )

    wanted = _letter_filter(options)
    group = options.progress_group or progress_group(options.topic)
    strange = 0
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(open_cluster(options, LETTERS_CLIENT, [options.topic]))
        starts, ends = await letter_ranges(cluster, options.topic)
        producer = None
        if options.execute:
            # before the offsets are read: it aborts the transaction of another replay of these letters
            settings = connection_of(options).settings()
            opened = open_letter_producer(settings, group, options.timeout)
            producer = await stack.enter_async_context(opened)
        replay = Replay(cluster, producer, options.to)
        stack.enter_context(_tell_if_cut_short(screen, replay, remembered=wanted.takes_all))
        if wanted.takes_all:
            starts = await skip_replayed(cluster, group, starts, ends)
        read = await stack.enter_async_context(
            aclosing(read_letters(cluster, starts, ends, options.timeout, screen.remark))
        )
        async for letters in read:
            strange += sum(letter.says is None for letter in letters)
            chosen = [letter for letter in letters if letter.says is not None and wanted.takes(letter.says)]
            ends = {letter.record.topic_partition: letter.record.offset + 1 for letter in letters}
            await replay.write(chosen, (group, ends) if wanted.takes_all else None)
            screen.status(f"{replay.written.total():,} letters")
    if screen.as_json:
        screen.document(
            {"executed": options.execute, "replayed": dict(replay.written), "no_letters": strange}
        )
        return OK
    _report_replay(options, screen, replay.written, strange, remembered=wanted.takes_all)
    return OK


async def _list_archived(options: argparse.Namespace, screen: Screen) -> int:
    from ..connection import open_cluster
    from ..tables import table
    from .letters import LETTERS_CLIENT, read_archived_letters

    counts: Counter[str] = Counter()
    shown: list[Letter] = []
    async with open_cluster(options, LETTERS_CLIENT, []) as cluster:
        read = read_archived_letters(
            cluster, options.group, _letter_filter(options), options.timeout, screen.remark
        )
        async for letters in read:
            counts.update(letter.archived.reason for letter in letters if letter.archived is not None)
            shown += letters[: max(0, options.limit - len(shown))]
    rows = [_archived_row(letter) for letter in shown]
    if screen.as_json:
        screen.document({"group": options.group, "letters": rows, "errors": dict(counts.most_common())})
        return OK
    if not counts:
        screen.show(f"(brokers name no records that share group {options.group} archived)")
        return OK
    names = ("topic", "partition", "offset", "attempts", "error", "member", "key", "value")
    cells = [tuple(_cell_of(row[name]) for name in names) for row in rows]
    screen.show(
        table([name.upper() for name in names], cells),
        table(["ERROR", "LETTERS"], counts.most_common()),
        *([f"{counts.total() - len(rows):,} more: --limit N"] if counts.total() > len(rows) else []),
    )
    return OK


def _archived_row(letter: Letter) -> JsonObject:
    from ..notation import bytes_as_json

    record, _, how = letter
    assert how is not None, "a share group archived it"
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        "key": bytes_as_json(record.key),
        "value": bytes_as_json(record.value),
        "attempts": how.delivery_count,
        "error": how.reason,
        "member": how.member,
        "archived": how.timestamp_ms,
    }


def _cell_of(value: object) -> object:
    text = " ".join(str(value).split())
    return value if value is None else text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


async def _replay_archived(options: argparse.Namespace, screen: Screen) -> int:
    from ..connection import connection_of, open_cluster
    from .letters import (
        LETTERS_CLIENT,
        Replay,
        open_letter_producer,
        progress_group,
        read_archived_letters,
    )

    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(open_cluster(options, LETTERS_CLIENT, []))
        producer = None
        if options.execute:
            settings = connection_of(options).settings()
            opened = open_letter_producer(settings, progress_group(options.group), options.timeout)
            producer = await stack.enter_async_context(opened)
        replay = Replay(cluster, producer, options.to)
        stack.enter_context(_tell_if_cut_short(screen, replay, remembered=False))
        found = read_archived_letters(
            cluster, options.group, _letter_filter(options), options.timeout, screen.remark
        )
        read = await stack.enter_async_context(aclosing(found))
        async for letters in read:
            await replay.write(letters)
            screen.status(f"{replay.written.total():,} letters")
    if screen.as_json:
        screen.document({"executed": options.execute, "replayed": dict(replay.written), "no_letters": 0})
        return OK
    _report_replay(options, screen, replay.written, 0, remembered=False)
    return OK


@contextmanager
def _tell_if_cut_short(screen: Screen, replay: Replay, *, remembered: bool) -> Iterator[None]:
    """Say what was written by a replay that ends before its time."""
    try:
        yield
    except BaseException:
        if replay.producer is not None and replay.written:
            after = (
                "the next replay continues after them" if remembered else "the same command writes them again"
            )
            screen.remark(f"{replay.written.total():,} letters were written before: {after}")
        raise


def _report_replay(
    options: argparse.Namespace, screen: Screen, replayed: Counter[str], strange: int, *, remembered: bool
) -> None:
    from ..tables import table

    words = []
    if strange:
        words.append(f"{strange:,} records were set aside by no service: they stay where they are")
    if not replayed:
        words.append("(nothing to replay)")
    elif not options.execute:
        words.append("nothing is written: add --execute")
    elif not remembered:
        which = "what a share group archived" if options.share else "some letters"
        words.append(f"replays of {which} are not remembered: the same command writes them again")
    parts: list[object] = [table(["TO", "LETTERS"], sorted(replayed.items()))] if replayed else []
    screen.show(*parts, *words)
