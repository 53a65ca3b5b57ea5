"""SaslHandshake (17), v0-1, where it is out of place (KIP-43).

A connection that has to authenticate does so before its requests come here. This one comes from clients of
listeners without SASL, and from clients that authenticate again without need.
"""

from __future__ import annotations

from typing import Any

from ...protocol import ApiKey, ErrorCode
from .._node import Node
from ._api import Request, ServedApi
from ._guards import OPEN_TO_ALL


async def handle(_node: Node, request: Request) -> Any:
    return request.answer(error_code=ErrorCode.ILLEGAL_SASL_STATE)


API = ServedApi(
    key=ApiKey.SASL_HANDSHAKE,
    versions=(0, 1),
    handler=handle,
    guard=OPEN_TO_ALL,
)
