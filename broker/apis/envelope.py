"""Envelope (58), v0: a client's request that another broker forwards to the controller (KIP-590).

The controller checks the client's rights and quotas, and answers with the frame for the client.
"""

from __future__ import annotations

from ...protocol import ApiKey, ErrorCode, KafkaError, ProtocolError
from ...protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from ..authorizer import Operation, ResourceType, right
from ..clients.client_state import Peer
from ..node import Node
from ._api import Request, ServedApi
from ._guards import whole


async def handle(node: Node, request: Request[EnvelopeRequest]) -> EnvelopeResponse:
    """Answer a request that another broker has forwarded for its client (KIP-590)."""
    assert node.cluster is not None, "it is served in a cluster"
    control, body = node.cluster.control, request.body
    brokers = node.settings.inter_broker_listener_name.upper()
    if brokers and request.context.listener != brokers:
        # on a listener of clients, even a super user may not act for other clients
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, f"brokers forward requests on {brokers}")
    frame = bytes(body.request_data)
    api = request.apis.get(int.from_bytes(frame[:2], "big"))
    if api is None or not api.by_controller:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "only requests for the controller are forwarded")
    if not control.is_active:
        raise KafkaError(ErrorCode.NOT_CONTROLLER, "another broker is controller")
    try:
        peer = Peer(
            bytes(body.client_host_address).decode(),
            request.endpoint,
            request.context.listener,
            bytes(body.request_principal or b"").decode(),
        )
        return EnvelopeResponse(response_data=await control.answer(frame, peer))
    except (ProtocolError, UnicodeDecodeError) as error:
        # one client's request, which another version of kohort could read: keep the connection, which all
        # share
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from error


API = ServedApi(
    key=ApiKey.ENVELOPE,
    versions=(0, 0),
    handler=handle,
    guard=whole(right(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, "all of it")),
    is_of_broker=lambda _body: True,
    carried_out=True,
    cluster_only=True,
)
