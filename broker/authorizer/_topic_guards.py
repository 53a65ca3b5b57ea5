"""Guards of CreateTopics and DeleteTopics."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ...protocol import ApiKey
from .._error_answers import element_errors
from ._access import ACCESS
from ._guard import Asked, appended, each, refuse, topic_name


async def create_topics(asked: Asked) -> Any:
    create_any, create, configs = ACCESS[ApiKey.CREATE_TOPICS]
    names = [item.name for item in asked.request.body.topics]
    cluster = asked.shows(create_any)
    # what is in the request twice is wrong however it is meant
    once = {name for name in names if names.count(name) == 1} if len(names) < 100 else set(names)
    answer = await each(asked, lambda item: None if cluster or item.name not in once else (create, item.name))

    def shown(topic: Any) -> Any:
        if topic.error_code or asked.shows(configs, topic.name):
            return topic
        return topic._replace(
            topic_config_error_code=configs.error, num_partitions=-1, replication_factor=-1, configs=[]
        )

    return answer._replace(topics=[shown(topic) for topic in answer.topics])


async def delete_topics(asked: Asked) -> Any:
    describe, delete_any, delete = ACCESS[ApiKey.DELETE_TOPICS]
    request = asked.request
    if asked.shows(delete_any):
        return await asked.proceed()

    def is_missed(name: str) -> bool:
        """Whether there is none, and the sender may know."""
        return asked.node.topics.get(name) is None and asked.shows(describe, name)

    if request.version < 6:
        return await each(asked, lambda name: None if is_missed(name) else (delete, name))
    allowed, refused = [], []
    for item in request.body.topics:
        name = topic_name(asked, item)
        if name is None or is_missed(name) or asked.may(delete, name):
            allowed.append(item)
        else:
            told = name if item.name is not None or asked.shows(describe, name) else None
            refused.append(SimpleNamespace(name=told, topic_id=item.topic_id))
    asked.narrow(topics=allowed)
    answer = await asked.proceed() if allowed else request.answer()
    return appended(answer, "responses", element_errors(request, refused, refuse(delete).code))
