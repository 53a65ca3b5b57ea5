"""Effects: the actions that a membership asks of its driver, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, dataclass_transform
from uuid import UUID

from ...client.offsets import CommittedOffset
from ...client.pool import Channel
from ...protocol import ApiKey, TopicPartition
from ..events import Event


@dataclass_transform(frozen_default=True)
class Effect:
    """Base of all effects: frozen dataclasses, which the driver carries out in their order."""

    def __init_subclass__(cls, *, eq: bool = True) -> None:
        dataclass(frozen=True, eq=eq)(cls)


class Request(Effect, eq=False):
    """Ask the coordinator or the registry; report the outcome to ``on_answer`` or ``on_failure``, with this
    object.
    """

    @property
    def subject(self) -> str:
        """Its name in events."""
        return "asking ZooKeeper"


class Send(Request, eq=False):
    """Send ``body`` to the coordinator: in the loop's next turn, behind what comes of the effects before it;
    or ``at_once``.
    """

    api_key: ApiKey
    body: Any
    channel: Channel
    timeout_ms: float
    at_once: bool = False

    @property
    def subject(self) -> str:
        """The API's name."""
        return self.api_key.name


class ForgetCoordinator(Effect):
    """Look the coordinator up again before the next request."""


class NeedTopics(Effect):
    """Get fresh metadata of these topics and those of the subscription, then call ``topics``: this member is
    the leader, or has been assigned partitions of topics that it knows by ``ids`` only, or shares out
    partitions with others than before.
    """

    names: frozenset[str]
    ids: frozenset[UUID] = frozenset()


class ResolvePattern(Effect):
    """The coordinator does not take the regular expression: find the topics that match, and subscribe."""

    reason: str


class SpeakClassic(Effect):
    """The brokers no longer offer the consumer protocol, and the classic one will do: go on with that."""


class Assign(Effect):
    """Start to read ``added`` in a new generation; ``kept`` are partitions that this member already had.

    ``starts`` has what is committed (None: nothing) for those of ``added`` of which the coordinator told it.
    """

    generation: int
    added: tuple[TopicPartition, ...]
    kept: tuple[TopicPartition, ...]
    starts: Mapping[TopicPartition, CommittedOffset | None] = field(default_factory=dict)


class Revoke(Effect):
    """Give these partitions up, then call ``revocation_done``.

    In order: stop delivery, wait until delivered records are done, call the user, commit, forget. When
    ``lost``, other members may already own them: there is nothing to wait for and nothing to commit.
    """

    partitions: tuple[TopicPartition, ...]
    lost: bool
    reason: str


class SessionAtRisk(Effect):
    """Stop all delivery while the session may have expired; go on when a heartbeat was answered again."""

    at_risk: bool


class ReportEvent(Effect):
    """Publish an event."""

    event: Event


class Fail(Effect):
    """The group refuses this member for good; nothing more will be tried."""

    error: Exception
