"""What ``kohort ui`` serves, from the command's options."""

from __future__ import annotations

import argparse
import ipaddress
import secrets
import socket
from collections.abc import Sequence
from typing import Any, NamedTuple

from starlette.types import ASGIApp

from ..admin import GroupAdmin
from ..admin._connection import connection_of
from .app import make_app
from .guard import FormTokens, Guard
from .observer import Observer


class Ui(NamedTuple):
    """An application with its guard, the address to open, and what to tell whoever started it."""

    app: ASGIApp
    observer: Observer
    address: str
    remarks: Sequence[str]


def ui_of(options: argparse.Namespace, listening: tuple[Any, ...], token: str | None) -> Ui:
    """The page of the cluster of the options. ``listening`` is the socket's own address; without a ``token``
    one is made where the page is not only for this machine, or may change something. Raises ConfigError.
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
            remarks.append("whoever works on this machine can open it: --token-file asks for a token")
    # what nobody can type is what a browser on this machine is told
    shown = "127.0.0.1" if address.is_unspecified else str(address)
    shown = f"[{shown}]" if ":" in shown else shown
    cookie = f"kohort_ui_{port}"
    observer = Observer(
        lambda: GroupAdmin(timeout_ms=timeout_ms, client_id="kohort-ui", **settings),
        patience_s=options.timeout,
    )
    form_tokens = FormTokens(cookie) if options.allow_changes else None
    hosts = {"localhost", "127.0.0.1", "::1", str(address), options.host, *options.allow_host}
    if not address.is_loopback:
        hosts.add(socket.gethostname())
    guarded = Guard(
        make_app(observer, connection.bootstrap, form_tokens),
        hosts=hosts,
        any_address=not address.is_loopback,
        token=token,
        cookie=cookie,
    )
    return Ui(guarded, observer, f"http://{shown}:{port}/{secret}", remarks)
