"""run_service and the fixture ``kohort_service``: a service against given records."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable

import pytest

from kohort.consumer import Record
from kohort.service import ConsumerService, HandlerFailedError, LockedRecord, Retry
from kohort.testing import ServiceRun

RunService = Callable[..., ServiceRun]


def _service() -> ConsumerService:
    return ConsumerService(bootstrap="nowhere.example:9092", group="billing")


def test_all_records_are_handled_and_the_lifespan_has_ended(kohort_service: RunService) -> None:
    service, log = _service(), list[str]()

    @service.lifespan
    async def life() -> AsyncIterator[None]:
        log.append("open")
        yield
        log.append("closed")

    @service.handler("orders")
    def bill(record: Record) -> None:
        log.append((record.value or b"").decode())

    assert kohort_service(service, {"orders": [str(n) for n in range(100)]}).handled == 100
    assert log == ["open", *(str(n) for n in range(100)), "closed"]


def test_a_service_may_be_run_again_with_other_records(kohort_service: RunService) -> None:
    service, seen = _service(), []

    @service.handler("orders", dead_letter="orders.dlt")
    async def bill(record: Record) -> None:
        seen.append(record.value)
        if record.value == b"bad":
            raise ValueError("bad")

    first = kohort_service(service, {"orders": ["good", "bad"]})
    assert [letter.value for letter in first.dead_letters["orders.dlt"]] == [b"bad"]
    second = kohort_service(service, {"orders": ["better"]})
    assert (second.handled, second.dead_letters) == (1, {})
    assert seen == [b"good", b"bad", b"better"]


def test_a_service_of_a_share_group_is_run_on_given_records(kohort_service: RunService) -> None:
    service = ConsumerService(bootstrap="nowhere.example:9092", group="queue", group_type="share")
    counts: list[int] = []

    @service.handler("orders", retry=Retry(attempts=3, backoff_ms=1), dead_letter="orders.dlt")
    async def bill(record: LockedRecord) -> None:
        counts.append(record.delivery_count)
        if record.value == b"bad":
            raise ValueError("bad")

    run = kohort_service(service, {"orders": ["good", "bad"]})
    assert run.handled == 2
    assert [letter.value for letter in run.dead_letters["orders.dlt"]] == [b"bad"]
    assert counts == [1] * 4


def test_what_the_service_raises_the_test_raises(kohort_service: RunService) -> None:
    service = _service()

    @service.handler("orders")
    def bill(record: Record) -> None:
        raise OSError(f"no room for {record.value!r}")

    with pytest.raises(HandlerFailedError) as failure:
        kohort_service(service, {"orders": ["1"]})
    assert "no room for b'1'" in str(failure.value.__cause__)


def test_records_that_are_never_done_are_a_timeout(kohort_service: RunService) -> None:
    service, end = ConsumerService(bootstrap="x:1", group="billing", drain_timeout_ms=0), threading.Event()

    @service.handler("orders")
    def bill(_: Record) -> None:
        end.wait(5)

    with pytest.raises(TimeoutError, match="0 of 1 records were done"):
        kohort_service(service, {"orders": ["1"]}, timeout_s=1.0)
    end.set()


def test_records_that_no_handler_reads_are_a_mistake(kohort_service: RunService) -> None:
    service = _service()

    @service.handler("orders")
    def bill(_: Record) -> None: ...

    with pytest.raises(ValueError, match="no handler of the service reads oders"):
        kohort_service(service, {"oders": ["1"]})
