"""What a broker says of a cluster that lacks something: partitions without a leader or with too few replicas
in sync, and no controller.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from ...cluster import NO_LEADER
from ..event_loop.time_slices import in_slices
from ..reporting.trouble import Trouble, name_some
from .topics import Topics


class ClusterWatch:
    """Looks at the image of the cluster whenever ``look`` is called."""

    def __init__(self, topics: Topics, node_id: int, now: Callable[[], float] = time.monotonic) -> None:
        self._topics = topics
        self._node_id = node_id
        self._headless_looks = 0
        self._offline = Trouble(logging.ERROR, now=now)
        self._short = Trouble(now=now)
        self._headless = Trouble(logging.ERROR, now=now)

    def __repr__(self) -> str:
        return f"ClusterWatch(offline {self._offline}, short of replicas {self._short})"

    async def look(self) -> None:
        """Tell what is amiss now, and what no longer is. The leader tells which partitions are short of
        replicas, the controller which have no leader.
        """
        image, active = self._topics.image, self._topics.control.is_active
        offline: list[str] = []
        short: list[str] = []
        async for topic in in_slices(image.topics()):
            for number, state in enumerate(topic.partitions):
                if state.leader == NO_LEADER and active:
                    offline.append(f"{topic.name}-{number}")
                elif state.leader == self._node_id and len(state.isr) < len(state.replicas):
                    short.append(f"{topic.name}-{number}")
        if offline:
            words = "%d partitions have no leader, nobody can read or write them: %s"
            self._offline.on_present(words, len(offline), name_some(offline))
        else:
            self._offline.on_absent("all partitions have leaders again, or another broker is controller")
        if short:
            words = "%d partitions that this broker leads lack replicas in sync: %s"
            self._short.on_present(words, len(short), name_some(short))
        else:
            self._short.on_absent("no partition that this broker leads lacks replicas any more")
        self._look_for_controller(image.controller_id)

    def _look_for_controller(self, controller_id: int) -> None:
        """Tell if there is none in two looks: an election takes a moment."""
        self._headless_looks = self._headless_looks + 1 if controller_id == NO_LEADER else 0
        if self._headless_looks > 1:
            self._headless.on_present("the cluster has no controller: leaders and topics cannot change")
        elif not self._headless_looks:
            self._headless.on_absent("the cluster has a controller again")
