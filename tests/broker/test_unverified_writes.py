"""What a coordinator has verified, and the beginning of a transaction."""

from __future__ import annotations

from kohort.broker._unverified_writes import UnverifiedWrites


def test_what_a_coordinator_has_verified_counts_until_a_marker_comes() -> None:
    writes = UnverifiedWrites()
    asked = writes.ask(7)
    assert writes.told(7, 0, asked)
    assert writes.is_verified(7, 0)
    assert not writes.is_verified(7, 1)
    writes.marked(7)
    assert not writes.is_verified(7, 0)
    late = writes.ask(7)
    writes.marked(7)
    assert not writes.told(7, 0, late), "the transaction may be the one that has ended"
    assert not writes.is_verified(7, 0)
