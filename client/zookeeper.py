"""Sessions with Apache ZooKeeper for asyncio, by kazoo, which runs threads of its own.

Responses and watches reach the event loop through one queue, in ZooKeeper's order.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from .zookeeper_requests import ReadMany, WatchAll, ZooKeeperNode, read_event


@dataclass(frozen=True, slots=True)
class ZooKeeperSettings:
    """Address and credentials of an ensemble.

    ``connect``: ``HOST:PORT[,HOST:PORT...][/chroot]``. ``digest``: ``user:password`` for ZooKeeper's scheme
    of that name; only this user can change the entries, and all can read those that are not access rules or
    credentials. ``ca``, ``certificate`` and ``key``: PEM files; each of them turns TLS on, as ``tls`` does.
    The certificate's file may have the key too. ``set_acl``: as with a digest, only this session's principal
    can change the entries, such as the name in its certificate.
    """

    connect: str
    session_timeout_ms: int = 6_000
    connection_timeout_ms: int = 6_000
    digest: str | None = None
    tls: bool = False
    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    set_acl: bool = False

    def __repr__(self) -> str:
        return f"ZooKeeperSettings({self.connect})"

    def no_answer(self) -> ConnectionError:
        """Return the error for a session that did not start within ``connection_timeout_ms``."""
        return ConnectionError(
            f"no answer from ZooKeeper at {self.connect} within {self.connection_timeout_ms} ms: "
            "check the addresses, and that most of its servers run"
        )


#: Pause before a new client takes the place of one whose thread has ended, in seconds.
_RENEW_S = 1.0


class ZooKeeperSession:
    """Sessions with an ensemble, one after the other, for the running event loop.

    ``client``: kazoo's client, which is not started yet. A client whose thread ends by itself, refused or
    failed, would be without a session for ever: another one takes its place. ``joined``: id and password of a
    session to continue. Raises ModuleNotFoundError without kazoo, and ValueError for an invalid address or
    digest.
    """

    def __init__(
        self, settings: ZooKeeperSettings, log: logging.Logger, joined: tuple[int, bytes] | None = None
    ) -> None:
        self._settings = settings
        self._log = log
        self._loop = asyncio.get_running_loop()
        #: None until it begins, and when it is closed.
        self._on_state: Callable[[str], None] | None = None
        #: What was told last; kazoo's clients begin with it.
        self._state = "LOST"
        #: The client that has ended, until there is another one; the task that makes that.
        self._ended: object = None
        self._renewer: asyncio.Task[None] | None = None
        self._waiting: set[asyncio.Future[object]] = set()
        self.client = self._new_client(joined)

    def _new_client(self, joined: tuple[int, bytes] | None = None) -> Any:
        from kazoo.client import KazooClient
        from kazoo.handlers.threading import SequentialThreadingHandler
        from kazoo.retry import KazooRetry
        from kazoo.security import make_acl, make_digest_acl

        settings, log = self._settings, self._log

        class OneQueue(SequentialThreadingHandler):  # type: ignore[misc]
            """Puts watches into the queue of responses, so that both arrive in ZooKeeper's order."""

            def dispatch_callback(self, callback: Any) -> None:
                self.completion_queue.put(lambda: callback.func(*callback.args))

            def spawn(self, func: Any, *arguments: object, **options: object) -> Any:
                def run() -> None:
                    try:
                        func(*arguments, **options)
                    except Exception:
                        log.exception("a thread of the session with ZooKeeper has failed")
                    hand_over(ended, client)

                return super().spawn(run)

        acl = auth = None
        if settings.digest is not None:
            user, colon, password = settings.digest.partition(":")
            if not colon:
                raise ValueError("the digest for ZooKeeper is USER:PASSWORD")
            auth = [("digest", settings.digest)]
            acl = [make_digest_acl(user, password, all=True), make_acl("world", "anyone", read=True)]
        elif settings.set_acl:
            acl = [make_acl("auth", "", all=True), make_acl("world", "anyone", read=True)]

        hand_over, ended = self.hand_over, self._client_ended
        client = KazooClient(
            settings.connect,
            timeout=settings.session_timeout_ms / 1_000,
            client_id=joined,
            handler=OneQueue(),
            connection_retry=KazooRetry(max_tries=-1, delay=0.05, backoff=2, max_delay=1.0),
            auth_data=auth,
            default_acl=acl,
            use_ssl=any((settings.tls, settings.ca, settings.certificate, settings.key)),
            ca=settings.ca,
            certfile=settings.certificate,
            keyfile=settings.key,
            logger=log.getChild("zookeeper"),
        )
        client.add_listener(lambda state: hand_over(self._state_changed, client, state))
        return client

    async def begin(self, on_state: Callable[[str], None]) -> None:
        """Start to connect. ``on_state`` is called with each new state: CONNECTED, SUSPENDED or LOST."""
        self._on_state = on_state
        await asyncio.to_thread(self.client.start_async)

    def _state_changed(self, client: object, state: str) -> None:
        # the threads of a client that has ended may tell of it for a while
        if client is self.client and client is not self._ended:
            self._report_state(state)

    def _report_state(self, state: str) -> None:
        if self._on_state is not None and state != self._state:
            self._state = state
            self._on_state(state)

    def _client_ended(self, client: object) -> None:
        """Called for each thread of a client that ends: nobody stopped it unless the session is closed."""
        if self._on_state is None or client is not self.client or client is self._ended:
            return
        self._log.error("the client of ZooKeeper has ended: another one begins a new session")
        self._ended = client
        from kazoo.exceptions import ConnectionLoss

        for future in list(self._waiting):
            if not future.done():
                future.set_exception(ConnectionLoss())
        self._report_state("LOST")
        self._renewer = self._loop.create_task(self._renew_session())

    async def _renew_session(self) -> None:
        while True:
            self._stop_in_thread(self.client)
            await asyncio.sleep(_RENEW_S)
            self.client = self._new_client()
            try:
                return await asyncio.to_thread(self.client.start_async)
            except (OSError, RuntimeError) as error:
                # no descriptor or thread to be had, maybe what has ended the last one, too
                self._ended = self.client
                self._log.error("no client of ZooKeeper could begin, which is tried again: %r", error)

    def call(self, request: Callable[..., Any], *arguments: object) -> asyncio.Future[Any]:
        """Call one of the client's asynchronous methods. The future has its result, or a KazooException."""
        future = self._loop.create_future()
        if self.client is self._ended:
            from kazoo.exceptions import ConnectionLoss

            # its threads do not answer any more
            future.set_exception(ConnectionLoss())
            return future
        self._waiting.add(future)
        future.add_done_callback(self._waiting.discard)

        def answered(result: Any) -> None:
            if future.done():
                return
            if result.exception is None:
                future.set_result(result.value)
            else:
                future.set_exception(result.exception)

        request(*arguments).rawlink(lambda result: self.hand_over(answered, result))
        return future

    async def read(self, paths: Sequence[str]) -> list[ZooKeeperNode | None]:
        """Read nodes in one request; None for those that are not there. Raises KazooException."""
        found = await self._send_request(ReadMany([self._full_path(path) for path in paths]))
        return [_or_raised(each) for each in found]

    async def read_children(self, paths: Sequence[str]) -> list[Sequence[str]]:
        """Read the names of nodes' children in one request. Raises KazooException."""
        found = await self._send_request(ReadMany([self._full_path(path) for path in paths], children=True))
        return [_or_raised(each) or () for each in found]

    async def watch_all(self, changed: Callable[[str], None]) -> None:
        """Call ``changed`` with the path of every node below the chroot that is created, changed or removed,
        from now on until the connection ends. It is called in ZooKeeper's order with responses: what is read
        afterwards is not older. Raises KazooException.
        """
        client, root = self.client, self.client.chroot

        def seen(path: str) -> None:
            path = path.removeprefix(root) or "/"
            client.handler.completion_queue.put(lambda: self.hand_over(changed, path))

        # kazoo has no watches that stay, and would pass over their events
        client._connection._read_watch_event = lambda buffer, offset: read_event(buffer, offset, seen)
        await self._send_request(WatchAll(self._full_path("/")))

    def _full_path(self, path: str) -> str:
        root: str = self.client.chroot
        return (root if path == "/" else root + path) or "/"

    def _send_request(self, request: ReadMany | WatchAll) -> asyncio.Future[Any]:
        def asked() -> object:
            result = self.client.handler.async_result()
            self.client._call(request, result)
            return result

        return self.call(asked)

    def hand_over(self, call: Callable[..., None], *arguments: object) -> None:
        """Call a function on the event loop, from any thread."""
        # the loop may be closed: then the call is not needed
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call, *arguments)

    async def end_other(self, session: tuple[int, bytes]) -> None:
        """End another session with the ensemble, by its id and password. It may have ended already."""
        other = self._new_client(session)

        def end() -> None:
            try:
                other.start(self._settings.connection_timeout_ms / 1_000)
            except Exception as error:
                self._log.warning("a former session with ZooKeeper ends by its timeout: %r", error)
            self._stop_client(other)

        await asyncio.to_thread(end)

    def close(self) -> None:
        """End the session in a thread, since it takes until ZooKeeper answers or the connection times out."""
        self._on_state = None
        if self._renewer is not None:
            self._renewer.cancel()
        self._stop_in_thread(self.client)

    def _stop_in_thread(self, client: object) -> None:
        threading.Thread(target=self._stop_client, args=(client,), name="kohort-zookeeper-close").start()

    def _stop_client(self, client: Any) -> None:
        try:
            client.stop()
            client.close()
        except Exception as error:
            self._log.warning("the session with ZooKeeper was not closed, it ends by its timeout: %r", error)


def _or_raised(found: Any) -> Any:
    """What was read; None if there is no such node. Raises KazooException."""
    from kazoo.exceptions import EXCEPTIONS, NoNodeError

    if not isinstance(found, int):
        return found
    error = EXCEPTIONS[found]
    if error is NoNodeError:
        return None
    raise error()


def outage_error(error: Exception) -> OSError:
    """Return the error for a failed request: ConnectionError if ZooKeeper did not answer, else OSError."""
    from kazoo.exceptions import ConnectionClosedError, ConnectionLoss, SessionExpiredError

    if isinstance(error, ConnectionClosedError | ConnectionLoss | SessionExpiredError):
        return ConnectionError(f"no answer from ZooKeeper, the change may have been made: {error!r}")
    return OSError(f"ZooKeeper refuses a request: {error!r}")
