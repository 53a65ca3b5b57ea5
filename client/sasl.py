"""SASL authentication (KIP-43, KIP-152): PLAIN, SCRAM and OAUTHBEARER, by kafka-python's mechanisms."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from ..protocol import ErrorCode, KafkaError, kafka_module
from ..protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from ..protocol.messages.sasl_handshake import SaslHandshakeRequest
from .errors import AuthenticationError, BrokerConnectionError

#: Returns a token for OAUTHBEARER. Called in a thread of its own, so it may block.
TokenProvider = Callable[[], str]


class Token(NamedTuple):
    """What a token provider gives: the token, and SASL extensions."""

    text: str
    extensions: Mapping[str, str]


#: Returns a token for a connection to this address.
AskToken = Callable[[str], Awaitable[Token]]

#: Sends a request and returns the response.
Ask = Callable[[Any], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """Credentials with which an OAuth client gets tokens from ``url`` (RFC 6749, section 4.4)."""

    url: str
    client_id: str
    secret: str = field(repr=False)
    scope: str = ""


@dataclass(frozen=True, slots=True)
class Sasl:
    """User name and password, or a token provider. ``mechanism`` is Kafka's name, as in sasl.mechanism."""

    mechanism: str
    username: str = ""
    password: str = field(default="", repr=False)
    token_provider: TokenProvider | None = None


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
    mechanism = _mechanism(sasl, token)
    while True:
        data = await _step(sasl, address, mechanism.auth_bytes)
        answer = await ask(SaslAuthenticateRequest(auth_bytes=data))
        if answer.error_code:
            code = KafkaError(answer.error_code).code
            if code is not ErrorCode.SASL_AUTHENTICATION_FAILED and code.retriable:
                raise BrokerConnectionError(address, f"SASL: {code.name}")
            said = answer.error_message or code.name
            raise AuthenticationError(address, f"{sasl.mechanism} was refused: {said}")
        await _step(sasl, address, mechanism.receive, bytes(answer.auth_bytes))
        if mechanism.is_done():
            break
    if not mechanism.is_authenticated():
        raise AuthenticationError(address, f"{sasl.mechanism} was refused")
    return answer.session_lifetime_ms or None


async def _step(sasl: Sasl, address: str, step: Callable[..., Any], *arguments: Any) -> Any:
    """Run a step in a thread, because SCRAM hashes take long."""
    try:
        return await asyncio.to_thread(step, *arguments)
    except Exception as error:
        raise AuthenticationError(
            address, f"{sasl.mechanism}: the broker's answer is wrong: {error}"
        ) from error


def _mechanism(sasl: Sasl, token: Token | None) -> Any:
    settings: dict[str, Any] = {
        "sasl_mechanism": sasl.mechanism,
        "sasl_plain_username": sasl.username,
        "sasl_plain_password": sasl.password,
    }
    if token is not None:
        settings["sasl_oauth_token_provider"] = _provider_class()(token)
    return kafka_module("kafka.net.sasl").get_sasl_mechanism(sasl.mechanism)(**settings)


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
