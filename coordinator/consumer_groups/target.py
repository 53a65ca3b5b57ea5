"""The target assignment of a consumer group, which assignors compute.

A small group's target is computed right away. Computing a large one would hold up other requests, and an
assignor that is not kohort's own may hang or crash: those become a :class:`ComputeTarget` for the shard's
owner, which runs :func:`compute` in a separate process and then the steps that follow (``assigning.steps``,
``failed``) one by one, with other requests in between. Meanwhile members keep their partitions; the result
counts for the epoch that it was requested for, whatever has happened to the group since.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final

from ...offsets_topic import Partitions
from ...protocol.named_tuples import NamedTuple
from ..engine.effects import Command
from ..groups.subscribed_topics import Topic

if TYPE_CHECKING:
    from ...assignors import Assignor
    from ...assignors.server import Numbers, ServedMember

#: The coordinator's built-in assignors. Nothing is imported before the first group needs one.
OWN: Final = ("uniform", "range")

#: Partitions, and topics of all members, of the largest group whose target is computed right away: a few
#: milliseconds.
_MOST_AT_ONCE: Final = 4_000


class TargetMember(NamedTuple):
    """A member as assignors see it: its topics, and its last target."""

    instance_id: str | None
    topics: tuple[str, ...]
    target: Partitions
    client_id: str = ""
    rack: str | None = None


@dataclass(slots=True, eq=False)
class ComputeTarget(Command):
    """The inputs of a target. ``name`` is the assignor's name, ``spec`` says how to load it; ``renamed`` maps
    the new ids of static members that have returned since the request to those they had then.
    """

    group_id: str
    epoch: int
    name: str
    spec: str
    members: Mapping[str, TargetMember]
    topics: Mapping[str, Topic]
    renamed: dict[str, str] = field(default_factory=dict)

    @property
    def is_quick(self) -> bool:
        """True if it may be computed right away, which includes groups with nothing to assign."""
        if not self.topics:
            return True
        if self.spec not in OWN:
            return False
        work = sum(topic.partition_count for topic in self.topics.values())
        return work + sum(len(member.topics) for member in self.members.values()) <= _MOST_AT_ONCE

    @property
    def counts(self) -> dict[str, int]:
        """Partitions of each topic."""
        return {name: topic.partition_count for name, topic in self.topics.items()}

    def served_members(self) -> Iterator[tuple[str, ServedMember]]:
        """The members in the form that the assignor's process reads."""
        from ...assignors.server import ServedMember

        names = {topic.id: name for name, topic in self.topics.items()}
        for member_id, (instance_id, topics, target, client_id, rack) in self.members.items():
            owned = {names[each]: numbers for each, numbers in target.items() if each in names}
            had_more = len(owned) < len(target)
            yield member_id, ServedMember(instance_id, client_id, rack, topics, owned, had_more)

    def partitions(self, changed: Iterable[tuple[str, Numbers]]) -> dict[str, Partitions]:
        """Convert a result to partitions by member and topic id, under the members' present ids."""
        present = {asked: now for now, asked in self.renamed.items()}
        return {
            present.get(member_id, member_id): {self.topics[name].id: row for name, row in rows.items()}
            for member_id, rows in changed
        }

    def note_rename(self, old: str, new: str) -> None:
        """Note that a static member returned under another id; it gets its predecessor's target."""
        self.renamed[new] = self.renamed.pop(old, old)


@cache
def server_assignors(setting: str) -> Mapping[str, str]:
    """Map the names of ``group.consumer.assignors``, as members know them, to the spec that loads each; the
    first is the default. Raises AssignorError for one that cannot be used.
    """
    found: dict[str, str] = {}
    for spec in map(str.strip, setting.split(",")):
        found[spec if spec in OWN else _load_assignor(spec).name] = spec
    return found


def _load_assignor(spec: str) -> Assignor:
    from ...assignors.server import load_server_assignor

    return load_server_assignor(spec)


def compute_target(asked: ComputeTarget) -> dict[str, Numbers]:
    """Compute the new target of each member whose target changes. Raises AssignorError, and what the assignor
    raises.
    """
    if not asked.topics:
        return {member_id: {} for member_id, member in asked.members.items() if member.target}
    from ...assignors.server import changed_targets

    return changed_targets(_load_assignor(asked.spec), asked.counts, dict(asked.served_members()))
