"""What handlers see of the broker they run in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..coordinator import GroupCoordinator
from ._producer_ids import ProducerIds
from ._requests import Request
from ._settings import BrokerSettings
from ._topics import Topics


def allow_all(request: Request) -> None:
    """The authorizer of a broker without access rules."""


@dataclass(slots=True)
class Node:
    """One broker's parts, handed to every handler.

    ``data`` is the data folder, where a :class:`~._state_file.StateFile` lies. ``authorize`` stands in front
    of each API and raises KafkaError for what is not allowed. ``now_ms`` is the wall clock that timestamps
    are compared with.
    """

    settings: BrokerSettings
    data: Path
    cluster_id: str
    topics: Topics
    coordinator: GroupCoordinator
    producer_ids: ProducerIds
    now_ms: Callable[[], int]
    authorize: Callable[[Request], None] = allow_all

    @property
    def node_id(self) -> int:
        return self.settings.node_id
