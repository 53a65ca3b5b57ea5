"""OffsetFetch (9), v1-10: committed offsets of one group, from v8 of many (KIP-709)."""

from __future__ import annotations

from typing import TypeAlias, TypeVar

from ...protocol import ApiKey, ErrorCode
from ...protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from ..authorizer import Operation, ResourceType, right
from ..event_loop.time_slices import in_slices
from ._api import Asked, Guard, ServedApi, replaced
from ._errors import TOPICS_BY_NAME, ErrorShape, Level, same_fields
from ._guards import append_elements, refusal_error, topic_name

_Topic: TypeAlias = OffsetFetchRequestTopic | OffsetFetchRequestTopics
#: A group in a request and in a response; in old versions these are about one.
GroupT = TypeVar("GroupT", OffsetFetchRequest, OffsetFetchRequestGroup)
AnswerT = TypeVar("AnswerT", OffsetFetchResponse, OffsetFetchResponseGroup)

#: Version from which a request names many groups; the response has the same order.
_MANY_GROUPS_FROM = 8

_GROUP_RIGHT = right(Operation.DESCRIBE, ResourceType.GROUP, "each group")
_TOPIC_RIGHT = right(
    Operation.DESCRIBE, ResourceType.TOPIC, "each topic asked for; of all topics, the others are left out"
)


async def _guard(asked: Asked[OffsetFetchRequest, OffsetFetchResponse]) -> OffsetFetchResponse:
    request, body = asked.request, asked.request.body
    if request.version < _MANY_GROUPS_FROM:
        if not asked.may(_GROUP_RIGHT, body.group_id):
            raise refusal_error(_GROUP_RIGHT)
        request.body, hidden = await _hide_topics(asked, body)
        return await _answer_group(asked, await asked.proceed(), hidden)
    allowed: list[tuple[OffsetFetchRequestGroup, list[_Topic] | None]] = []
    refused: list[OffsetFetchRequestGroup] = []
    async for group in in_slices(body.groups):
        if asked.may(_GROUP_RIGHT, group.group_id):
            allowed.append(await _hide_topics(asked, group))
        else:
            refused.append(group)
    asked.narrow(groups=[group for group, _ in allowed])
    answer = await asked.proceed() if allowed else OffsetFetchResponse()
    # matched by position, not by id: a group may be in the request twice, each time with other topics
    answers = zip(answer.groups, allowed, strict=True)
    told = [await _answer_group(asked, group, hidden) async for group, (_, hidden) in in_slices(answers)]
    errors = request.element_errors(refused, refusal_error(_GROUP_RIGHT).code)
    return replaced(answer, groups=[*told, *errors])


async def _hide_topics(
    asked: Asked[OffsetFetchRequest, OffsetFetchResponse], group: GroupT
) -> tuple[GroupT, list[_Topic] | None]:
    """A group without its hidden topics, and the hidden ones; None for these if all topics are requested."""
    if group.topics is None:
        return group, None
    hidden: list[_Topic] = []
    seen: list[_Topic] = []
    async for topic in in_slices(group.topics):
        name = topic_name(asked, topic)
        (seen if name is None or asked.may(_TOPIC_RIGHT, name) else hidden).append(topic)
    return replaced(group, topics=seen), hidden


async def _answer_group(
    asked: Asked[OffsetFetchRequest, OffsetFetchResponse], group: AnswerT, hidden: list[_Topic] | None
) -> AnswerT:
    """A group of the response as the sender may see it; ``hidden`` are topics left out of the request."""
    if group.error_code:
        return group
    if hidden is not None:
        return append_elements(group, "topics", (_without_offsets(topic) for topic in hidden))
    topics = [
        topic
        async for topic in in_slices(group.topics)
        if asked.shows(_TOPIC_RIGHT, topic_name(asked, topic) or "")
    ]
    return replaced(group, topics=topics)


def _without_offsets(topic: _Topic) -> OffsetFetchResponseTopics:
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    partitions = [
        OffsetFetchResponsePartitions(index, -1, error_code=error) for index in topic.partition_indexes
    ]
    return OffsetFetchResponseTopics(topic.name, getattr(topic, "topic_id", None), partitions)


_ONE_GROUP = (
    TOPICS_BY_NAME,
    Level(
        "partition_indexes", "partitions", {"": "partition_index"}, {"committed_offset": -1, "metadata": ""}
    ),
)
_MANY_GROUPS = (Level("groups", "groups", same_fields("group_id")),)

API: ServedApi[OffsetFetchRequest, OffsetFetchResponse] = ServedApi(
    key=ApiKey.OFFSET_FETCH,
    versions=(1, 10),
    guard=Guard((_GROUP_RIGHT, _TOPIC_RIGHT), _guard),
    errors=ErrorShape(
        top=(2, _MANY_GROUPS_FROM - 1), levels={0: _ONE_GROUP, _MANY_GROUPS_FROM: _MANY_GROUPS}
    ),
    reads_only=True,
)
