"""What passes between a client and the broker is read along, however it is cut into pieces."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kohort.protocol import ApiKey, encode_request, encode_response
from tests.attack.victim import commit, look
from tests.messages import request_of, response_of
from tests.torture.history import History
from tests.torture.tap import Tap


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


def answer(error: int) -> bytes:
    make = response_of(ApiKey.OFFSET_COMMIT)
    row = make.OffsetCommitResponseTopic.OffsetCommitResponsePartition(partition_index=0, error_code=error)
    topic = make.OffsetCommitResponseTopic(name="orders", partitions=[row])
    return bytes(encode_response(ApiKey.OFFSET_COMMIT, 8, 2, make(version=8, topics=[topic])))


@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_a_commit_and_its_answer_are_found_among_others(size: int) -> None:
    history = History()
    connection = Tap(history).connection()
    asked = bytes(encode_request(5, 1, "c", look("billing"))) + bytes(
        encode_request(8, 2, "c", commit("billing", 573, "orders"))
    )
    for piece in pieces(asked, size):
        connection.asked(piece)
    (found,) = history.group("billing").wire
    assert (found.partition, found.offset, found.generation, found.member) == (0, 573, -1, "")
    assert (found.answered, found.error) == (None, None)
    other = response_of(ApiKey.OFFSET_FETCH)(version=5, topics=[], error_code=0)
    answers = bytes(encode_response(ApiKey.OFFSET_FETCH, 5, 1, other)) + answer(25)
    for piece in pieces(answers, size):
        connection.answered(piece)
    assert found.error == 25
    assert found.answered is not None
    assert found.asked < found.answered < history.tick()


@pytest.mark.parametrize("version", [7, 8])
def test_offsets_that_are_told_are_found(version: int) -> None:
    history = History()
    connection = Tap(history).connection()
    ask, make = request_of(ApiKey.OFFSET_FETCH), response_of(ApiKey.OFFSET_FETCH)
    rows = [(0, 573, 3, "", 0), (1, -1000, -1, "", 88)]
    if version < 8:
        asked = ask(group_id="billing", topics=None, require_stable=True)
        told = make(topics=[("orders", rows)])
    else:
        asked = ask(groups=[{"group_id": "billing", "topics": None}], require_stable=True)
        told = make(groups=[("billing", [{"name": "orders", "partitions": rows}])])
    connection.asked(bytes(encode_request(version, 1, "c", asked)))
    assert history.fetched == []
    connection.answered(bytes(encode_response(ApiKey.OFFSET_FETCH, version, 1, told)))
    assert [each[2:] for each in history.fetched] == [
        ("billing", "orders", 0, 573, 0),
        ("billing", "orders", 1, -1000, 88),
    ]
    assert all(each.asked < each.answered for each in history.fetched)


def test_a_commit_that_is_cut_off_was_not_asked_for() -> None:
    history = History()
    frame = bytes(encode_request(8, 2, "c", commit("billing", 573, "orders")))
    Tap(history).connection().asked(frame[:-1])
    assert history.groups == {}
