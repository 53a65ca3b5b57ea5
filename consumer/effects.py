"""What membership wants done: data, for whoever drives it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..client.pool import Channel
from ..protocol import ApiKey, TopicPartition
from .events import Event


@dataclass(frozen=True, slots=True)
class Effect:
    """Base of all effects. They are to be carried out in the order given."""


@dataclass(frozen=True, slots=True, eq=False)
class Send(Effect):
    """Send ``body`` to the coordinator; tell the outcome by ``answered`` or ``failed``, with this object."""

    api_key: ApiKey
    body: Any
    channel: Channel
    timeout_ms: float


@dataclass(frozen=True, slots=True)
class ForgetCoordinator(Effect):
    """Look the coordinator up anew before the next request."""


@dataclass(frozen=True, slots=True)
class NeedTopics(Effect):
    """This member leads: learn these topics from fresh metadata, then call ``topics``."""

    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class Assign(Effect):
    """A generation is agreed: ``added`` are new to this member, ``kept`` it had and has."""

    generation: int
    added: tuple[TopicPartition, ...]
    kept: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Revoke(Effect):
    """Give these partitions up, then call ``revocation_done``.

    In order: stop delivery, wait for what is delivered, commit, tell the user, forget. When ``lost``, others
    may have them already: nothing to wait for and nothing to commit.
    """

    partitions: tuple[TopicPartition, ...]
    lost: bool
    reason: str


@dataclass(frozen=True, slots=True)
class SessionAtRisk(Effect):
    """Stop delivery of everything (or go on): whether this member is still one is not known (or is again)."""

    at_risk: bool


@dataclass(frozen=True, slots=True)
class Report(Effect):
    """Something to tell whoever listens."""

    event: Event


@dataclass(frozen=True, slots=True)
class Fail(Effect):
    """The group does not take this member; nothing more will be tried."""

    error: Exception
