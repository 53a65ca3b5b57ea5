"""Events: kept, listened to, iterated."""

from __future__ import annotations

import asyncio

from kohort.consumer.events import CallbackFailed, Event, EventLog, SessionInDoubt


def _event(number: float) -> Event:
    return SessionInDoubt(number)


async def _read(log: EventLog) -> list[Event]:
    return [event async for event in log]


async def test_an_iteration_gives_what_is_kept_and_what_comes_and_ends_at_close() -> None:
    log = EventLog()
    log.publish(_event(1))
    readers = [asyncio.create_task(_read(log)) for _ in range(2)]
    await asyncio.sleep(0)
    log.publish(_event(2))
    await asyncio.sleep(0)
    log.publish(_event(3))
    log.close()
    assert await asyncio.gather(*readers) == [[_event(1), _event(2), _event(3)]] * 2


async def test_only_the_last_events_are_kept() -> None:
    log = EventLog(kept=3)
    for number in range(10):
        log.publish(_event(number))
    assert log.recent == [_event(7), _event(8), _event(9)]
    log.close()
    assert await _read(log) == log.recent


def test_listeners_hear_each_event_and_one_that_raises_stops_nothing() -> None:
    log = EventLog()
    heard: list[Event] = []

    def fail(_: Event) -> None:
        raise RuntimeError("a bug")

    log.listen(fail)
    log.listen(heard.append)
    log.publish(_event(1))
    assert heard == [_event(1)]
    assert [type(event) for event in log.recent] == [SessionInDoubt, CallbackFailed]
