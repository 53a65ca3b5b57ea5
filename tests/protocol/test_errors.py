"""Error numbers and the errors made of them."""

from __future__ import annotations

from typing import Any

import kafka.errors
import pytest

from kohort.protocol import ErrorCode, KafkaError, KohortError
from kohort.protocol._errors import MAX_MESSAGE_CHARS

THEIRS: dict[int, Any] = {
    number: error
    for error in vars(kafka.errors).values()
    if isinstance(error, type) and isinstance(number := getattr(error, "errno", None), int)
}
#: Where the library differs from Apache Kafka's own table.
LIBRARY_DIFFERS = {ErrorCode.CORRUPT_MESSAGE}


@pytest.mark.parametrize(
    "code", [c for c in ErrorCode if c in THEIRS and c not in LIBRARY_DIFFERS], ids=lambda c: c.name
)
def test_what_may_be_tried_again_agrees_with_the_library(code: ErrorCode) -> None:
    assert code.retriable == bool(THEIRS[code].retriable)


def test_an_error_carries_number_name_and_text() -> None:
    error = KafkaError(27, "rejoin")
    assert error.code is ErrorCode.REBALANCE_IN_PROGRESS
    assert str(error) == "REBALANCE_IN_PROGRESS (27): rejoin"
    assert error.message == "rejoin"
    assert KafkaError(27).message is None
    assert not error.retriable
    assert isinstance(error, KohortError)


def test_a_number_outside_the_table_is_kept_in_the_text() -> None:
    error = KafkaError(4242)
    assert error.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert "error 4242" in str(error)


def test_the_text_for_an_answer_fits_a_string_of_the_wire_whatever_it_quotes() -> None:
    error = KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "\U0001f600" * 32_767)
    assert error.message is not None
    assert len(error.message) == MAX_MESSAGE_CHARS
    assert len(error.message.encode()) <= 32_767
