"""ShareAcknowledge (79), v1-2: says what became of records that a member of a share group has (KIP-932,
KIP-1222).
"""

from __future__ import annotations

from ...coordinator.share_groups import SHARE_VERSION
from ...protocol import ApiKey, ErrorCode, KafkaError
from ...protocol.messages.share_acknowledge import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from ...share_partitions import OPENING_EPOCH, TopicPlace
from ..node import Node
from ._api import Request, ServedApi
from ._errors import AT_TOP
from ._share import GUARD, MemberRequest, by_topic, lock_ms


async def handle(node: Node, request: Request[ShareAcknowledgeRequest]) -> ShareAcknowledgeResponse:
    body = request.body
    try:
        asked = MemberRequest(node, request)
        if asked.epoch == OPENING_EPOCH:
            raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session = asked.session()
    except KafkaError as error:
        return ShareAcknowledgeResponse(error_code=error.code, error_message=error.message)
    told = await asked.acknowledge(body.topics, may_renew=body.is_renew_ack)
    if asked.closes:
        await asked.close(session)
    rows: dict[TopicPlace, PartitionData] = {}
    leaders: set[int] = set()
    for place, refused in told.items():
        leader = LeaderIdAndEpoch()
        code, message = (ErrorCode.NONE, None) if refused is None else (refused.code, refused.message)
        if code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            leader = LeaderIdAndEpoch(*asked.leader_of(place))
            leaders.add(leader.leader_id)
        rows[place] = PartitionData(place.number, code, message, leader)
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=lock_ms(asked),
        responses=[
            ShareAcknowledgeTopicResponse(topic_id, some) for topic_id, some in by_topic(rows).items()
        ],
        node_endpoints=[NodeEndpoint(*each) for each in asked.endpoints_of(leaders)] if leaders else (),
    )


API = ServedApi(
    key=ApiKey.SHARE_ACKNOWLEDGE,
    versions=(1, 2),
    handler=handle,
    guard=GUARD,
    errors=AT_TOP,
    feature=SHARE_VERSION,
)
