"""Logging in over a bare socket, step by step."""

from __future__ import annotations

from typing import Any

from kohort.protocol import ApiKey
from tests.broker.security.scram_client import ScramClient
from tests.broker.wire import Wire


def handshake(wire: Wire, mechanism: str, version: int = 1) -> Any:
    return wire.call(ApiKey.SASL_HANDSHAKE, version, mechanism=mechanism)


def authenticate(wire: Wire, data: bytes, version: int = 2) -> Any:
    return wire.call(ApiKey.SASL_AUTHENTICATE, version, auth_bytes=data)


def plain(user: str, password: str) -> bytes:
    return f"\0{user}\0{password}".encode()


def log_in_plain(wire: Wire, user: str = "alice", password: str = "secret") -> Any:
    """The broker's last answer."""
    assert handshake(wire, "PLAIN").error_code == 0
    return authenticate(wire, plain(user, password))


def log_in_scram(
    wire: Wire, user: str = "alice", password: str = "secret", mechanism: str = "SCRAM-SHA-256"
) -> Any:
    """The broker's last answer."""
    client = ScramClient(mechanism, user, password)
    assert handshake(wire, mechanism).error_code == 0
    answer = authenticate(wire, client.first())
    if answer.error_code:
        return answer
    return authenticate(wire, client.last(bytes(answer.auth_bytes)))


def asks(wire: Wire) -> bool:
    """Whether an ordinary request is answered; EOFError where the broker has had enough."""
    return bool(wire.call(ApiKey.METADATA, 1, topics=[]).brokers)
