"""Partitions that the user assigns, in no group or beside one: nobody else takes part, nothing is agreed."""

from __future__ import annotations

from collections.abc import Iterable

from ..protocol import TopicPartition
from .effects import Adopt
from .membership import Membership


class ByHand(Membership):
    """Stands where a membership stands, and sends nothing: no generation, no heartbeats, no sessions.

    Commits go to the group (if there is one) as of an administrator: the group must have no members.
    """

    _chosen: frozenset[TopicPartition] = frozenset()

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these from now on; what was assigned before and is not among them is given up in order."""
        self._chosen = frozenset(partitions)
        self._follow()

    def released(self, now: float) -> None:
        super().released(now)
        self._follow()

    def _follow(self) -> None:
        wanted = self._chosen
        if self._releases or wanted == self.owned:
            return
        added, gone = sorted(wanted - self.owned), sorted(self.owned - wanted)
        kept, self.owned = self.owned & wanted, wanted
        self._emit(Adopt(self.generation, tuple(added), tuple(sorted(kept))))
        if gone:
            self._release(tuple(gone), lost=False, reason="no longer assigned")

    def leave(self, reason: str) -> None:
        self._chosen = frozenset()
        super().leave(reason)

    def can_commit(self) -> bool:
        """At any time."""
        return True
