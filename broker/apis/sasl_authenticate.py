"""SaslAuthenticate (36), v0-2, out of place (KIP-152): see SaslHandshake."""

from __future__ import annotations

from ...protocol import ApiKey, ErrorCode
from ...protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ..node import Node
from ._api import Request, ServedApi
from ._guards import OPEN_TO_ALL


async def handle(_node: Node, _request: Request[SaslAuthenticateRequest]) -> SaslAuthenticateResponse:
    """Refuse it: a connection that has to authenticate does so before other requests are routed."""
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="there is nothing to authenticate: this connection is open already",
    )


API = ServedApi(
    key=ApiKey.SASL_AUTHENTICATE,
    versions=(0, 2),
    handler=handle,
    guard=OPEN_TO_ALL,
)
