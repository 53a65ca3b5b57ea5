"""View of a cluster: its brokers, and partitions that lack replicas or are being reassigned."""

from __future__ import annotations

from dataclasses import replace

from ...admin import GroupAdmin
from ...admin.cluster.commands import ClusterStatus, status
from ...admin.visibility import ask_hidden_topics
from ..observer import View


class BrokersView(View):
    """Brokers, and partitions that lack replicas or are being reassigned."""

    def __init__(self) -> None:
        super().__init__()
        self.found: ClusterStatus | None = None
        self.hidden: tuple[str, ...] = ()

    async def look(self, admin: GroupAdmin) -> None:
        found, hidden = await status(admin.cluster), await ask_hidden_topics(admin.cluster)
        is_new = self.found is None or _as_shown(found) != _as_shown(self.found) or hidden != self.hidden
        self.found, self.hidden = found, hidden
        if is_new:
            self.tell("page", None)


def _as_shown(found: ClusterStatus) -> tuple[ClusterStatus, list[str]]:
    """What a page shows of a status. The free bytes of disks change all the time, and are rounded there."""
    brokers = [replace(each, disk=None) for each in found.brokers]
    return replace(found, brokers=brokers), [str(each.disk) for each in found.brokers]
