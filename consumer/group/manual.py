"""Manually assigned partitions, in place of a membership. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from ...assignors import TopicInfo
from ...protocol import ErrorCode, TopicPartition
from ...statemachine import MEMBER
from .effects import Assign, Request
from .member import GroupMember


class ManualAssignment(GroupMember):
    """Owns the partitions that the user assigns. It never joins, so it sends nothing and has no generation.

    Commits go to the group, if there is one, as an administrator's: the group must have no members.
    """

    life = MEMBER
    _chosen: frozenset[TopicPartition] = frozenset()

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions from now on; others that were assigned before are revoked."""
        self._chosen = frozenset(partitions)
        self._follow_positions()

    def _go_on(self, now: float) -> None:  # noqa: ARG002 - nothing here depends on the time
        self._follow_positions()

    def _follow_positions(self) -> None:
        wanted = self._chosen
        if self._revocations or wanted == self.owned:
            return
        added, gone = sorted(wanted - self.owned), sorted(self.owned - wanted)
        kept, self.owned = self.owned & wanted, wanted
        self._emit_effect(Assign(self.generation, tuple(added), tuple(sorted(kept))))
        if gone:
            self._revoke_partitions(tuple(gone), lost=False, reason="no longer assigned")

    def leave(self, reason: str) -> None:
        """Give up all partitions."""
        self._chosen = frozenset()
        super().leave(reason)

    def can_commit(self) -> bool:
        """Return True: commits need no generation."""
        return True

    # no group has anything to say to it

    def next_deadline(self) -> float | None:
        """None: nothing is due at a time."""
        return None

    def do_due(self, now: float) -> None:
        """Do nothing: there are no heartbeats and no session."""

    def on_topics(
        self,
        topics: Mapping[str, TopicInfo],
        now: float,
        gone: frozenset[str] = frozenset(),
        ids: Mapping[UUID, str] | None = None,
    ) -> None:
        """Do nothing: new partitions are read when the user assigns them."""

    def commit_refused(self, code: ErrorCode, generation: int, now: float) -> None:
        """Do nothing: the committer reports it, or tries again."""

    def subscribe(self, topics: Iterable[str], now: float) -> None:  # noqa: ARG002 - never called
        """Not called: partitions are assigned."""
        raise AssertionError("partitions are assigned, topics are not subscribed to")

    def resume(self, now: float) -> None:
        """Do nothing: without a generation a member is not paused."""

    def announce_leave(self, reason: str, now: float) -> bool:  # noqa: ARG002 - nobody would hear it
        """Return False: there is no group to tell."""
        return False

    def on_answer(self, request: Request, response: object, now: float) -> None:  # noqa: ARG002 - never called
        """Not called: no request is sent."""
        raise AssertionError("manual assignment sends no requests")

    def on_failure(self, request: Request, error: Exception, now: float) -> None:  # noqa: ARG002 - never called
        """Not called: no request is sent."""
        raise AssertionError("manual assignment sends no requests")

    def _send_leave(self, reason: str) -> None:
        """Do nothing: it is no member."""

    def _forget_generation(self, reason: str) -> None:
        """Do nothing: it has none."""
