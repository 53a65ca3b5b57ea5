"""Links between brokers are cut and slow; nobody who is in sync is left."""

from __future__ import annotations

from typing import Final

from ..brokers._world import AnyWorld
from ..engine._plan import Incident

#: How long a broker is cut off to be out of sync, where that takes 300 ms.
_OUT_OF_SYNC_MS: Final = 700


class LinkFaults:
    """Carries out the incidents of links; those of the metadata belong to the broker's process."""

    def __init__(self, world: AnyWorld) -> None:
        self._world = world

    def meet(self, incident: Incident) -> bool:
        """Carry out an incident; return False if it is not about links."""
        world = self._world
        met, until_ms = world.met.number, world.heap.now + incident.length_ms
        other = world.other_than_met(incident)
        if incident.kind == "cut":
            self._cut(met, other, until_ms)
        elif incident.kind == "cut-one-way":
            world.links.cut(met, other, until_ms)
        elif incident.kind == "slow":
            by_ms = int(20 + incident.draw * 400)
            world.links.slow(met, other, by_ms, until_ms)
            if incident.who % 2:
                world.links.slow(other, met, by_ms, until_ms)
        elif incident.kind == "cut-off":
            for each in world.brokers:
                self._cut(met, each, until_ms)
            world.met._meet_cut_metadata(incident)
        elif incident.kind == "isr-lost":
            self._lose_isr()
        else:
            return False
        return True

    def _cut(self, first: int, second: int, until_ms: int) -> None:
        self._world.links.cut(first, second, until_ms)
        self._world.links.cut(second, first, until_ms)

    def _lose_isr(self) -> None:
        """Nobody who is in sync is left, but a broker that is not."""
        world = self._world
        until_ms = min(world.heap.now + _OUT_OF_SYNC_MS, world.over_ms)
        for other in world.brokers.values():
            if other is not world.met:
                self._cut(world.met.number, other.number, until_ms)
                world.heap.at(until_ms, other.crash)
