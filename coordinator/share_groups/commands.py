"""What share groups ask of share coordinators, which keep the state of share partitions (KIP-932).

The owner of the runtime carries these out, and reports the result by the step that ``kept.finished`` makes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from uuid import UUID

from ...protocol import KafkaError
from ..engine.effects import Command

#: What went wrong, by topic and partition; nothing is said of those that succeeded.
StateErrors: TypeAlias = Mapping[tuple[UUID, int], KafkaError]


@dataclass(slots=True, eq=False)
class InitializeShareState(Command):
    """Begin the state of share partitions, or replace it: ``topics`` has their start offsets by number, -1
    for where the group's reset rule says. ``asked_ms`` is the time of the command. Of ``unknown`` topics the
    group knows no state: if there is one in use, a coordinator was lost before it had noted that.
    """

    group_id: str
    state_epoch: int
    topics: Mapping[UUID, Mapping[int, int]]
    asked_ms: int
    unknown: Collection[UUID] = ()

    def failed(self, error: KafkaError) -> StateErrors:
        """The errors if nothing was done."""
        return {(topic_id, number): error for topic_id, row in self.topics.items() for number in row}


@dataclass(slots=True, eq=False)
class DeleteShareState(Command):
    """Delete the state of share partitions."""

    group_id: str
    topics: Mapping[UUID, Sequence[int]]

    def failed(self, error: KafkaError) -> StateErrors:
        """The errors if nothing was done."""
        return {(topic_id, number): error for topic_id, row in self.topics.items() for number in row}
