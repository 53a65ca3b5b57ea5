"""The server of ``kohort ui``, made from the command's options."""

from __future__ import annotations

import argparse
import asyncio
import ipaddress
import secrets
import signal
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..admin import GroupAdmin
from ..admin.connection import connection_of
from ..recording import RecordingBounds
from .app import make_app
from .guard import CsrfTokens, RequestGuard
from .observer import Observer
from .recording import ClusterRecorder

_DAY_MS: Final = 86_400_000

#: Most connections at a time: fewer than the files that a process may have open.
MOST_CONNECTIONS: Final = 500
#: A connection without a complete request for this long is closed.
REQUEST_S: Final = 10.0


class Ui(NamedTuple):
    """An application with its guard, the address to open, and a note for the user."""

    app: ASGIApp
    observer: Observer
    address: str
    remarks: Sequence[str]


def ui_of(options: argparse.Namespace, listening: tuple[Any, ...], token: str | None) -> Ui:
    """The page of the cluster of the options. ``listening`` is the socket's own address. Without a ``token``
    one is generated if the page is not only for this machine, or may change something. Raises ConfigError.
    """
    connection = connection_of(options)
    settings = connection.settings()
    timeout_ms = max(1, round(options.timeout * 1_000))
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
    observer = Observer(
        lambda: GroupAdmin(timeout_ms=timeout_ms, client_id="kohort-ui", **settings),
        patience_s=options.timeout,
    )
    recorder = None
    if options.record is not None:
        bounds = RecordingBounds(options.record_size << 20, options.record_days * _DAY_MS)
        recorder = ClusterRecorder(observer, Path(options.record), bounds)
        remarks.append(f"all groups are recorded in {options.record}")
    form_tokens = CsrfTokens(cookie) if options.allow_changes else None
    hosts = {"localhost", "127.0.0.1", "::1", str(address), options.host, *options.allow_host}
    if not address.is_loopback:
        hosts.add(socket.gethostname())
    guarded = RequestGuard(
        make_app(observer, connection.bootstrap, form_tokens, recorder, options.metrics),
        hosts=hosts,
        any_address=not address.is_loopback,
        token=token,
        cookie=cookie,
    )
    return Ui(guarded, observer, f"http://{shown}:{port}/{secret}", remarks)


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
        self._ui.observer.end()
        self.should_exit = True
