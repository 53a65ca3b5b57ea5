"""InitProducerId (22), v0-5: a producer id and epoch, for a transactional id or none (KIP-98, KIP-360)."""

from __future__ import annotations

from ...protocol import ApiKey, ErrorCode, KafkaError
from ...protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ...transactions import Initialize
from ..authorizer import Access, Operation, ResourceType, right
from ..coordinators.transactions import take_producer_id
from ..node import Node
from ._api import Guard, Request, ServedApi
from ._errors import at_top
from ._transactions import fenced_name

#: Version from which clients know PRODUCER_FENCED.
_FENCED_FROM = 4

_NONE = -1

_TRANSACTION_RIGHT = right(
    Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "the transactional id, if there is one"
)
_IDEMPOTENT_RIGHT = right(
    Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, "without one, if the next right is missing"
)
_SOME_TOPIC_RIGHT = Access(
    Operation.WRITE,
    ResourceType.TOPIC,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    "without one: any topic that there may be",
)


async def handle(node: Node, request: Request[InitProducerIdRequest]) -> InitProducerIdResponse:
    """Give a producer its id and epoch; from v3 a producer may raise its own epoch (KIP-360)."""
    body = request.body
    given = body.producer_id, body.producer_epoch
    if (given[0] == _NONE) != (given[1] == _NONE):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "a producer is named by its id and its epoch, or by neither"
        )
    if body.transactional_id is None:
        # a producer's former id is ignored: without transactions a new one serves as well
        return InitProducerIdResponse(
            producer_id=await take_producer_id(node.producer_ids, node.logs.disk), producer_epoch=0
        )
    known = None if given[0] == _NONE else given
    init = Initialize(body.transactional_id, body.transaction_timeout_ms, known)
    error, producer_id, epoch = await node.transactions.initialize(init)
    return InitProducerIdResponse(
        error_code=fenced_name(request, error, _FENCED_FROM), producer_id=producer_id, producer_epoch=epoch
    )


async def _guard(node: Node, request: Request[InitProducerIdRequest]) -> object:
    if request.body.transactional_id is not None:
        request.require(_TRANSACTION_RIGHT, request.body.transactional_id)
    elif not request.allows_some(_SOME_TOPIC_RIGHT):
        request.require(_IDEMPOTENT_RIGHT)
    return await request.proceed(node)


API = ServedApi(
    key=ApiKey.INIT_PRODUCER_ID,
    versions=(0, 5),
    handler=handle,
    guard=Guard((_TRANSACTION_RIGHT, _IDEMPOTENT_RIGHT, _SOME_TOPIC_RIGHT), _guard),
    errors=at_top(lambda _body, _version, _code: {"producer_epoch": -1}),
)
