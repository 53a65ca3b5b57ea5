"""ConsumerService: handlers for topics, run as a member of a group until a signal or an error says stop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..errors import ConfigError
from ._engine import Engine
from ._handlers import Handler, HandlerFunction, Lanes, make_handler
from ._probes import Probes
from ._progress import Progress
from ._retry import Retry
from ._signals import graceful_signals

#: Default bound of a graceful end; container runtimes commonly kill 30 s after SIGTERM.
DRAIN_TIMEOUT_MS = 20_000
STALLED_AFTER_MS = 60_000

F = TypeVar("F", bound=HandlerFunction)

log = logging.getLogger("kohort.consumer.service")


class ConsumerService:
    """Runs handlers as one member of a consumer group; at-least-once.

    A record counts as done when its handler has returned, or when it is safely in the dead-letter topic; only
    done records are committed. When partitions are taken away their delivery stops, running handlers get
    ``drain_timeout_ms`` to finish, what is done is committed, then the partitions are released. The same
    happens at a stop.

    ``health_port`` (None: off, 0: any free one) serves /healthz (200 while there is progress), /readyz (200
    while the member has joined and is not stopping) and /metrics. ``stalled_after_ms`` is how long work may
    wait without any being finished before /healthz turns red.

    All other keyword arguments are settings of :class:`~kohort.consumer.AsyncGroupConsumer`. Raises
    ConfigError for wrong ones.
    """

    def __init__(
        self,
        *,
        bootstrap: str | Sequence[str],
        group: str,
        drain_timeout_ms: int = DRAIN_TIMEOUT_MS,
        health_host: str = "127.0.0.1",
        health_port: int | None = None,
        stalled_after_ms: int = STALLED_AFTER_MS,
        **config: Any,
    ) -> None:
        if drain_timeout_ms < 0 or stalled_after_ms <= 0:
            raise ConfigError("drain_timeout_ms must be 0 or more and stalled_after_ms more than 0")
        self.group = group
        self._config = {"bootstrap": bootstrap, "group": group, **config}
        _check(self._config)
        self._drain_timeout_ms = drain_timeout_ms
        self._health_address = None if health_port is None else (health_host, health_port)
        self._stalled_after_ms = stalled_after_ms
        self._handlers: list[Handler] = []
        self._engine: Engine | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop_reason: str | None = None
        #: Port of the health listener while it listens.
        self.health_port: int | None = None

    # -- handlers -------------------------------------------------------------------------------------------

    def handler(
        self,
        *topics: str,
        model: Any = None,
        lanes: Lanes = "partition",
        concurrency: int = 16,
        retry: Retry | None = None,
        dead_letter: str | None = None,
    ) -> Callable[[F], F]:
        """Register a function for single records: ``f(record)``, with a ``model`` ``f(model, record)``.

        An ``async def`` runs on the event loop, a plain function in one of ``concurrency`` threads. ``lanes``
        says which records keep their order: those of one "partition", those of one "key", or "none".
        ``model`` is a pydantic model, or any type pydantic can validate JSON for. A record that does not fit
        it, or that fails ``retry.attempts`` times, goes to the topic ``dead_letter``; without one the service
        stops with HandlerFailedError.
        """
        return self._register(
            topics,
            model=model,
            lanes=lanes,
            concurrency=concurrency,
            retry=retry,
            dead_letter=dead_letter,
            batch=1,
            takes_batches=False,
        )

    def batch_handler(
        self,
        *topics: str,
        max_records: int = 500,
        model: Any = None,
        concurrency: int = 16,
        retry: Retry | None = None,
        dead_letter: str | None = None,
    ) -> Callable[[F], F]:
        """Register a function for runs of records of one partition: ``f(records)`` or ``f(models, records)``.

        A batch is whatever waits when the handler is free again, at most ``max_records``: small batches while
        there is little to do, large ones under load. All of it is done when the function returns. A batch
        that is out of tries is handled again record by record, so that only the ones to blame go to
        ``dead_letter``.
        """
        return self._register(
            topics,
            model=model,
            lanes="partition",
            concurrency=concurrency,
            retry=retry,
            dead_letter=dead_letter,
            batch=max_records,
            takes_batches=True,
        )

    def _register(self, topics: tuple[str, ...], **options: Any) -> Callable[[F], F]:
        def register(function: F) -> F:
            handler = make_handler(function, topics, **options)
            for other in self._handlers:
                if shared := set(other.topics) & set(topics):
                    raise ValueError(
                        f"topic {min(shared)!r} has a handler already ({other.name}): a record is handled "
                        "once, so call both from one handler, or read it in a second group"
                    )
            self._handlers.append(handler)
            return function

        return register

    # -- running --------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT; returns after drain, commit and leave (so the program exits with 0).

        A second signal ends the process at once. Raises what :meth:`serve` raises.
        """
        asyncio.run(self._run_with_signals())

    async def _run_with_signals(self) -> None:
        with graceful_signals(self.stop):
            await self.serve()

    async def serve(self) -> None:
        """Join the group and handle records until :meth:`stop`. For programs that have an event loop already.

        Raises HandlerFailedError when a record can neither be handled nor set aside, and the consumer's own
        errors when the group cannot be read; in both cases what is done is committed and the group left
        first.
        """
        if not self._handlers:
            raise ValueError("the service has no handler: register one with @service.handler('topic')")
        if self._loop is not None:
            raise RuntimeError("the service runs already, or has run: make a new one")
        self._loop = asyncio.get_running_loop()
        progress = Progress(self._stalled_after_ms)
        self._engine = engine = Engine(
            self._handlers,
            group=self.group,
            config=self._config,
            drain_timeout_ms=self._drain_timeout_ms,
            progress=progress,
        )
        if self._stop_reason is not None:
            return
        async with Probes(engine, progress, self._health_address) as probes:
            self.health_port = probes.port
            await engine.run()

    def stop(self, reason: str = "stop() was called") -> None:
        """Ask for a graceful end; may be called from any thread, also before the service runs."""
        self._stop_reason = reason
        if self._loop is not None and self._engine is not None:
            self._loop.call_soon_threadsafe(self._engine.stop, reason)


def _check(config: dict[str, Any]) -> None:
    """Raises ConfigError for settings that a consumer, or a service, cannot have."""
    # imported here: it brings pydantic
    from ..config import consumer_config

    if not consumer_config(**config).enable_auto_commit:
        raise ConfigError("enable_auto_commit=False: a service commits what is done by itself, leave it on")
