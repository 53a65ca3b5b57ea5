"""Clients that take little of their answers, on a clock of the test's own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from kohort.broker import BrokerSettings
from kohort.broker.network._slow_readers import LEAST_PART, SlowReaders

MOST = 1 << 20
SETTINGS = BrokerSettings(
    kohort_response_unread_max_bytes=MOST,
    kohort_response_unread_timeout_ms=30_000,
    queued_max_request_bytes=100 << 20,
)


class Client:
    """A connection as far as this is concerned: it was sent an answer and takes some of it."""

    def __init__(self, answer: int = 0, left: int = 0) -> None:
        self.outbox = SimpleNamespace(given=answer)
        self.sender = SimpleNamespace(given=0, left=left)
        self.held = answer
        self.transport = SimpleNamespace(get_write_buffer_size=lambda: self.held)

    def takes(self, size: int) -> None:
        self.held -= size

    def is_sent(self, size: int) -> None:
        self.sender.given += size
        self.held += size


def look(readers: SlowReaders, now: float, *clients: Client) -> list[tuple[Client, int]]:
    return cast("list[tuple[Client, int]]", readers.find_slow(cast(Any, clients), now))


def test_one_byte_now_and_then_is_nothing() -> None:
    readers, client = SlowReaders(SETTINGS), Client(12 << 20)
    for now in range(0, 30, 5):
        assert look(readers, now, client) == []
        client.takes(1)
    assert look(readers, 31, client) == [(client, (12 << 20) - 6)]


def test_who_takes_a_little_all_the_time_stays() -> None:
    readers, client = SlowReaders(SETTINGS), Client(12 << 20)
    for now in range(0, 3_000, 25):
        assert look(readers, now, client) == []
        client.takes(MOST // LEAST_PART)


def test_a_little_may_be_left_for_ever() -> None:
    readers, client = SlowReaders(SETTINGS), Client(MOST)
    for now in (0, 1_000, 2_000):
        assert look(readers, now, client) == []


def test_who_has_always_as_much_unread_but_takes_it_stays() -> None:
    """Each time it has taken an answer it gets the next."""
    readers, client = SlowReaders(SETTINGS), Client(12 << 20)
    for now in range(0, 300, 5):
        assert look(readers, now, client) == []
        client.takes(12 << 20)
        client.is_sent(12 << 20)


def test_what_is_still_in_files_counts_as_unread_and_takes_no_memory() -> None:
    readers, client = SlowReaders(SETTINGS), Client(1_000, left=500 << 20)
    assert look(readers, 0, client) == []
    assert look(readers, 31, client) == [(client, 1_000 + (500 << 20))]


def test_over_the_memory_of_all_those_go_that_took_the_least() -> None:
    readers = SlowReaders(SETTINGS)
    clients = [Client(40 << 20) for _ in range(5)]
    assert look(readers, 0, *clients) == [], "they may have come a moment ago"
    for number, client in enumerate(clients):
        client.takes((5 - number) << 20)
    gone = [client for client, _ in look(readers, 5, *clients)]
    assert gone == [clients[4], clients[3], clients[2]]
    for client in gone:
        readers.forget(cast(Any, client))
    assert look(readers, 10, *clients[:2]) == []
    assert repr(readers) == "SlowReaders(2 of them)"
