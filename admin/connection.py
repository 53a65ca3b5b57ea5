"""Connections of commands and admin clients, by the table of all connections."""

from __future__ import annotations

import argparse
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

from ..settings import MAX_INT, Scope, Setting, read_settings, settings_of
from ..settings.connection import BOOTSTRAP, ClientRows, check_security, fallback_settings
from .profiles.profiles import PROFILE_VARIABLE, read_profile

if TYPE_CHECKING:
    from ..client import Cluster

_SCOPE: Final = Scope("admin client", "setting of a connection", "docs/connections.md")
#: Secrets. A command line, which every user of the machine can read, may not contain them.
_SECRETS: Final = ("ssl_password", "sasl_plain_password", "sasl_oauth_client_secret")
#: Files elsewhere also given as their text, which may be that of a private key.
_KEYS: Final = ("ssl_certfile", "ssl_keyfile")

#: A running broker accepts a connection at once; one that refuses is tried again for this long.
_CONNECT_WITHIN_MS: Final = 1_000


@dataclass(kw_only=True, repr=False, eq=False)
class AdminConnection(ClientRows):
    """The cluster's address, and the client's identity."""

    SCOPE: ClassVar[Scope] = _SCOPE

    bootstrap: Annotated[str, replace(BOOTSTRAP, allowed="")] = "localhost:9092"

    def settings(self) -> dict[str, Any]:
        """All settings, for a client that must not look for any itself."""
        return {row.name: getattr(self, row.name) for row in fields(self)} | {"config": ""}


def add_connection_options(parser: argparse.ArgumentParser, *, again: bool) -> None:
    """Add the options to a command. ``again``: an omitted option keeps the value that was given before."""
    default = argparse.SUPPRESS if again else None
    group = parser.add_argument_group(
        "connection",
        "By default KOHORT_BOOTSTRAP, KOHORT_SECURITY_PROTOCOL and so on; behind them the file of --config "
        "(KOHORT_CONFIG). TLS and SASL: docs/connections.md.",
    )
    group.add_argument(
        "--bootstrap",
        metavar="HOST:PORT",
        default=default,
        help="brokers to begin with, with commas between them (default: localhost:9092)",
    )
    group.add_argument(
        "--config",
        "--command-config",
        dest="config_file",
        metavar="FILE",
        default=default,
        help="settings by Java's names, or TOML",
    )
    group.add_argument(
        "--profile",
        metavar="NAME",
        default=default,
        help="a cluster of the file of profiles, in place of variables (default: KOHORT_PROFILE)",
    )
    for setting in settings_of(AdminConnection).values():
        if setting.row.client and setting.name != "bootstrap":
            option, more = _option_of(setting)
            # shown in one help text only, so that they do not bury an action's own options
            more["help"] = argparse.SUPPRESS if again else more.get("help", setting.row.doc)
            group.add_argument(option, dest=setting.name, default=default, **more)
            if setting.name in _SECRETS:
                # argparse would take it for a short form of the other, and an error would show the secret
                group.add_argument(option.removesuffix("-file"), action=NoSecret, help=argparse.SUPPRESS)


class NoSecret(argparse.Action):
    """An option that would take a secret: says which one takes its file."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        option = self.option_strings[0]
        parser.error(f"{option}: everybody on this machine can read that, use {option}-file, or a variable")


def _option_of(setting: Setting) -> tuple[str, dict[str, Any]]:
    """The option's name, and the keywords that argparse takes for it."""
    option = "--" + setting.name.replace("plain_", "").replace("_", "-")
    more: dict[str, Any]
    if setting.name == "sasl_tokenauth":
        more = {"action": "store_const", "const": "true"}
    elif setting.type is bool:
        option = option.replace("--ssl-", "--ssl-no-")
        words = "the broker's certificate may be for another host"
        more = {"action": "store_const", "const": "false", "help": words}
    elif setting.name in _SECRETS:
        option = f"{option}-file"
        more = {"metavar": "FILE", "help": f"file with the {setting.row.doc.removeprefix('the ')}"}
    elif setting.choices:
        more = {"choices": setting.choices, "metavar": option.rpartition("-")[2].upper()}
    else:
        more = {"metavar": "FILE" if option.endswith("file") else "TEXT"}
    if setting.name in _KEYS:
        more["type"] = _without_key
    return option, more


