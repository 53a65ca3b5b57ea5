"""Share groups on this broker: what they ask of share coordinators, and how far they are (KIP-932)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from itertools import count
from typing import TYPE_CHECKING, Final
from uuid import UUID

from ...coordinator.engine.effects import Command
from ...coordinator.engine.runner import ShardRunner
from ...coordinator.groups.groups import CommandWorker, Groups
from ...coordinator.share_groups.commands import DeleteShareState, InitializeShareState, StateErrors
from ...coordinator.share_groups.kept import result_step
from ...coordinator.share_groups.offsets import AskedOffsets, AskedTopic
from ...protocol import ErrorCode, KafkaError
from ...protocol.messages import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state_summary,
)
from ...protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from ..log_ends import find_ends
from ..node import Node
from .share_state import share_state_client

if TYPE_CHECKING:
    from ...client.share_state import ShareStateClient

#: More than a coordinator gives in one epoch.
_COMMANDS_OF_EPOCH: Final = 1 << 32
_UNKNOWN: Final = -1


def share_workers(
    client: Callable[[], ShareStateClient], epoch_of: Callable[[int], int]
) -> Mapping[type[Command], CommandWorker]:
    """What carries out the commands of share groups, with a client that is made for the first one.
    ``epoch_of`` returns the leader epoch of a partition of ``__consumer_offsets``.
    """
    worker = ShareStateWorker(client, epoch_of)
    return {InitializeShareState: worker, DeleteShareState: worker}


class ShareStateWorker:
    """Has share coordinators carry out the commands of share groups."""

    def __init__(self, client: Callable[[], ShareStateClient], epoch_of: Callable[[int], int]) -> None:
        self._client = client
        self._epoch_of = epoch_of
        self._commands = count()
        self._tasks: set[asyncio.Task[None]] = set()

    def __repr__(self) -> str:
        return f"<ShareStateWorker: {len(self._tasks)} at work>"

    def carry_out(
        self, runner: ShardRunner[Groups], command: InitializeShareState | DeleteShareState
    ) -> None:
        """Have a command carried out, and report what became of it."""
        # the coordinator that follows has a higher epoch
        order = max(self._epoch_of(runner.partition), 0) * _COMMANDS_OF_EPOCH + next(self._commands)
        task = asyncio.get_running_loop().create_task(self._carry_out_command(runner, command, order))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """End the work; results that come later are ignored."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _carry_out_command(
        self, runner: ShardRunner[Groups], command: InitializeShareState | DeleteShareState, order: int
    ) -> None:
        try:
            errors = await self._ask_coordinators(command, order)
        except Exception as error:  # whatever it is, requests wait for a result
            errors = command.failed(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, repr(error)))
        runner.steer(result_step(command, errors))

    async def _ask_coordinators(
        self, command: InitializeShareState | DeleteShareState, order: int
    ) -> StateErrors:
        client, told = self._client(), {}
        if isinstance(command, InitializeShareState):
            initialized = await client.initialize_state(
                command.group_id,
                {
                    topic_id: [
                        initialize_share_group_state.PartitionData(
                            number,
                            command.state_epoch,
                            start,
                            order,
                            keeps_state=topic_id in command.unknown,
                        )
                        for number, start in row.items()
                    ]
                    for topic_id, row in command.topics.items()
                },
            )
            told = {place: (row.error_code, row.error_message) for place, row in initialized.items()}
        else:
            deleted = await client.delete_state(
                command.group_id,
                {
                    topic_id: [delete_share_group_state.PartitionData(number, order) for number in numbers]
                    for topic_id, numbers in command.topics.items()
                },
            )
            told = {place: (row.error_code, row.error_message) for place, row in deleted.items()}
        return {
            (place.topic_id, place.partition): KafkaError(code, text or "")
            for place, (code, text) in told.items()
            if code
        }


async def describe_offsets(node: Node, asked: AskedOffsets) -> DescribeShareGroupOffsetsResponseGroup:
    """Read the offsets of a group at the share coordinators, and the ends of its partitions."""
    if asked.error_code:
        return DescribeShareGroupOffsetsResponseGroup(asked.group_id, error_code=asked.error_code)
    wanted = {topic.id: sorted(topic.kept) for topic in asked.topics if topic.id is not None and topic.kept}
    found = await share_state_client(node).read_state_summary(
        asked.group_id,
        {
            topic_id: [read_share_group_state_summary.PartitionData(number, _UNKNOWN) for number in numbers]
            for topic_id, numbers in wanted.items()
        },
    )
    summaries = {(place.topic_id, place.partition): row for place, row in found.items()}
    names = {topic.id: topic.name for topic in asked.topics}
    begun = [
        (names[topic_id], number) for (topic_id, number), row in summaries.items() if row.start_offset >= 0
    ]
    ends = await find_ends(node, begun)
    return DescribeShareGroupOffsetsResponseGroup(
        asked.group_id,
        [
            DescribeShareGroupOffsetsResponseTopic(
                topic.name,
                topic.id,
                [_describe_partition(topic, number, summaries, ends) for number in topic.partitions],
            )
            for topic in asked.topics
        ],
    )


def _describe_partition(
    topic: AskedTopic,
    number: int,
    summaries: Mapping[tuple[UUID, int], read_share_group_state_summary.PartitionResult],
    ends: Mapping[tuple[str, int], int],
) -> DescribeShareGroupOffsetsResponsePartition:
    row = None if topic.id is None else summaries.get((topic.id, number))
    if row is None:
        return DescribeShareGroupOffsetsResponsePartition(number, _UNKNOWN)
    if row.error_code:
        return DescribeShareGroupOffsetsResponsePartition(
            number, _UNKNOWN, error_code=row.error_code, error_message=row.error_message
        )
    end, lag = ends.get((topic.name, number)), _UNKNOWN
    if end is not None and row.delivery_complete_count >= 0:
        # records that are done lie above the start offset, too
        lag = end - row.start_offset - row.delivery_complete_count
    return DescribeShareGroupOffsetsResponsePartition(number, row.start_offset, row.leader_epoch, lag)
