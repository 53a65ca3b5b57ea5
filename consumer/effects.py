"""Effects: what membership asks its driver to do, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..client.pool import Channel
from ..protocol import ApiKey, TopicPartition
from .events import Event


@dataclass(frozen=True, slots=True)
class Effect:
    """Base of all effects. The driver carries them out in their order."""


@dataclass(frozen=True, slots=True, eq=False)
class Send(Effect):
    """Send ``body`` to the coordinator.

    Report the outcome with ``answered`` or ``failed``, and this object.
    """

    api_key: ApiKey
    body: Any
    channel: Channel
    timeout_ms: float


@dataclass(frozen=True, slots=True)
class ForgetCoordinator(Effect):
    """Look the coordinator up again before the next request."""


@dataclass(frozen=True, slots=True)
class NeedTopics(Effect):
    """This member is the leader: get fresh metadata of these topics, then call ``topics``."""

    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class Assign(Effect):
    """Start to read ``added`` in a new generation.

    ``kept`` are the partitions that this member already had.
    """

    generation: int
    added: tuple[TopicPartition, ...]
    kept: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Revoke(Effect):
    """Give these partitions up, then call ``revocation_done``.

    In order: stop delivery, wait until delivered records are done, call the user, commit, forget. When
    ``lost``, other members may already own them: there is nothing to wait for and nothing to commit.
    """

    partitions: tuple[TopicPartition, ...]
    lost: bool
    reason: str


@dataclass(frozen=True, slots=True)
class SessionAtRisk(Effect):
    """Stop all delivery while the session may have expired; go on when a heartbeat was answered again."""

    at_risk: bool


@dataclass(frozen=True, slots=True)
class Report(Effect):
    """Publish an event."""

    event: Event


@dataclass(frozen=True, slots=True)
class Fail(Effect):
    """The group refuses this member for good; nothing more will be tried."""

    error: Exception
