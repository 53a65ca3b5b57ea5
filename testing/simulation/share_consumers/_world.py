"""One schedule of share consumers on several brokers."""

from __future__ import annotations

from ..share_groups._world import ShareWorld
from ..workloads._share_consumers import ConsumerSharing
from ._plan import ShareConsumerPlan


class ShareConsumerWorld(ShareWorld):
    """A schedule that is about to run."""

    plan: ShareConsumerPlan
    make_sharing = ConsumerSharing

    def describe(self) -> dict[str, object]:
        return super().describe() | {"calm": self.plan.calm}
