"""Guards of what producers and consumers send: Produce, Fetch, OffsetForLeaderEpoch, InitProducerId."""

from __future__ import annotations

from typing import Any

from ...protocol import ApiKey, ProtocolError
from ._access import ACCESS
from ._acls import CLUSTER_NAME
from ._guard import Asked, each, refuse, topic_name, topics

#: Bit 4 of a batch's attributes, and where they stand: the batch is part of a transaction.
_TRANSACTIONAL, _ATTRIBUTES_AT = 0x10, 22


async def produce(asked: Asked) -> Any:
    transaction, topic = ACCESS[ApiKey.PRODUCE]
    body = asked.request.body
    if any(_transactional(data.records) for item in body.topic_data for data in item.partition_data) and (
        body.transactional_id is None or not asked.may(transaction, body.transactional_id)
    ):
        raise refuse(transaction)
    if body.acks == 0:
        for item in body.topic_data:
            name = topic_name(asked, item)
            if name is not None and not asked.may(topic, name):
                raise ProtocolError(f"a Produce with acks=0 to {name}, which is not allowed")
    return await topics(topic)(asked)


def _transactional(records: bytes | None) -> bool:
    return (
        records is not None
        and len(records) > _ATTRIBUTES_AT
        and bool(records[_ATTRIBUTES_AT] & _TRANSACTIONAL)
    )


async def fetch(asked: Asked) -> Any:
    replica, topic = ACCESS[ApiKey.FETCH]
    body = asked.request.body
    # v15 moved the number into a struct
    state = getattr(body, "replica_state", None)
    number = body.replica_id if state is None or asked.request.version < 15 else state.replica_id
    if number >= 0:
        return await each(asked, lambda _item: (replica, CLUSTER_NAME))
    return await topics(topic, "topic")(asked)


async def leader_epoch(asked: Asked) -> Any:
    cluster, topic = ACCESS[ApiKey.OFFSET_FOR_LEADER_EPOCH]
    return await (asked.proceed() if asked.may(cluster) else topics(topic, "topic")(asked))


async def init_producer_id(asked: Asked) -> Any:
    transaction, idempotent, some_topic = ACCESS[ApiKey.INIT_PRODUCER_ID]
    name = asked.request.body.transactional_id
    if name is not None:
        if not asked.may(transaction, name):
            raise refuse(transaction)
    elif not asked.authorizer.allows_some(
        asked.request.context, some_topic.operation, some_topic.resource
    ) and not asked.may(idempotent):
        raise refuse(idempotent)
    return await asked.proceed()
