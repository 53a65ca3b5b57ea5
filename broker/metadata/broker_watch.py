"""The controller's watch over the processes of other brokers, and over the ways to them.

A session outlives its process by ``zookeeper.session.timeout.ms``. The controller keeps a connection to each
broker: when it ends and the broker refuses new ones, the broker no longer listens, and others can take over
at once. A refusal does not prove that a broker is dead (a firewall may refuse, too), and it need not: a
broker that refuses is treated like one that is about to stop. It loses the partitions that other in-sync
replicas can lead, under new leader epochs, and nothing else.

A broker that has not answered for as long as a session lasts is treated in the same way: it may reach the
metadata, but not its controller, without which a leader cannot give up followers that are out of its reach.
If most brokers do not answer it is the controller that is cut off.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final

from ...client import BrokerRefusedError
from ...client.connection import Connection
from ...cluster import BrokerRegistration
from ...protocol import KohortError
from ...protocol.messages.api_versions import ApiVersionsRequest

log = logging.getLogger("kohort.broker")

#: Refusals in a row after which a broker counts as refusing, and the time between them in seconds.
_REFUSALS: Final = 3
_AGAIN_S: Final = 0.1
#: Pause before a broker that fails in other ways, or has refused for long, is tried again, in seconds.
_LATER_S: Final = 1.0
#: How often a broker is asked while a session lasts, and what.
_QUESTIONS: Final = 3
_QUESTION: Final = ApiVersionsRequest("kohort", "broker")


class BrokerWatch:
    """``connect`` opens a connection to a broker; ``changed`` is called when ``unreachable`` has changed.
    ``session_s`` is how long a session lasts, in seconds.
    """

    def __init__(
        self,
        connect: Callable[[int], Awaitable[Connection]],
        changed: Callable[[], None],
        session_s: float,
    ) -> None:
        #: Registrations of the brokers that refuse connections or do not answer, by node id: their epochs.
        self.unreachable: dict[int, int] = {}
        self._connect = connect
        self._changed = changed
        self._session_s = session_s
        self._pause_s = session_s / _QUESTIONS
        self._watching: dict[tuple[int, int], asyncio.Task[None]] = {}
        # those of the unreachable ones that do not answer
        self._silent: set[int] = set()

    def __repr__(self) -> str:
        return f"BrokerWatch({len(self._watching)} brokers, {sorted(self.unreachable)} out of reach)"

    @property
    def is_cut_off(self) -> bool:
        """Return whether most of several brokers do not answer: rather this one cannot reach them."""
        return len(self._watching) > 1 and 2 * len(self._silent) > len(self._watching)

    def follow(self, brokers: Mapping[int, BrokerRegistration]) -> None:
        """Watch these brokers from now on, and no others."""
        wanted = {(node_id, broker.epoch) for node_id, broker in brokers.items()}
        for key in self._watching.keys() - wanted:
            self._watching.pop(key).cancel()
            self._on_answer(*key)
        for key in wanted - self._watching.keys():
            self._watching[key] = asyncio.get_running_loop().create_task(self._watch_broker(*key))

    def _on_answer(self, node_id: int, epoch: int) -> None:
        if self.unreachable.get(node_id) == epoch:
            del self.unreachable[node_id]
            self._silent.discard(node_id)
            self._changed()

    def _on_failure(self, node_id: int, epoch: int, *, silent: bool) -> None:
        if self.unreachable.get(node_id) != epoch:
            self.unreachable[node_id] = epoch
            if silent:
                self._silent.add(node_id)
            what = "does not answer" if silent else "refuses connections"
            log.warning("broker %d %s although its session goes on: others lead for it", node_id, what)
            self._changed()

    async def _watch_broker(self, node_id: int, epoch: int) -> None:
        loop = asyncio.get_running_loop()
        refusals, heard = 0, loop.time()
        while True:
            begun = loop.time()
            try:
                async with asyncio.timeout(self._pause_s):
                    connection = await self._connect(node_id)
            except BrokerRefusedError:
                refusals, heard = refusals + 1, loop.time()
                if refusals == _REFUSALS:
                    self._on_failure(node_id, epoch, silent=False)
                await asyncio.sleep(_AGAIN_S if refusals < _REFUSALS else _LATER_S)
                continue
            except (KohortError, OSError):
                refusals, heard = 0, self._last_heard(heard, begun)
                if loop.time() - heard >= self._session_s:
                    self._on_failure(node_id, epoch, silent=True)
                await asyncio.sleep(min(_LATER_S, self._pause_s))
                continue
            refusals = 0
            self._on_answer(node_id, epoch)
            heard = await self._ask_until_closed(connection)

    async def _ask_until_closed(self, connection: Connection) -> float:
        """Ask a broker again and again until its connection ends; return when it has answered last."""
        loop = asyncio.get_running_loop()
        heard = begun = loop.time()
        try:
            while True:
                begun = loop.time()
                await connection.request(_QUESTION, timeout_ms=self._pause_s * 1_000)
                heard = loop.time()
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._pause_s):
                        await connection.wait_closed()
                        return heard
        except (KohortError, OSError):
            return self._last_heard(heard, begun)
        finally:
            connection.close()

    def _last_heard(self, heard: float, begun: float) -> float:
        """When a broker was heard last that has not answered what was begun at ``begun``: if this process
        stood still meanwhile, that does not count.
        """
        now = asyncio.get_running_loop().time()
        return now if now - begun > 2 * self._pause_s else heard
