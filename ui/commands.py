"""``kohort ui``: its arguments, and the server."""

from __future__ import annotations

import argparse
import asyncio
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..admin.cluster.top import metrics_address
from ..admin.commands import add_connection, positive_count, run_program

if TYPE_CHECKING:
    import socket

#: Shortest token that users may choose.
_SHORTEST_TOKEN: Final = 16


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give ``kohort ui`` its options."""
    add_connection(parser)
    page = parser.add_argument_group("page")
    page.add_argument(
        "--cluster",
        dest="clusters",
        metavar="NAME[=HOST:PORT]",
        type=_cluster_address,
        action="append",
        default=[],
        help="show this cluster, a profile or the one at this address; may be given many times, in place of "
        "--bootstrap and --profile",
    )
    page.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    page.add_argument(
        "--port", type=_port_number, default=8090, help="0 for a free one (default: %(default)s)"
    )
    page.add_argument(
        "--allow-changes",
        action="store_true",
        help="let the page reset and delete groups without members, and elect leaders; it asks for the token",
    )
    page.add_argument(
        "--token-file",
        metavar="FILE",
        help="file with the token that the page asks for; without it one is made where it is needed",
    )
    page.add_argument(
        "--record",
        metavar="DIR",
        help="record all groups in this folder: the page goes back for days",
    )
    for name, default, words in (
        ("size", 100, "size of the recording in MiB"),
        ("days", 7, "age at which what is recorded goes, in days"),
    ):
        page.add_argument(
            f"--record-{name}",
            metavar="N",
            type=positive_count,
            default=default,
            help=f"{words} (default: %(default)s)",
        )
    page.add_argument(
        "--metrics",
        metavar="[NAME=]HOST:PORT",
        type=_named_metrics,
        action="append",
        default=[],
        help="look for problems in the metrics of this broker or service, too (see kohort problems), of "
        "the cluster NAME where there are several; may be given many times",
    )
    _add_registry(page)
    page.add_argument(
        "--allow-host",
        metavar="NAME",
        action="append",
        default=[],
        help="a name that the page is reached by, such as that of a proxy; may be given many times",
    )


def _add_registry(page: argparse._ArgumentGroup) -> None:
    page.add_argument(
        "--schema-registry",
        metavar="[NAME=]URL",
        type=_split_name,
        action="append",
        default=[],
        help="decode records in Avro and JSON by the schemas of this registry, of the cluster NAME where "
        "there are several",
    )
    page.add_argument(
        "--schema-registry-config",
        metavar="FILE",
        help="more of its settings, by Confluent's names, such as basic.auth.user.info",
    )


def _cluster_address(text: str) -> tuple[str, str | None]:
    """A cluster's name, which is part of addresses and of file names, and its brokers; None: of a profile."""
    name, given, brokers = text.partition("=")
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]{0,99}", name, re.ASCII) or (given and not brokers):
        raise argparse.ArgumentTypeError(
            f"{text!r}: give NAME or NAME=HOST:PORT, a name of letters, digits, dots, _ and -"
        )
    return name, brokers or None


def _named_metrics(text: str) -> tuple[str, str]:
    """The name of a cluster, "" without one, and an address of metrics."""
    name, address = _split_name(text)
    return name, metrics_address(address)


def _split_name(text: str) -> tuple[str, str]:
    """The name of a cluster, "" without one, and an address."""
    name, given, address = text.partition("=")
    # a URL may have a sign of its own
    return (name, address) if given and re.fullmatch(r"[\w.-]+", name) else ("", text)


def _port_number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= 65_535):
        raise argparse.ArgumentTypeError(f"{text!r} is no port: give a number from 0 to 65535")
    return int(text)


def run(options: argparse.Namespace) -> int:
    """Serve until Ctrl-C or SIGTERM; return the exit code."""
    return run_program("kohort ui", lambda: asyncio.run(_serve_ui(options)), interrupted=0)


async def _serve_ui(options: argparse.Namespace) -> int:
    from ..client import ConfigError

    try:
        from .server import PageServer, ui_of
    except ImportError as error:
        raise ConfigError(
            f"{error}; kohort ui needs Starlette and uvicorn: pip install 'kohort[ui]'"
        ) from None
    listening = _listen_on(options.host, options.port)
    token = None if options.token_file is None else _token_in(options.token_file)
    ui = ui_of(options, listening.getsockname(), token)
    print(f"kohort ui ready on {ui.address}", flush=True)
    for words in ui.remarks:
        print(f"({words})", flush=True)
    await PageServer(ui).serve(sockets=[listening])
    return 0


def _listen_on(host: str, port: int) -> socket.socket:
    import socket

    from ..client import ConfigError

    try:
        [(family, _, _, _, address), *_] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return socket.create_server(address[:2], family=family)
    except OSError as error:
        raise ConfigError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None


def _token_in(path: str) -> str:
    from ..client import ConfigError

    try:
        token = Path(path).read_text("utf-8").strip()
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is no text in UTF-8") from None
    if len(token) < _SHORTEST_TOKEN:
        raise ConfigError(f"the token in {path} is short: give {_SHORTEST_TOKEN} characters or more")
    return token
