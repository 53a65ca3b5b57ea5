"""All that is counted in one broker, and the snapshot of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...coordinator import Note
from ...log import OPEN_FILES
from .._stopwatch import clock
from ._groups import GroupCounters
from ._requests import RequestMeters
from ._sensors import WINDOW_S, Histogram
from ._snapshot import BrokerSnapshot, GroupFigures, PartitionFigures, QuotaFigures
from ._traffic import Clients

if TYPE_CHECKING:
    from .._node import Node
    from .._server import Server


class BrokerMetrics:
    """What happens is counted here. ``on_note`` is told of the coordinator's events behind the counters."""

    def __init__(self, on_note: Callable[[Note], None] | None = None) -> None:
        self.requests = RequestMeters(clock())
        self.groups = GroupCounters(on_note)
        self.clients = Clients()
        self.flush_times = Histogram()
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Let windows begin and end, on the running loop."""
        self._timer = asyncio.get_running_loop().call_later(WINDOW_S, self._rotate)

    def stop(self) -> None:
        """No further windows."""
        if self._timer is not None:
            self._timer.cancel()

    def snapshot(self, node: Node, server: Server) -> BrokerSnapshot:
        """The broker at this moment; for its event loop."""
        now = clock()
        topics = node.topics.all()
        partitions = [partition for topic in topics for partition in topic.partitions]
        return BrokerSnapshot(
            timestamp_ms=node.now_ms(),
            node_id=node.node_id,
            apis=self.requests.figures(now),
            clients=self.clients.figures(server.peers()),
            topics={topic.name: topic.traffic.figures() for topic in topics},
            partitions=[
                PartitionFigures(
                    one.topic.name, one.index, one.size_bytes, one.log_start_offset, one.log_end_offset
                )
                for one in partitions
                if one.log is not None
            ],
            groups=self._groups(node),
            quotas=_quotas(node, now),
            connections=server.quotas.by_listener(),
            connections_made=server.connections_made,
            connections_refused=dict(server.quotas.refused),
            request_bytes_held=server.backpressure.held_bytes,
            flush_times=self.flush_times.figures(),
            offline_partitions=sum(one.damage is not None for one in partitions),
            open_log_files=len(OPEN_FILES),
            max_open_log_files=OPEN_FILES.limit,
        )

    def _groups(self, node: Node) -> GroupFigures:
        counted = self.groups
        by_state, members = node.coordinator.group_counts()
        return GroupFigures(
            by_state=by_state,
            members=members,
            rebalances=dict(counted.rebalances),
            abandoned=counted.abandoned,
            rebalance_times=counted.rebalance_times.figures(),
            expired_members=counted.expired_members,
            offsets_committed=self.requests.offsets_committed,
            offsets_removed=counted.offsets_removed,
            refusals=counted.refusals,
            records_skipped=counted.records_skipped,
        )

    def _rotate(self) -> None:
        self.requests.rotate(clock())
        self.groups.rebalance_times.rotate()
        self.flush_times.rotate()
        self.start()


def _quotas(node: Node, now: float) -> list[QuotaFigures]:
    return [
        QuotaFigures(str(key), user, client_id, gauge.limit, gauge.used(now), gauge.throttled_s)
        for (key, user, client_id), gauge in node.quotas.gauges()
    ]
