"""Guards of FindCoordinator, OffsetFetch, DescribeGroups and ListGroups."""

from __future__ import annotations

from typing import Any

from ...protocol import ApiKey, ErrorCode, operation_bits
from ...protocol.messages.offset_fetch import OffsetFetchResponsePartitions, OffsetFetchResponseTopics
from .._error_answers import element_errors, error_answer
from .._requests import replaced
from ._access import ACCESS, Access
from ._acls import CLUSTER_NAME, ResourceType
from ._guard import Asked, appended, each, groups, refuse, topic_name

#: Kinds of coordinators: of groups, transactions, share groups.
_GROUP_KEY, _TRANSACTION_KEY, _SHARE_KEY = range(3)

#: The version of OffsetFetch from which it names many groups (KIP-709), answered in the same order.
_MANY_GROUPS_FROM = 8


async def find_coordinator(asked: Asked) -> Any:
    group, transaction, share = ACCESS[ApiKey.FIND_COORDINATOR]
    request, body = asked.request, asked.request.body
    if body.key_type not in (_GROUP_KEY, _TRANSACTION_KEY, _SHARE_KEY):
        return await asked.proceed()  # which refuses it

    def wanted(key: str) -> tuple[Access, str]:
        if body.key_type == _GROUP_KEY:
            return group, key
        return (transaction, key) if body.key_type == _TRANSACTION_KEY else (share, CLUSTER_NAME)

    if request.version >= 4:
        return await each(asked, wanted)
    access, name = wanted(body.key)
    return await asked.proceed() if asked.may(access, name) else error_answer(request, refuse(access).code)


async def offset_fetch(asked: Asked) -> Any:
    group_access, topic_access = ACCESS[ApiKey.OFFSET_FETCH]
    request, body = asked.request, asked.request.body
    if request.version < _MANY_GROUPS_FROM:
        if not asked.may(group_access, body.group_id):
            return error_answer(request, refuse(group_access).code)
        request.body, hidden = _seen(asked, topic_access, body)
        return _told(asked, topic_access, await asked.proceed(), hidden)
    allowed: list[tuple[Any, list[Any] | None]] = []
    refused: list[Any] = []
    for group in body.groups:
        if asked.may(group_access, group.group_id):
            allowed.append(_seen(asked, topic_access, group))
        else:
            refused.append(group)
    asked.narrow(groups=[group for group, _ in allowed])
    answer = await asked.proceed() if allowed else request.answer()
    # by their places, not by their ids: a group may be in the request twice, each time with other topics
    told = [
        _told(asked, topic_access, group, hidden)
        for group, (_, hidden) in zip(answer.groups, allowed, strict=True)
    ]
    errors = element_errors(request, refused, refuse(group_access).code)
    return replaced(answer, groups=[*told, *errors])


def _seen(asked: Asked, access: Access, group: Any) -> tuple[Any, list[Any] | None]:
    """A group without the topics that may not be seen, and these; None where all topics are asked for."""
    if group.topics is None:
        return group, None
    hidden: list[Any] = []
    seen: list[Any] = []
    for topic in group.topics:
        name = topic_name(asked, topic)
        (seen if name is None or asked.may(access, name) else hidden).append(topic)
    return replaced(group, topics=seen), hidden


def _told(asked: Asked, access: Access, group: Any, hidden: list[Any] | None) -> Any:
    """An answered group as its asker may see it; ``hidden`` are topics that were left out of the request."""
    if group.error_code:
        return group
    if hidden is not None:
        return appended(group, "topics", (_unfetched(topic) for topic in hidden))
    topics = [topic for topic in group.topics if asked.shows(access, topic_name(asked, topic) or "")]
    return replaced(group, topics=topics)


def _unfetched(topic: Any) -> OffsetFetchResponseTopics:
    """A topic of an OffsetFetch answer that may not be seen."""
    error = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    partitions = [
        OffsetFetchResponsePartitions(partition, committed_offset=-1, error_code=error)
        for partition in topic.partition_indexes
    ]
    return OffsetFetchResponseTopics(topic.name, getattr(topic, "topic_id", None), partitions)


async def describe_groups(asked: Asked) -> Any:
    (access,) = ACCESS[ApiKey.DESCRIBE_GROUPS]
    answer = await groups(access)(asked)
    if not asked.request.body.include_authorized_operations:
        return answer
    return replaced(answer, groups=[_with_operations(asked, group) for group in answer.groups])


def _with_operations(asked: Asked, group: Any) -> Any:
    if group.error_code:
        return group
    operations = asked.operations(ResourceType.GROUP, group.group_id)
    return replaced(group, authorized_operations=operation_bits(operations))


async def list_groups(asked: Asked) -> Any:
    cluster, group_access = ACCESS[ApiKey.LIST_GROUPS]
    answer = await asked.proceed()
    if not asked.may(cluster):
        seen = [group for group in answer.groups if asked.may(group_access, group.group_id)]
        return replaced(answer, groups=seen)
    return answer
