"""SaslAuthenticate (36), v0-2, where it is out of place (KIP-152): see SaslHandshake."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...protocol import ApiKey, ErrorCode
from ._api import Request, ServedApi
from ._errors import AT_TOP
from ._guards import open_to_all

if TYPE_CHECKING:
    from .._node import Node


async def handle(_node: Node, request: Request) -> Any:
    return request.answer(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="there is nothing to authenticate: this connection is open already",
    )


API = ServedApi(
    key=ApiKey.SASL_AUTHENTICATE,
    versions=(0, 2),
    handler=handle,
    access=(),
    guard=open_to_all,
    errors=AT_TOP,
)
