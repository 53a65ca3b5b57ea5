"""Runs a service on given records, in its own thread, until all of them are handled."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..consumer import Record
    from ..service import ConsumerService
    from ._running_broker import RunningBroker

POLL_S = 0.005

#: Settings that make the consumer fast on a local broker.
QUICK: Mapping[str, object] = {
    "auto_offset_reset": "earliest",
    "heartbeat_interval_ms": 100,
    "fetch_max_wait_ms": 100,
}
#: The same, of a share group's service.
QUICK_IN_SHARE: Mapping[str, object] = {"fetch_max_wait_ms": 100}


@dataclass(slots=True)
class ServiceRun:
    """``handled`` counts the handled records, dead letters included; ``dead_letters`` has those by topic."""

    handled: int = 0
    dead_letters: dict[str, list[Record]] = field(default_factory=dict)


def run_service(
    broker: RunningBroker,
    service: ConsumerService,
    records: Mapping[str, Iterable[object]],
    *,
    timeout_s: float = 30.0,
) -> ServiceRun:
    """Write ``records`` (by topic, as ``broker.produce`` takes them), and run the service until all are done.

    The service reads from ``broker``, whatever its own ``bootstrap`` says; its other settings are in force,
    except those in QUICK, and a share group reads from the first record. When this returns it has drained,
    committed and left, so its lifespans have ended, too, and it may be run again. Raises the service's
    errors, and TimeoutError.
    """
    rows = {topic: list(some) for topic, some in records.items()}
    expected = sum(map(len, rows.values()))
    unread = sorted(set(rows) - set(service.topics))
    if unread:
        raise ValueError(f"no handler of the service reads {', '.join(unread)}")
    for topic in service.topics:
        broker.produce(topic, rows.get(topic, []))
    for topic in service.retry_topics:
        broker.produce(topic, [])
    before = {topic: len(broker.read(topic)) for topic in service.dead_letter_topics}
    if service.in_share_group:
        broker.configure_share_group(service.group)
        service.reconfigure(bootstrap=broker.bootstrap, **QUICK_IN_SHARE)
    else:
        service.reconfigure(bootstrap=broker.bootstrap, **QUICK)
    handled = _run(service, expected, timeout_s)
    letters = {topic: broker.read(topic)[count:] for topic, count in before.items()}
    return ServiceRun(handled, {topic: some for topic, some in letters.items() if some})


def _run(service: ConsumerService, expected: int, timeout_s: float) -> int:
    deadline = time.monotonic() + timeout_s
    late = False
    with ThreadPoolExecutor(1, thread_name_prefix="kohort-service") as threads:
        served = threads.submit(lambda: asyncio.run(service.serve()))
        try:
            while not (served.done() or late or service.finished >= expected):
                time.sleep(POLL_S)
                late = time.monotonic() > deadline
            finished = service.finished
        finally:
            service.stop("the records are done" if not late else "the test is out of time")
        served.result()
    if late:
        raise TimeoutError(
            f"after {timeout_s:g} s {finished} of {expected} records were done: is a handler waiting?"
        )
    return finished
