"""Producer ids are never given twice, whenever the broker dies."""

from __future__ import annotations

import pytest

from kohort.broker._producer_ids import BLOCK_SIZE, ProducerIds


def test_ids_rise_and_a_block_is_reserved_before_its_first_id() -> None:
    reserved: list[int] = []
    ids = ProducerIds(0, reserved.append)
    assert reserved == []
    taken = [ids.take() for _ in range(BLOCK_SIZE + 1)]
    assert taken == list(range(BLOCK_SIZE + 1))
    assert reserved == [BLOCK_SIZE, 2 * BLOCK_SIZE]


def test_a_restart_begins_behind_what_was_reserved() -> None:
    reserved: list[int] = []
    first = ProducerIds(0, reserved.append)
    given = {first.take(), first.take()}
    second = ProducerIds(reserved[-1], reserved.append)
    assert second.take() not in given


def test_no_id_is_given_when_its_block_cannot_be_made_durable() -> None:
    def fail(end: int) -> None:  # noqa: ARG001
        raise OSError("no space")

    ids = ProducerIds(5, fail)
    for _ in range(2):
        with pytest.raises(OSError, match="no space"):
            ids.take()
