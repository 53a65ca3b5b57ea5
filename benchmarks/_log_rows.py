"""The rows of ``benchmarks.log``: what each does, what it measures, which goal it has."""

from __future__ import annotations

import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from kohort.protocol import ErrorCode

from . import _wire as wire
from ._brokers import Contender, Running, first_answer
from ._connection import Connection, WrongAnswerError, prepare
from ._rows import PARTITIONS, TOPIC, Figures, Metric, Part, fill

#: Bytes of a record, and by how many more or fewer those of varied lengths have.
RECORD_BYTES, SPREAD = 100, 80
#: Bytes of a produce request.
REQUEST_BYTES = 1 << 20
#: Of each of many topics.
FEW_PARTITIONS = 5
#: Most topics of a request: kohort and Apache Kafka create at most 10,000 partitions by one.
TOPICS_AT_ONCE = 10_000 // FEW_PARTITIONS
#: Groups that are asked for after a restart: they lie in every partition of ``__consumer_offsets``.
ASKED = 400
RESTART_TIMEOUT_S = 90.0
LOADING = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}


@dataclass(frozen=True, slots=True)
class Effort:
    """How much of a row is done at once."""

    records: int = 1_000_000
    groups: int = 100_000
    #: Records of a load alone.
    loaded: int = 1_000_000
    #: Times that records are read without a broker; the fastest counts.
    reads: int = 10
    #: Size of the log that is looked into, in GiB, and how often.
    gib: float = 10.0
    lookups: int = 4_000
    #: Topics of 5 partitions each.
    topics: int = 1_000


@dataclass(frozen=True, slots=True)
class LogPart(Part):
    """``run`` is given who is measured: for ``own`` parts that is kohort's code alone."""

    run: Callable[[Contender | str, Effort], Figures]
    own: bool = False
    #: A broker is started for each figure.
    restarts: bool = False


#: Times that the records are read; the median counts.
FETCHES = 3


def append_and_fetch(codec: str, spread: int, where: Contender | str, effort: Effort) -> Figures:
    """One producer as quick as it can be, then one consumer from offset 0, three times. Records have up to
    ``spread`` bytes more or fewer.
    """
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    assert isinstance(where, str)
    topic = f"log-{codec}-{spread}-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": where})
    for made in admin.create_topics([NewTopic(topic, 1, 1)]).values():
        made.result(30)
    failed: list[Any] = []
    producer = Producer(
        {
            "bootstrap.servers": where,
            "acks": 1,
            "linger.ms": 5,
            "compression.type": codec,
            "batch.size": REQUEST_BYTES,
            "batch.num.messages": 1_000_000,
            "queue.buffering.max.messages": effort.records + 1,
            "queue.buffering.max.kbytes": 1 << 21,
            "on_delivery": lambda error, _: failed.append(error) if error else None,
        }
    )
    producer.list_topics(topic, timeout=30)
    values = _values(spread)
    begin = time.perf_counter()
    for at in range(0, effort.records, len(values)):
        producer.produce_batch(topic, values[: effort.records - at], partition=0)
        producer.poll(0)
    left = producer.flush(120)
    append_s = time.perf_counter() - begin
    if left or failed:
        raise RuntimeError(f"{left} records are unsent and {len(failed)} refused: {failed[:1]}")
    fetch_s = statistics.median(_fetch_all(where, topic, effort.records) for _ in range(FETCHES))
    admin.delete_topics([topic])
    return {"append": effort.records / append_s, "fetch": effort.records / fetch_s}


