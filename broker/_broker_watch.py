"""The controller's watch over the processes of other brokers.

A session outlives its process by ``zookeeper.session.timeout.ms``. The controller keeps a connection to each
broker: when it ends and the broker refuses new ones, the broker no longer listens, and others can take over
at once. A refusal does not prove that a broker is dead (a firewall may refuse, too), and it need not: a
broker that refuses is treated like one that is about to stop. It loses the partitions that other in-sync
replicas can lead, under new leader epochs, and nothing else.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from ..client import BrokerRefusedError
from ..client.connection import Connection
from ..cluster import BrokerRegistration
from ..protocol import KohortError

log = logging.getLogger("kohort.broker")

#: Refusals in a row after which a broker counts as refusing, and the time between them in seconds.
_REFUSALS: Final = 3
_AGAIN_S: Final = 0.1
#: Pause before a broker that fails in other ways, or has refused for long, is tried again, in seconds.
_LATER_S: Final = 1.0


class BrokerWatch:
    """``connect`` opens a connection to a broker; ``changed`` is called when ``refusing`` has changed."""

    def __init__(self, connect: Callable[[int], Awaitable[Connection]], changed: Callable[[], None]) -> None:
        #: Registrations of the brokers that refuse connections, by node id: their epochs.
        self.refusing: dict[int, int] = {}
        self._connect = connect
        self._changed = changed
        self._watching: dict[tuple[int, int], asyncio.Task[None]] = {}

    def __repr__(self) -> str:
        return f"BrokerWatch({len(self._watching)} brokers, {sorted(self.refusing)} refuse)"

    def follow(self, brokers: Mapping[int, BrokerRegistration]) -> None:
        """Watch these brokers from now on, and no others."""
        wanted = {(node_id, broker.epoch) for node_id, broker in brokers.items()}
        for key in self._watching.keys() - wanted:
            self._watching.pop(key).cancel()
            self._tell(*key, refuses=False)
        for key in wanted - self._watching.keys():
            self._watching[key] = asyncio.get_running_loop().create_task(self._watch(*key))

    def _tell(self, node_id: int, epoch: int, *, refuses: bool) -> None:
        if refuses:
            self.refusing[node_id] = epoch
            log.warning(
                "broker %d refuses connections although its session goes on: others lead for it", node_id
            )
        elif self.refusing.get(node_id) == epoch:
            del self.refusing[node_id]
        else:
            return
        self._changed()

    async def _watch(self, node_id: int, epoch: int) -> None:
        refusals = 0
        while True:
            try:
                connection = await self._connect(node_id)
            except BrokerRefusedError:
                refusals += 1
                if refusals == _REFUSALS:
                    self._tell(node_id, epoch, refuses=True)
                await asyncio.sleep(_AGAIN_S if refusals < _REFUSALS else _LATER_S)
                continue
            except (KohortError, OSError):
                refusals = 0
                await asyncio.sleep(_LATER_S)
                continue
            refusals = 0
            self._tell(node_id, epoch, refuses=False)
            try:
                await connection.wait_closed()
            finally:
                connection.close()
