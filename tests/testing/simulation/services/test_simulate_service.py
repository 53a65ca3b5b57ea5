"""A schedule of services is its seed alone; users' own services run in it; failures can be replayed."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from random import Random

import pytest

from kohort.consumer import Record
from kohort.protocol import TopicPartition
from kohort.service import ConsumerService, Retry
from kohort.testing import SimulationFailed, simulate_service
from kohort.testing.simulation.__main__ import main
from kohort.testing.simulation.services import trace_service

pytestmark = pytest.mark.slow(2)

_TRACE = (
    "from kohort.testing.simulation.services import trace_service; import hashlib;"
    "print(hashlib.sha256(repr([trace_service(seed)[0] for seed in (4, 5, 10)]).encode()).hexdigest())"
)


def test_a_seed_is_the_same_schedule_each_time() -> None:
    assert trace_service(4)[0] == trace_service(4)[0]
    assert trace_service(4)[0] != trace_service(5)[0]


def test_a_seed_is_the_same_schedule_in_every_process() -> None:
    said = set()
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        command = [sys.executable, "-c", _TRACE]
        said.add(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert len(said) == 1


def test_a_schedule_with_retry_topics_does_not_look_at_the_clock_of_the_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    traces = []
    for step_ns in (0, 1_000_000_000):
        monkeypatch.setattr(time, "time_ns", partial(next, count(0, step_ns)))
        traces.append(trace_service(7)[0])
    assert traces[0] == traces[1]
    assert any("t0.retry.1" in line for line in traces[0])


async def test_the_event_loop_of_the_caller_stays() -> None:
    loop = asyncio.get_running_loop()
    simulate_service([10])
    assert asyncio.get_running_loop() is loop
    await asyncio.sleep(0)


class Shop:
    """A user's application: services that count, and what they have counted."""

    def __init__(self, *, loses: bool = False) -> None:
        self.billed: Counter[bytes | None] = Counter()
        self.calls: list[tuple[str, bool]] = []
        self._loses = loses

    def service(self) -> ConsumerService:
        service = ConsumerService(bootstrap="localhost:9092", group="billing", auto_offset_reset="earliest")

        @service.handler("orders", retry=Retry(attempts=3, backoff_ms=10))
        async def bill(record: Record) -> None:
            await asyncio.sleep(0.002)
            self._count(record)

        @service.handler("refunds", lanes="key", dead_letter="odd")
        def refund(record: Record) -> None:
            self._count(record)

        return service

    def _count(self, record: Record) -> None:
        self.calls.append((record.topic, True))
        if not (self._loses and record.offset == 2):
            self.billed[record.value] += 1

    def record(self, topic: str, rng: Random) -> tuple[bytes, bytes]:
        return b"customer", b"%s %d" % (topic.encode(), rng.getrandbits(60))

    def settled(self, records: Mapping[TopicPartition, Sequence[tuple[bytes | None, bytes | None]]]) -> None:
        missing = {value for rows in records.values() for _, value in rows} - self.billed.keys()
        assert not missing, f"never billed: {missing}"


def run(seeds: range, make: Callable[[], Shop] = Shop) -> list[Shop]:
    shops = []
    for seed in seeds:
        shop = make()
        simulate_service([seed], service=shop.service, record=shop.record, settled=shop.settled)
        shops.append(shop)
    return shops


def test_a_service_of_the_user_is_put_through_it() -> None:
    shops = run(range(6))
    assert {topic for shop in shops for topic, _ in shop.calls} == {"orders", "refunds"}


def test_a_service_that_loses_records_fails_with_what_the_user_says() -> None:
    with pytest.raises(SimulationFailed, match="never billed") as failure:
        run(range(6), lambda: Shop(loses=True))
    assert failure.value.violation.name == "A"
    assert "the application" in str(failure.value)


class Returns(Shop):
    """Some of its records are taken at their second try, in a retry topic, and some never."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: set[bytes | None] = set()

    def service(self) -> ConsumerService:
        service = ConsumerService(bootstrap="localhost:9092", group="billing", auto_offset_reset="earliest")

        @service.handler(
            "orders", retry=Retry(attempts=1), retry_after_ms=[100], dead_letter="odd.retry.never"
        )
        async def bill(record: Record) -> None:
            if record.offset == 3 or (record.offset in (4, 9) and record.value not in self.refused):
                self.refused.add(record.value)
                raise ValueError("not yet")
            self.billed[record.value] += 1

        return service

    def settled(self, records: Mapping[TopicPartition, Sequence[tuple[bytes | None, bytes | None]]]) -> None:
        values = {value for rows in records.values() for at, (_, value) in enumerate(rows) if at != 3}
        assert values <= self.billed.keys()


def test_a_service_of_the_user_may_have_retry_topics_and_any_topic_of_dead_letters() -> None:
    for seed in range(4):
        shop = Returns()
        simulate_service([seed], service=shop.service, record=shop.record, settled=shop.settled)
        assert shop.refused & shop.billed.keys()


def test_the_command_runs_schedules_of_services(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["simulation", "--services", "--seeds", "1", "--first", "10"])
    assert main() == 0
    assert "1 schedules" in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", ["simulation", "--services", "--seed", "10"])
    assert main() == 0
    assert "the faults are over" in capsys.readouterr().out


def test_a_failure_says_how_to_see_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from kohort.testing.simulation.services._ledger import ServiceLedger

    # whatever is committed counts as not done
    monkeypatch.setattr(ServiceLedger, "_on_done", lambda *_: None)
    with pytest.raises(SimulationFailed) as failure:
        simulate_service([10])
    text = str(failure.value)
    assert "S11" in text
    assert "python -m kohort.testing.simulation --services --seed 10" in text
