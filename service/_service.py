"""ConsumerService: runs handlers for topics as a member of a group, until a signal or an error stops it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from ..client.errors import ConfigError
from ..client.threads import DaemonThreads
from ..consumer.errors import short_text
from ..protocol import KohortError
from .exactly_once.kafka_output import KafkaOutput
from .exactly_once.sinks import Sink
from .exactly_once.stored_offsets import Once
from .handlers.dependencies import (
    Lifespan,
    SignatureError,
    check_lifespans,
    choose_type,
    enter_lifespans,
    fill_arguments,
    make_lifespan,
)
from .handlers.handler import (
    Counters,
    DeadLetterTopics,
    Handler,
    HandlerFunction,
    Lanes,
    Middleware,
)
from .handlers.registration import (
    bind_connection,
    check_middleware,
    check_topics,
    make_handler,
)
from .handlers.retry import Retry
from .reporting.probes import HandlingProgress, Probed, Probes
from .run.engine import Engine
from .run.keeping import serving_again
from .run.signals import run_with_signals

if TYPE_CHECKING:
    from typing import Unpack

    from .share.share_retries import SharedAndRetries
    from .typed_settings import ServiceSettings

F = TypeVar("F", bound=HandlerFunction)
M = TypeVar("M", bound=Middleware)

log = logging.getLogger("kohort.service")


class ConsumerService:
    """Runs handlers as one member of a consumer group, or of a share group; at-least-once.

    A record counts as done when its handler has returned, or when it is safely in the dead-letter topic; only
    done records are committed. When partitions are taken away their delivery stops, running handlers get
    ``drain_timeout_ms`` to finish, what is done is committed, then the partitions are released. The same
    happens at a stop.

    With ``group_type="share"`` it reads topics as a work queue: see docs/queues.md.

    Its own settings are in the table of docs/service.md; all other keyword arguments are settings of
    :class:`~kohort.consumer.AsyncGroupConsumer`, or of ShareConsumer. ``bootstrap`` and ``group`` are
    required (or ``bootstrap_servers`` and ``group_id``). Raises ConfigError for wrong ones.
    """

    def __init__(self, **given: Unpack[ServiceSettings]) -> None:
        from . import _options  # pydantic comes with it

        settings: dict[str, object] = dict(given)
        names = _options.ServiceOptions.model_fields.keys() & settings
        self._own = own = _options.check_own({name: settings.pop(name) for name in names})
        self._config = settings
        #: Whether its group is a share group.
        self.in_share_group = own.group_type == "share"
        if self.in_share_group:
            self.group = _options.check_share_consumer(settings).group
            self._drain_timeout_ms = _options.drain_ms(own.drain_timeout_ms, None)
        else:
            checked = _options.check_consumer(settings)
            self.group = checked.group
            self._drain_timeout_ms = _options.drain_ms(own.drain_timeout_ms, checked.rebalance_ms)
        self._health_address = None if own.health_port is None else (own.health_host, own.health_port)
        self._handlers: list[Handler] = []
        self._middlewares: list[Middleware] = []
        self._lifespans: list[Lifespan] = []
        self._provided: dict[type, object] = {}
        self._once: Once | None = None
        self._output: KafkaOutput | None = None
        self._run: Engine | SharedAndRetries | None = None
        #: What reads the group's own topics, for who looks inside.
        self._engine: Engine | None = None
        #: Bounds the start; a stop ends it.
        self._starting: asyncio.Timeout | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop_reason: str | None = None
        #: What the last run has ended with.
        self._failure: Exception | None = None
        #: The last run is over: a stop that comes now was meant for that run.
        self._over = False
        #: Port of the health listener while it listens.
        self.health_port: int | None = None

    # -- handlers -------------------------------------------------------------------------------------------

    def handler(
        self,
        *topics: str,
        model: object = None,
        decode: object = None,
        key_decode: object = None,
        lanes: Lanes | None = None,
        concurrency: int = 16,
        retry: Retry | None = None,
        dead_letter: DeadLetterTopics | None = None,
        timeout_ms: int | None = None,
        retry_after_ms: Sequence[int] = (),
        middlewares: Sequence[Middleware] = (),
    ) -> Callable[[F], F]:
        """Register a function for single records: ``f(record)``, with a ``model`` ``f(model, record)``.

        An ``async def`` runs on the event loop, a plain function in one of ``concurrency`` threads. ``lanes``
        says which records keep their order: those of one "partition" (the default), those of one "key", or
        "none", as always in a share group.
        ``model`` is a pydantic model, or any type pydantic can validate JSON for. ``decode`` is such a type
        too, or a function from bytes, or a decoder of a SchemaRegistry: ``f(value, record)``, with None for a
        null; with ``key_decode``, ``f(key, value, record)``. A record that does not fit, or that fails
        ``retry.attempts`` times, goes to the topic ``dead_letter``; without one the service stops with
        HandlerFailedError. ``dead_letter`` may have topics by classes of errors. A call of an ``async def``
        that takes longer than ``timeout_ms`` is cancelled and has failed.

        With ``retry_after_ms`` a record that is out of tries goes to the topic ``<topic>.retry.1`` first, is
        handled again after the first of these delays, then goes to ``<topic>.retry.2``, and so on.
        ``middlewares`` are called around the function, see ``middleware``.
        """
        return self._register_handler(
            topics,
            model=model,
            decode=decode,
            key_decode=key_decode,
            lanes=lanes,
            concurrency=concurrency,
            retry=retry,
            dead_letter=dead_letter,
            timeout_ms=timeout_ms,
            retry_after_ms=retry_after_ms,
            middlewares=middlewares,
        )

    def batch_handler(
        self,
        *topics: str,
        max_records: int = 500,
        model: object = None,
        decode: object = None,
        key_decode: object = None,
        concurrency: int = 16,
        retry: Retry | None = None,
        dead_letter: DeadLetterTopics | None = None,
        timeout_ms: int | None = None,
        retry_after_ms: Sequence[int] = (),
        middlewares: Sequence[Middleware] = (),
    ) -> Callable[[F], F]:
        """Register a function for runs of records of one partition: ``f(records)`` or ``f(models, records)``.

        A batch is whatever waits when the handler is free again, at most ``max_records``: small batches while
        there is little to do, large ones under load. All of it is done when the function returns. A batch
        that is out of tries is handled again record by record, so that only the ones to blame go to
        ``dead_letter``. One that knows which of its records failed raises FailedRecordsError.
        """
        return self._register_handler(
            topics,
            model=model,
            decode=decode,
            key_decode=key_decode,
            concurrency=concurrency,
            retry=retry,
            dead_letter=dead_letter,
            timeout_ms=timeout_ms,
            retry_after_ms=retry_after_ms,
            middlewares=middlewares,
            batch=max_records,
            takes_batches=True,
        )

    def _register_handler(self, topics: tuple[str, ...], **options: object) -> Callable[[F], F]:
        check_topics(topics)

        def register(function: F) -> F:
            may_yield = self._output is not None
            handler = make_handler(
                function, topics, may_yield=may_yield, in_share=self.in_share_group, **options
            )
            for other in self._handlers:
                if shared := set(other.all_topics) & set(handler.all_topics):
                    raise ConfigError(
                        f"topic {min(shared)!r} has a handler already ({other.name}): a record is handled "
                        "once, so call both from one handler, or read it in a second group"
                    )
            self._handlers.append(handler)
            return function

        return register

    def middleware(self, function: M) -> M:
        """Register an async function around the calls of all handlers, ``async def m(record, call_next)``.

        It gets the record, or the list of records of a batch, and goes on with ``await call_next(record)``,
        whose result and errors are those of the handler; what it returns or raises itself counts instead. A
        record for which ``call_next`` is not called is done when it returns. The first one registered is
        outermost; those of a single handler (``middlewares=``) come after these.
        """
        self._middlewares.append(check_middleware(function))
        return function

    def pause(self, handler: HandlerFunction | str) -> None:
        """Stop beginning calls of this handler, given as the function or its name; calls that have begun go
        on.

        Its partitions stay assigned; records wait for it up to the backlog, and then in the topic. A handler
        may be paused before the service runs; it stays paused until ``resume``. From any thread.
        """
        self._hold_handlers(handler, True)

    def resume(self, handler: HandlerFunction | str) -> None:
        """Resume a paused handler."""
        self._hold_handlers(handler, False)

    @property
    def paused(self) -> list[str]:
        """Names of the handlers that are paused."""
        return [handler.name for handler in self._handlers if handler.held]

    def _hold_handlers(self, wanted: HandlerFunction | str, held: bool) -> None:
        found = [handler for handler in self._handlers if wanted in (handler.function, handler.name)]
        if not found:
            names = ", ".join(handler.name for handler in self._handlers)
            raise ConfigError(f"the service has no handler {wanted!r}: it has {names or 'none'}")
        for handler in found:
            handler.held = held
            if self._loop is not None:
                with suppress(RuntimeError):  # it has ended since
                    self._loop.call_soon_threadsafe(self._hold_now, handler)

    def _hold_now(self, handler: Handler) -> None:
        if self._run is not None:
            self._run.hold(handler.function, handler.held)

    # -- what handlers work with ----------------------------------------------------------------------------

    def provide(self, value: object, *, as_type: type | None = None) -> None:
        """Give ``value`` to every handler and lifespan with a parameter of its type, or of ``as_type``."""
        kind = type(value) if as_type is None else as_type
        if not isinstance(value, kind):
            raise SignatureError(f"provide: {value!r} is no {kind.__name__}")
        if kind in self._provided:
            raise ConfigError(f"provide: there is a {kind.__name__} already; tell them apart with as_type=")
        self._provided[kind] = value

    def lifespan(self, function: F) -> F:
        """Register a generator around the service's life, ``async def db() -> AsyncIterator[Database]``.

        The code before its ``yield`` runs before the service joins the group, the code after it after the
        last commit and the leave; handlers and lifespans with a parameter of its type get the value. Plain
        generators may be used too. Several run in the order of their registration, and end in reverse order.
        """
        self._lifespans.append(make_lifespan(function))
        return function

    def exactly_once(self, sink: Sink | KafkaOutput) -> None:
        """Keep the offsets with the results, in one transaction.

        With a database, a Sink: each call of a handler is one transaction. Its connection goes to the
        parameter of the sink's connection type, and is committed together with the offset when the handler
        returns. At an assignment reading goes on where the sink says. Handlers must be plain functions with
        lanes="partition".

        With topics, a KafkaOutput: handlers return or yield ProducerRecords, which are written and their
        records' offsets committed in one transaction, many calls together. Every kind of handler may do so;
        call this before those that yield are registered.
        """
        if not isinstance(sink, Sink | KafkaOutput):
            raise ConfigError(
                f"exactly_once: {sink!r} is no sink: give a DbApiSink, an SqlAlchemySink or a KafkaOutput"
            )
        if self.in_share_group:
            raise ConfigError(
                "exactly_once: a share group has no offsets to store with the results, and its records are "
                "acknowledged outside of transactions: take a consumer group, or handlers that tolerate a "
                "record twice"
            )
        if self._once is not None or self._output is not None:
            raise ConfigError("exactly_once: there is a sink already, and a record has one transaction")
        if isinstance(sink, KafkaOutput) and self._config.get("coordination", "kafka") != "kafka":
            raise ConfigError(
                "exactly_once: a KafkaOutput commits offsets to a group that brokers coordinate: leave "
                "coordination out, or keep the offsets in a database"
            )
        if isinstance(sink, KafkaOutput):
            self._output = sink
        else:
            self._once = Once(sink, self.group)

    def reconfigure(self, **config: object) -> None:
        """Change settings of the consumer before the service runs. Raises ConfigError."""
        from . import _options

        check = _options.check_share_consumer if self.in_share_group else _options.check_consumer
        check({**self._config, **config})
        self._config.update(config)

    def as_worker(self, index: int, *, instance_id: str | None = None) -> None:
        """Make this process number ``index`` of several: its own instance id, and the health port + index."""
        if instance_id is not None:
            self.reconfigure(group_instance_id=instance_id)
        if self._health_address is not None and self._health_address[1]:
            host, port = self._health_address
            self._health_address = (host, port + index)

    # -- running --------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT; returns after drain, commit and leave (so the program exits with 0).

        A second signal ends the process at once. Raises what :meth:`serve` raises, and RuntimeError in a
        program that has an event loop already.
        """
        run_with_signals(self.serve, self.stop)

    async def serve(self) -> None:
        """Join the group and handle records until :meth:`stop`. For programs that have an event loop already.

        Raises HandlerFailedError when a record can neither be handled nor set aside, and the consumer's own
        errors when the group cannot be read; in both cases what is done is committed and the group left
        first.
        """
        if self._loop is not None:
            raise RuntimeError("the service runs already: make another one to run it twice")
        handlers = self.checked_handlers()
        self._over, self._failure, self._loop = False, None, asyncio.get_running_loop()
        try:
            await self._serve_handlers(handlers)
        except Exception as error:
            self._failure = error
            told = self._run is not None and error is self._run.failure
            if not told and not isinstance(error, ConfigError):
                shown = None if isinstance(error, KohortError) else error
                log.error(
                    "group %s: the service has ended: %s", self.group, short_text(error), exc_info=shown
                )
            raise
        finally:
            self._over = True
            self._loop = self._run = self._engine = self._starting = self._stop_reason = self.health_port = (
                None
            )

    @asynccontextmanager
    async def keep_serving(self) -> AsyncIterator[None]:
        """Serve while the block runs: for an application's lifespan.

        If the service ends with an error, it begins again after 1 s, then 2 s and so on up to 30 s, and
        ``complaint`` says why meanwhile. At the end of the block it stops in good order. Raises ConfigError:
        at once, or, where it shows only when the service begins, at the end of the block.
        """
        self.checked_handlers()
        async with serving_again(self.serve, self.stop):
            yield

    async def _serve_handlers(self, handlers: list[Handler]) -> None:
        self._run = engine = self._make_run(handlers)
        if self._stop_reason is not None:
            return
        async with AsyncExitStack() as stack:
            async with self._until_stopped():
                await self._start(stack, engine, handlers)
            if engine.started:
                await engine.run()

    def _make_run(self, handlers: list[Handler]) -> Engine | SharedAndRetries:
        hold_ms = self._own.hold_retries_ms if self.in_share_group else None
        if not self.in_share_group or not any(handler.retry_topics for handler in handlers):
            self._engine = self._make_engine(handlers, self._config, hold_retries_ms=hold_ms)
            return self._engine
        from .share.share_retries import SharedAndRetries, retries_config, split_handlers

        shared, retries = split_handlers(handlers)
        config = retries_config(self._config, self.group, self._drain_timeout_ms)
        self._engine = self._make_engine(shared, self._config, hold_retries_ms=hold_ms)
        return SharedAndRetries(self._engine, self._make_engine(retries, config, letters_of=self.group))

    def _make_engine(
        self,
        handlers: list[Handler],
        config: dict[str, object],
        *,
        hold_retries_ms: int | None = None,
        letters_of: str | None = None,
    ) -> Engine:
        progress = HandlingProgress(self._own.stalled_after_ms)
        progress.observe(asyncio.get_running_loop().time(), finished=0, waiting=0)
        return Engine(
            handlers,
            config=config,
            drain_timeout_ms=self._drain_timeout_ms,
            backlog_max_bytes=self._own.backlog_max_bytes,
            progress=progress,
            fail_probes_on_hanging_call=self._own.fail_probes_on_hanging_call,
            once=self._once,
            output=self._output,
            tracing=self._own.tracing,
            hold_retries_ms=hold_retries_ms,
            letters_of=letters_of,
        )

    async def _start(
        self, stack: AsyncExitStack, engine: Engine | SharedAndRetries, handlers: list[Handler]
    ) -> None:
        """Start everything that is needed before records come; the stack closes it again."""
        values = await enter_lifespans(stack, self._lifespans, self._provided)
        for handler in handlers:
            handler.values = fill_arguments(f"handler {handler.name}", handler.wants, values)
        if self._once is not None:
            threads = DaemonThreads(1, "kohort-exactly-once")
            stack.callback(threads.close)
            await threads.call(self._once.sink.prepare)
        probes = await stack.enter_async_context(Probes(lambda: [engine], self._health_address))
        self.health_port = probes.port
        if probes.port is not None:
            log.info("group %s: %s", self.group, probes.addresses())
        await engine.start()

    @asynccontextmanager
    async def _until_stopped(self) -> AsyncIterator[None]:
        """A block that a requested stop ends, wherever it is."""
        starting = asyncio.timeout(None)
        try:
            async with starting:
                self._starting = starting
                if self._stop_reason is not None:
                    self._leave_start()
                yield
        except TimeoutError:
            if not starting.expired():
                raise
        finally:
            self._starting = None

    def _leave_start(self) -> None:
        if self._starting is not None and not self._starting.expired():
            self._starting.reschedule(asyncio.get_running_loop().time())

    def checked_handlers(self) -> list[Handler]:
        """The handlers of this run. Raises ConfigError: nothing is connected to yet."""
        if not self._handlers:
            raise ConfigError("the service has no handler: register one with @service.handler('topic')")
        around = tuple(self._middlewares)
        handlers = [
            replace(handler, counters=Counters(), middlewares=(*around, *handler.middlewares))
            for handler in self._handlers
        ]
        if self._once is not None:
            for handler in handlers:
                bind_connection(handler, self._once.sink)
        known = check_lifespans(self._lifespans, self._provided)
        for handler in handlers:
            for want in handler.wants:
                choose_type(f"handler {handler.name}", want, known)
        return handlers

    # -- what others see ------------------------------------------------------------------------------------

    @property
    def probed(self) -> Probed | None:
        """The run that the probes cover; None while the service does not run."""
        return self._run

    @property
    def topics(self) -> list[str]:
        """The topics of all handlers."""
        return [topic for handler in self._handlers for topic in handler.topics]

    @property
    def dead_letter_topics(self) -> list[str]:
        """The topics to which dead letters go."""
        return sorted({topic for handler in self._handlers for topic in handler.letter_topics})

    @property
    def retry_topics(self) -> list[str]:
        """The topics in which records wait for another try."""
        return sorted({topic for handler in self._handlers for topic in handler.retry_topics})

    @property
    def finished(self) -> int:
        """Number of records finished in this run, without those that come again; 0 while it does not run."""
        return 0 if self._run is None else self._run.finished - self._run.postponed

    @property
    def ready(self) -> bool:
        """Return whether the member has joined its group and is not stopping."""
        return self._run is not None and self._run.unready() is None

    def complaint(self) -> str | None:
        """Why this service is not alive, as /healthz says it; None while it is.

        For a route of the application whose event loop the service runs on; call it on that loop.
        """
        if self._run is not None:
            return self._run.complaint()
        if self._failure is not None:
            return f"the service has ended: {short_text(self._failure)}"
        return "the service does not run"

    def stop(self, reason: str = "stop() was called") -> None:
        """Request a graceful end; may be called from any thread, also before the service runs. After a run
        has ended it does nothing: it does not stop a later run.
        """
        if self._over:
            return
        self._stop_reason = reason
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # it has ended since
                loop.call_soon_threadsafe(self._stop_now, reason)

    def _stop_now(self, reason: str) -> None:
        if self._run is not None:
            self._run.stop(reason)
            self._leave_start()
