"""Addresses of brokers, as users write them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .errors import ConfigError

DEFAULT_PORT = 9092


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_bootstrap(bootstrap: str | Iterable[str]) -> list[Address]:
    """``"a:9092,b"`` or a list; IPv6 hosts in brackets; the port defaults to 9092. Raises ConfigError."""
    parts = bootstrap.split(",") if isinstance(bootstrap, str) else list(bootstrap)
    addresses = [_parse_one(part.strip()) for part in parts if part.strip()]
    if not addresses:
        raise ConfigError('bootstrap is empty: give at least one broker, as "host:port"')
    return addresses


def _parse_one(text: str) -> Address:
    if "://" in text:
        scheme = text.partition("://")[0]
        raise ConfigError(f'bootstrap {text!r}: write "host:port" alone, without {scheme}://')
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
    elif text.count(":") > 1:
        raise ConfigError(f"bootstrap {text!r}: write an IPv6 address in brackets, as [::1]:9092")
    else:
        host, _, port = text.partition(":")
    if not host:
        raise ConfigError(f'bootstrap {text!r} has no host: write "host:port"')
    if not port:
        return Address(host, DEFAULT_PORT)
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ConfigError(f"bootstrap {text!r}: {port!r} is no port number from 1 to 65535")
    return Address(host, int(port))
