"""Settings of Java's clients, and of Spark's use of them, that change no row: taken, and left unused."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cache
from typing import TypeVar

T = TypeVar("T")

log = logging.getLogger(__name__)

_CLIENT = (
    "auto.include.jmx.reporter",
    "client.dns.lookup",
    "client.rack",
    "connections.max.idle.ms",
    "default.api.timeout.ms",
    "enable.metrics.push",
    "metadata.recovery.rebootstrap.trigger.ms",
    "metadata.recovery.strategy",
    "metric.reporters",
    "metrics.num.samples",
    "metrics.recording.level",
    "metrics.sample.window.ms",
    "receive.buffer.bytes",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "retry.backoff.max.ms",
    "retry.backoff.ms",
    "send.buffer.bytes",
    "socket.connection.setup.timeout.max.ms",
    "socket.connection.setup.timeout.ms",
)

_CONSUMER = (
    "allow.auto.create.topics",
    "check.crcs",
    "exclude.internal.topics",
    "fetch.max.bytes",
    "fetch.max.wait.ms",
    "fetch.min.bytes",
    "heartbeat.interval.ms",
    "max.partition.fetch.bytes",
    "max.poll.interval.ms",
    "max.poll.records",
    "partition.assignment.strategy",
    "session.timeout.ms",
)

_PRODUCER = (
    "acks",
    "batch.size",
    "buffer.memory",
    "delivery.timeout.ms",
    "enable.idempotence",
    "linger.ms",
    "max.block.ms",
    "max.in.flight.requests.per.connection",
    "max.request.size",
    "metadata.max.age.ms",
    "metadata.max.idle.ms",
    "retries",
)

#: What a read takes and does not need.
READING = frozenset(
    {
        *(f"kafka.{name}" for name in (*_CLIENT, *_CONSUMER)),
        "fetchoffset.numretries",
        "fetchoffset.retryintervalms",
        "groupidprefix",
        "kafkaconsumer.polltimeoutms",
    }
)

#: What a write takes and does not need: all replicas in sync acknowledge, each record once.
WRITING = frozenset(f"kafka.{name}" for name in (*_CLIENT, *_PRODUCER))


def without_tuning(given: Mapping[str, T], unused: frozenset[str]) -> dict[str, T]:
    """The options without those of ``unused``; names count in any case."""
    for key in given:
        if key.lower() in unused:
            _say_once(key)
    return {key: value for key, value in given.items() if key.lower() not in unused}


@cache
def _say_once(key: str) -> None:
    log.info("%s is a setting of Java's clients: it is left unused here", key)
