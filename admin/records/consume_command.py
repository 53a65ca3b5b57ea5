"""``kohort consume``: records of topics on standard output, on any broker, in a group or without one."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Final

from ..commands import add_connection, reader, run_program, whole
from ..notation import bytes_as_json
from ..screen import INTERRUPTED, OK, Screen

if TYPE_CHECKING:
    from ...client import Cluster
    from ...consumer import Record
    from ...consumer.share.records import ShareRecord
    from ...protocol import TopicPartition

    Printed = Record | ShareRecord

_CLIENT: Final = "kohort-consume"
_ENDS: Final = {"beginning": "earliest", "earliest": "earliest", "end": "latest", "latest": "latest"}
#: Most records that are written at a time.
_MOST: Final = 500

#: Where to begin: "earliest", "latest", ("offset", N), below 0 this many before the end, or ("time", MS).
Start = str | tuple[str, int]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give ``kohort consume`` its arguments."""
    parser.add_argument("topics", metavar="TOPIC", nargs="+")
    add_connection(parser)
    parser.add_argument(
        "--from",
        dest="start",
        metavar="WHERE",
        type=reader(_start),
        default="earliest",
        help="beginning, end, an offset, -N for the last N of each partition, a time (ISO 8601; UTC if no "
        "offset) or a duration (2h: so long ago); in a group only for partitions without a committed offset "
        "(default: beginning)",
    )
    parser.add_argument(
        "--count", metavar="N", type=lambda text: whole(text, 1), help="end after so many records"
    )
    parser.add_argument(
        "--follow",
        "-f",
        action="store_true",
        help="wait for more records, until Ctrl-C; without it, end where the topics ended at the start",
    )
    parser.add_argument(
        "--group", metavar="GROUP", help="read as a member of this group, and commit what was printed"
    )
    parser.add_argument(
        "--share",
        action="store_true",
        help="the group is a share group (Apache Kafka 4.2 or later): accept what was printed",
    )
    parser.add_argument(
        "--partition",
        dest="partitions",
        metavar="N,...",
        type=reader(_partition_numbers),
        help="only these partitions of each topic; not in a group",
    )
    parser.add_argument(
        "--read-committed", action="store_true", help="no records of open and aborted transactions"
    )
    shown = parser.add_argument_group("what is printed (the value, by default)")
    shown.add_argument("--keys", action="store_true", help="the key in front of the value")
    shown.add_argument("--headers", action="store_true", help="headers, as name=value,..., in front of all")
    shown.add_argument(
        "--separator", metavar="TEXT", default="\t", help="between headers, key and value (default: a tab)"
    )
    shown.add_argument(
        "--json", action="store_true", help="one JSON object a line, which `kohort produce` reads"
    )


def _start(text: str) -> Start:
    from .. import notation

    if text in _ENDS:
        return _ENDS[text]
    if text == "-0":
        return _ENDS["end"]
    if text.removeprefix("-").isdigit() and text.isascii():
        return ("offset", int(text))
    try:
        return ("time", max(0, round(time.time() * 1_000) - notation.duration_ms(text)))
    except ValueError:
        pass
    try:
        return ("time", notation.datetime_ms(text))
    except ValueError:
        where = "beginning, end, an offset, a time such as 2026-02-03T04:05:06Z or a duration such as 2h"
        raise ValueError(f"{text!r} is no place to begin: give {where}") from None


def _partition_numbers(text: str) -> list[int]:
    from ..commands import names

    found = names(text)
    if not found or not all(name.isascii() and name.isdigit() for name in found):
        raise ValueError(f"{text!r}: give numbers of partitions, such as 0 or 0,3")
    return [int(name) for name in found]


def run(options: argparse.Namespace) -> int:
    """Run a command that ``add_arguments`` has read; the exit code."""
    interrupted = OK if options.follow else INTERRUPTED
    perform = _print_as_share_member if options.share else lambda given: asyncio.run(_run_command(given))
    return run_program("kohort consume", lambda: perform(options), interrupted=interrupted)


async def _run_command(options: argparse.Namespace) -> int:
    from ..connection import open_cluster

    _check_group(options)
    async with open_cluster(options, _CLIENT, options.topics) as cluster:
        starts, ends = await _range_to_read(cluster, options)
        if options.group is None:
            return await _print_all(cluster, options, starts, ends)
    from .group_member import print_as_member

    await print_as_member(options, _CLIENT, ends, partial(_write_records, _line_writer(options)))
    return OK


def _check_group(options: argparse.Namespace) -> None:
    """Raise ConfigError for options that cannot be together."""
    from ...client import ConfigError

    if options.group is not None and options.partitions:
        raise ConfigError("--partition and --group: a group gives out the partitions itself, leave one out")
    if options.group is not None and options.start[0] == "offset":
        raise ConfigError(
            "--from an offset and --group: set the group's offsets with `kohort groups reset-offsets`"
        )
    if options.share and options.group is None:
        raise ConfigError("--share: name the share group with --group")
    if options.share and (options.start != "earliest" or options.read_committed):
        raise ConfigError(
            "--share: where a share group begins and what it reads are configs of the group "
            "(share.auto.offset.reset, share.isolation.level); leave --from and --read-committed out"
        )