def _fetch_all(bootstrap: str, topic: str, records: int) -> float:
    """Seconds to read and check them all."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "log",
            "enable.auto.commit": False,
            # with its own defaults the client rests for a second whenever 100,000 records wait in it
            "queued.min.messages": records,
            "queued.max.messages.kbytes": 1 << 20,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    count, give_up = 0, time.monotonic() + 120
    begin = time.perf_counter()
    while count < records and time.monotonic() < give_up:
        for message in consumer.consume(10_000, 1.0):
            if message.error() or message.offset() != count:
                raise RuntimeError(f"record {count} is not there: {message.error()} {message.offset()}")
            count += 1
    fetch_s = time.perf_counter() - begin
    consumer.close()
    if count < records:
        raise RuntimeError(f"{count} of {records} records were fetched")
    return fetch_s


def _values(spread: int) -> list[dict[str, bytes]]:
    """Ten thousand records that compress to about a half, as text does."""
    dice = random.Random(5)
    words = [f"{dice.randrange(10**9):09d}" for _ in range(500)]
    sizes = [RECORD_BYTES + dice.randint(-spread, spread) for _ in range(10_000)]
    texts = (" ".join(dice.choice(words) for _ in range(size // 10)) for size in sizes)
    return [{"value": text.encode().ljust(size)} for text, size in zip(texts, sizes, strict=True)]


def restart(where: Contender | str, effort: Effort) -> Figures:
    """From the start of the process to the last answer for groups of all partitions."""
    assert isinstance(where, Contender)
    with where.start() as running:
        prepare(running.bootstrap, TOPIC, PARTITIONS)
        names = fill(running.bootstrap, effort.groups)
        step = max(len(names) // ASKED, 1)
        asked = {name: offset for offset, name in enumerate(names) if offset % step == 0}
        with restarted(running) as (again, began):
            answered = _until_answered(again, asked)
            return {"restart": answered - began, "started": again.start_s}


def _until_answered(running: Running, asked: dict[bytes, int]) -> float:
    """When the offsets of every group were answered, and were right."""
    left, give_up = dict(asked), time.monotonic() + RESTART_TIMEOUT_S
    with Connection(running.bootstrap) as connection:
        while left and time.monotonic() < give_up:
            answer = wire.fetched(connection.ask(wire.offset_fetch(left)))
            for name, (error, offsets) in answer.items():
                if error not in LOADING and offsets != [left.pop(name)] * PARTITIONS:
                    raise WrongAnswerError(f"{name!r} has {offsets}, error {error}")
            if left:
                time.sleep(0.005)
    if left:
        raise WrongAnswerError(f"{len(left)} groups were not answered after {RESTART_TIMEOUT_S:g} s")
    return time.monotonic()


@contextmanager
def restarted(running: Running) -> Iterator[tuple[Running, float]]:
    """Stop a broker's process and start it again as it was started, until the block ends; and when it was."""
    assert running.pid is not None
    command = Path(f"/proc/{running.pid}/cmdline").read_bytes().split(b"\x00")[:-1]
    port = int(running.bootstrap.rpartition(":")[2])
    os.kill(running.pid, signal.SIGTERM)
    give_up = time.monotonic() + RESTART_TIMEOUT_S
    while _is_running(running.pid):
        if time.monotonic() > give_up:
            raise RuntimeError(f"process {running.pid} does not end")
        time.sleep(0.02)
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        first_answer(port, lambda: process.poll() is not None)
        yield Running(running.bootstrap, process.pid, time.monotonic() - began), began
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(60)
        process.kill()
        process.wait()


