"""What a member says of records that it has acquired, and the checks that need no state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from ..protocol import AcknowledgeType, ErrorCode, KafkaError
from ..protocol.named_tuples import NamedTuple

_BY_NUMBER: Final = tuple(AcknowledgeType)


class AcknowledgedRange(NamedTuple):
    """Offsets from ``first`` to ``last``, both included; one type for all of them or one for each."""

    first: int
    last: int
    types: Sequence[int]

    def pieces(self) -> Iterator[tuple[int, int, AcknowledgeType]]:
        """Yield first and last offset of each run of one type."""
        types = self.types
        # members say of each record what most often is the same for all of them
        if types.count(types[0]) == len(types):
            yield self.first, self.last, _BY_NUMBER[types[0]]
            return
        first = self.first
        for kind, run in groupby(types):
            after = first + sum(1 for _ in run)
            yield first, after - 1, _BY_NUMBER[kind]
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
            or min(types) < AcknowledgeType.GAP
            or max(types) > most
        ):
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        before = last
