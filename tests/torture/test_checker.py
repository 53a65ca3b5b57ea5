"""The checker finds each kind of anomaly that is planted, and nothing in a history that is right."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.torture.checker import ANOMALIES, check
from tests.torture.history import Commit, History, Sent, value_of

RECORDS = 10


def right() -> History:
    """One producer, one partition, one reader, one group; everything as it should be."""
    history = History()
    history.tried["p"] = RECORDS
    history.sent["p"] = [Sent(number, 0, number) for number in range(RECORDS)]
    history.final = {(0, number): value_of("p", number) for number in range(RECORDS)}
    session = history.session("reader")
    session.got[0] = [(number, value_of("p", number)) for number in range(RECORDS)]
    group = history.group("billing")
    group.handled[0] = set(range(RECORDS))
    for number in range(1, RECORDS):
        group.tried.append(Commit(history.tick(), 0, number))
        group.acknowledged.append(Commit(history.tick(), 0, number))
        group.seen.append(Commit(history.tick(), 0, number))
    return history


def test_nothing_is_found_in_a_history_that_is_right() -> None:
    assert check(right()) == []


def test_what_was_not_acknowledged_may_be_there_or_not() -> None:
    history = right()
    history.sent["p"] = history.sent["p"][::2]
    del history.final[0, 9]
    assert check(history) == []


def lost_write(history: History) -> None:
    del history.final[0, 4]


def unseen(history: History) -> None:
    del history.final[0, 9]


def duplicate(history: History) -> None:
    history.final[1, 0] = value_of("p", 3)


def phantom(history: History) -> None:
    history.final[1, 0] = value_of("p", RECORDS)


def inconsistent_offset(history: History) -> None:
    history.sessions[0].got[0][2] = (2, value_of("p", 7))


def skipped_poll(history: History) -> None:
    del history.sessions[0].got[0][5]


def nonmonotonic_poll(history: History) -> None:
    history.sessions[0].got[0].append((3, value_of("p", 3)))


def nonmonotonic_send(history: History) -> None:
    history.sent["p"][2:4] = [Sent(2, 0, 3), Sent(3, 0, 2)]


def lost_commit(history: History) -> None:
    history.group("billing").seen.append(Commit(history.tick(), 0, 8))


def phantom_commit(history: History) -> None:
    history.group("billing").seen.append(Commit(history.tick(), 0, RECORDS + 1))


def commit_above_work(history: History) -> None:
    history.group("billing").handled[0].discard(5)


PLANTED: dict[str, Callable[[History], None]] = {
    "lost write": lost_write,
    "unseen": unseen,
    "duplicate": duplicate,
    "phantom": phantom,
    "inconsistent offset": inconsistent_offset,
    "skipped poll": skipped_poll,
    "non-monotonic poll": nonmonotonic_poll,
    "non-monotonic send": nonmonotonic_send,
    "lost commit": lost_commit,
    "phantom commit": phantom_commit,
    "commit above work": commit_above_work,
}


@pytest.mark.parametrize("kind", ANOMALIES)
def test_a_planted_anomaly_is_found(kind: str) -> None:
    history = right()
    PLANTED[kind](history)
    assert kind in {anomaly.kind for anomaly in check(history)}


def test_a_commit_that_is_seen_before_a_later_one_is_acknowledged_is_right() -> None:
    history = right()
    group = history.group("billing")
    asked = history.tick()
    group.tried.append(Commit(history.tick(), 0, RECORDS))
    group.acknowledged.append(Commit(history.tick(), 0, RECORDS))
    group.seen.append(Commit(asked, 0, RECORDS - 1))
    group.seen.append(Commit(asked, 0, RECORDS))
    assert check(history) == []
