"""A broker as it ships, in a cluster or alone, without its sockets, on a disk and a clock of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from contextvars import copy_context
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

from ....broker.assembly import BrokerAssembly
from ....broker.clients.client_state import Peer
from ....broker.event_loop.time_slices import LongWork
from ....broker.partitions.leadership import Leadership
from ....broker.partitions.partition import Partition
from ....broker.requests.router import Router
from ....broker.settings import BrokerSettings
from ....client.errors import BrokerConnectionError, BrokerRefusedError
from ....client.metadata import Address
from ....client.surroundings import SURROUNDINGS, Surroundings
from ....cluster import Change, Endpoint, FolderStore, shared_cluster_id
from ....cluster.tree import Tree
from ....log import CorruptLogError, DataFolderError, Result, Steps
from ....protocol import ApiKey, KohortError, ProtocolError, decode_response, encode_request
from ...faults import FaultyFileSystem
from ..engine._connection import SimulatedConnection
from ..engine._disk import FailingDisk
from ..engine._loop import AnyFuture, ProcessLoop
from ..engine._network import SimulatedCall, SimulatedLink
from ..engine._plan import Incident
from ._links import Way
from ._plan import BrokerPlan, Values, rack_of
from ._schedule import HOST, PORT, BrokerSchedule
from ._session import BrokerSession

_DATA: Final = Path("/data")
#: Times after which the operator restarts a broker.
_RESTART_MS: Final = (1, 50, 700)
_NOTICED_MS: Final = 50
#: Times after which it notices that a connection broke.
_BROKEN_MS: Final = (1, 20, 300)
_LENGTH_BYTES: Final = 4
#: Requests that begin share sessions, and go on with them.
_SESSION_APIS: Final = (ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE)


class BrokerProcess(FailingDisk):
    """One broker through all its runs; ``parts`` are those of the present one, None while there is none."""

    def __init__(self, world: BrokerSchedule[BrokerPlan], number: int) -> None:
        super().__init__(world)
        self.world = world
        self.number = number
        self.name = f"b{number}"
        self.versions = world.versions
        self.connections: dict[SimulatedConnection, None] = {}
        self.parts: BrokerAssembly | None = None
        self.reachable = False
        self.session: BrokerSession | None = None
        #: What its wall clock shows beyond virtual time.
        self.clock_off_ms = world.clock_off_ms
        self.settings = BrokerSettings(
            **{**world.plan.settings, "node_id": number, "broker_rack": rack_of(number)}
        )
        self._endpoint = (HOST, PORT + number)
        self._loop: ProcessLoop | None = None
        self._context = copy_context()
        self._context.run(
            SURROUNDINGS.set,
            Surroundings(
                open_connection=self._open,  # type: ignore[arg-type]
                make_random=lambda: Random(world.rng.getrandbits(64)),
                work_clock=lambda: world.heap.now / 1_000,
                time_ms=lambda: world.heap.now + self.clock_off_ms,
            ),
        )
        self._serving: dict[SimulatedCall, asyncio.Task[None]] = {}
        # the other ends of connections that have something to lose when these break
        self._peers: dict[SimulatedLink, Peer] = {}
        self._noticed = False

    def __repr__(self) -> str:
        return self.name

    def leaderships(self) -> Iterable[tuple[Partition, Leadership]]:
        """Partitions that it leads, as far as it knows."""
        replicas = None if self.parts is None else self.parts._replicas
        return () if replicas is None else replicas._led.items()

    @property
    def run(self) -> object:
        """Its present process."""
        return self._loop

    @property
    def has_stopped(self) -> bool:
        """Return whether its disk has stopped it in the middle of an operation."""
        return self._fs.crashed and self._loop is not None

    def do(self, work: Coroutine[object, None, object]) -> None:
        """Let its process do something; nobody waits for it."""
        assert self._loop is not None, "it runs"
        self._loop.create_task(work, context=self._context)

    # --- requests -----------------------------------------------------------------------------------------

    def receive(self, call: SimulatedCall) -> None:
        assert self._loop is not None
        self.world.stats.requests += 1
        call.on_set = lambda _call, _body: None
        self._serving[call] = self._loop.create_task(self._serve(call), context=self._context)

    async def _serve(self, call: SimulatedCall) -> None:
        try:
            await self._answer(call)
        finally:
            self._serving.pop(call, None)

    async def _answer(self, call: SimulatedCall) -> None:
        parts = self.parts
        assert parts is not None
        self.world.on_request(self, call)
        frame = encode_request(call.version, 0, call.client.name, call.body)
        peer = self._peer_of(call)
        try:
            answer = await parts._router.answer(bytes(frame[_LENGTH_BYTES:]), peer)
        except ProtocolError as error:
            call.connection.reset(str(error))
            return
        if self.parts is not parts or answer is None:
            return
        whole = answer if isinstance(answer, bytes | bytearray) else b"".join(bytes(part) for part in answer)  # type: ignore[arg-type]
        _, body = decode_response(call.api_key, call.version, memoryview(bytes(whole))[_LENGTH_BYTES:])
        self.world.on_answer(self, call, body)
        call.set(body)
        if peer.share is not None:
            self._note_sent(call, peer)

    def _peer_of(self, call: SimulatedCall) -> Peer:
        """The other end of a request's connection: one and the same for all requests about share sessions,
        also for those that are under way at once.
        """
        link = call.connection
        peer = self._peers.get(link)
        if peer is None:
            peer = Peer("10.0.0.1", self._endpoint)
            if call.api_key in _SESSION_APIS and link.epoch == call.epoch:
                self._peers[link] = peer
                link.on_broken = partial(self._on_broken, link)
        return peer

    def _note_sent(self, call: SimulatedCall, peer: Peer) -> None:
        """Tell the other end of a connection with share sessions whether an answer has left."""
        if call.connection.epoch == call.epoch:
            peer.on_sent(0.0)
        else:
            self._notice_broken(peer)

    def _on_broken(self, link: SimulatedLink) -> None:
        peer = self._peers.pop(link, None)
        if peer is not None:
            self._notice_broken(peer)

    def _notice_broken(self, peer: Peer) -> None:
        """Close a connection a little later, when all that it sent is carried out."""
        if self._loop is not None:
            self.do(self._close_peer(peer, self.world.rng.choice(_BROKEN_MS)))

    async def _close_peer(self, peer: Peer, late_ms: int) -> None:
        await asyncio.sleep(late_ms / 1_000)
        peer.on_closed()

    def sending(self, call: SimulatedCall, answer: AnyFuture) -> None:
        """Called with each of its requests."""

    async def _open(self, address: Address, *, timeout_ms: float = 2_000, **_: object) -> SimulatedConnection:
        """Connect to another broker. Raises BrokerConnectionError."""
        heap, other = self.world.heap, self.world.broker_at(address)
        run = other.run
        way = Way(self.world.links, self.number, other.number, lambda: other.run is run)
        there = way.there(heap.now + 1 + int(self.world.rng.random() * 4))
        late_ms = way.back(there) - heap.now
        await asyncio.sleep(min(late_ms, timeout_ms) / 1_000)
        if late_ms >= timeout_ms:
            raise BrokerConnectionError(str(address), "cannot connect")
        if not other.reachable:
            raise BrokerRefusedError(str(address), "cannot connect: connection refused")
        connection = SimulatedConnection(self, address, other, way)
        self.connections[connection] = None
        return connection

    # --- looking ------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Look for what the machine's owner would notice; called after each event."""
        if self.has_stopped:
            self.on_crash()
        elif self._fs.failed and self.reachable and not self._noticed and self._is_damaged():
            self.world.say(f"a partition of {self} is offline: it is started again soon")
            self._noticed = True
            self.world.heap.at(self.world.heap.now + _NOTICED_MS, self._restart, self.parts)

    def _is_damaged(self) -> bool:
        return any(
            each.damage is not None or (each.log is not None and each.log.offline)
            for each in (() if self.parts is None else self.parts.node.logs.partitions())
        )

    def _restart(self, parts: BrokerAssembly) -> None:
        if self.parts is parts:
            self.crash()

    # --- life ---------------------------------------------------------------------------------------------

    def start(self) -> None:
        if self._loop is None:
            self._loop = loop = ProcessLoop(  # type: ignore[abstract]
                self.world.heap,
                failed=self._on_error,
                delay_ms=self._delay_ms,
                ran=partial(self.world.ran, self),
            )
            self._begin_session(loop)
            loop.create_task(self._start(), context=self._context)

    def _begin_session(self, loop: ProcessLoop) -> None:
        self.session = BrokerSession(self.world.metadata, self.world, loop, self.name)

    async def _open_metadata(self) -> Values:
        """What its assembly is told of its metadata."""
        assert self.session is not None, "it has begun"
        return {"store": self.session, "cluster_id": await shared_cluster_id(self.session)}

    async def _start(self) -> None:
        world = self.world
        off_ms = self.clock_off_ms
        try:
            parts = BrokerAssembly(
                _DATA,
                self._endpoint,
                self.settings,
                None,
                # a clock that does not follow the wall clock once the process runs
                lambda: world.heap.now + off_ms,
                Router,
                fs=self._fs,
                now_ms=lambda: world.heap.now + self.clock_off_ms,
                **await self._open_metadata(),
            )
            self.parts = parts
            self._on_assembled(parts)
            parts.open()
            self.reachable = True
            await parts.start()
            world.say(f"{self} has started")
            world.stats.reloads += 1
        except (KohortError, CorruptLogError, DataFolderError, OSError) as error:
            # the disk or the metadata still fails: the operator restarts the broker later
            world.say(f"{self} cannot start: {error}")
            world.heap.at(world.heap.now, self.crash)

    def _on_assembled(self, parts: BrokerAssembly) -> None:
        parts.server.registered_endpoints = lambda: [  # type: ignore[method-assign]
            Endpoint("PLAINTEXT", "PLAINTEXT", *self._endpoint)
        ]
        # there are no sockets
        parts.server.start = lambda: None  # type: ignore[method-assign]

    def on_crash(self) -> None:
        self.world.say(f"{self} stops in the middle of a write")
        self.crash()

    def crash(self, *, power: bool = False, wiped: bool = False) -> None:
        """The process, or with ``power`` its machine, stops here; it starts again a little later."""
        if self._loop is None:
            return
        self.world.stats.crashes += 1
        if power or wiped:
            self.world.lost_disk()
        left = FaultyFileSystem(page_bytes=512) if wiped else self._what_is_left(power=power)
        session, self.session = self.session, None
        if session is not None:
            heap = self.world.heap
            heap.at(
                heap.now + self.world.rng.randint(0, self.world.plan.session_ms),
                self._on_missed_session,
                session,
            )
        self._go_down(left)

    def _on_missed_session(self, session: BrokerSession) -> None:
        if not session.is_over:
            session.end()

    def _go_down(self, left: FaultyFileSystem) -> None:
        loop, self._loop = self._loop, None
        self.reachable = self._noticed = False
        self.parts = None
        self._serving.clear()
        self._peers.clear()
        # whatever a coroutine does when it is thrown away reaches no disk
        self._fs.crashed = True
        if loop is not None:
            loop.clear()
        for connection in list(self.connections):
            connection.line.close()
        self.connections.clear()
        self.world.connections_to(self)
        self._fs = left
        world = self.world
        world.heap.at(world.heap.now + world.rng.choice(_RESTART_MS), self.start)

    def heal(self) -> None:
        super().heal()
        if self._loop is not None:
            self._loop.freeze(0)
        if self.session is not None:
            self.session.hold(0)
            self.session.heal()

    def close(self) -> None:
        """Drop all references, so that this is freed at once."""
        if self._loop is not None:
            self._fs.crashed = True
            self._loop.clear()
        vars(self).clear()

    # --- what goes wrong ----------------------------------------------------------------------------------

    def _meet_kill(self, _incident: Incident) -> None:
        self.crash()

    def _meet_power_loss(self, _incident: Incident) -> None:
        self.crash(power=True)

    def _meet_wipe(self, _incident: Incident) -> None:
        self.crash(wiped=True)

    def _meet_pause(self, incident: Incident) -> None:
        self._freeze(incident)
        session = self.session
        if session is not None and incident.length_ms > self.world.plan.session_ms:
            heap = self.world.heap
            heap.at(heap.now + self.world.plan.session_ms, session.expire)

    def _meet_stall(self, incident: Incident) -> None:
        self._freeze(incident)

    def _freeze(self, incident: Incident) -> None:
        if self._loop is not None:
            self._loop.freeze(self.world.heap.now + incident.length_ms)

    def _meet_lose_session(self, _incident: Incident) -> None:
        if self.session is not None:
            self.session.expire()

    def _meet_blink(self, _incident: Incident) -> None:
        if self.session is not None:
            self.session.blink()

    def _meet_late_metadata(self, incident: Incident) -> None:
        if self.session is not None:
            self.session.hold(self.world.heap.now + incident.length_ms)

    def _meet_cut_metadata(self, incident: Incident) -> None:
        session, heap = self.session, self.world.heap
        if session is not None:
            session.cut()
            heap.at(heap.now + incident.length_ms, session.heal)
            if incident.length_ms > self.world.plan.session_ms:
                heap.at(heap.now + self.world.plan.session_ms, session.expire)

    def _meet_clock_jump(self, incident: Incident) -> None:
        # two jumps do not add up to what brokers refuse in timestamps of producers
        self.clock_off_ms = self.world.clock_off_ms + int((incident.draw - 0.5) * 7_200_000)

    def _meet_stop(self, _incident: Incident) -> None:
        if self.reachable and self._loop is not None and self.parts is not None:
            self._loop.create_task(self._stop(self.parts), context=self._context)

    async def _stop(self, parts: BrokerAssembly) -> None:
        if parts.node.cluster is not None and parts.node.cluster.epoch < 0:
            return
        self.world.say(f"{self} stops in good order")
        # as the server does, which is not there
        stop = parts.server.stop

        async def stopped() -> None:
            self.reachable = False
            serving = list(self._serving.values())
            for task in serving:
                task.cancel()
            if serving:
                await asyncio.wait(serving)
            await stop()

        parts.server.stop = stopped  # type: ignore[method-assign]
        try:
            await parts.stop()
        except KohortError as error:
            self.world.say(f"the stop of {self} is not clean: {error}")
        self.world.heap.at(self.world.heap.now, self._on_stopped, parts)

    def _on_stopped(self, parts: BrokerAssembly) -> None:
        if self.parts is parts:
            self.world.say(f"{self} has stopped")
            self.session = None
            self._go_down(self._what_is_left(power=False))

    def _on_error(self, context: dict[str, object]) -> None:
        error = context.get("exception")
        if not self._fs.crashed:
            self.world.found("S0", f"{self}: {context['message']}: {error!r}")

    def _delay_ms(self, _call: object) -> int:
        return self.world.rng.choice((0, 1, 5, 30))


