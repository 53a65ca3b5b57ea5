"""``kohort produce``: lines of a file or a pipe become records of a topic, on any broker."""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import CancelledError
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from ..commands import add_connection, run_program, whole
from ..screen import INTERRUPTED, OK, REFUSED, Screen

if TYPE_CHECKING:
    from ...producer import Producer, RecordMetadata

_CLIENT: Final = "kohort-produce"
_CHUNK_BYTES: Final = 65_536
#: Most chunks that are read ahead while the broker takes records more slowly than they come.
_AHEAD: Final = 4
_PROGRESS_S: Final = 0.25
#: Fields of a JSON line that say what is written, and those that only say where it came from or what it is.
_FIELDS: Final = ("key", "value", "headers", "partition", "timestamp")
_OF_CONSUME: Final = ("topic", "offset", "decoded", "decoded_key")


class _Record(NamedTuple):
    value: bytes | None
    key: bytes | None = None
    partition: int | None = None
    timestamp_ms: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give ``kohort produce`` its arguments."""
    parser.add_argument("topic", metavar="TOPIC")
    add_connection(parser)
    parser.add_argument("--file", metavar="FILE", help="read this file, not standard input")
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--key-separator",
        metavar="TEXT",
        help="each line has a key, this text, and the value (default: no keys)",
    )
    how.add_argument(
        "--json",
        action="store_true",
        help="each line is a JSON object with value, and maybe key, headers, partition and timestamp (ms)",
    )
    parser.add_argument(
        "--partition", metavar="N", type=lambda text: whole(text, 0), help="for records that name none"
    )
    parser.add_argument(
        "--compression",
        choices=("none", "gzip", "snappy", "lz4", "zstd"),
        default="none",
        help="(default: %(default)s)",
    )
    parser.add_argument(
        "--acks",
        choices=("all", "1", "0"),
        default="all",
        help="who must have a record: all replicas in sync, the leader, nobody (default: %(default)s)",
    )


def run(options: argparse.Namespace) -> int:
    """Run a command that ``add_arguments`` has read; the exit code."""
    return run_program("kohort produce", lambda: asyncio.run(_run_command(options)))


async def _run_command(options: argparse.Namespace) -> int:
    from ...client import ConfigError
    from ...producer import Producer
    from ..connection import open_cluster
    from ..topics.requests import require_topics

    if options.key_separator == "":
        raise ConfigError("--key-separator is empty: give the text between key and value")
    source = 0 if options.file in (None, "-") else os.open(options.file, os.O_RDONLY)
    try:
        async with open_cluster(options, _CLIENT, [options.topic]) as cluster:
            await require_topics(cluster, [options.topic])
            timeout_ms = cluster.request_timeout_ms
            producer = Producer.on_cluster(
                cluster,
                acks=options.acks,
                compression=options.compression,
                batch_size=_CHUNK_BYTES,
                request_timeout_ms=timeout_ms,
                max_block_ms=timeout_ms,
                delivery_timeout_ms=timeout_ms + 1_000,
            )
            async with producer:
                return await _Run(options, producer, source).write_lines()
    finally:
        if source:
            os.close(source)


class _Run:
    """One run of the command. ``failures`` are lines that are not written, and why."""

    def __init__(self, options: argparse.Namespace, producer: Producer, source: int) -> None:
        self._options = options
        self._producer = producer
        self._source = source
        self._screen = Screen(as_json=False)
        self._written = 0
        self._failures: list[tuple[int, str]] = []
        self._failed = asyncio.Event()
        # a person who types sees the typed text, and needs no progress line
        self._shows = sys.stderr.isatty() and not os.isatty(source)
        self._began = self._shown = time.monotonic()

    async def write_lines(self) -> int:
        """Write all lines, until one fails or somebody ends it; the exit code."""
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None, "in a task"
        loop.add_signal_handler(signal.SIGTERM, task.cancel)
        code = OK
        try:
            await self._send_all()
        except asyncio.CancelledError:
            code = INTERRUPTED
        finally:
            loop.remove_signal_handler(signal.SIGTERM)
        # Ctrl-C for the second time ends this too
        await self._producer.flush()
        await asyncio.sleep(0)  # callbacks of the last records
        self._report_end()
        return REFUSED if self._failures else code

    async def _send_all(self) -> None:
        from ...protocol import KohortError

        count = await self._producer.partitions_for(self._options.topic)
        read = _from_json if self._options.json else partial(_from_text, self._options.key_separator)
        async for number, line in self._read_lines():
            if self._failed.is_set():
                return
            try:
                record = read(line)
                if record is None:
                    continue
                if record.partition is None:
                    record = record._replace(partition=self._options.partition)
                if record.partition is not None and record.partition >= count:
                    raise ValueError(f"the topic has {count} partitions, not number {record.partition}")
                future = await self._producer.send(self._options.topic, *record)
            except (KohortError, ValueError) as error:
                self._fail_line(number, error)
                return
            future.add_done_callback(partial(self._on_delivery, number))

    def _on_delivery(self, number: int, future: asyncio.Future[RecordMetadata]) -> None:
        error = future.exception()
        if error is None:
            self._written += 1
        else:
            self._fail_line(number, error)

    def _fail_line(self, number: int, error: BaseException) -> None:
        from ...protocol import KafkaError
        from ..errors import explain_error

        told = explain_error(error) if isinstance(error, KafkaError) else str(error)
        self._failures.append((number, told))
        self._failed.set()

    async def _read_lines(self) -> AsyncIterator[tuple[int, bytes]]:
        """Lines with their numbers, without their ends."""
        number, rest = 0, b""
        most = self._producer.config.max_request_size
        async for chunk in self._read_chunks():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                number += 1
                yield number, line.removesuffix(b"\r")
            if len(rest) > most:
                self._fail_line(
                    number + 1, ValueError(f"it is longer than {most:,} bytes, the most of a record")
                )
                return
            self._show_progress()
        if rest:
            yield number + 1, rest

    async def _read_chunks(self) -> AsyncIterator[bytes]:
        """Read chunks, until the end of the input or a failure.

        A thread reads, which may wait for ever: it is abandoned when the command ends.
        """
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[bytes | OSError] = asyncio.Queue(_AHEAD)

        def read() -> None:
            chunk: bytes | OSError = b"-"
            while chunk and not isinstance(chunk, OSError):
                try:
                    chunk = os.read(self._source, _CHUNK_BYTES)
                except OSError as error:
                    chunk = error
                putting = queue.put(chunk)
                try:
                    asyncio.run_coroutine_threadsafe(putting, loop).result()
                except (RuntimeError, CancelledError):
                    putting.close()  # the command has ended
                    return

        threading.Thread(target=read, name="kohort produce: reader", daemon=True).start()
        failed = asyncio.create_task(self._failed.wait())
        try:
            while True:
                getting = asyncio.create_task(queue.get())
                await asyncio.wait((getting, failed), return_when=asyncio.FIRST_COMPLETED)
                if not getting.done():
                    getting.cancel()
                    return
                chunk = getting.result()
                if isinstance(chunk, OSError):
                    raise OSError(chunk.errno, chunk.strerror, self._options.file or "standard input")
                if not chunk:
                    return
                yield chunk
        finally:
            failed.cancel()

    def _show_progress(self) -> None:
        now = time.monotonic()
        if self._shows and now - self._shown >= _PROGRESS_S:
            self._shown = now
            rate = self._written / (now - self._began)
            self._screen.status(f"{self._written:,} records written, {rate:,.0f} a second")

    def _report_end(self) -> None:
        written = f"{self._written:,} record{'' if self._written == 1 else 's'}"
        self._screen.remark(f"{written} written to topic {self._options.topic!r}")
        if self._failures:
            number, text = min(self._failures)
            more = len(self._failures) - 1
            others = f" (and {more:,} lines after it)" if more else ""
            print(f"kohort produce: line {number:,}{others}: {' '.join(text.split())}", file=sys.stderr)


def _from_text(separator: str | None, line: bytes) -> _Record:
    if separator is None:
        return _Record(line)
    key, found, value = line.partition(separator.encode())
    if not found:
        raise ValueError(f"it has no {separator!r} between key and value")
    return _Record(value, key)


def _from_json(line: bytes) -> _Record | None:
    """The record of a JSON object; None for an empty line. Raises ValueError."""
    if not line.strip():
        return None
    try:
        given = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is no JSON: {error}") from None
    if not isinstance(given, dict):
        raise ValueError('it is no JSON object: write {"value": ...}')
    if unknown := [name for name in given if name not in _FIELDS and name not in _OF_CONSUME]:
        raise ValueError(f"{unknown[0]!r} is no field of a record: give {', '.join(_FIELDS)}")
    if "value" not in given:
        raise ValueError("it has no value: write null for a record without one")
    return _Record(
        _bytes_of(given["value"]),
        _bytes_of(given.get("key")),
        _whole_number("partition", given.get("partition")),
        _whole_number("timestamp", given.get("timestamp")),
        tuple(_headers_of(given.get("headers"))),
    )


def _bytes_of(given: object) -> bytes | None:
    """Bytes of a JSON value: those of a text, those of ``{"base64": "..."}``, else its JSON."""
    if given is None:
        return None
    if isinstance(given, dict) and given.keys() == {"base64"} and isinstance(given["base64"], str):
        try:
            return base64.b64decode(given["base64"], validate=True)
        except ValueError as error:
            raise ValueError(f"{given['base64']!r} is no base64: {error}") from None
    if isinstance(given, str):
        return given.encode()
    # json.loads reads NaN and the like, which are not JSON: refuse them here
    return json.dumps(given, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _whole_number(name: str, given: object) -> int | None:
    if given is not None and (type(given) is not int or not 0 <= given < 2**63):
        raise ValueError(f"{name} {given!r}: give a whole number from 0 on")
    return given


def _headers_of(given: object) -> Iterator[tuple[str, bytes | None]]:
    rows = list(given.items()) if isinstance(given, dict) else given or []
    if not isinstance(rows, list):
        raise ValueError('headers are an object, or a list of pairs: {"trace": "a"} or [["trace", "a"]]')
    for row in rows:
        if not (isinstance(row, list | tuple) and len(row) == 2 and isinstance(row[0], str)):
            raise ValueError(f"header {row!r} is no pair of a name and a value")
        yield row[0], _bytes_of(row[1])
