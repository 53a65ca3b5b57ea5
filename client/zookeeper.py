"""Sessions with Apache ZooKeeper for asyncio: kazoo talks to it, in threads of its own.

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

    ``connect`` is ``HOST:PORT[,HOST:PORT...][/chroot]``. ``digest``, ``user:password``, authenticates with
    ZooKeeper's scheme of that name; entries then are the user's to change and, but for access rules and
    credentials, anybody's to read. ``ca``, ``certificate`` and ``key`` are PEM files: each of them turns TLS
    on, as ``tls`` does; the certificate's file may have the key too. ``set_acl``: only this session's
    principal in ZooKeeper may use the entries, as with a digest: the name in its certificate, for example.
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
        """The error of a session that did not begin within ``connection_timeout_ms``."""
        return ConnectionError(
            f"no answer from ZooKeeper at {self.connect} within {self.connection_timeout_ms} ms: "
            "check the addresses, and that most of its servers run"
        )


class ZooKeeperSession:
    """One session after the other with an ensemble; belongs to the running event loop.

    ``client`` is kazoo's, which is not started; ``joined`` the number and password of a session that it goes
    on with. Raises ModuleNotFoundError without kazoo, and ValueError for what is no address.
    """

    def __init__(
        self, settings: ZooKeeperSettings, log: logging.Logger, joined: tuple[int, bytes] | None = None
    ) -> None:
        from kazoo.client import KazooClient
        from kazoo.handlers.threading import SequentialThreadingHandler
        from kazoo.retry import KazooRetry
        from kazoo.security import make_acl, make_digest_acl

        class OneQueue(SequentialThreadingHandler):  # type: ignore[misc]
            """Delivers watches in the queue of the responses, so that both arrive in ZooKeeper's order."""

            def dispatch_callback(self, callback: Any) -> None:
                self.completion_queue.put(lambda: callback.func(*callback.args))

        acl = auth = None
        if settings.digest is not None:
            user, colon, password = settings.digest.partition(":")
            if not colon:
                raise ValueError("the digest for ZooKeeper is USER:PASSWORD")
            auth = [("digest", settings.digest)]
            acl = [make_digest_acl(user, password, all=True), make_acl("world", "anyone", read=True)]
        elif settings.set_acl:
            acl = [make_acl("auth", "", all=True), make_acl("world", "anyone", read=True)]
        self._settings = settings
        self._log = log
        self._loop = asyncio.get_running_loop()
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

    async def begin(self, on_state: Callable[[str], None]) -> None:
        """Start to connect; ``on_state`` is told CONNECTED, SUSPENDED and LOST from then on."""
        self.client.add_listener(lambda state: self.hand_over(on_state, state))
        await asyncio.to_thread(self.client.start_async)

    def call(self, request: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
        """A future of the response to one of the client's asynchronous requests; raises KazooException."""
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
        """Call on the event loop, from any thread."""
        # a loop that has ended asks for nothing more
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call, *arguments)

    async def end_other(self, session: tuple[int, bytes]) -> None:
        """End another session with the ensemble, by its number and password; one that is over is no error."""
        other = ZooKeeperSession(self._settings, self._log, session)

        def end() -> None:
            try:
                other.client.start(self._settings.connection_timeout_ms / 1_000)
            except Exception as error:
                self._log.warning("a former session with ZooKeeper ends by its timeout: %r", error)
            other._close()

        await asyncio.to_thread(end)

    def close(self) -> None:
        """End the session, in a thread: it takes until ZooKeeper has answered, or the connection has timed
        out.
        """
        threading.Thread(target=self._close, name="kohort-zookeeper-close").start()

    def _close(self) -> None:
        try:
            self.client.stop()
            self.client.close()
        except Exception as error:
            self._log.warning("the session with ZooKeeper was not closed, it ends by its timeout: %r", error)


def unanswered(error: Exception) -> OSError:
    """The error of a request that ZooKeeper refused, or did not answer: a ConnectionError then."""
    from kazoo.exceptions import ConnectionClosedError, ConnectionLoss, SessionExpiredError

    if isinstance(error, ConnectionClosedError | ConnectionLoss | SessionExpiredError):
        return ConnectionError(f"no answer from ZooKeeper, the change may have been made: {error!r}")
    return OSError(f"ZooKeeper refuses a request: {error!r}")
