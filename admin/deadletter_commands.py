"""``kohort deadletters``: records that services have set aside, with the reasons, and their replay."""

from __future__ import annotations

import argparse
import fnmatch
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, aclosing
from typing import TYPE_CHECKING, Final, NamedTuple

from ..protocol import JsonObject
from .commands import add_commands, run_program, whole
from .screen import OK, Screen

if TYPE_CHECKING:
    from ..client import Cluster
    from ..consumer import Record
    from ..producer import Producer
    from ..protocol import TopicPartition
    from ..service.failed_records import DeadLetter

_CLIENT: Final = "kohort-deadletters"
#: Header of a replayed record: the letter that it came from.
_REPLAYED: Final = "kohort.replayed"
#: Most letters in one transaction.
_TOGETHER: Final = 500


class _Letter(NamedTuple):
    record: Record
    #: None for a record that is no dead letter.
    says: DeadLetter | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give ``kohort deadletters`` its commands."""
    command = add_commands(parser)
    listing = command("list", "the letters of a topic: where they come from, and why", "topic")
    listing.add_argument(
        "--limit", metavar="N", type=lambda text: whole(text, 0), default=100, help="(default: %(default)s)"
    )
    listing.add_argument("--stacks", action="store_true", help="with the stack of each error")
    replay = command("replay", "write letters to the topics they come from; --execute does it", "topic")
    replay.add_argument("--execute", action="store_true", help="write; without it only say what would be")
    replay.add_argument("--to", metavar="TOPIC", help="write all of them to this topic instead")
    replay.add_argument(
        "--progress-group",
        metavar="GROUP",
        help="group that keeps how far replays are (default: kohort-deadletters-TOPIC)",
    )
    for made in (listing, replay):
        chosen = made.add_argument_group("which letters (all of them, by default)")
        chosen.add_argument(
            "--error", metavar="CLASS", help="of these errors, such as builtins.KeyError or '*Timeout*'"
        )
        chosen.add_argument("--group", metavar="GROUP", help="of this group's services")
        chosen.add_argument("--origin", metavar="TOPIC", help="that come from this topic")


def run(options: argparse.Namespace) -> int:
    """Run a command that ``add_arguments`` has read; return the exit code."""

    def perform() -> int:
        import asyncio

        action = _list_letters if options.action == "list" else _replay_letters
        return asyncio.run(action(options, Screen(as_json=options.json)))

    return run_program("kohort deadletters", perform)


def _letter_filter(options: argparse.Namespace) -> Callable[[DeadLetter], bool] | None:
    """The filter for letters; None for all."""
    wanted = {"error_class": options.error, "group": options.group, "topic": options.origin}
    wanted = {name: text for name, text in wanted.items() if text is not None}

    def takes(letter: DeadLetter) -> bool:
        return all(
            fnmatch.fnmatchcase(getattr(letter, name), text)
            if name == "error_class"
            else getattr(letter, name) == text
            for name, text in wanted.items()
        )

    return takes if wanted else None


async def _letter_ranges(
    cluster: Cluster, topic: str
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """Start and end of each partition. Raises KafkaError."""
    from .topics import ranges, require_topics

    known = await require_topics(cluster, [topic])
    return await ranges(cluster, known.partitions(topic), read_committed=True)


async def _read_letters(
    cluster: Cluster,
    options: argparse.Namespace,
    screen: Screen,
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> AsyncGenerator[list[_Letter]]:
    """Yield the records between ``starts`` and ``ends`` as they are read."""
    from ..service.failed_records import read_dead_letter
    from ._reader import TopicReader

    reader = TopicReader(
        cluster, starts, ends, read_committed=True, patience_s=options.timeout, remark=screen.remark
    )
    async with aclosing(reader.batches()) as batches:
        async for records in batches:
            for first in range(0, len(records), _TOGETHER):
                yield [
                    _Letter(record, read_dead_letter(record)) for record in records[first : first + _TOGETHER]
                ]


async def _list_letters(options: argparse.Namespace, screen: Screen) -> int:
    from .connection import open_cluster
    from .tables import clean, table

    takes = _letter_filter(options)
    counts: Counter[str] = Counter()
    shown: list[_Letter] = []
    async with open_cluster(options, _CLIENT, [options.topic]) as cluster:
        starts, ends = await _letter_ranges(cluster, options.topic)
        async with aclosing(_read_letters(cluster, options, screen, starts, ends)) as read:
            async for letters in read:
                for letter in letters:
                    if letter.says is None or (takes is not None and not takes(letter.says)):
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


def _letter_row(letter: _Letter, *, stacks: bool) -> JsonObject:
    record, says = letter
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
    from ..client import ConfigError
    from ..producer import Producer
    from ..settings import MAX_INT, MAX_LONG
    from .connection import connection_of, open_cluster
    from .topics import require_topics

    takes = _letter_filter(options)
    if takes is not None and options.progress_group is not None:
        raise ConfigError("--progress-group is for replays of all letters: it keeps one place for them all")
    if options.to == options.topic:
        raise ConfigError(f"--to {options.to} is the topic of the letters themselves: a loop")
    group = options.progress_group or f"kohort-deadletters-{options.topic}"
    replayed: Counter[str] = Counter()
    strange = 0
    there: set[str] = set()
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(open_cluster(options, _CLIENT, [options.topic]))
        starts, ends = await _letter_ranges(cluster, options.topic)
        producer = None
        if options.execute:
            # before the offsets are read: it aborts the transaction of another replay of these letters
            producer = await stack.enter_async_context(
                Producer(
                    client_id=_CLIENT,
                    transactional_id=group,
                    max_block_ms=max(1, round(options.timeout * 1_000)),
                    # as the services that wrote the letters: the topic limits the size of batches as sent
                    compression="gzip",
                    max_request_size=MAX_INT,
                    buffer_memory=MAX_LONG,
                    **connection_of(options).settings(),
                )
            )
        if takes is None:
            done = await cluster.committed(group, starts)
            starts |= {place: max(starts[place], min(at.offset, ends[place])) for place, at in done.items()}
        read = await stack.enter_async_context(
            aclosing(_read_letters(cluster, options, screen, starts, ends))
        )
        async for letters in read:
            chosen = []
            for letter in letters:
                strange += letter.says is None
                if letter.says is not None and (takes is None or takes(letter.says)):
                    chosen.append(letter)
            for topic in {options.to or letter.says.topic for letter in chosen if letter.says} - there:
                # a producer would make the broker create it
                await require_topics(cluster, [topic])
                there.add(topic)
            if producer is not None and (chosen or takes is None):
                ends = {letter.record.topic_partition: letter.record.offset + 1 for letter in letters}
                await _write_letters(producer, chosen, options.to, (group, ends) if takes is None else None)
            replayed.update(options.to or letter.says.topic for letter in chosen if letter.says is not None)
            screen.status(f"{replayed.total():,} letters")
    if screen.as_json:
        screen.document({"executed": options.execute, "replayed": dict(replayed), "no_letters": strange})
        return OK
    _report_replay(options, screen, replayed, strange, remembered=takes is None)
    return OK


def _report_replay(
    options: argparse.Namespace, screen: Screen, replayed: Counter[str], strange: int, *, remembered: bool
) -> None:
    from .tables import table

    words = []
    if strange:
        words.append(f"{strange:,} records were set aside by no service: they stay where they are")
    if not replayed:
        words.append("(nothing to replay)")
    elif not options.execute:
        words.append("nothing is written: add --execute")
    elif not remembered:
        words.append("replays of some letters are not remembered: the same command writes them again")
    parts: list[object] = [table(["TO", "LETTERS"], sorted(replayed.items()))] if replayed else []
    screen.show(*parts, *words)


async def _write_letters(
    producer: Producer,
    letters: list[_Letter],
    to: str | None,
    progress: tuple[str, dict[TopicPartition, int]] | None,
) -> None:
    """Write letters and commit their offsets in one transaction."""
    async with producer.transaction():
        for record, says in letters:
            assert says is not None, "only letters are written"
            topic = to or says.topic
            # its old partition, if the topic still has it: records of one key stay together
            same = to is None and 0 <= says.partition < await producer.partitions_for(topic)
            await producer.send(
                topic,
                record.value,
                record.key,
                says.partition if same else None,
                headers=[*_own_headers(record), (_REPLAYED, _place_key(record))],
            )
        if progress is not None:
            group, ends = progress
            await producer.send_offsets(ends, group)


def _own_headers(record: Record) -> list[tuple[str, bytes | None]]:
    """Headers that the record had before it was set aside."""
    from ..service.failed_records import DEAD_LETTER_HEADERS

    # the last ones: a letter that was set aside again has the earlier ones too
    added = {*DEAD_LETTER_HEADERS}
    own = []
    for name, value in reversed(record.headers):
        if name in added:
            added.remove(name)
        elif name != _REPLAYED:
            own.append((name, value))
    return own[::-1]


def _place_key(record: Record) -> bytes:
    return f"{record.topic}-{record.partition}@{record.offset}".encode()