def _without_key(text: str) -> str:
    if "PRIVATE KEY" in text:
        raise argparse.ArgumentTypeError(
            "everybody on this machine can read a key that is given here: give its file, or a variable"
        )
    return text


def connection_of(options: argparse.Namespace) -> AdminConnection:
    """Read a command's options. Raises ConfigError."""
    given: dict[str, Any] = {
        name: getattr(options, name, None) for name in settings_of(AdminConnection) if name != "config"
    }
    given["config"] = options.config_file
    for name in _SECRETS:
        if given[name] is not None:
            given[name] = _secret_in(given[name])
    found = {name: value for name, value in given.items() if value is not None}
    profile = getattr(options, "profile", None)
    if profile is not None and options.config_file is not None:
        from ..client import ConfigError

        raise ConfigError("give --profile or --config: a profile may name a config of its own")
    if options.config_file is None:
        profile = profile or os.environ.get(PROFILE_VARIABLE)
    return _read_connection(found, profile)


def _secret_in(path: str) -> str:
    try:
        return Path(path).read_text("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        from ..client import ConfigError

        raise ConfigError(f"{path} is no text in UTF-8") from None


def _read_connection(given: Mapping[str, object], profile: str | None = None) -> AdminConnection:
    """``profile`` names what stands in the place of variables and of the file that one of them names."""
    from ..client import ConfigError

    try:
        if profile:
            fallback = read_profile(AdminConnection, profile, _SECRETS)
        else:
            fallback = fallback_settings(AdminConnection, given.get("config"))
        if isinstance(brokers := fallback.values.get("bootstrap"), list):
            fallback = fallback._replace(values={**fallback.values, "bootstrap": ",".join(map(str, brokers))})
        if given.get("ssl_context") is not None:
            # the caller brings TLS; the login may still come from the file or the environment
            login = str(fallback.values.get("security_protocol")).startswith("SASL")
            given = {"security_protocol": "SASL_SSL" if login else "SSL", **given}
        found = read_settings(AdminConnection, given, fallback=fallback)
        check_security(found)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return found


def cluster_of(connection: AdminConnection, client_id: str, timeout_ms: int) -> Cluster:
    """A cluster whose every call ends within ``timeout_ms``, retries included. Raises ConfigError."""
    from ..client import Cluster
    from ..client.security import context_and_login

    ssl_context, sasl = context_and_login(connection)
    return Cluster(
        connection.bootstrap,
        client_id,
        request_timeout_ms=timeout_ms,
        default_api_timeout_ms=timeout_ms,
        connect_timeout_ms=timeout_ms,
        # brokers send the first batch whole, and nothing behind it can be read without it
        max_frame_bytes=MAX_INT,
        ssl_context=ssl_context,
        sasl=sasl,
    )


async def connect_soon(cluster: Cluster, topics: Iterable[str] = ()) -> None:
    """Connect, or close and raise BrokerConnectionError soon: later calls try for their whole timeout.

    The metadata of ``topics`` come with it.
    """
    try:
        await cluster.connect(min(_CONNECT_WITHIN_MS, cluster.default_api_timeout_ms), topics)
    except BaseException:
        await cluster.close()
        raise


@asynccontextmanager
async def open_cluster(
    options: argparse.Namespace, client_id: str, topics: Iterable[str] = ()
) -> AsyncIterator[Cluster]:
    """The cluster of a command's ``--bootstrap`` and ``--timeout``, connected; it knows ``topics``."""
    cluster = cluster_of(connection_of(options), client_id, max(1, round(options.timeout * 1_000)))
    await connect_soon(cluster, topics)
    try:
        yield cluster
    finally:
        await cluster.close()


def read_connection(bootstrap: str | Iterable[str] | None, given: Mapping[str, object]) -> AdminConnection:
    """Read what an admin client was given. Raises ConfigError."""
    if bootstrap is not None:
        given = {**given, "bootstrap": bootstrap if isinstance(bootstrap, str) else ",".join(bootstrap)}
    return _read_connection(given)
