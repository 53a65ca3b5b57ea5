"""Views of the cluster, refreshed while pages show them, once for all browsers.

Each :class:`View` is one thing (a group, the list of topics) with its last known state. The
:class:`Observer` keeps a task for each view that is wanted, all on one client of the cluster. A view that
no page has shown for a while is no longer refreshed; without any view the client is closed.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final, TypeVar, cast

from ..admin import GroupAdmin
from ..admin.errors import explain_error
from ..client import AuthenticationError
from ..client.requests import NO_RIGHT
from ..protocol import ErrorCode, KafkaError, KohortError, UnsupportedVersionError

V = TypeVar("V", bound="View")

#: Most views in memory, and most pages that are kept up to date at a time.
MOST_VIEWS: Final = 64
MOST_LISTENERS: Final = 200

#: Time that a view is refreshed after a page last asked for it.
LINGER_S: Final = 10.0
#: Time that a page waits for the first look; then it says that the cluster does not respond.
FIRST_LOOK_S: Final = 3.0
#: Greatest age of what a newly opened page shows, if the cluster responds.
_FRESH_S: Final = 1.0
#: Longest pause between two attempts to reach a cluster that does not respond.
_MOST_PAUSE_S: Final = 5.0
#: A stream without news sends a comment as often: proxies end connections on which nothing is said.
KEEP_ALIVE_S: Final = 15.0

_log = logging.getLogger(__name__)


def now_ms() -> int:
    return round(time.time() * 1_000)


class TooBusyError(KohortError):
    """The limits allow no more views or pages: close some pages."""


class View(ABC):
    """Something that is refreshed every ``every_s`` seconds. ``trouble`` says why the last look failed;
    ``is_refused``: the cluster answered, and did not tell; ``is_hopeless``: it cannot, whoever asks.
    """

    every_s = 5.0

    def __init__(self) -> None:
        self.trouble = ""
        self.is_refused = self.is_hopeless = False
        self.seen_at: float | None = None
        self.looks = 0
        self.started_at = self.wanted_at = 0.0
        self.listeners = 0
        self.task: asyncio.Task[None] | None = None
        self._events: dict[str, tuple[int, bytes]] = {}
        self._version = 0
        self._changed = asyncio.Event()
        self.now = asyncio.Event()

    def look_now(self) -> None:
        """Look at once instead of at the next interval."""
        self.now.set()

    def take_error(self, error: Exception) -> None:
        """Keep what a look has failed with."""
        code = error.code if isinstance(error, KafkaError) else None
        self.trouble = _error_words(error)
        self.is_hopeless = code == ErrorCode.UNSUPPORTED_VERSION or isinstance(error, UnsupportedVersionError)
        self.is_refused = self.is_hopeless or code in NO_RIGHT or isinstance(error, AuthenticationError)

    def forget_error(self) -> None:
        """Forget it, as another look has not failed, or may not."""
        self.trouble = ""
        self.is_refused = self.is_hopeless = False

    @abstractmethod
    async def look(self, admin: GroupAdmin) -> None:
        """Look once. Raises KohortError."""

    def tell(self, event: str, value: object) -> None:
        """Send an event to every page, including pages opened later; only the last of its kind is kept."""
        self._version += 1
        data = json.dumps(value, separators=(",", ":"))
        self._events[event] = (self._version, f"event: {event}\ndata: {data}\n\n".encode())
        self.wake()

    def wake(self) -> None:
        """Wake the pages that wait for a change."""
        self._changed.set()
        self._changed = asyncio.Event()

    @property
    def version(self) -> int:
        """The number of the last event."""
        return self._version

    def events_since(self, version: int) -> list[bytes]:
        """The last event of each kind after this number, oldest first."""
        newer = sorted((number, data) for number, data in self._events.values() if number > version)
        return [data for _, data in newer]

    async def wait_for_change(self, within_s: float) -> None:
        """Wait for the next event or look."""
        try:
            async with asyncio.timeout(within_s):
                await self._changed.wait()
        except TimeoutError:
            return


class Observer:
    """The state of the cluster that all pages share. ``make_admin`` makes a client that is not connected."""

    def __init__(self, make_admin: Callable[[], GroupAdmin], *, patience_s: float = 15.0) -> None:
        self._make_admin = make_admin
        self._patience_s = patience_s
        self._admin: GroupAdmin | None = None
        self._users = 0
        self._connecting = asyncio.Lock()
        self._refused: Exception | None = None
        # the view that was asked for longest ago comes first
        self._views: dict[object, View] = {}
        self._closing = asyncio.Event()

    def __repr__(self) -> str:
        looked = sum(view.task is not None for view in self._views.values())
        return f"<Observer: {len(self._views)} views, {looked} looked at, {self._admin!r}>"

    @property
    def is_connected(self) -> bool:
        """Return whether there is a client of the cluster at present."""
        return self._admin is not None

    @property
    def is_closing(self) -> bool:
        """Return whether every stream of events is about to end."""
        return self._closing.is_set()

    @asynccontextmanager
    async def admin(self) -> AsyncIterator[GroupAdmin]:
        """The client, connected. It is closed when nobody uses it. Raises BrokerConnectionError."""
        self._users += 1
        try:
            refused = self._refused
            async with self._connecting:
                if self._admin is None:
                    # a caller that waited for another's attempt makes none of its own
                    if self._refused is not None and self._refused is not refused:
                        raise self._refused.with_traceback(None)
                    admin = self._make_admin()
                    try:
                        await admin.connect()
                    except Exception as error:
                        self._refused = error
                        raise
                    self._admin = admin
            yield self._admin
        finally:
            self._users -= 1
            if not self._users and self._admin is not None:
                admin, self._admin = self._admin, None
                await admin.close()

    def view(self, key: object, make: Callable[[], V]) -> V:
        """The view of this key, which is refreshed from now on. Raises TooBusyError."""
        known = self._views.pop(key, None)
        view = make() if known is None else cast(V, known)
        if len(self._views) >= MOST_VIEWS:
            idle = next((each for each, other in self._views.items() if other.task is None), None)
            if idle is None:
                raise TooBusyError("too many pages look at different things: close some of them")
            del self._views[idle]
        self._views[key] = view
        view.wanted_at = time.monotonic()
        if view.task is None and not self._closing.is_set():
            view.started_at = view.wanted_at
            # that of a look of long ago says nothing about the cluster
            view.forget_error()
            view.task = asyncio.create_task(self._look_again(view))
        return view

    async def fresh(self, view: View, *, looks: int = 0, within_s: float = FIRST_LOOK_S) -> None:
        """Wait a little until the view is recent, and has been refreshed this many times. A view that has
        been seen is waited for ``within_s``: its next look tells the page by an event.
        """
        if (
            view.seen_at is not None
            and time.monotonic() - view.seen_at > _FRESH_S
            and not self.trouble_of(view)
        ):
            view.look_now()
            looks = max(looks, view.looks + 1)
        ends = time.monotonic() + (FIRST_LOOK_S if view.seen_at is None else within_s)
        while not view.trouble and (view.looks < looks or not _seen_of_late(view)):
            left = ends - time.monotonic()
            if left <= 0:
                return
            await view.wait_for_change(left)

    def trouble_of(self, view: View) -> str:
        """The page's message if the view is old; "" if it is not."""
        if view.is_hopeless:
            return f"These brokers cannot tell: {view.trouble}."
        if view.is_refused:
            words = f"The cluster refuses: {view.trouble}."
        elif view.trouble:
            words = f"The cluster cannot be asked: {view.trouble}."
        elif time.monotonic() - max(view.started_at, view.seen_at or 0.0) > _late_s(view):
            words = "The cluster does not answer."
        else:
            return ""
        if view.seen_at is None:
            return f"{words} Trying again."
        when = time.gmtime(time.time() - (time.monotonic() - view.seen_at))
        return f"{words} What is shown is from {time.strftime('%Y-%m-%d %H:%M:%S', when)} UTC. Trying again."

    @contextmanager
    def listening_to(self, view: View) -> Iterator[None]:
        """Keep a view refreshed, as a page shows it. Raises TooBusyError."""
        if sum(each.listeners for each in self._views.values()) >= MOST_LISTENERS:
            raise TooBusyError("too many pages are open: close some of them")
        view.listeners += 1
        try:
            yield
        finally:
            view.listeners -= 1
            view.wanted_at = time.monotonic()

    async def events(self, key: object, make: Callable[[], View], after: int) -> AsyncGenerator[bytes, None]:
        """A stream of server-sent events about a view, those after number ``after`` first."""
        view = self.view(key, make)
        with self.listening_to(view):
            said, spoken_at = "", time.monotonic()
            yield b"retry: 2000\n\n"
            while not self._closing.is_set():
                if view.task is None:
                    self.view(key, lambda: view)
                news, after = view.events_since(after), view.version
                if (words := self.trouble_of(view)) != said:
                    said = words
                    news.append(f"event: trouble\ndata: {json.dumps(words)}\n\n".encode())
                if not news and time.monotonic() - spoken_at > KEEP_ALIVE_S:
                    news.append(b": still here\n\n")
                if news:
                    spoken_at = time.monotonic()
                    yield b"".join(news)
                await view.wait_for_change(1.0)

    async def _look_again(self, view: View) -> None:
        pause_s = view.every_s
        try:
            while view.listeners or time.monotonic() - view.wanted_at < LINGER_S:
                try:
                    async with self.admin() as admin:
                        while view.listeners or time.monotonic() - view.wanted_at < LINGER_S:
                            view.now.clear()
                            await self._look_once(view, admin)
                            pause_s = view.every_s
                            await _pause_until_due(view)
                except Exception as error:  # the page shows any error, and the look is repeated
                    view.take_error(error)
                    view.looks += 1
                    view.wake()
                    await asyncio.sleep(pause_s)
                    pause_s = min(max(pause_s, 0.5) * 2, _MOST_PAUSE_S)
        finally:
            view.task = None
            view.wake()

    async def _look_once(self, view: View, admin: GroupAdmin) -> None:
        async with asyncio.timeout(4 * self._patience_s):
            await view.look(admin)
        view.seen_at = time.monotonic()
        view.forget_error()
        view.looks += 1
        view.wake()

    def end(self) -> None:
        """Let every stream of events end."""
        self._closing.set()
        for view in self._views.values():
            view.wake()

    async def close(self) -> None:
        """End every look and every stream."""
        self.end()
        tasks = [view.task for view in self._views.values() if view.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _pause_until_due(view: View) -> None:
    """Wait until the next look is due or asked for."""
    try:
        async with asyncio.timeout(view.every_s):
            await view.now.wait()
    except TimeoutError:
        return


def _late_s(view: View) -> float:
    """Seconds after which a look is late. A page has already waited for the first one."""
    return 0.9 * FIRST_LOOK_S if view.seen_at is None else max(3.0, 3 * view.every_s)


def _seen_of_late(view: View) -> bool:
    return view.seen_at is not None and time.monotonic() - view.seen_at <= _late_s(view)


def _error_words(error: Exception) -> str:
    if isinstance(error, KafkaError):
        return explain_error(error)
    if isinstance(error, KohortError):
        return str(error)
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    _log.warning("a look failed", exc_info=error)
    return f"{type(error).__name__}: {error}"
