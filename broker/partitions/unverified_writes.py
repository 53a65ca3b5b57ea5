"""Transactional writes that are not verified yet: the first batches of producers' transactions (KIP-890)."""

from __future__ import annotations

from ...log import ProducerEntry
from ...protocol import BatchHeader, ErrorCode, KafkaError

#: Most producers remembered whose batches are to be verified.
_MAX_UNVERIFIED = 1_000


class UnverifiedWrites:
    """Producers whose transaction's first batch is not written yet, and the sequence number of that batch.

    A refused first batch is sent again; until then later ones must not be taken for the first.
    """

    __slots__ = ("_asked", "_first", "_verified")

    def __init__(self) -> None:
        # by producer id: a token while another broker is being asked, and the epoch that it has verified
        self._asked: dict[int, object] = {}
        self._verified: dict[int, int] = {}
        # by producer id: epoch, lowest sequence number, and whether an unknown producer has to begin at 0
        self._first: dict[int, tuple[int, int, bool]] = {}

    def begin(self, header: BatchHeader, *, from_zero: bool) -> None:
        """Note a batch that is about to be verified."""
        epoch, lowest, from_zero = self._first.pop(
            header.producer_id, (header.producer_epoch, header.base_sequence, from_zero)
        )
        if header.producer_epoch > epoch:
            epoch, lowest = header.producer_epoch, header.base_sequence
        elif header.producer_epoch == epoch:
            lowest = min(lowest, header.base_sequence)
        if len(self._first) >= _MAX_UNVERIFIED:
            del self._first[next(iter(self._first))]
        self._first[header.producer_id] = epoch, lowest, from_zero

    def check(self, header: BatchHeader, producer: ProducerEntry | None) -> None:
        """Raise KafkaError for a batch, of a transaction or not, that comes before the first one of its
        producer's transaction.

        One of an old epoch, or one that is stored already, is left to the log.
        """
        found = self._first.get(header.producer_id)
        if found is None:
            return
        if producer is not None and (
            producer.epoch > header.producer_epoch or producer.find(header) is not None
        ):
            return
        _, lowest, from_zero = found
        if header.base_sequence > lowest or (
            from_zero and header.base_sequence and (producer is None or not producer.batches)
        ):
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"a transaction cannot begin with sequence number {header.base_sequence} here: records "
                "before it are missing",
            )

    def end(self, producer_id: int) -> None:
        """Called when the first batch is written, or the transaction is over."""
        self._first.pop(producer_id, None)

    def ask(self, producer_id: int) -> object:
        """Note that another broker is asked whether a producer may write; return a token for ``told``."""
        if len(self._asked) >= _MAX_UNVERIFIED:
            self.on_marker(next(iter(self._asked)))
        return self._asked.setdefault(producer_id, object())

    def on_verified(self, producer_id: int, producer_epoch: int, asked: object) -> bool:
        """Note that it may; return whether that still counts: no marker has come meanwhile."""
        if self._asked.get(producer_id) is not asked:
            return False
        self._verified[producer_id] = producer_epoch
        return True

    def is_verified(self, producer_id: int, producer_epoch: int) -> bool:
        """Return whether another broker has said that a producer may write, with no marker since."""
        return self._verified.get(producer_id) == producer_epoch

    def on_marker(self, producer_id: int) -> None:
        """Called when a producer's transaction ends here: what was verified counts no more."""
        self._first.pop(producer_id, None)
        self._asked.pop(producer_id, None)
        self._verified.pop(producer_id, None)
