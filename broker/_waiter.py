"""Who waits for partitions to grow."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._partition import Partition


class Waiter:
    """A waiting Fetch, told which of its partitions have something new."""

    __slots__ = ("_changed", "_woken")

    def __init__(self) -> None:
        self._changed: dict[Partition, None] = {}
        self._woken: asyncio.Future[None] | None = None

    def tell(self, partition: Partition) -> None:
        """A partition has grown, or is gone."""
        self._changed[partition] = None
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)

    async def changed(self) -> list[Partition]:
        """The partitions that have changed since this was last asked; waits for the first."""
        if not self._changed:
            self._woken = asyncio.get_running_loop().create_future()
            await self._woken
        changed, self._changed = list(self._changed), {}
        return changed
