"""InitProducerId (22), v0-5: an id for an idempotent producer (KIP-98, KIP-360).

Transactions are not offered: a transactional id is answered INVALID_REQUEST, which every client takes as
final (COORDINATOR_NOT_AVAILABLE would have it try until its time is up).
"""

from __future__ import annotations

import logging
from typing import Any

from ...protocol import ApiKey, ErrorCode, KafkaError
from .._node import Node
from ..authorizer import Access, Operation, ResourceType, right
from ._api import Asked, Guard, Request, ServedApi
from ._errors import at_top
from ._guards import refusal

log = logging.getLogger("kohort.broker")


async def handle(node: Node, request: Request) -> Any:
    if request.body.transactional_id is not None:
        return request.answer(error_code=ErrorCode.INVALID_REQUEST, producer_id=-1, producer_epoch=-1)
    try:
        # an id the producer already has is not looked at: without transactions a new one serves as well
        return request.answer(producer_id=await node.producer_ids.take(), producer_epoch=0)
    except OSError as error:
        # as Apache Kafka while it has no block of ids: what other errors tell a producer is to give up
        log.error("no block of producer ids can be kept, the disk fails: %s", error)
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, str(error)) from error


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


async def _guard(asked: Asked) -> Any:
    name = asked.request.body.transactional_id
    if name is not None:
        if not asked.may(_TRANSACTION_RIGHT, name):
            raise refusal(_TRANSACTION_RIGHT)
    elif not asked.authorizer.allows_some(
        asked.request.context, _SOME_TOPIC_RIGHT.operation, _SOME_TOPIC_RIGHT.resource
    ) and not asked.may(_IDEMPOTENT_RIGHT):
        raise refusal(_IDEMPOTENT_RIGHT)
    return await asked.proceed()


API = ServedApi(
    key=ApiKey.INIT_PRODUCER_ID,
    versions=(0, 5),
    handler=handle,
    guard=Guard((_TRANSACTION_RIGHT, _IDEMPOTENT_RIGHT, _SOME_TOPIC_RIGHT), _guard),
    errors=at_top(lambda _body, _version, _code: {"producer_epoch": -1}),
)
