"""One schedule of share consumers on several brokers."""

from __future__ import annotations

from typing import Final

from ..share_groups._world import ShareWorld
from ..workloads._share_consumers import ConsumerSharing
from ._plan import ShareConsumerPlan

#: A session of the consumer group of retry topics, and a rebalance.
_SESSION_MS: Final = 60_000


class ShareConsumerWorld(ShareWorld):
    """A schedule that is about to run."""

    plan: ShareConsumerPlan
    make_sharing = ConsumerSharing

    def __init__(self, plan: ShareConsumerPlan, *, checked: bool = True, traced: bool = False) -> None:
        super().__init__(plan, checked=checked, traced=traced)
        if plan.retries:
            # the consumer group of retry topics waits for members that were killed
            self.settle_ms += _SESSION_MS

    def describe(self) -> dict[str, object]:
        return super().describe() | {"calm": self.plan.calm, "retries after (ms)": self.plan.retries}
