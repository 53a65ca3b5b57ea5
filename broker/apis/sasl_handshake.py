"""SaslHandshake (17), v0-1, out of place (KIP-43).

Connections that have to authenticate do so before their requests reach handlers (``security._login``). Those
that come here are from clients on listeners without SASL.
"""

from __future__ import annotations

from ...protocol import ApiKey, ErrorCode
from ...protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from ..node import Node
from ._api import Request, ServedApi
from ._guards import OPEN_TO_ALL


async def handle(_node: Node, _request: Request[SaslHandshakeRequest]) -> SaslHandshakeResponse:
    """Refuse it: this connection needs no authentication, or has it already."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


API = ServedApi(
    key=ApiKey.SASL_HANDSHAKE,
    versions=(0, 1),
    handler=handle,
    guard=OPEN_TO_ALL,
)
