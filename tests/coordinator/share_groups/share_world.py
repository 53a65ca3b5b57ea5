"""A shard with share groups, its log in a list, a clock by hand, and share coordinators that a test plays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kohort.coordinator.share_groups.commands import DeleteShareState, InitializeShareState, StateErrors
from kohort.coordinator.share_groups.group import ShareGroup
from kohort.coordinator.share_groups.kept import result_step
from kohort.offsets_topic import ShareGroupRecord
from kohort.protocol import ApiKey
from tests.coordinator.consumer_groups.group_world import World
from tests.messages import request_of


class ShareWorld(World):
    """Commands wait in ``events`` until the test says what became of them."""

    @property
    def commands(self) -> list[InitializeShareState | DeleteShareState]:
        """Commands without a result."""
        return [each for each in self.events if isinstance(each, (InitializeShareState, DeleteShareState))]

    def finish(self, errors: StateErrors | None = None, *, at: int = 0) -> Any:
        """A command is done, all of it but for the errors."""
        command = self.commands[at]
        self.events.remove(command)
        result_step(command, errors or {})(self.shard, self.now_ms)
        self._carry_out()
        return command

    def share_beat(
        self,
        member: str,
        epoch: int,
        *topics: str,
        group: str = "g",
        names: Any = None,
        rack: str | None = None,
    ) -> Any:
        body = request_of(ApiKey.SHARE_GROUP_HEARTBEAT)(
            group_id=group,
            member_id=member,
            member_epoch=epoch,
            rack_id=rack,
            subscribed_topic_names=(topics or None) if names is None else names,
        )
        return self.ask(ApiKey.SHARE_GROUP_HEARTBEAT, 1, body)

    def share_join(self, member: str, *topics: str, group: str = "g") -> Any:
        """The first heartbeat, whose topics get their state at once; then a second one."""
        answer = self.share_beat(member, 0, *topics or ("t",), group=group)
        assert not answer.error_code, answer
        while self.commands:
            self.finish()
        return self.share_beat(member, answer.member_epoch, group=group)

    def share_told(self, answer: Any) -> dict[str, tuple[int, ...]]:
        """The assignment of an answer, by topic name."""
        return {self._name(row.topic_id): tuple(row.partitions) for row in answer.assignment.topic_partitions}

    def share_has(self, member: str, group: str = "g") -> dict[str, tuple[int, ...]]:
        """What a member has, by topic name."""
        current: Mapping[Any, Any] = self.share_group(group).members[member].current.partitions
        return {self._name(topic_id): tuple(numbers) for topic_id, numbers in current.items()}

    def share_group(self, group_id: str = "g") -> ShareGroup:
        group = self.shard.state.find(group_id)
        assert isinstance(group, ShareGroup)
        return group

    def share_records(self, since: int = 0) -> list[tuple[int, str, bool]]:
        """Type, member and whether it is a tombstone of each record of a share group."""
        return [
            (int(record.type), record.member_id, record.value is None)
            for record in self.log[since:]
            if isinstance(record, ShareGroupRecord)
        ]

    def _name(self, topic_id: Any) -> str:
        return next(name for name, known in self.ids.items() if known == topic_id)
