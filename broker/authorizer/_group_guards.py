"""Guards of FindCoordinator, OffsetFetch, DescribeGroups and ListGroups."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ...protocol import ApiKey, ErrorCode
from .._error_answers import element_errors, error_answer
from ._access import ACCESS, Access
from ._acls import CLUSTER_NAME, ResourceType
from ._guard import Asked, append, each, groups, refuse, topic_name

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
        hidden = [_hidden_topics(asked, topic_access, body)]
        answer = await asked.proceed()
        told = [answer]
    else:
        allowed: list[Any] = []
        refused: list[Any] = []
        for group in body.groups:
            (allowed if asked.may(group_access, group.group_id) else refused).append(group)
        hidden = [_hidden_topics(asked, topic_access, group) for group in allowed]
        body.groups = allowed
        answer = await asked.proceed() if allowed else request.answer()
        told = answer.groups
        answer.groups = [*told, *element_errors(request, refused, refuse(group_access).code)]
    # by their places, not by their ids: a group may be in the request twice, each time with other topics
    for answered, topics in zip(told, hidden, strict=True):
        if answered.error_code:
            continue
        if topics is None:
            answered.topics = [
                topic
                for topic in answered.topics
                if asked.shows(topic_access, topic_name(asked, topic) or "")
            ]
        else:
            append(answered, "topics", (_unfetched(topic) for topic in topics))
    return answer


def _hidden_topics(asked: Asked, access: Access, group: Any) -> list[Any] | None:
    """Take out of a group's topics those that may not be seen; None where all are asked for."""
    if group.topics is None:
        return None
    hidden: list[Any] = []
    seen: list[Any] = []
    for topic in group.topics:
        name = topic_name(asked, topic)
        (seen if name is None or asked.may(access, name) else hidden).append(topic)
    group.topics = seen
    return hidden


def _unfetched(topic: Any) -> Any:
    """A topic of an OffsetFetch answer that may not be seen."""
    partitions = [
        SimpleNamespace(
            partition_index=partition,
            committed_offset=-1,
            committed_leader_epoch=-1,
            metadata="",
            error_code=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        )
        for partition in topic.partition_indexes
    ]
    return SimpleNamespace(name=topic.name, topic_id=getattr(topic, "topic_id", None), partitions=partitions)


async def describe_groups(asked: Asked) -> Any:
    (access,) = ACCESS[ApiKey.DESCRIBE_GROUPS]
    answer = await groups(access)(asked)
    if asked.request.body.include_authorized_operations:
        for group in answer.groups:
            if not group.error_code:
                group.authorized_operations = asked.operations(ResourceType.GROUP, group.group_id)
    return answer


async def list_groups(asked: Asked) -> Any:
    cluster, group_access = ACCESS[ApiKey.LIST_GROUPS]
    answer = await asked.proceed()
    if not asked.may(cluster):
        answer.groups = [group for group in answer.groups if asked.may(group_access, group.group_id)]
    return answer
