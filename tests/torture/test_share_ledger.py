"""The ledger of a share group sees what comes back, what is lost, and counts that fall."""

from __future__ import annotations

import time

import pytest

from tests.torture.share_ledger import ACCEPT, REJECT, RELEASE, Place, ShareLedger

ONE, OTHER = Place(0, 1), Place(0, 2)


def ledger() -> ShareLedger:
    return ShareLedger(limit=5)


def given(book: ShareLedger, place: Place, count: int, asked_at: float | None = None) -> None:
    book.give("m", place, count, time.monotonic() if asked_at is None else asked_at)


def test_a_record_that_comes_back_after_its_answer_is_seen() -> None:
    for kind in (ACCEPT, REJECT):
        book, before = ledger(), time.monotonic()
        given(book, ONE, 1)
        book.say(ONE, kind, 1, is_stored=True)
        given(book, ONE, 2, before)
        assert book.broken == [], "it was asked for before"
        given(book, ONE, 2)
        assert len(book.broken) == 1
        assert "comes back" in book.broken[0]


def test_one_whose_answer_did_not_come_may_come_back() -> None:
    book = ledger()
    given(book, ONE, 1)
    book.say(ONE, ACCEPT, 1, is_stored=False)
    given(book, ONE, 2)
    assert (book.broken, book.done, book.lost([ONE])) == ([], 0, [])


def test_a_count_that_does_not_rise_after_a_stored_release_is_seen() -> None:
    book = ledger()
    given(book, ONE, 2)
    given(book, ONE, 2)
    book.say(ONE, RELEASE, 2, is_stored=False)
    given(book, ONE, 2)
    assert book.broken == [], "nothing of it was stored"
    book.say(ONE, RELEASE, 2, is_stored=True)
    given(book, ONE, 3)
    assert book.broken == []
    given(book, ONE, 2)
    assert len(book.broken) == 1
    given(book, ONE, 6)
    assert len(book.broken) == 2, "over the limit"


def test_what_nobody_was_given_or_finished_is_lost() -> None:
    book = ledger()
    assert book.lost([ONE]) == [ONE]
    given(book, ONE, 1)
    given(book, OTHER, 1)
    book.say(OTHER, RELEASE, 1, is_stored=True)
    assert book.lost([ONE, OTHER]) == [ONE, OTHER]
    book.say(ONE, ACCEPT, 1, is_stored=True)
    given(book, OTHER, 5)
    assert book.lost([ONE, OTHER]) == [], "one is done, the other was given as often as may be"


@pytest.mark.parametrize("end", [None, ACCEPT, REJECT])
def test_a_record_that_is_given_again_while_its_member_has_the_lock_is_seen(end: int | None) -> None:
    book = ledger()
    book.begin("m", ONE, 1, asked_at=5.0)
    given(book, ONE, 1, 5.0)
    if end is not None:
        book.finish("m", ONE, 5.0, end)
    assert book.handled_twice() == []
    given(book, ONE, 2, 4.0)
    assert book.handled_twice() == [], "it may have been given before"
    given(book, ONE, 2, 6.0)
    (found,) = book.handled_twice()
    assert "has its lock" in found


@pytest.mark.parametrize("end", [RELEASE, "lost", "answered late", "not answered"])
def test_a_record_whose_lock_has_ended_may_be_given_again(end: int | str) -> None:
    book = ledger()
    book.begin("m", ONE, 1, asked_at=5.0)
    book.finish("m", ONE, 5.0, end)
    given(book, ONE, 2, 6.0)
    assert book.handled_twice() == []


def test_the_locks_of_a_member_end_with_it() -> None:
    book = ledger()
    book.begin("m", ONE, 1, asked_at=5.0)
    given(book, ONE, 2, 6.0)
    book.on_dead("other")
    assert len(book.handled_twice()) == 1
    book.on_dead("m")
    assert book.handled_twice() == []


def test_two_ends_of_one_delivery_are_seen() -> None:
    book = ledger()
    for member, asked_at in (("m", 5.0), ("n", 6.0)):
        given(book, ONE, 1, asked_at)
        book.begin(member, ONE, 1, asked_at)
        book.finish(member, ONE, asked_at, ACCEPT)
    (found,) = book.handled_twice()
    assert "2 ends in delivery 1" in found
