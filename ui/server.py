"""The server of ``kohort ui``, made from the command's options."""

from __future__ import annotations

import argparse
import asyncio
import ipaddress
import logging
import secrets
import signal
import socket
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..admin import GroupAdmin
from ..admin.connection import connection_of
from ..client import ConfigError
from ..client.schema_registry import SchemaRegistry
from ..recording import RecordingBounds
from ..settings import read_settings_file
from .app import ClusterPages, Pages, make_app
from .guard import CsrfTokens, RequestGuard
from .letters.handlers import LetterPages
from .observer import Observer
from .recording import ClusterRecorder
from .records.handlers import RecordPages
from .records.values import RegistryValues, ValueReader

_DAY_MS: Final = 86_400_000
#: Time for the schema registry to answer.
_REGISTRY_MS: Final = 3_000

#: Most connections at a time: fewer than the files that a process may have open.
MOST_CONNECTIONS: Final = 500
#: A connection without a complete request for this long is closed.
REQUEST_S: Final = 10.0


class Ui(NamedTuple):
    """An application with its guard, an observer of each cluster, the address to open, notes for the user."""

    app: ASGIApp
    observers: Sequence[Observer]
    address: str
    remarks: Sequence[str]


def ui_of(options: argparse.Namespace, listening: tuple[Any, ...], token: str | None) -> Ui:
    """The page of the clusters of the options. ``listening`` is the socket's own address. Without a ``token``
    one is generated if the page is not only for this machine, or may change something. Raises ConfigError.
    """
    host, port = listening[:2]
    address = ipaddress.ip_address(host)
    remarks = []
    if not address.is_loopback:
        remarks.append("the page is served without TLS: put a proxy with TLS before it where others listen")
    if token is None and (options.allow_changes or not address.is_loopback):
        token = secrets.token_urlsafe(32)
        secret = f"?token={token}"
    else:
        secret = ""
        if token is None:
            remarks.append("anyone on this machine can open it: --token-file asks for a token")
    # a wildcard address cannot be opened: show this machine's
    shown = "127.0.0.1" if address.is_unspecified else str(address)
    shown = f"[{shown}]" if ":" in shown else shown
    cookie = f"kohort_ui_{port}"
    form_tokens = CsrfTokens(cookie) if options.allow_changes else None
    hosts = {"localhost", "127.0.0.1", "::1", str(address), options.host, *options.allow_host}
    if not address.is_loopback:
        hosts.add(socket.gethostname())
    clusters = [*_clusters_of(options, form_tokens)]
    if options.record is not None:
        remarks.append(f"all groups that its user may see are recorded in {options.record}")
    guarded = RequestGuard(
        make_app(clusters),
        hosts=hosts,
        any_address=not address.is_loopback,
        token=token,
        cookie=cookie,
    )
    return Ui(guarded, [each.made.observer for each in clusters], f"http://{shown}:{port}/{secret}", remarks)


def _clusters_of(options: argparse.Namespace, form_tokens: CsrfTokens | None) -> Iterator[ClusterPages]:
    """The pages of each cluster, or of the only one, which has no name. Raises ConfigError."""
    names = [name for name, _ in options.clusters]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ConfigError(f"--cluster: there are several {min(twice)}: give each a name of its own")
    if names and (options.bootstrap is not None or options.profile is not None):
        raise ConfigError("give --cluster for every cluster, or one by --bootstrap or --profile")
    _check_names("--metrics", "HOST:PORT", options.metrics, names)
    _check_names("--schema-registry", "URL", options.schema_registry, names)
    for name, brokers in options.clusters or [("", None)]:
        given = vars(options).copy()
        if name:
            given |= {"bootstrap": brokers, "profile": None if brokers else name}
        yield _pages_of(argparse.Namespace(**given), name, names, form_tokens)


def _check_names(option: str, what: str, given: Iterable[tuple[str, str]], names: Sequence[str]) -> None:
    """Raise ConfigError unless what is given of a cluster is given of one of these."""
    for name, address in given:
        if name not in (names or [""]):
            known = f"give NAME={what}, NAME one of {', '.join(names)}" if names else f"give {what}"
            told = f"{name}={address}" if name else address
            raise ConfigError(f"{option} {told}: of which cluster? {known}")


def _pages_of(
    options: argparse.Namespace, name: str, names: Sequence[str], form_tokens: CsrfTokens | None
) -> ClusterPages:
    connection = connection_of(options)
    settings = connection.settings()
    timeout_ms = max(1, round(options.timeout * 1_000))
    observer = Observer(
        lambda: GroupAdmin(timeout_ms=timeout_ms, client_id="kohort-ui", **settings),
        patience_s=options.timeout,
    )
    recorder = None
    if options.record is not None:
        bounds = RecordingBounds(options.record_size << 20, options.record_days * _DAY_MS)
        recorder = ClusterRecorder(observer, Path(options.record, name), bounds)
    metrics = [address for of, address in options.metrics if of == name]
    # one cluster is shown as if it had no name
    title = name if len(names) > 1 else ""
    made = Pages(
        observer, connection.bootstrap, form_tokens, recorder, metrics, title, names if title else ()
    )
    letters = LetterPages(observer, settings, options.timeout, made.frame, made.make_page)
    records = RecordPages(observer, options.timeout, made.frame, _value_reader(options, name))
    return ClusterPages(made, letters, records)


def _value_reader(options: argparse.Namespace, name: str) -> ValueReader:
    """What shows a cluster's values; with a schema registry if it has one. Raises ConfigError."""
    url = dict(options.schema_registry).get(name)
    if url is None:
        return ValueReader()
    path = options.schema_registry_config
    more = {} if path is None else read_settings_file(path)
    registry = SchemaRegistry(url, timeout_ms=_REGISTRY_MS, max_retries=0, properties=more)
    return ValueReader(RegistryValues(registry))


class Protocol(H11Protocol):
    """A connection that must send a request within REQUEST_S; uvicorn alone would wait forever."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
        else:
            self.loop.call_later(REQUEST_S, self._hurry_close, None)

    def _hurry_close(self, before: object) -> None:
        answered = None if self.cycle is None else self.cycle if self.cycle.response_complete else self
        if self.transport.is_closing():
            return
        if answered is before:
            self.transport.abort()  # no request since the last look
        else:
            self.loop.call_later(REQUEST_S, self._hurry_close, answered if answered is not self else object())


class PageServer(uvicorn.Server):
    """Serves a page until the first SIGINT or SIGTERM; its streams of events end then."""

    def __init__(self, ui: Ui) -> None:
        super().__init__(
            uvicorn.Config(
                ui.app,
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                ws="none",
                http=Protocol,
                loop="asyncio",
                timeout_graceful_shutdown=3,
                h11_max_incomplete_event_size=32_768,
            )
        )
        # uvicorn says how many answers it gives up at the end: where each was is of no use
        logging.getLogger("uvicorn.error").addFilter(_is_no_cancellation)
        self._ui = ui

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is threading.main_thread():
            loop = asyncio.get_running_loop()
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, self.end)
        yield

    def end(self) -> None:
        """Stop serving. In the loop's thread."""
        for observer in self._ui.observers:
            observer.end()
        self.should_exit = True


def _is_no_cancellation(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))
