"""Metadata requests: which topics one means, to who looks them up and to who asks whether it may."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any
from uuid import UUID

_NO_ID = UUID(int=0)


def topics_meant(topics: Iterable[Any]) -> list[Any]:
    """The topics of a request, each once. As in Apache Kafka: where one is asked for by its id, all are, and
    names mean nothing.
    """
    topics = list(topics)
    by_id = {item.topic_id: item for item in topics if item.topic_id not in (None, _NO_ID)}
    if by_id:
        return [SimpleNamespace(name=None, topic_id=topic_id) for topic_id in by_id]
    return list({item.name: item for item in topics}.values())
