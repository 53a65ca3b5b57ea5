"""A simulated ZooKeeper, as far as groups without a coordinator use it: entries, sessions, watches.

Requests, responses and notifications of watches keep their order on a connection. When it breaks, pending
requests fail, although some were carried out. A session ends after its timeout without a request; a client
gives up its connection after two thirds of that without a response, like kazoo.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final

from kazoo.exceptions import (
    BadVersionError,
    ConnectionClosedError,
    ConnectionLoss,
    NodeExistsError,
    NoNodeError,
    SessionExpiredError,
)

from ....client.zookeeper import ZooKeeperSettings
from ....protocol import TopicPartition
from ..engine._loop import AnyFuture
from ._process import ServiceProcess, ServiceSchedule

#: Longest time until a client tries to connect again.
_RECONNECT_MS: Final = 80
#: Longest time until a client that runs hears of what somebody did to it. It watches a partition that it
#: claims once it has read and written the offset, which makes three requests.
_NEWS_MS: Final = 40
_NEVER_MS: Final = -(1 << 30)


@dataclass(slots=True)
class _Entry:
    data: bytes
    owner: int = 0
    version: int = 0

    def stat(self) -> SimpleNamespace:
        return SimpleNamespace(version=self.version, ephemeralOwner=self.owner)


class SimulatedZooKeeper:
    """The servers. ``away``: none of them answers. ``disturbed`` is called when members or owners change."""

    def __init__(self, world: ServiceSchedule, disturbed: Callable[[], None]) -> None:
        self.world = world
        self._disturbed = disturbed
        self.away = False
        self.entries: dict[str, _Entry] = {"/": _Entry(b"")}
        #: The connected client of each session that is not over, and when it was last heard of.
        self.sessions: dict[int, RegistrySession] = {}
        self.heard_ms: dict[int, int] = {}
        #: When somebody removed an entry, by its path, and ended a session.
        self._removed_ms: dict[str, int] = {}
        self._ended_ms = _NEVER_MS
        self._last = 0
        self._watches: defaultdict[tuple[str, str], list[tuple[RegistrySession, int, Any]]] = defaultdict(
            list
        )

    # --- what the checks ask ------------------------------------------------------------------------------

    def registered_members(self, group: str) -> list[str]:
        return self.below(f"/consumers/{group}/ids")

    def left_behind(self, group: str) -> list[str]:
        """Members that are still registered when all have ended, without those that had no connection at
        their end: these go with their sessions.
        """
        root = f"/consumers/{group}/ids"
        found = ((name, self.sessions.get(self.entries[f"{root}/{name}"].owner)) for name in self.below(root))
        return [name for name, session in found if session is None or not session.closed_unheard]

    def offset(self, group: str, partition: TopicPartition) -> int | None:
        entry = self.entries.get(f"/consumers/{group}/offsets/{partition.topic}/{partition.partition}")
        return int(entry.data) if entry is not None and entry.data.isdigit() else None

    def owns(self, process: Any, partition: TopicPartition) -> bool:
        """Return whether a process is the owner of a partition now, or cannot know yet that it is not.

        Functions in threads are told of at their end: who owned the partition when they began is not known.
        """
        plan, now = self.world.plan, self.world.heap.now
        path = f"/consumers/{plan.group}/owners/{partition.topic}/{partition.partition}"
        entry = self.entries.get(path)
        owner = None if entry is None else self.sessions.get(entry.owner)
        unreachable = self.away or any(session.silent for session in process.sessions)
        by_hand_ms = max(self._removed_ms.get(path, _NEVER_MS), self._ended_ms)
        # nobody is told before there is a connection again, or after the time of a session
        back_ms = now if unreachable else max((s.back_ms for s in process.sessions), default=_NEVER_MS)
        told_ms = max(by_hand_ms, min(back_ms, by_hand_ms + plan.session_ms))
        by_hand = now <= told_ms + _NEWS_MS
        wakes = now <= process.awake_ms + _NEWS_MS
        in_thread = plan.kind in ("plain", "once")
        return in_thread or by_hand or wakes or (owner is not None and owner.process is process)

    # --- sessions -----------------------------------------------------------------------------------------

    def attach(self, session: RegistrySession, number: int) -> int:
        """A client connects, with its session or 0; returns the number of its session, 0 if that is over."""
        if number and number not in self.sessions:
            return 0
        if not number:
            self._last += 1
            number = self._last
            self._look(number)
        self.sessions[number] = session
        self.heard_ms[number] = self.world.heap.now
        return number

    def _look(self, number: int) -> None:
        """End a session if nothing was heard of it."""
        now, session_ms = self.world.heap.now, self.world.plan.session_ms
        heard_ms = self.heard_ms.setdefault(number, now)
        if number not in self.sessions and heard_ms != now:
            return
        if self.away:
            heard_ms = self.heard_ms[number] = now  # servers that come back give everybody a whole session
        if now >= heard_ms + session_ms:
            self.end(number)
        else:
            self.world.heap.at(heard_ms + session_ms, self._look, number)

    def interfere(self, draw: int, *, end: bool) -> None:
        """End a session, or remove an entry of one, as an operator might."""
        self._ended_ms = self.world.heap.now if end else self._ended_ms
        paths = [path for path, entry in self.entries.items() if entry.owner]
        if end and self.sessions:
            self.end(list(self.sessions)[draw % len(self.sessions)])
        elif not end and paths:
            path = paths[draw % len(paths)]
            self._removed_ms[path] = self.world.heap.now
            self.remove(path)

    def end(self, number: int) -> None:
        """End a session, with its entries."""
        session = self.sessions.pop(number, None)
        if session is None:
            return
        self.world.say(f"{session.process.name}: its session with ZooKeeper ends")
        for path in [path for path, entry in self.entries.items() if entry.owner == number]:
            self.remove(path)
        if session.number == number:
            session.on_broken()

    # --- requests -----------------------------------------------------------------------------------------

    def handle(
        self, session: RegistrySession, epoch: int, kind: str, path: str, arguments: tuple[Any, ...]
    ) -> object:
        """The result of a request; raises KazooException."""
        if session.number not in self.sessions:
            raise SessionExpiredError
        self.heard_ms[session.number] = self.world.heap.now
        return getattr(self, f"_{kind}")(session, epoch, path, *arguments)

    def _get(self, _session: RegistrySession, _epoch: int, path: str) -> object:
        entry = self._entry(path)
        return entry.data, entry.stat()

    def _exists(self, session: RegistrySession, epoch: int, path: str, watch: object = None) -> object:
        if watch is not None:
            self._watches["entry", path].append((session, epoch, watch))
        entry = self.entries.get(path)
        return None if entry is None else entry.stat()

    def _get_children(
        self, session: RegistrySession, epoch: int, path: str, watch: object = None
    ) -> list[str]:
        self._entry(path)
        if watch is not None:
            self._watches["children", path].append((session, epoch, watch))
        return self.below(path)

    def _set(
        self, session: RegistrySession, _epoch: int, path: str, data: bytes, version: int = -1
    ) -> object:
        entry = self._entry(path)
        if version not in (-1, entry.version):
            raise BadVersionError
        if data != entry.data:
            self._on_committed(session, path, data)
        entry.data, entry.version = data, entry.version + 1
        self._on_changed("CHANGED", path)
        return entry.stat()

    def _create(
        self,
        session: RegistrySession,
        _epoch: int,
        path: str,
        data: bytes,
        _acl: object = None,
        ephemeral: bool = False,
        _sequence: bool = False,
        makepath: bool = False,
        include_data: bool = False,
    ) -> object:
        if path in self.entries:
            raise NodeExistsError
        assert makepath
        self._ensure_path(session, _epoch, path.rpartition("/")[0])
        self._on_committed(session, path, data)
        entry = self.entries[path] = _Entry(data, session.number if ephemeral else 0)
        if ephemeral:
            self._disturbed()
        self._on_changed("CREATED", path)
        return (path, entry.stat()) if include_data else path

    def _ensure_path(self, _session: RegistrySession, _epoch: int, path: str) -> bool:
        parts = path.strip("/").split("/")
        for depth in range(1, len(parts) + 1):
            part = "/" + "/".join(parts[:depth])
            if part not in self.entries:
                self.entries[part] = _Entry(b"")
                self._on_changed("CREATED", part)
        return True

    def _delete(self, _session: RegistrySession, _epoch: int, path: str) -> bool:
        self._entry(path)
        self.remove(path)
        return True

    def remove(self, path: str) -> None:
        """Remove an entry and all below it."""
        for each in [path, *(each for each in self.entries if each.startswith(f"{path}/"))][::-1]:
            del self.entries[each]
            self._on_changed("DELETED", each)
        self._disturbed()

    def _entry(self, path: str) -> _Entry:
        if path not in self.entries:
            raise NoNodeError
        return self.entries[path]

    def below(self, path: str) -> list[str]:
        found = (each.rpartition("/") for each in self.entries)
        return [name for parent, _, name in found if parent == path]

    def _on_changed(self, how: str, path: str) -> None:
        self.world.say(f"ZooKeeper: {path} {how.lower()}")
        self._fire("entry", path, how)
        if how == "DELETED":
            self._fire("children", path, how)
        if how != "CHANGED":
            self._fire("children", path.rpartition("/")[0], "CHILD")

    def _fire(self, kind: str, path: str, how: str) -> None:
        for session, epoch, watch in self._watches.pop((kind, path), ()):
            session.deliver(epoch, watch, SimpleNamespace(type=how, path=path))

    def _on_committed(self, session: RegistrySession, path: str, data: bytes) -> None:
        if "/offsets/" in path and data.isdigit():
            _, topic, number = path.rsplit("/", 2)
            self.world.ledger.on_stored(session.process, TopicPartition(topic, int(number)), int(data))


class RegistrySession:
    """One client's session after the other, with what the consumer uses of kazoo's client."""

    def __init__(
        self,
        process: ServiceProcess,
        servers: SimulatedZooKeeper,
        settings: ZooKeeperSettings,
        _log: logging.Logger,
    ) -> None:
        self.process = process
        self.client = self
        self.last_zxid = 0
        self.number = 0
        self._servers = servers
        self._heap, self._rng = servers.world.heap, servers.world.rng
        self._session_ms = settings.session_timeout_ms
        self._on_state: Callable[[str], None] = lambda _: None
        self._up = self._closed = False
        #: Whether ZooKeeper could not be told of the end.
        self.closed_unheard = False
        #: Nothing gets through to ZooKeeper or back.
        self.silent = False
        #: When that was over.
        self.back_ms = _NEVER_MS
        self._epoch = 0
        #: When the last connection broke: what arrives sooner is carried out still.
        self._until_ms = 0
        self._in_ms = self._out_ms = self._heard_ms = 0
        self._waiting: list[tuple[AnyFuture, str, str, tuple[object, ...]]] = []
        self._pending: list[AnyFuture] = []
        #: That of the process: what is called there belongs to its simulation.
        self._context = copy_context()
        process.sessions.append(self)

    @property
    def client_id(self) -> tuple[int, bytes] | None:
        return (self.number, b"") if self._up else None

    async def begin(self, on_state: Callable[[str], None]) -> None:
        self._on_state = on_state
        self._reconnect()

    def hand_over(self, call: Callable[..., None], *arguments: object) -> None:
        self.process.loop.call_soon(call, *arguments, context=self._context)

    def _later(self, delay_s: float, call: Callable[..., None], *arguments: object) -> None:
        self.process.loop.call_later(delay_s, call, *arguments, context=self._context)

    def close(self) -> None:
        self._closed = True
        for future in [*self._pending, *(row[0] for row in self._waiting)]:
            self._fail(future, ConnectionClosedError)
        if self._up and not self.silent and not self._servers.away:
            number = self.number
            self._heap.at(self._heap.now + 2, self._servers.end, number)
        else:
            self.closed_unheard = True
        self._up = False
        self._epoch += 1

    # --- connections --------------------------------------------------------------------------------------

    def mend(self) -> None:
        """ZooKeeper can be reached again, by another connection."""
        self.silent, self.back_ms = False, self._heap.now
        self.on_broken()

    def _reconnect(self) -> None:
        delay_s = self._rng.randint(2, _RECONNECT_MS) / 1_000
        self._later(delay_s, self._connect)

    def _connect(self) -> None:
        if self._closed or self._up:
            return
        if self.silent or self._servers.away:
            self._reconnect()
            return
        number = self._servers.attach(self, self.number)
        if not number:
            self.number = 0
            waiting, self._waiting = self._waiting, []
            for future, *_ in waiting:
                self._fail(future, SessionExpiredError)
            self._on_state("LOST")
            self._reconnect()
            return
        self.number = number
        self._up = True
        self._heard_ms = self._heap.now
        self._on_state("CONNECTED")
        self._ping(self._epoch)
        waiting, self._waiting = self._waiting, []
        for future, kind, path, arguments in waiting:
            self._send(future, kind, path, arguments)

    def _ping(self, epoch: int) -> None:
        """As kazoo: a sign of life at times, and an end when nothing comes for two thirds of a session."""
        if epoch != self._epoch or self._closed:
            return
        now = self._heap.now
        if now - self._heard_ms >= self._session_ms * 2 / 3:
            self.on_broken()
            return
        if not self.silent and not self._servers.away and self.number in self._servers.sessions:
            self._servers.heard_ms[self.number] = self._heard_ms = now
        self._later(self._session_ms / 6_000, self._ping, epoch)

    def on_broken(self) -> None:
        """The connection is gone; the client finds out when it runs."""
        epoch = self._epoch
        self._until_ms = self._heap.now + self._rng.randint(0, 3)
        self._later(self._rng.randint(1, 8) / 1_000, self._suspend, epoch)

    def _suspend(self, epoch: int) -> None:
        if epoch != self._epoch or self._closed or not self._up:
            return
        self._up = False
        self._epoch += 1
        pending, self._pending = self._pending, []
        for future in pending:
            self._fail(future, ConnectionLoss)
        self._on_state("SUSPENDED")
        self._reconnect()

    # --- requests -----------------------------------------------------------------------------------------

    def call(self, request: Callable[..., AnyFuture], *arguments: object) -> AnyFuture:
        return request(*arguments)

    def __getattr__(self, name: str) -> Callable[..., AnyFuture]:
        """``get_async`` and the like."""
        kind = name.removesuffix("_async")
        if kind == name or kind.startswith("_"):
            raise AttributeError(name)
        return lambda path, *arguments: self._ask(kind, path, arguments)

    def _ask(self, kind: str, path: str, arguments: tuple[object, ...]) -> AnyFuture:
        future = self.process.loop.create_future()
        if self._closed:
            self._fail(future, ConnectionClosedError)
        elif not self._up:
            self._waiting.append((future, kind, path, arguments))
        else:
            self._send(future, kind, path, arguments)
        return future

    def _send(self, future: AnyFuture, kind: str, path: str, arguments: tuple[object, ...]) -> None:
        self._pending.append(future)
        self._in_ms = max(self._heap.now + self._rng.randint(1, 4), self._in_ms)
        self._heap.at(self._in_ms, self._arrive, self._epoch, future, kind, path, arguments)

    def _arrive(
        self, epoch: int, future: AnyFuture, kind: str, path: str, arguments: tuple[object, ...]
    ) -> None:
        now = self._heap.now
        late = epoch != self._epoch and now > self._until_ms
        if late or self.silent or self._servers.away or self.number not in self._servers.sessions:
            return
        try:
            result = self._servers.handle(self, epoch, kind, path, arguments)
        except (BadVersionError, NodeExistsError, NoNodeError, SessionExpiredError) as error:
            result = error
        self.deliver(epoch, self._on_answer, future, result)

    def deliver(self, epoch: int, call: Callable[..., None], *arguments: object) -> None:
        """Something comes from ZooKeeper, after what came before."""
        self._out_ms = max(self._heap.now + self._rng.randint(1, 4), self._out_ms)
        self._heap.at(self._out_ms, self._deliver, epoch, call, arguments)

    def _deliver(self, epoch: int, call: Callable[..., None], arguments: tuple[object, ...]) -> None:
        if epoch == self._epoch and not self._closed and not self.silent:
            self._heard_ms = self._heap.now
            call(*arguments)

    def _on_answer(self, future: AnyFuture, result: object) -> None:
        if future in self._pending:
            self._pending.remove(future)
            self.hand_over(_settle, future, result)

    def _fail(self, future: AnyFuture, error: type[Exception]) -> None:
        self.hand_over(_settle, future, error())


def _settle(future: AnyFuture, result: object) -> None:
    if not future.done():
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)
