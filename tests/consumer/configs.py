"""Settings of consumers that tests make by themselves."""

from __future__ import annotations

from typing import Any

from kohort.consumer.config import ConsumerConfig, consumer_config


def config(**settings: Any) -> ConsumerConfig:
    """Settings of a member of the group ``billing``."""
    return consumer_config(**{"bootstrap": "localhost:9092", "group": "billing", **settings})
