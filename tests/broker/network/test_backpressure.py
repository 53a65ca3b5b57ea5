"""Who may read on while the connections together hold much of what they may: 800,000 bytes here.

Covers: broker/network/_flow.py.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kohort.broker import BrokerSettings
from kohort.broker.network._backpressure import AT_ONCE, TURN_BYTES, Backpressure
from kohort.broker.network._flow import SMALL_BYTES
from kohort.broker.security._listeners import Listener

if TYPE_CHECKING:
    from kohort.broker.network._connection import ClientConnection

MOST = 800_000
#: What one read of a socket brings at most, in bytes.
ONE_READ = 262_144
SETTINGS = BrokerSettings(queued_max_request_bytes=MOST)


@dataclass(eq=False)
class Client:
    """A connection as far as backpressure knows it. ``full``: it has a reason of its own not to read."""

    backpressure: Backpressure
    small_only: bool = False
    control: bool = False
    full: bool = False
    held_bytes: int = 0
    reading: bool = True

    def __post_init__(self) -> None:
        self.listener = Listener("X", "PLAINTEXT", "127.0.0.1", 0, control=self.control)
        self.backpressure.add(cast("ClientConnection", self))

    def regulate(self) -> None:
        self.reading = not self.full and self.backpressure.lets_read(cast("ClientConnection", self))

    def send(self, size: int) -> None:
        """Part of a request arrives."""
        self.held_bytes += size
        self.small_only = self.small_only and self.held_bytes <= SMALL_BYTES
        self.backpressure.count_bytes(cast("ClientConnection", self), size)
        self.regulate()

    def done(self, size: int | None = None) -> None:
        """What it held is answered."""
        size = self.held_bytes if size is None else size
        self.held_bytes -= size
        self.backpressure.count_bytes(cast("ClientConnection", self), -size)
        if not self.reading:
            self.regulate()

    def leave(self) -> None:
        self.backpressure.forget(cast("ClientConnection", self))
        self.backpressure.count_bytes(cast("ClientConnection", self), -self.held_bytes)


@pytest.fixture
async def backpressure() -> Backpressure:
    return Backpressure(SETTINGS, asyncio.get_running_loop())


@pytest.mark.parametrize(
    ("eighths", "small_only", "small", "large"),
    [(4, True, True, True), (5, True, True, False), (7, True, False, False), (9, False, False, False)],
)
async def test_the_more_all_hold_the_more_have_to_wait(
    backpressure: Backpressure, eighths: int, small_only: bool, small: bool, large: bool
) -> None:
    clients = Client(backpressure, small_only=True), Client(backpressure), Client(backpressure)
    clients[2].send(SMALL_BYTES + 1)
    greedy, control = Client(backpressure), Client(backpressure, control=True)
    greedy.send(eighths * MOST // 8 - clients[2].held_bytes)
    assert [client.reading for client in clients] == [small_only, small, large]
    assert greedy.reading, "one always goes on"
    assert control.reading


async def test_the_time_in_which_all_of_the_limit_is_held_is_summed_up(
    backpressure: Backpressure, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(backpressure, "_loop", SimpleNamespace(time=lambda: now[0], call_soon=lambda _: None))
    greedy = Client(backpressure)
    greedy.send(7 * MOST // 8)
    assert backpressure.depleted_s(110.0) == 0
    for begins in (200.0, 300.0):
        now[0] = begins
        greedy.send(3 * MOST // 8)
        now[0] = begins + 5
        assert backpressure.depleted_s(now[0]) == (5 if begins == 200.0 else 12)
        now[0] = begins + 7
        greedy.done(3 * MOST // 8)
    assert backpressure.depleted_s(1_000.0) == 14


async def test_a_level_is_left_an_eighth_below_where_it_begins(backpressure: Backpressure) -> None:
    greedy, large = Client(backpressure), Client(backpressure)
    large.send(SMALL_BYTES + 1)
    greedy.send(4 * MOST // 8)
    assert not large.reading
    greedy.done(MOST // 16)
    await asyncio.sleep(0)
    assert not large.reading
    greedy.done(MOST // 8)
    await asyncio.sleep(0)
    assert large.reading


async def test_those_that_wait_read_on_32_in_a_turn_and_small_requests_first(
    backpressure: Backpressure,
) -> None:
    greedy = Client(backpressure)
    crowd = [Client(backpressure) for _ in range(2 * AT_ONCE)]
    small_only = [Client(backpressure, small_only=True) for _ in range(AT_ONCE)]
    greedy.send(9 * MOST // 8)
    greedy.done()
    assert not any(client.reading for client in [*crowd, *small_only])
    turns = []
    for _ in range(3):
        await asyncio.sleep(0)
        turns.append((sum(c.reading for c in small_only), sum(c.reading for c in crowd)))
    assert turns == [(AT_ONCE, 0), (AT_ONCE, AT_ONCE), (AT_ONCE, 2 * AT_ONCE)]


async def test_large_requests_go_on_one_after_the_other_in_the_order_they_came(
    backpressure: Backpressure,
) -> None:
    clients = [Client(backpressure) for _ in range(4)]
    for client in clients:
        client.send(MOST // 4)
    # the third brought them over half
    for favourite in (2, 0, 1):
        going_on = [client for client in clients if client.reading and client.held_bytes]
        assert going_on == [clients[favourite]]
        clients[favourite].done()
        await asyncio.sleep(0)
    assert clients[3].reading


async def test_of_many_large_requests_a_turn_of_the_loop_has_8_mib() -> None:
    backpressure = Backpressure(BrokerSettings(), asyncio.get_running_loop())
    crowd, small = [Client(backpressure) for _ in range(3 * AT_ONCE)], Client(backpressure)
    held = []
    for _ in range(6):
        for client in crowd:
            if client.reading:
                client.send(ONE_READ)
        held.append(backpressure.held_bytes)
        assert small.reading
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    # the first read of each tells that it is large
    assert held[0] == len(crowd) * ONE_READ
    assert all(later - before <= TURN_BYTES + ONE_READ for before, later in pairwise(held))
    assert all(client.held_bytes > ONE_READ for client in crowd)


async def test_only_if_nothing_moves_over_all_of_the_limit_bytes_have_to_go(
    backpressure: Backpressure,
) -> None:
    patience_s = (
        SETTINGS.kohort_request_complete_timeout_ms + SETTINGS.kohort_response_unread_timeout_ms
    ) / 1000
    loop = asyncio.get_running_loop()
    greedy = Client(backpressure)
    greedy.send(MOST)
    assert not backpressure.is_crowded()
    assert backpressure.stuck_bytes(loop.time() + 2 * patience_s) == 0
    greedy.send(MOST // 8)
    assert backpressure.is_crowded()
    before = loop.time()
    assert backpressure.stuck_bytes(before + patience_s - 10) == 0
    assert backpressure.stuck_bytes(before + patience_s + 1) == MOST // 4
    await asyncio.sleep(0.01)
    greedy.done(1)
    assert backpressure.stuck_bytes(before + patience_s) == 0, "something went"


async def test_who_leaves_makes_room_for_the_next(backpressure: Backpressure) -> None:
    first, second = Client(backpressure), Client(backpressure)
    first.send(MOST // 2 + 1)
    second.send(MOST // 2)
    assert (first.reading, second.reading) == (True, False)
    first.leave()
    await asyncio.sleep(0)
    assert second.reading


class Anybody(RuleBasedStateMachine):
    """Whatever clients do, the loop's turns let somebody go on, and nobody waits while there is room."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.backpressure = Backpressure(SETTINGS, self.loop)
        self.clients = [Client(self.backpressure) for _ in range(6)]

    def teardown(self) -> None:
        self.loop.close()

    def turns(self) -> None:
        for _ in range(4):
            self.loop.call_soon(self.loop.stop)
            self.loop.run_forever()

    @rule(which=st.integers(0, 5), size=st.sampled_from([10, SMALL_BYTES, 100_000, 250_000]))
    def send(self, which: int, size: int) -> None:
        client = self.clients[which]
        if client.reading:
            client.send(size)

    @rule(which=st.integers(0, 5))
    def answer(self, which: int) -> None:
        client = self.clients[which]
        client.small_only = client.held_bytes <= SMALL_BYTES
        client.done()

    @rule(which=st.integers(0, 5), full=st.booleans())
    def have_a_reason_of_its_own(self, which: int, full: bool) -> None:
        self.clients[which].full = full
        self.clients[which].regulate()

    @rule(which=st.integers(0, 5))
    def leave(self, which: int) -> None:
        self.clients[which].leave()
        self.clients[which] = Client(self.backpressure)

    @invariant()
    def somebody_goes_on(self) -> None:
        self.turns()
        able = [client for client in self.clients if not client.full]
        assert self.backpressure.held_bytes == sum(client.held_bytes for client in self.clients)
        if self.backpressure.held_bytes <= 3 * MOST // 8:
            assert all(client.reading for client in able)
        elif any(client.held_bytes for client in able):
            # one that has a reason of its own not to read is being answered, and then it is another's turn
            stuck = [client for client in self.clients if client.full and client.held_bytes]
            assert stuck or any(client.reading for client in able if client.held_bytes)


TestAnybody = Anybody.TestCase
