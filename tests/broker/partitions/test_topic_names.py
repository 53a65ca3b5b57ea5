"""Names that a topic can have."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.broker.partitions.topic_names import check_name, fold_name
from kohort.protocol import ErrorCode, KafkaError

LETTERS = "abcXYZ0189._-"


@given(st.text(LETTERS, min_size=1, max_size=249).filter(lambda name: name not in (".", "..")))
def test_kafkas_letters_are_enough(name: str) -> None:
    check_name(name)


@given(
    st.text(max_size=20),
    st.characters(exclude_categories=(), exclude_characters=LETTERS),
    st.text(max_size=20),
)
def test_any_other_letter_spoils_a_name(before: str, letter: str, after: str) -> None:
    if letter.isascii() and letter.isalnum():
        return
    with pytest.raises(KafkaError) as caught:
        check_name(before + letter + after)
    assert caught.value.code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_names_that_fold_together() -> None:
    assert fold_name("a.b_c") == fold_name("a_b.c") != fold_name("a-b.c")
