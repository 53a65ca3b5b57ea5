"""What the coordinator must know of topics: how many partitions, and which id belongs to which name."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TopicDirectory:
    """Looks topics up where they are kept; each function answers None for a topic that does not exist."""

    partition_count_of: Callable[[str], int | None]
    topic_of_id: Callable[[uuid.UUID], str | None]
    id_of_topic: Callable[[str], uuid.UUID | None]
