"""The replicas of one partition, as its leader sees them, without I/O.

Followers fetch; their fetch offsets show what they have. Records that all in-sync replicas have are
committed; they end at the high watermark. The controller writes which replicas are in sync; the leader asks
for changes
(AlterPartition, KIP-497). While a change is pending the leader does not know which of the two sets is in
force, so records count as committed only when the *maximal* set, the union of both, has them.

One ``Replication`` serves one leadership: another leader epoch is another object.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ..protocol import ErrorCode, KafkaError

#: An offset that is not known.
UNKNOWN: Final = -1

#: Errors after which the in-sync replicas are certainly unchanged. After all others, only the next state from
#: the controller shows whether they are.
_REFUSED_FOR_SURE: Final = (ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED)


class IsrChangeRequest(NamedTuple):
    """In-sync replicas that the leader requests, with the broker epochs that it knows (-1: for itself)."""

    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]


@dataclass(slots=True, eq=False)
class FollowerState:
    """A follower as its leader knows it: its log's end and start, the time at which it last had all records
    of the leader, and the epoch of its broker. Times are in milliseconds.
    """

    log_end_offset: int = UNKNOWN
    log_start_offset: int = UNKNOWN
    caught_up_ms: int = 0
    broker_epoch: int = -1
    # the time of the last fetch, and the end of the leader's log then
    fetched_ms: int = 0
    leader_end_offset: int = UNKNOWN

    def on_fetch(self, offset: int, now_ms: int, leader_end_offset: int, broker_epoch: int) -> None:
        """Note a fetch from an offset: the follower has everything below it."""
        if offset >= leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif self.leader_end_offset != UNKNOWN and offset >= self.leader_end_offset:
            # it has everything that the leader had at the last fetch
            self.caught_up_ms = max(self.caught_up_ms, self.fetched_ms)
        self.log_end_offset = offset
        self.fetched_ms, self.leader_end_offset = now_ms, leader_end_offset
        self.broker_epoch = broker_epoch


class Replication:
    """The replicas of a partition that ``node_id`` leads.

    ``lag_time_max_ms`` is ``replica.lag.time.max.ms``, ``min_isr`` is ``min.insync.replicas``. ``eligible``
    are the brokers that may be in sync, with their epochs: those that are alive and not shutting down.
    Methods that can advance the high watermark return whether they have.
    """

    def __init__(
        self,
        node_id: int,
        *,
        leader_epoch: int,
        partition_epoch: int,
        replicas: Sequence[int],
        isr: Sequence[int],
        recovering: bool = False,
        log_end_offset: int,
        high_watermark: int,
        now_ms: int,
        lag_time_max_ms: int,
        min_isr: int = 1,
        eligible: Mapping[int, int],
    ) -> None:
        self.node_id = node_id
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.isr = frozenset(isr)
        self.log_end_offset = log_end_offset
        self.high_watermark = min(high_watermark, log_end_offset)
        #: The end of the log when this leadership began: a follower that has not reached it may lack records
        #: of the former leader.
        self.start_offset = log_end_offset
        self._min_isr = min_isr
        self._lag_time_max_ms = lag_time_max_ms
        self._eligible = eligible
        self._recovering = recovering
        # the in-sync replicas to ask the controller for, and whether the request was handed out
        self._pending_isr: frozenset[int] | None = None
        self._is_requested = False
        # an earlier request for these replicas may be carried out yet
        self._is_unsure = False
        self._followers: dict[int, FollowerState] = {}
        self._set_replicas(replicas, now_ms)
        self._advance_high_watermark(now_ms)

    def __repr__(self) -> str:
        return (
            f"Replication(epoch {self.leader_epoch}, {self.high_watermark}..{self.log_end_offset}, "
            f"in sync {sorted(self.isr)}{', a change is pending' if self._pending_isr else ''})"
        )

    # -- what goes in ----------------------------------------------------------------------------------------

    def on_append(self, log_end_offset: int, now_ms: int) -> bool:
        """Note that the leader's log has grown."""
        self.log_end_offset = log_end_offset
        return self._advance_high_watermark(now_ms)

    def on_fetch(
        self, node_id: int, offset: int, now_ms: int, *, broker_epoch: int, start_offset: int = 0
    ) -> bool:
        """Note a follower's fetch from ``offset``; its log begins at ``start_offset``. Raises KafkaError:
        UNKNOWN_TOPIC_OR_PARTITION for a broker without a replica, NOT_LEADER_OR_FOLLOWER if the broker has
        registered again since: it may have lost records that it had.
        """
        follower = self._followers.get(node_id)
        if follower is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"broker {node_id} has no replica of this partition"
            )
        if UNKNOWN < broker_epoch < self._eligible.get(node_id, UNKNOWN):
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"broker {node_id} fetches with epoch {broker_epoch}, it is {self._eligible[node_id]} by now",
            )
        follower.on_fetch(offset, now_ms, self.log_end_offset, broker_epoch)
        follower.log_start_offset = start_offset
        if node_id not in self.isr and self._pending_isr is None and self._may_join(node_id):
            self._pending_isr = self.isr | {node_id}
        return self._advance_high_watermark(now_ms)

    def on_change(
        self,
        *,
        partition_epoch: int,
        replicas: Sequence[int],
        isr: Sequence[int],
        recovering: bool,
        now_ms: int,
    ) -> bool:
        """Apply the controller's state of the partition, under this leader epoch. States older than the known
        one are ignored.
        """
        if partition_epoch < self.partition_epoch:
            return False
        if partition_epoch > self.partition_epoch:
            # the new state decides the pending change, or makes it obsolete
            self._pending_isr, self._is_requested, self._is_unsure = None, False, False
        for node_id in self.isr.difference(isr):
            # the controller may know that it is gone: it is waited for again when it has fetched again
            if (left := self._followers.get(node_id)) is not None:
                left.caught_up_ms = min(left.caught_up_ms, now_ms - self._lag_time_max_ms - 1)
        self.partition_epoch = partition_epoch
        self.isr = frozenset(isr)
        self._recovering = recovering
        self._set_replicas(replicas, now_ms)
        return self._advance_high_watermark(now_ms)

    def on_refused(self, request: IsrChangeRequest, code: ErrorCode, now_ms: int) -> bool:
        """Note that the controller refused a request, or could not be reached. Unless the state is certainly
        unchanged, the change stays pending: it is requested again, or decided by the controller's next state.
        It is not if the outcome of an earlier request is unknown: that may arrive when replicas that join can
        be used again. Under another epoch of their brokers it would be refused.
        """
        if request.partition_epoch != self.partition_epoch or self._pending_isr is None:
            return False
        self._is_requested = False
        joining = self._pending_isr - self.isr
        if code not in _REFUSED_FOR_SURE:
            self._is_unsure = True
        elif not (self._is_unsure and joining and all(map(self._is_eligible, joining))):
            self._pending_isr, self._is_unsure = None, False
        return self._advance_high_watermark(now_ms)

    def brokers_changed(self, eligible: Mapping[int, int], now_ms: int) -> bool:
        """Note the brokers that may be in sync now, with their epochs."""
        self._eligible = eligible
        return self._advance_high_watermark(now_ms)

    def reconfigure(self, min_isr: int, lag_time_max_ms: int, now_ms: int) -> bool:
        """Apply changed settings."""
        self._min_isr, self._lag_time_max_ms = min_isr, lag_time_max_ms
        return self._advance_high_watermark(now_ms)

    def advance(self, now_ms: int) -> None:
        """Ask for in-sync replicas without those that have lagged for too long."""
        if self._pending_isr is None:
            lagging = {each for each in self.isr if not self._keeps_up(each, now_ms)}
            if lagging:
                self._pending_isr = self.isr - lagging

    # -- what comes out --------------------------------------------------------------------------------------

    @property
    def replicas(self) -> tuple[int, ...]:
        """All replicas, this one first."""
        return (self.node_id, *self._followers)

    @property
    def maximal_isr(self) -> frozenset[int]:
        """The replicas that may be in sync, whether the controller has accepted the pending change or not."""
        return self.isr | (self._pending_isr or frozenset())

    @property
    def is_under_min_isr(self) -> bool:
        """Return whether fewer replicas are in sync than ``min.insync.replicas`` requires: then no record
        becomes committed.
        """
        return len(self.isr) < min(self._min_isr, 1 + len(self._followers))

    @property
    def is_behind(self) -> bool:
        """Return whether the former leader may have shown records as committed that this one does not yet."""
        return self.high_watermark < self.start_offset

    @property
    def in_sync_end(self) -> int:
        """The offset below which all replicas that may be in sync have everything, however few they are: no
        other one can lead, so none of it can be lost.
        """
        followers = (each for node_id, each in self._followers.items() if node_id in self.maximal_isr)
        return min((each.log_end_offset for each in followers), default=self.log_end_offset)

    def have_deleted(self, offset: int) -> bool:
        """Return whether the logs of all live followers that may be in sync begin at an offset, or later."""
        return all(
            each.log_start_offset >= offset
            for node_id, each in self._followers.items()
            if node_id in self.maximal_isr and node_id in self._eligible
        )

    def silent(self, since_ms: int) -> set[int]:
        """Followers that may be in sync, and so may be elected, and whose last noted fetch is older."""
        return {
            node_id
            for node_id, each in self._followers.items()
            if node_id in self.maximal_isr and each.fetched_ms < since_ms
        }

    def having(self, offset: int) -> list[int]:
        """Followers whose logs contain an offset, in sync or not: the longest log first, then the last caught
        up.
        """
        found = [
            (-each.log_end_offset, -each.caught_up_ms, node_id)
            for node_id, each in self._followers.items()
            if UNKNOWN < each.log_start_offset <= offset <= each.log_end_offset
        ]
        return [node_id for _, _, node_id in sorted(found)]

    def take_isr_change(self) -> IsrChangeRequest | None:
        """Return the in-sync replicas to ask the controller for, once for each change; ``changed``
        or ``refused`` reports the outcome.
        """
        if self._pending_isr is None and self._recovering:
            # its log is now authoritative: report that, so that others may get in sync with it
            self._pending_isr = self.isr
        if self._pending_isr is None or self._is_requested:
            return None
        self._is_requested = True
        epochs = {node_id: follower.broker_epoch for node_id, follower in self._followers.items()}
        isr = tuple((node_id, epochs.get(node_id, -1)) for node_id in sorted(self._pending_isr))
        return IsrChangeRequest(self.leader_epoch, self.partition_epoch, isr)

    def check_acks_all(self) -> None:
        """Raise KafkaError NOT_ENOUGH_REPLICAS if nothing may be appended with acks=all."""
        if self.is_under_min_isr:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{len(self.isr)} replicas are in sync, min.insync.replicas is {self._min_isr}",
            )

    def is_acknowledged(self, end_offset: int) -> bool:
        """Return whether records below ``end_offset`` may be acknowledged with acks=all. Raises KafkaError
        NOT_ENOUGH_REPLICAS_AFTER_APPEND if they are committed, but by too few replicas.
        """
        if self.high_watermark < end_offset:
            return False
        if len(self.maximal_isr) < min(self._min_isr, 1 + len(self._followers)):
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
                f"fewer replicas than {self._min_isr} are in sync since the records were appended",
            )
        return True

    # -- inside ----------------------------------------------------------------------------------------------

    def _set_replicas(self, replicas: Sequence[int], now_ms: int) -> None:
        known = self._followers
        self._followers = {}
        for node_id in replicas:
            if node_id != self.node_id:
                # give an in-sync replica the whole lag time to prove that it is in sync
                caught_up_ms = now_ms if node_id in self.isr else 0
                self._followers[node_id] = known.get(node_id) or FollowerState(caught_up_ms=caught_up_ms)

    def _advance_high_watermark(self, now_ms: int) -> bool:
        """Advance the high watermark to what the maximal in-sync set has."""
        if self.is_under_min_isr:
            return False
        offset = self.log_end_offset
        for node_id, follower in self._followers.items():
            # wait for a replica that is about to get in sync, so that it can catch up
            joins = self._is_eligible(node_id) and follower.log_end_offset != UNKNOWN
            joins = joins and now_ms - follower.caught_up_ms <= self._lag_time_max_ms
            if node_id in self.maximal_isr or joins:
                offset = min(offset, follower.log_end_offset)
        if offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        return True

    def _keeps_up(self, node_id: int, now_ms: int) -> bool:
        follower = self._followers.get(node_id)
        if follower is None or follower.log_end_offset == self.log_end_offset:
            return True
        return now_ms - follower.caught_up_ms <= self._lag_time_max_ms

    def _may_join(self, node_id: int) -> bool:
        offset = self._followers[node_id].log_end_offset
        return self._is_eligible(node_id) and offset >= self.high_watermark and offset >= self.start_offset

    def _is_eligible(self, node_id: int) -> bool:
        return self._eligible.get(node_id) == self._followers[node_id].broker_epoch
