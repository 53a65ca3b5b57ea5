"""Sessions with Apache ZooKeeper for asyncio, by kazoo, which runs threads of its own.

Responses and watches reach the event loop through one queue, in ZooKeeper's order.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any


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


class ZooKeeperSession:
    """Sessions with an ensemble, one after the other, for the running event loop.

    ``client``: kazoo's client, which is not started yet. ``joined``: id and password of a session to
    continue. Raises ModuleNotFoundError without kazoo, and ValueError for an invalid address or digest.
    """

    def __init__(
        self, settings: ZooKeeperSettings, log: logging.Logger, joined: tuple[int, bytes] | None = None
    ) -> None:
        from kazoo.client import KazooClient
        from kazoo.handlers.threading import SequentialThreadingHandler
        from kazoo.retry import KazooRetry
        from kazoo.security import make_acl, make_digest_acl

        self._closing = False

        class OneQueue(SequentialThreadingHandler):  # type: ignore[misc]
            """Puts watches into the queue of responses, so that both arrive in ZooKeeper's order."""

            def dispatch_callback(self, callback: Any) -> None:
                self.completion_queue.put(lambda: callback.func(*callback.args))

            def spawn(self, func: Any, *arguments: Any, **options: Any) -> Any:
                def run() -> None:
                    try:
                        func(*arguments, **options)
                    except Exception:
                        log.exception("a thread of the session with ZooKeeper has failed")
                    ended()

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

        def ended() -> None:
            if not self._closing:
                self._closing = True  # its other threads end, too
                self.hand_over(self._on_end)

        self._settings = settings
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._on_end: Callable[[], None] = lambda: None
        self.client = KazooClient(
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

    def another(self) -> ZooKeeperSession:
        """A session to begin after this one, with the same settings."""
        return ZooKeeperSession(self._settings, self._log)

    async def begin(self, on_state: Callable[[str], None], on_end: Callable[[], None] = lambda: None) -> None:
        """Start to connect. ``on_state`` is called with each new state: CONNECTED, SUSPENDED or LOST;
        ``on_end`` if a thread ends that nobody has stopped, so that there will be no other state.
        """
        self._on_end = on_end
        self.client.add_listener(lambda state: self.hand_over(on_state, state))
        await asyncio.to_thread(self.client.start_async)

    def call(self, request: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
        """Call one of the client's asynchronous methods. The future has its result, or a KazooException."""
        future = self._loop.create_future()

        def answered(result: Any) -> None:
            if future.done():
                return
            if result.exception is None:
                future.set_result(result.value)
            else:
                future.set_exception(result.exception)

        request(*arguments).rawlink(lambda result: self.hand_over(answered, result))
        return future

    def hand_over(self, call: Callable[..., None], *arguments: Any) -> None:
        """Call a function on the event loop, from any thread."""
        # the loop may be closed: then the call is not needed
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call, *arguments)

    async def end_other(self, session: tuple[int, bytes]) -> None:
        """End another session with the ensemble, by its id and password. It may have ended already."""
        other = ZooKeeperSession(self._settings, self._log, session)

        def end() -> None:
            try:
                other.client.start(self._settings.connection_timeout_ms / 1_000)
            except Exception as error:
                self._log.warning("a former session with ZooKeeper ends by its timeout: %r", error)
            other._close()

        await asyncio.to_thread(end)

    def close(self) -> None:
        """End the session in a thread, since it takes until ZooKeeper answers or the connection times out."""
        threading.Thread(target=self._close, name="kohort-zookeeper-close").start()

    def _close(self) -> None:
        self._closing = True
        try:
            self.client.stop()
            self.client.close()
        except Exception as error:
            self._log.warning("the session with ZooKeeper was not closed, it ends by its timeout: %r", error)


def unanswered(error: Exception) -> OSError:
    """Return the error for a failed request: ConnectionError if ZooKeeper did not answer, else OSError."""
    from kazoo.exceptions import ConnectionClosedError, ConnectionLoss, SessionExpiredError

    if isinstance(error, ConnectionClosedError | ConnectionLoss | SessionExpiredError):
        return ConnectionError(f"no answer from ZooKeeper, the change may have been made: {error!r}")
    return OSError(f"ZooKeeper refuses a request: {error!r}")
