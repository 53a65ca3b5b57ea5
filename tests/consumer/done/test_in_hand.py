"""What a reader has in hand with ``auto_done``: done when the same reader asks, else delivered again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from kohort.consumer.done.in_hand import POLLS, DoneWithNext, InHand
from kohort.consumer.errors import StaleRecordError


class Source:
    """Items 0, 1, 2, ... for one consumer; an item is in ``done``, or given back and given again."""

    def __init__(self) -> None:
        self.next = 0
        self.done: list[int] = []
        self.in_hand = InHand(self._deliver_again)
        self.given_back = 0

    def _deliver_again(self) -> None:
        self.given_back += 1
        self.next = len(self.done)

    def loop(self) -> DoneWithNext[int]:
        return DoneWithNext(self._items(), self.in_hand, self.done.append)

    async def _items(self) -> AsyncIterator[int]:
        while True:
            item, self.next = self.next, self.next + 1
            yield item


def mark_of_a_lost_partition() -> None:
    raise StaleRecordError("orders-0 has another owner")


async def test_an_item_is_done_when_its_own_loop_asks_for_the_next() -> None:
    source = Source()
    loop = source.loop()
    assert await anext(loop) == 0
    assert source.done == []
    assert await anext(loop) == 1
    assert (source.done, source.given_back) == ([0], 0)


async def test_what_a_left_loop_had_in_hand_is_delivered_to_the_next_loop() -> None:
    source = Source()
    async for item in source.loop():
        if item == 2:
            break
    loop = source.loop()
    assert await anext(loop) == 2
    assert (source.done, source.given_back) == ([0, 1], 1)


async def test_a_poll_after_a_left_loop_gets_its_records_again_and_the_next_poll_marks_its_own() -> None:
    source = Source()
    assert await anext(source.loop()) == 0
    assert source.in_hand.is_left(POLLS)
    source.in_hand.on_asked(POLLS)
    assert source.given_back == 1
    source.in_hand.note_given(POLLS, lambda: source.done.append(0))
    assert not source.in_hand.is_left(POLLS)
    source.in_hand.on_asked(POLLS)
    assert (source.done, source.given_back) == ([0], 1)


def test_who_has_nothing_in_hand_marks_and_gives_back_nothing() -> None:
    source = Source()
    source.in_hand.on_asked(POLLS)
    source.in_hand.on_asked(object())
    assert (source.done, source.given_back) == ([], 0)


def test_a_mark_counts_once() -> None:
    source = Source()
    source.in_hand.note_given(POLLS, lambda: source.done.append(0))
    source.in_hand.on_asked(POLLS)
    source.in_hand.on_asked(POLLS)
    assert source.done == [0]


def test_records_of_a_partition_that_was_lost_meanwhile_need_no_mark() -> None:
    source = Source()
    source.in_hand.note_given(POLLS, mark_of_a_lost_partition)
    source.in_hand.on_asked(POLLS)
    assert not source.in_hand.is_left(object())


async def test_a_loop_goes_on_after_a_timeout() -> None:
    class Slow:
        """Gives nothing before ``ready``, and is no generator, which a cancellation would end."""

        ready = asyncio.Event()

        def __aiter__(self) -> Slow:
            return self

        async def __anext__(self) -> int:
            await self.ready.wait()
            return 0

    source, items = Source(), Slow()
    loop: DoneWithNext[int] = DoneWithNext(items, source.in_hand, source.done.append)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(loop), 0)
    items.ready.set()
    assert await anext(loop) == 0