def _is_running(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def many_topics(where: Contender | str, effort: Effort) -> Figures:
    """Topics made by as few requests as brokers allow, a record to each of their partitions, and all of them
    described after a restart.
    """
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    assert isinstance(where, Contender)
    names = [f"many-{number:05d}" for number in range(effort.topics)]
    with where.start() as running:
        before_mib = running.resident_mib()
        servers = {"bootstrap.servers": running.bootstrap}
        begin = time.perf_counter()
        wanted = [NewTopic(name, FEW_PARTITIONS, 1) for name in names]
        admin = AdminClient(servers)
        for first in range(0, len(wanted), TOPICS_AT_ONCE):
            some = wanted[first : first + TOPICS_AT_ONCE]
            # its own limit is a minute
            for done in admin.create_topics(some, operation_timeout=300, request_timeout=300).values():
                done.result(330)
        create_s = time.perf_counter() - begin
        refused: list[Any] = []
        producer = Producer(
            {
                **servers,
                "acks": "all",
                "on_delivery": lambda error, _: refused.append(error) if error else None,
            }
        )
        begin = time.perf_counter()
        for name in names:
            for partition in range(FEW_PARTITIONS):
                producer.produce(name, b"first", partition=partition)
        left = producer.flush(300)
        produce_s = time.perf_counter() - begin
        if left or refused:
            raise RuntimeError(f"{left} first records are unsent and {len(refused)} refused: {refused[:1]}")
        grown_mib = running.resident_mib() - before_mib
        del admin, producer  # nobody else is connected while it starts
        with restarted(running) as (again, _):
            began = time.perf_counter()
            _until_led(again.bootstrap, names)
            restart_s = again.start_s + time.perf_counter() - began
    return {"create": create_s, "first": produce_s, "restart": restart_s, "memory": grown_mib}


def _until_led(bootstrap: str, names: list[str]) -> None:
    """Until every partition has a leader that says where its log ends: after the only record."""
    from confluent_kafka import KafkaException, TopicPartition
    from confluent_kafka.admin import AdminClient, OffsetSpec

    asked = {
        TopicPartition(name, partition): OffsetSpec.latest()
        for name in names
        for partition in range(FEW_PARTITIONS)
    }
    admin, give_up = AdminClient({"bootstrap.servers": bootstrap}), time.monotonic() + RESTART_TIMEOUT_S
    while asked and time.monotonic() < give_up:
        for partition, answer in admin.list_offsets(asked, request_timeout=60).items():
            with suppress(KafkaException):
                if (offset := answer.result(60).offset) != 1:
                    raise WrongAnswerError(f"{partition} ends at {offset}, not after its only record")
                del asked[partition]
    if asked:
        raise WrongAnswerError(f"{len(asked)} partitions had no leader after {RESTART_TIMEOUT_S:g} s")


def apart(what: str, *arguments: float) -> Figures:
    """Run a part of ``_log_alone`` in a process of its own, so that nothing else is in its memory."""
    command = [sys.executable, "-m", "benchmarks._log_alone", what, *map(str, arguments)]
    root = Path(__file__).resolve().parent.parent
    done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, check=True, text=True)
    figures: Figures = json.loads(done.stdout)
    return figures


def load(_where: Contender | str, effort: Effort) -> Figures:
    return apart("load", effort.loaded)


def read(_where: Contender | str, effort: Effort) -> Figures:
    return apart("read", effort.reads)


def look_up(_where: Contender | str, effort: Effort) -> Figures:
    return apart("look_up", effort.gib, effort.lookups)


PARTS = (
    *(
        LogPart(
            name,
            (
                Metric("append", f"append, 1 MiB requests of {records}, {codec}", "records/s", 1.0, True),
                Metric("fetch", f"fetch of them from offset 0, {codec}", "records/s", 1.0, True),
            ),
            partial(append_and_fetch, codec, spread),
        )
        for name, records, codec, spread in (
            ("none_batches", "100-byte records", "none", 0),
            ("lz4_batches", "100-byte records", "lz4", 0),
            ("varied_batches", "records of 20 to 180 bytes", "none", SPREAD),
        )
    ),
    LogPart(
        "restart",
        (
            Metric(
                "restart",
                "restart until OffsetFetch is answered, 1 M offsets of 100,000 groups",
                "s",
                0.25,
                digits=2,
            ),
        ),
        restart,
        restarts=True,
    ),
    LogPart(
        "many_topics",
        (
            Metric("create", "1,000 topics (or `--topics`) of 5 partitions made", "s", 1.0, digits=2),
            Metric("first", "a first record to each of those partitions", "s", 0.4, digits=2),
            Metric("restart", "restart until ListOffsets is answered for each", "s", 0.05, digits=2),
            Metric("memory", "what the broker grew by until then", "MiB", 0.1),
        ),
        many_topics,
        restarts=True,
    ),
    LogPart(
        "load",
        (
            Metric("load", "load alone, 2,048-record batches", "records/s", 1_000_000, True, own=True),
            Metric("bytes", "memory per stored offset", "bytes", 250, own=True),
        ),
        load,
        own=True,
    ),
    LogPart(
        "read",
        tuple(
            Metric(f"{key}_{sizes}", f"{work}, {records}", "µs", 2.0, own=True, digits=3)
            for sizes, records in (("equal", "100-byte records"), ("varied", "20 to 180 bytes"))
            for key, work in (
                ("check", "check of a produced record alone"),
                ("read", "a fetched one read alone"),
                ("arrow", "read into Arrow alone"),
            )
        ),
        read,
        own=True,
    ),
    LogPart(
        "look_up",
        (
            Metric("large", "look-up of an offset, 10 GiB", "ms", 0.1, own=True, digits=4),
            Metric("small", "the same, a tenth of the size", "ms", 0.1, own=True, digits=4),
        ),
        look_up,
        own=True,
    ),
)
