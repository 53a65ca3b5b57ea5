"""``kohort deadletters``: records that services have set aside, or that a share group archived, with the
reasons, and their replay.
"""

from __future__ import annotations

import argparse
import fnmatch
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from ...protocol import JsonObject
from ..commands import add_commands, run_program, whole
from ..screen import OK, Screen

if TYPE_CHECKING:
    from ...client import Cluster
    from ...consumer import Record
    from ...producer import Producer
    from ...protocol import TopicPartition
    from ...service.failed_records import DeadLetter
    from .archived import Archiving

_CLIENT: Final = "kohort-deadletters"
#: Header of a replayed record: the letter that it came from.
_REPLAYED: Final = "kohort.replayed"
#: Most letters in one transaction.
_TOGETHER: Final = 500
#: Most characters of a key or a value in a table.
_SHOWN: Final = 60


class _Letter(NamedTuple):
    record: Record
    #: None for a record that is no dead letter.
    says: DeadLetter | None
    #: How a share group archived it; None for a letter that a service set aside.
    archived: Archiving | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give ``kohort deadletters`` its commands."""
    command = add_commands(parser)
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
        if options.progress_group is not None and (options.share or _letter_filter(options) is not None):
            text = (
                "--progress-group is for replays of all letters of a topic: it keeps one place for them all"
            )
            raise ConfigError(text)
        if options.to is not None and options.to == options.topic:
            raise ConfigError(f"--to {options.to} is the topic of the letters themselves: a loop")


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
    from ..topics.requests import ranges, require_topics

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
    from ...service.failed_records import read_dead_letter
    from .reader import TopicReader

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
    from ..connection import open_cluster
    from ..tables import clean, table

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


@dataclass(slots=True)
class _Replay:
    """Letters that are written, or counted if there is no producer."""

    cluster: Cluster
    producer: Producer | None
    #: The topic for all of them; None for those that they come from.
    to: str | None
    screen: Screen
    written: Counter[str] = field(default_factory=Counter)
    _there: set[str] = field(default_factory=set)

    async def write(
        self, letters: list[_Letter], progress: tuple[str, dict[TopicPartition, int]] | None = None
    ) -> None:
        """Write letters, at most ``_TOGETHER``, and commit ``progress`` with them."""
        from ..topics.requests import require_topics

        for topic in {self.to or letter.says.topic for letter in letters if letter.says} - self._there:
            # a producer would make the broker create it
            await require_topics(self.cluster, [topic])
            self._there.add(topic)
        if self.producer is not None and (letters or progress is not None):
            await _write_letters(self.producer, letters, self.to, progress)
        self.written.update(self.to or letter.says.topic for letter in letters if letter.says is not None)
        self.screen.status(f"{self.written.total():,} letters")


def _open_producer(options: argparse.Namespace, group: str) -> AbstractAsyncContextManager[Producer]:
    from ...producer import Producer
    from ...settings import MAX_INT, MAX_LONG
    from ..connection import connection_of

    return Producer(
        client_id=_CLIENT,
        transactional_id=group,
        max_block_ms=max(1, round(options.timeout * 1_000)),
        # as the services that wrote the letters: the topic limits the size of batches as sent
        compression="gzip",
        max_request_size=MAX_INT,
        buffer_memory=MAX_LONG,
        **connection_of(options).settings(),
    )


async def _replay_letters(options: argparse.Namespace, screen: Screen) -> int:
    from ..connection import open_cluster

    takes = _letter_filter(options)
    group = options.progress_group or f"kohort-deadletters-{options.topic}"
    strange = 0
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(open_cluster(options, _CLIENT, [options.topic]))
        starts, ends = await _letter_ranges(cluster, options.topic)
        producer = None
        if options.execute:
            # before the offsets are read: it aborts the transaction of another replay of these letters
            producer = await stack.enter_async_context(_open_producer(options, group))
        replay = _Replay(cluster, producer, options.to, screen)
        if takes is None:
            done = await cluster.committed(group, starts)
            starts |= {place: max(starts[place], min(at.offset, ends[place])) for place, at in done.items()}
        read = await stack.enter_async_context(
            aclosing(_read_letters(cluster, options, screen, starts, ends))
        )
        async for letters in read:
            strange += sum(letter.says is None for letter in letters)
            chosen = [
                letter
                for letter in letters
                if letter.says is not None and (takes is None or takes(letter.says))
            ]
            ends = {letter.record.topic_partition: letter.record.offset + 1 for letter in letters}
            await replay.write(chosen, (group, ends) if takes is None else None)
    if screen.as_json:
        screen.document(
            {"executed": options.execute, "replayed": dict(replay.written), "no_letters": strange}
        )
        return OK
    _report_replay(options, screen, replay.written, strange, remembered=takes is None)
    return OK


async def _read_archived_letters(
    cluster: Cluster, options: argparse.Namespace, screen: Screen
) -> AsyncGenerator[list[_Letter]]:
    """Yield what a share group archived, as far as it can be known; say what cannot."""
    from ...service.failed_records import DeadLetter
    from .archived import find_archived, read_archived

    takes = _letter_filter(options)
    found = await find_archived(cluster, options.group)
    left = sum(map(len, found.places.values()))
    async with aclosing(read_archived(cluster, found.places, options.timeout)) as batches:
        async for records in batches:
            left -= len(records)
            letters = []
            for record in records:
                how = found.places[record.topic_partition][record.offset]
                says = DeadLetter(
                    record.topic,
                    record.partition,
                    record.offset,
                    record.timestamp_ms,
                    options.group,
                    how.delivery_count,
                    how.reason,
                    f"member {how.member}",
                    error_stack="",
                )
                if takes is None or takes(says):
                    letters.append(_Letter(record, says, how))
            for first in range(0, len(letters), _TOGETHER):
                yield letters[first : first + _TOGETHER]
    if left:
        screen.remark(f"{left:,} archived records are not in their topics any more")
    if found.unnamed:
        screen.remark(f"{found.unnamed:,} more records were archived whose offsets the brokers do not know")
    if found.displaced:
        screen.remark(
            f"{found.displaced:,} older events of the group have made way for newer ones: what they named is "
            "not shown"
        )
    if found.silent:
        nodes = ", ".join(map(str, found.silent))
        screen.remark(f"nothing is known of what was archived where these brokers lead: {nodes}")


async def _list_archived(options: argparse.Namespace, screen: Screen) -> int:
    from ..connection import open_cluster
    from ..tables import table

    counts: Counter[str] = Counter()
    shown: list[_Letter] = []
    async with (
        open_cluster(options, _CLIENT, []) as cluster,
        aclosing(_read_archived_letters(cluster, options, screen)) as read,
    ):
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


def _archived_row(letter: _Letter) -> JsonObject:
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
    from ..connection import open_cluster

    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(open_cluster(options, _CLIENT, []))
        producer = None
        if options.execute:
            opened = _open_producer(options, f"kohort-deadletters-{options.group}")
            producer = await stack.enter_async_context(opened)
        replay = _Replay(cluster, producer, options.to, screen)
        read = await stack.enter_async_context(aclosing(_read_archived_letters(cluster, options, screen)))
        async for letters in read:
            await replay.write(letters)
    if screen.as_json:
        screen.document({"executed": options.execute, "replayed": dict(replay.written), "no_letters": 0})
        return OK
    _report_replay(options, screen, replay.written, 0, remembered=False)
    return OK


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


async def _write_letters(
    producer: Producer,
    letters: list[_Letter],
    to: str | None,
    progress: tuple[str, dict[TopicPartition, int]] | None,
) -> None:
    """Write letters and commit their offsets in one transaction."""
    async with producer.transaction():
        for letter in letters:
            record, says, _ = letter
            assert says is not None, "only letters are written"
            topic = to or says.topic
            # its old partition, if the topic still has it: records of one key stay together
            same = to is None and 0 <= says.partition < await producer.partitions_for(topic)
            await producer.send(
                topic,
                record.value,
                record.key,
                says.partition if same else None,
                headers=[*_own_headers(letter), (_REPLAYED, _place_key(record))],
            )
        if progress is not None:
            group, ends = progress
            await producer.send_offsets(ends, group)


def _own_headers(letter: _Letter) -> list[tuple[str, bytes | None]]:
    """Headers that the record had before it was set aside."""
    from ...service.failed_records import DEAD_LETTER_HEADERS

    # the last ones: a letter that was set aside again has the earlier ones too
    added = set() if letter.archived else {*DEAD_LETTER_HEADERS}
    own = []
    for name, value in reversed(letter.record.headers):
        if name in added:
            added.remove(name)
        elif name != _REPLAYED:
            own.append((name, value))
    return own[::-1]


def _place_key(record: Record) -> bytes:
    return f"{record.topic}-{record.partition}@{record.offset}".encode()
