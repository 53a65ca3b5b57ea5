"""DescribeShareGroupOffsets (90), v0-1: where share groups go on; v1 with the lag (KIP-932, KIP-1226)."""

from __future__ import annotations

from ...coordinator.share_groups import SHARE_VERSION
from ...protocol import ApiKey, ErrorCode
from ...protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from ..authorizer import Operation, ResourceType, right
from ..event_loop.time_slices import in_slices
from ..node import Node
from ..share_groups import describe_offsets
from ._api import Asked, Guard, Request, ServedApi, hand_over, replaced
from ._errors import Level, in_elements, same_fields
from ._guards import append_elements, refusal_error

_GROUP_RIGHT = right(Operation.DESCRIBE, ResourceType.GROUP, "each group")
_TOPIC_RIGHT = right(
    Operation.DESCRIBE, ResourceType.TOPIC, "each topic; without names, the others are left out"
)

_Hidden = list[DescribeShareGroupOffsetsRequestTopic] | None


async def handle(
    node: Node, request: Request[DescribeShareGroupOffsetsRequest]
) -> DescribeShareGroupOffsetsResponse:
    """The coordinator says which partitions to read, one group after the other."""
    asked = await hand_over(node, request)
    return DescribeShareGroupOffsetsResponse(groups=[await describe_offsets(node, each) for each in asked])


async def _guard(
    asked: Asked[DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse],
) -> DescribeShareGroupOffsetsResponse:
    request = asked.request
    allowed: list[tuple[DescribeShareGroupOffsetsRequestGroup, _Hidden]] = []
    refused: list[DescribeShareGroupOffsetsRequestGroup] = []
    async for group in in_slices(request.body.groups):
        if asked.may(_GROUP_RIGHT, group.group_id):
            allowed.append(await _hide_topics(asked, group))
        else:
            refused.append(group)
    asked.narrow(groups=[group for group, _ in allowed])
    answer = await asked.proceed() if allowed else DescribeShareGroupOffsetsResponse()
    # matched by position, not by id: a group may be in the request twice, each time with other topics
    answers = zip(answer.groups, allowed, strict=True)
    told = [await _answer_group(asked, group, hidden) async for group, (_, hidden) in in_slices(answers)]
    errors = request.element_errors(refused, refusal_error(_GROUP_RIGHT).code)
    return replaced(answer, groups=[*told, *errors])


async def _hide_topics(
    asked: Asked[DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse],
    group: DescribeShareGroupOffsetsRequestGroup,
) -> tuple[DescribeShareGroupOffsetsRequestGroup, _Hidden]:
    """A group without its hidden topics, and the hidden ones; None for these if all topics are requested."""
    if group.topics is None:
        return group, None
    hidden: list[DescribeShareGroupOffsetsRequestTopic] = []
    seen: list[DescribeShareGroupOffsetsRequestTopic] = []
    async for topic in in_slices(group.topics):
        (seen if asked.may(_TOPIC_RIGHT, topic.topic_name) else hidden).append(topic)
    return replaced(group, topics=seen), hidden


async def _answer_group(
    asked: Asked[DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse],
    group: DescribeShareGroupOffsetsResponseGroup,
    hidden: _Hidden,
) -> DescribeShareGroupOffsetsResponseGroup:
    """A group of the response as the sender may see it; ``hidden`` are topics left out of the request."""
    if group.error_code:
        return group
    if hidden is not None:
        return append_elements(group, "topics", map(_without_offsets, hidden))
    topics = [topic async for topic in in_slices(group.topics) if asked.shows(_TOPIC_RIGHT, topic.topic_name)]
    return replaced(group, topics=topics)


def _without_offsets(
    topic: DescribeShareGroupOffsetsRequestTopic,
) -> DescribeShareGroupOffsetsResponseTopic:
    partitions = [
        DescribeShareGroupOffsetsResponsePartition(
            number, -1, error_code=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        )
        for number in topic.partitions
    ]
    return DescribeShareGroupOffsetsResponseTopic(topic.topic_name, None, partitions)


API: ServedApi[DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse] = ServedApi(
    key=ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    versions=(0, 1),
    handler=handle,
    feature=SHARE_VERSION,
    guard=Guard((_GROUP_RIGHT, _TOPIC_RIGHT), _guard),
    errors=in_elements(Level("groups", "groups", same_fields("group_id"))),
    reads_only=True,
)
