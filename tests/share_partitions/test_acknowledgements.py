"""Ranges of acknowledgements: what is well-formed, and what each offset is told."""

from __future__ import annotations

import pytest

from kohort.protocol import AcknowledgeType, ErrorCode, KafkaError
from kohort.share_partitions import AcknowledgedRange, check_ranges


@pytest.mark.parametrize(
    "ranges",
    [
        pytest.param([(5, 4, [1])], id="first above last"),
        pytest.param([(-1, 4, [1])], id="negative offset"),
        pytest.param([(5, 9, [1]), (0, 2, [1])], id="out of order"),
        pytest.param([(0, 5, [1]), (4, 9, [1])], id="overlapping"),
        pytest.param([(0, 2, [])], id="no type"),
        pytest.param([(0, 2, [1, 1])], id="neither one type nor one an offset"),
        pytest.param([(0, 2, [1, 1, 1, 1])], id="more types than offsets"),
        pytest.param([(0, 0, [-1])], id="type below 0"),
        pytest.param([(0, 0, [5])], id="type above 4"),
        pytest.param([(0, 0, [4])], id="renewal without IsRenewAck"),
    ],
)
def test_malformed_ranges_are_refused_without_a_message(ranges: list[tuple[int, int, list[int]]]) -> None:
    with pytest.raises(KafkaError) as refused:
        check_ranges([AcknowledgedRange(*each) for each in ranges], may_renew=False)
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    assert refused.value.message is None


@pytest.mark.parametrize(
    "ranges",
    [
        pytest.param([], id="none"),
        pytest.param([(0, 5, [1]), (5, 9, [1])], id="one shared offset, which acknowledge refuses"),
        pytest.param([(0, 2, [0, 4, 3])], id="a type for each offset, a renewal among them"),
        pytest.param([(0, 1 << 60, [1])], id="huge"),
    ],
)
def test_well_formed_ranges_pass(ranges: list[tuple[int, int, list[int]]]) -> None:
    check_ranges([AcknowledgedRange(*each) for each in ranges], may_renew=True)


def test_pieces_are_runs_of_one_type() -> None:
    accept, release = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE
    assert list(AcknowledgedRange(3, 9, [1]).pieces()) == [(3, 9, accept)]
    assert list(AcknowledgedRange(3, 7, [1, 1, 2, 1, 1]).pieces()) == [
        (3, 4, accept),
        (5, 5, release),
        (6, 7, accept),
    ]
