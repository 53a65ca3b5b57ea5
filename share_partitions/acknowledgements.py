"""What a member says of records that it has acquired, and the checks that need no state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from ..protocol import AcknowledgeType, ErrorCode, KafkaError


class AcknowledgedRange(NamedTuple):
    """Offsets from ``first`` to ``last``, both included; one type for all of them or one for each."""

    first: int
    last: int
    types: Sequence[int]

    def pieces(self) -> Iterator[tuple[int, int, AcknowledgeType]]:
        """Yield first and last offset of each run of one type."""
        if len(self.types) == 1:
            yield self.first, self.last, AcknowledgeType(self.types[0])
            return
        first = self.first
        for kind, run in groupby(self.types):
            after = first + sum(1 for _ in run)
            yield first, after - 1, AcknowledgeType(kind)
            first = after


def check_ranges(ranges: Sequence[AcknowledgedRange], *, may_renew: bool) -> None:
    """Raise KafkaError(INVALID_REQUEST) unless the ranges of one partition are well-formed.

    Ranges have to be in order. Two that share one offset pass, as in Apache Kafka; ``acknowledge`` finds the
    second to be of a record that is acknowledged. ``may_renew``: the request has IsRenewAck.
    """
    most = AcknowledgeType.RENEW if may_renew else AcknowledgeType.REJECT
    before = -1
    for first, last, types in ranges:
        if (
            not 0 <= first <= last
            or first < before
            or len(types) not in {1, last - first + 1}
            or not all(AcknowledgeType.GAP <= kind <= most for kind in types)
        ):
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        before = last
