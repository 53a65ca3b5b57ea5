"""What share groups keep in each shard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from ...protocol.named_tuples import NamedTuple
from ..engine.effects import Command, Request
from ..groups.groups import GroupShard
from ..settings import GroupSettings
from .commands import StateErrors

#: Answers a request when the command that it waited for is done; also given the time in ms.
Finish: TypeAlias = Callable[[GroupShard, StateErrors, int], None]


class PendingRequest(NamedTuple):
    """A request that waits for a command."""

    request: Request
    finish: Finish


@dataclass(slots=True, eq=False)
class ShareState:
    """The state of share groups in one shard."""

    pending: dict[Command, PendingRequest] = field(default_factory=dict)

    @classmethod
    def from_settings(cls, _settings: GroupSettings) -> ShareState:
        """The state of a new shard."""
        return cls()


def state_of(shard: GroupShard) -> ShareState:
    """The state of share groups in this shard."""
    return shard.state.state_of(ShareState)
