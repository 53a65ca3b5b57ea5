"""A broker's registration: its ephemeral entry under ``/brokers/ids``."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from ..protocol import KohortError
from ._image import BrokerRegistration, Endpoint
from ._store import ConflictError, Create, MetadataStore, Put, SessionState
from .layout import (
    CLUSTER_ID,
    broker_path,
    changing_of_broker,
    id_text,
    stored_broker,
    stored_cluster_id,
)

#: What may change in an entry.
_CHANGING = {"shutting_down", "damaged", "lost", "strays", "newer_epochs"}

#: Pause before a failed registration is retried.
_AGAIN_SECONDS = 0.1

log = logging.getLogger("kohort.cluster")


class WrongClusterError(KohortError):
    """The data folder, or the metadata store, is of another cluster."""


class Registration:
    """The entry of one broker: created again in each session, and when somebody removes it by hand, until the
    registration is closed.

    ``now_ms`` is the wall clock.
    """

    def __init__(self, store: MetadataStore, broker: BrokerRegistration, now_ms: Callable[[], int]) -> None:
        self._store = store
        self._broker = broker
        self._now_ms = now_ms
        self._path = broker_path(broker.node_id)
        self._wake = asyncio.Event()
        self._telling = asyncio.Lock()
        self._keeper: asyncio.Task[None] | None = None
        self._first: asyncio.Future[int] | None = None
        #: The broker's epoch: the step that made its entry; -1 while there is none.
        self.epoch = -1
        self._sessions_lost = 0

    def __repr__(self) -> str:
        return f"Registration({self._broker.node_id}, epoch {self.epoch})"

    @property
    def broker(self) -> BrokerRegistration:
        """The broker as it registers in each session."""
        return self._broker

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """The addresses of this broker."""
        return self._broker.endpoints

    async def register(self, endpoints: Sequence[Endpoint] = ()) -> int:
        """Return the epoch once the entry exists. Waits while another session owns the node id: a killed
        broker's session lasts until its timeout. ``endpoints`` replace those given at first, if the broker
        has begun to listen since.
        """
        assert self._keeper is None, "a broker is registered once"
        self._broker = self._broker._replace(endpoints=tuple(endpoints) or self._broker.endpoints)
        loop = asyncio.get_running_loop()
        self._first = loop.create_future()
        self._store.on_session(self._session_changed)
        self._keeper = loop.create_task(self._keep_entry())
        return await self._first

    async def shut_down(self) -> None:
        """Announce that this broker is about to stop and must lead nothing. Raises OSError, ConflictError."""
        self._broker = self._broker._replace(shutting_down=True)
        await self._update_entry()

    def announce_damaged(self, replicas: frozenset[tuple[UUID, int]]) -> None:
        """Announce, as soon as possible, which replicas of this broker cannot be used: topic ids and
        partitions. They replace those announced before.
        """
        if replicas != self._broker.damaged:
            self._broker = self._broker._replace(damaged=replicas)
            self._wake.set()

    def announce_lost(self, replicas: frozenset[tuple[UUID, int]]) -> None:
        """As ``damaged``, for replicas that a new data folder does not have."""
        if replicas != self._broker.lost:
            self._broker = self._broker._replace(lost=replicas)
            self._wake.set()

    def announce_strays(self, names: frozenset[str]) -> None:
        """Announce, as soon as possible, coordinators' topics that the disk has and the metadata do not."""
        if names != self._broker.strays:
            self._broker = self._broker._replace(strays=names)
            self._wake.set()

    def newer_epochs(self, epochs: Mapping[tuple[UUID, int], int]) -> None:
        """Announce, as soon as possible, leader epochs of logs that are newer than the metadata."""
        self._broker = self._broker._replace(newer_epochs=dict(epochs))
        self._wake.set()

    def close(self) -> None:
        """Stop keeping the registration; the entry goes when the session ends."""
        if self._keeper is not None:
            self._keeper.cancel()

    def _session_changed(self, state: SessionState) -> None:
        if state is SessionState.LOST:
            self.epoch = -1
            self._sessions_lost += 1
        self._wake.set()

    async def _keep_entry(self) -> None:
        while True:
            if self.epoch == -1 and self._store.session is SessionState.CONNECTED:
                await self._try_to_register()
            elif self._store.session is SessionState.CONNECTED:
                try:
                    await self._update_entry()
                except (OSError, ConflictError) as error:
                    log.warning("broker %d could not change its entry: %s", self._broker.node_id, error)
                    await asyncio.sleep(_AGAIN_SECONDS)
                    self._wake.set()
            if self.epoch == -1 and self._store.session is SessionState.CONNECTED:
                continue
            await self._wake.wait()
            self._wake.clear()

    async def _try_to_register(self) -> None:
        value = stored_broker(self._broker, self._now_ms())
        lost = self._sessions_lost
        try:
            await self._store.commit(Create(self._path, value, ephemeral=True))
        except ConflictError:
            await self._wait_for_other()
            return
        except OSError as error:
            # the entry may exist all the same: then reads show it once the session is connected again
            log.warning("broker %d could not be registered: %s", self._broker.node_id, error)
            await asyncio.sleep(_AGAIN_SECONDS)
            while self._store.session is SessionState.SUSPENDED:
                await self._wake.wait()
                self._wake.clear()
        if lost != self._sessions_lost:
            return  # the entry goes with the session that made it, even if the store still has it
        entry = self._store.get(self._path)
        if entry is not None and entry.value == value:
            self.epoch = entry.created
            self._store.watch(self._path, self._entry_changed)
            if self._first is not None and not self._first.done():
                self._first.set_result(entry.created)

    def _entry_changed(self, path: str) -> None:
        if self.epoch == -1:
            return
        entry = self._store.get(path)
        if entry is not None and entry.created == self.epoch:
            self._store.watch(path, self._entry_changed)
            return
        log.error("the entry of broker %d was removed from the metadata store", self._broker.node_id)
        self.epoch = -1
        self._wake.set()

    async def _update_entry(self) -> None:
        """Update the entry with what has changed since it was created. Raises OSError, ConflictError."""
        async with self._telling:
            entry = self._store.get(self._path)
            if entry is None or self.epoch != entry.created:
                return
            fixed = {name: entry.value[name] for name in entry.value.keys() - _CHANGING}
            value = fixed | changing_of_broker(self._broker)
            if value != entry.value:
                await self._store.commit(Put(self._path, value, entry.version))

    async def _wait_for_other(self) -> None:
        log.warning(
            "node id %d is registered by another broker, or by one of this id that was killed: waiting until "
            "its session ends",
            self._broker.node_id,
        )
        self._store.watch(self._path, lambda _: self._wake.set())
        if self._store.get(self._path) is not None:
            await self._wake.wait()
            self._wake.clear()


async def shared_cluster_id(store: MetadataStore, known: str | None = None) -> str:
    """The id of the cluster, which its first broker creates. ``known`` is the id in the data folder.

    Raises WrongClusterError if they differ, and OSError.
    """
    while True:
        entry = store.get(CLUSTER_ID)
        if entry is not None:
            found = str(entry.value["id"])
            if known not in (None, found):
                raise WrongClusterError(
                    f"the data folder is of cluster {known}, the metadata store of cluster {found}: give the "
                    "broker the folder, or the metadata store, that it had before, or an empty folder"
                )
            return found
        try:
            await store.commit(Create(CLUSTER_ID, stored_cluster_id(known or id_text(uuid.uuid4()))))
        except ConflictError:
            continue
