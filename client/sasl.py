"""SASL authentication (KIP-43, KIP-152), by kafka-python's mechanisms: PLAIN, SCRAM, OAUTHBEARER, GSSAPI."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Protocol, TypeVar

from ..protocol import ErrorCode, KafkaError, RequestBody, kafka_module
from ..protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from ..protocol.messages.sasl_handshake import SaslHandshakeRequest
from ..protocol.named_tuples import NamedTuple
from .errors import AuthenticationError, BrokerConnectionError

T = TypeVar("T")

_TOKENAUTH: Final = b",tokenauth=true"

#: Returns a token for OAUTHBEARER. Called in a thread of its own, so it may block.
TokenProvider = Callable[[], str]


class Token(NamedTuple):
    """What a token provider gives: the token, and SASL extensions."""

    text: str
    extensions: Mapping[str, str]


#: Returns a token for a connection to this address.
AskToken = Callable[[str], Awaitable[Token]]


class Ask(Protocol):
    """Sends a request and returns the response."""

    def __call__(self, body: RequestBody[T], /) -> Awaitable[T]: ...


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """Credentials with which an OAuth client gets tokens from ``url`` (RFC 6749, section 4.4)."""

    url: str
    client_id: str
    secret: str = field(repr=False)
    scope: str = ""


@dataclass(frozen=True, slots=True)
class Sasl:
    """User name and password, a token provider, or the brokers' ``service`` in Kerberos.

    ``mechanism`` is Kafka's name, as in sasl.mechanism. ``tokenauth``: user and password are id and HMAC of a
    delegation token (KIP-48).
    """

    mechanism: str
    username: str = ""
    password: str = field(default="", repr=False)
    token_provider: TokenProvider | None = None
    tokenauth: bool = False
    service: str = ""


async def authenticate(sasl: Sasl, address: str, ask: Ask, ask_token: AskToken | None = None) -> float | None:
    """Authenticate, with a token if ``ask_token`` gives some; return the lifetime of the session in
    milliseconds (KIP-368), None if it has no end.

    Raises AuthenticationError if the broker refuses, BrokerConnectionError for transient errors.
    """
    handshake = await ask(SaslHandshakeRequest(mechanism=sasl.mechanism))
    if handshake.error_code:
        offered = ", ".join(sorted(handshake.mechanisms)) or "none"
        raise AuthenticationError(
            address, f"the broker does not take sasl_mechanism={sasl.mechanism!r}; it offers {offered}"
        )
    token = None if ask_token is None else await ask_token(address)
    try:
        # GSSAPI asks for a ticket here
        mechanism = await asyncio.to_thread(_make_mechanism, sasl, token, address)
    except Exception as error:
        raise AuthenticationError(address, f"{sasl.mechanism}: {error}") from error
    while True:
        data = await _step_in_thread(sasl, address, mechanism.auth_bytes)
        answer = await ask(SaslAuthenticateRequest(auth_bytes=data))
        if answer.error_code:
            code = KafkaError(answer.error_code).code
            if code is not ErrorCode.SASL_AUTHENTICATION_FAILED and code.retriable:
                raise BrokerConnectionError(address, f"SASL: {code.name}")
            said = answer.error_message or code.name
            raise AuthenticationError(address, f"{sasl.mechanism} was refused: {said}")
        await _step_in_thread(sasl, address, mechanism.receive, bytes(answer.auth_bytes))
        if mechanism.is_done():
            break
    if not mechanism.is_authenticated():
        raise AuthenticationError(address, f"{sasl.mechanism} was refused")
    return answer.session_lifetime_ms or None


async def _step_in_thread(sasl: Sasl, address: str, step: Callable[..., T], *arguments: object) -> T:
    """Run a step in a thread, because SCRAM hashes take long."""
    try:
        return await asyncio.to_thread(step, *arguments)
    except Exception as error:
        raise AuthenticationError(
            address, f"{sasl.mechanism}: the broker's answer is wrong: {error}"
        ) from error


def _make_mechanism(sasl: Sasl, token: Token | None, address: str) -> Any:
    username = sasl.username
    if username and sasl.mechanism.startswith("SCRAM"):
        # as RFC 5802 has these two in a name; kafka-python sends the name as it gets it
        username = username.replace("=", "=3D").replace(",", "=2C")
    settings: dict[str, object] = {
        "sasl_mechanism": sasl.mechanism,
        "sasl_plain_username": username,
        "sasl_plain_password": sasl.password,
        "sasl_kerberos_service_name": sasl.service,
        "host": address.rpartition(":")[0].strip("[]"),
    }
    if token is not None:
        settings["sasl_oauth_token_provider"] = _provider_class()(token)
    mechanism = kafka_module("kafka.net.sasl").get_sasl_mechanism(sasl.mechanism)(**settings)
    if sasl.tokenauth:
        client = _token_client_class()
        mechanism._scram_client = client(username, sasl.password, sasl.mechanism)
    return mechanism


@cache
def _token_client_class() -> Any:
    class TokenClient(kafka_module("kafka.net.sasl.scram").ScramClient):  # type: ignore[misc]  # not typed
        """Says by an extension of its first message (RFC 5802) that the user is a token's id."""

        def first_message(self) -> bytes:
            first: bytes = super().first_message() + _TOKENAUTH
            self.auth_message += _TOKENAUTH
            return first

    return TokenClient


@cache
def _provider_class() -> Any:
    class Provider(kafka_module("kafka.net.sasl.oauth").AbstractTokenProvider):  # type: ignore[misc]  # kafka-python is not typed
        """Gives a token that is known to kafka-python's mechanism."""

        def __init__(self, known: Token) -> None:
            self._known = known

        def token(self) -> str:
            return self._known.text

        def extensions(self) -> dict[str, str]:
            return dict(self._known.extensions)

    return Provider