class LoneProcess(BrokerProcess):
    """A broker that is alone. Its work takes turns as drawn, and one that stops in a write stops with its
    machine where records wait for the disk.
    """

    def __init__(self, world: BrokerSchedule[BrokerPlan], number: int) -> None:
        super().__init__(world, number)
        self._tree = Tree()

    def _begin_session(self, loop: ProcessLoop) -> None:
        """There are no sessions: its metadata are in its folder."""

    async def _open_metadata(self) -> Values:
        return {"make_store": lambda folder: _FolderInMemory(folder, self._tree)}

    def _on_assembled(self, parts: BrokerAssembly) -> None:
        super()._on_assembled(parts)
        parts.node.long_work = _DrawnTurns(self.world.rng)

    def on_crash(self) -> None:
        self.world.say("everything stops in the middle of a write")
        self.crash(power=self.world.plan.fsync)


class _FolderInMemory(FolderStore):
    """The metadata of a folder, in memory: what becomes of its files is not what this is about."""

    def __init__(self, folder: str, tree: Tree) -> None:
        super().__init__(folder)
        self._tree = tree
        self._unread.clear()

    def commit_now(self, *changes: Change) -> None:
        self._tree.apply(self._tree.plan(changes))


class _DrawnTurns(LongWork):
    """Long work that randomly yields to others wherever it may."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    async def run(self, steps: Steps[Result]) -> Result:
        if self._rng.random() < 0.2:
            await asyncio.sleep(self._rng.randint(0, 5) / 1_000)
        found: object = None
        try:
            while True:
                work = steps.send(found)
                found = None if work is None else work.call()
        except StopIteration as done:
            result: Result = done.value
            return result
