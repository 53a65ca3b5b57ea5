"""SaslHandshake (17), v0-1, and SaslAuthenticate (36), v0-2, where they are out of place (KIP-43, KIP-152).

A connection that has to say who it is does so before its requests come here. These come from clients of
listeners without SASL, and from clients that say it again without need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...protocol import ApiKey, ErrorCode
from .._requests import Request

if TYPE_CHECKING:
    from .._node import Node


async def handle(_node: Node, request: Request) -> Any:
    if request.api.key == ApiKey.SASL_HANDSHAKE:
        return request.answer(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    return request.answer(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="there is nothing to authenticate: this connection is open already",
    )