def _print_as_share_member(options: argparse.Namespace) -> int:
    from ..connection import open_cluster
    from ..topics.requests import require_topics

    async def check_topics() -> None:
        async with open_cluster(options, _CLIENT, options.topics) as cluster:
            await require_topics(cluster, dict.fromkeys(options.topics))

    _check_group(options)
    asyncio.run(check_topics())
    from .share_member import print_as_share_member

    print_as_share_member(options, _CLIENT, partial(_write_records, _line_writer(options)))
    return OK


async def _range_to_read(
    cluster: Cluster, options: argparse.Namespace
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """Where to begin and where the log ends, by partition. Raises KafkaError."""
    from ...protocol import ErrorCode, KafkaError, TopicPartition
    from ..topics.requests import offsets_at, ranges, require_topics

    places = []
    topics = dict.fromkeys(options.topics)
    known = await require_topics(cluster, topics)
    for topic in topics:
        there = {place.partition for place in known.partitions(topic)}
        if missing := set(options.partitions or ()) - there:
            text = f"topic {topic!r} has partitions 0 to {len(there) - 1}, not {min(missing)}"
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
        places += [TopicPartition(topic, number) for number in sorted(options.partitions or there)]
    first, ends = await ranges(cluster, places, read_committed=options.read_committed)
    if options.start == "earliest":
        return first, ends
    if options.start == "latest":
        return ends, ends
    kind, number = options.start
    if kind == "time":
        late = await offsets_at(cluster, places, number)
        return {place: late[place] if late[place] >= 0 else ends[place] for place in places}, ends
    return {
        place: min(max(ends[place] + number if number < 0 else number, first[place]), ends[place])
        for place in places
    }, ends


async def _print_all(
    cluster: Cluster,
    options: argparse.Namespace,
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> int:
    """Print records, in no group, until enough are printed or all are; return the exit code."""
    from .reader import TopicReader

    reader = TopicReader(
        cluster,
        starts,
        None if options.follow else ends,
        read_committed=options.read_committed,
        patience_s=options.timeout,
        remark=Screen(as_json=False).remark,
        new_partitions=options.follow and not options.partitions,
    )
    line = _line_writer(options)
    left = options.count
    async with aclosing(reader.batches()) as batches:
        async for records in batches:
            shown = records[:left]
            _write_records(line, shown)
            if left is not None:
                left -= len(shown)
                if left <= 0:
                    break
    return OK


def _line_writer(options: argparse.Namespace) -> Callable[[Printed], bytes]:
    return _as_json if options.json else _as_text(options)


def _write_records(line: Callable[[Printed], bytes], records: Sequence[Printed]) -> int:
    """Write a line of each record; return how many bytes these are."""
    out, size = sys.stdout.buffer, 0
    for first in range(0, len(records), _MOST):
        rest = memoryview(b"".join(map(line, records[first : first + _MOST])))
        size += len(rest)
        while rest:
            # unbuffered (PYTHONUNBUFFERED), a pipe may take a part
            rest = rest[out.write(rest) :]
        out.flush()
    return size


def record_row(record: Printed) -> dict[str, object]:
    """A record as JSON has it; ``kohort produce`` reads it."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        "key": bytes_as_json(record.key),
        "value": bytes_as_json(record.value),
        "headers": [[name, bytes_as_json(value)] for name, value in record.headers],
    }


def _as_json(record: Printed) -> bytes:
    row = record_row(record)
    if (deliveries := getattr(record, "delivery_count", None)) is not None:
        row["delivery_count"] = deliveries
    return json.dumps(row, ensure_ascii=False).encode() + b"\n"


def _as_text(options: argparse.Namespace) -> Callable[[Printed], bytes]:
    """The raw bytes for a pipe; for a terminal, text that cannot control it."""
    separator: bytes = options.separator.encode()

    def line(record: Printed) -> bytes:
        parts = [b"null" if record.value is None else record.value]
        if options.keys:
            parts.insert(0, b"null" if record.key is None else record.key)
        if options.headers:
            pairs = (
                name.encode() + b"=" + (b"null" if value is None else value) for name, value in record.headers
            )
            parts.insert(0, b",".join(pairs))
        return separator.join(parts) + b"\n"

    if not sys.stdout.isatty():
        return line

    def format_record(record: Printed) -> bytes:
        from ..tables import clean

        text = line(record)[:-1].decode(errors="replace")
        return "\t".join(map(clean, text.split("\t"))).encode() + b"\n"

    return format_record
