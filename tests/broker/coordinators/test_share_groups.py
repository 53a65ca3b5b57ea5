"""What share groups ask of share coordinators: carried out, and reported whatever happens."""

from __future__ import annotations

import asyncio
import uuid
from types import SimpleNamespace
from typing import Any

from kohort.broker.coordinators.share_groups import ShareStateWorker, describe_offsets, share_workers
from kohort.broker.coordinators.share_state import share_state_client
from kohort.client.share_state import ShareStateClient
from kohort.coordinator.share_groups.commands import DeleteShareState, InitializeShareState
from kohort.coordinator.share_groups.offsets import AskedOffsets, AskedTopic
from kohort.protocol import ApiKey, ErrorCode, KafkaError, messages_of
from kohort.protocol.messages import initialize_share_group_state
from tests.broker.clusters import cluster
from tests.coordinator.share_groups.share_world import ShareWorld

TOPIC = uuid.uuid4()
#: The number of the first command of a coordinator in the epoch that these tests give it.
FIRST = 12 << 32


class Coordinators:
    """Share coordinators that answer each partition with an error, or NONE; they note what they are asked."""

    def __init__(self, errors: dict[int, int], failure: Exception | None = None) -> None:
        self.errors, self.failure = errors, failure
        self.asked: list[Any] = []

    def client(self) -> ShareStateClient:
        async def find(keys: Any) -> Any:
            return dict.fromkeys(keys, 1)

        async def ask(_node: int, body: Any) -> Any:
            self.asked.append(body)
            if self.failure is not None:
                raise self.failure
            messages = messages_of(ApiKey(body.API_KEY))
            (topic,) = body.topics
            rows = [
                messages.PartitionResult(row.partition, self.errors.get(row.partition, 0), "why")
                for row in topic.partitions
            ]
            return SimpleNamespace(results=[SimpleNamespace(topic_id=topic.topic_id, partitions=rows)])

        return ShareStateClient(find, ask, timeout_ms=0)


def carried_out(coordinators: Coordinators, command: Any) -> ShareWorld:
    """A group whose first command was this one, after what became of it."""
    world = ShareWorld({"t": 2})
    world.ids["t"] = TOPIC
    world.share_beat("a", 0, "t")
    world.share_group().under_way[TOPIC] = command

    async def run() -> None:
        is_done = asyncio.Event()

        def steer(step: Any) -> None:
            step(world.shard, world.now_ms)
            world._carry_out()
            is_done.set()

        worker = ShareStateWorker(coordinators.client, lambda partition: 10 + partition)
        worker.carry_out(SimpleNamespace(steer=steer, partition=2), command)  # type: ignore[arg-type]
        assert repr(worker) == "<ShareStateWorker: 1 at work>"
        await is_done.wait()
        await worker.stop()

    asyncio.run(run())
    return world


def test_state_is_initialized_with_its_epoch_and_offsets_and_what_failed_is_asked_for_again() -> None:
    coordinators = Coordinators({1: ErrorCode.FENCED_STATE_EPOCH})
    world = carried_out(coordinators, InitializeShareState("g", 2, {TOPIC: {0: -1, 1: 7}}, 0))
    (body,) = coordinators.asked
    assert [tuple(row) for row in body.topics[0].partitions] == [
        (0, 2, -1, FIRST, -1, False),
        (1, 2, 7, FIRST, -1, False),
    ]
    kept = world.share_group().kept
    assert (kept.initialized[TOPIC].partitions, kept.initializing[TOPIC].partitions) == ((0,), (1,))


def test_a_state_that_is_in_use_is_to_stay_where_the_group_knows_of_none() -> None:
    coordinators = Coordinators({})
    carried_out(coordinators, InitializeShareState("g", 2, {TOPIC: {0: -1}}, 0, unknown={TOPIC}))
    (body,) = coordinators.asked
    assert [row.keeps_state for row in body.topics[0].partitions] == [True]


def test_state_is_deleted() -> None:
    coordinators = Coordinators({})
    carried_out(coordinators, DeleteShareState("g", {TOPIC: (0, 1)}))
    (body,) = coordinators.asked
    assert body.API_KEY == ApiKey.DELETE_SHARE_GROUP_STATE
    assert [tuple(row) for row in body.topics[0].partitions] == [(0, FIRST, -1), (1, FIRST, -1)]


async def test_commands_are_numbered_and_those_of_the_coordinator_that_follows_are_higher() -> None:
    coordinators, epochs = Coordinators({}), [1]
    worker = ShareStateWorker(coordinators.client, lambda _partition: epochs[0])
    runner: Any = SimpleNamespace(steer=lambda _step: None, partition=0)
    command = DeleteShareState("g", {TOPIC: (0,)})
    for epoch in (1, 1, 2):
        epochs[0] = epoch
        worker.carry_out(runner, command)
    await asyncio.gather(*worker._tasks)
    orders = [body.topics[0].partitions[0].order for body in coordinators.asked]
    assert orders == sorted(set(orders))
    # another process has the next epoch
    other = ShareStateWorker(coordinators.client, lambda _partition: 3)
    other.carry_out(runner, command)
    await asyncio.gather(*other._tasks)
    assert coordinators.asked[-1].topics[0].partitions[0].order > orders[-1]


def test_whatever_goes_wrong_is_a_result() -> None:
    for failure in (KafkaError(ErrorCode.NOT_COORDINATOR), ZeroDivisionError("a bug")):
        command = InitializeShareState("g", 2, {TOPIC: {0: -1, 1: -1}}, 0)
        world = carried_out(Coordinators({}, failure), command)
        assert world.share_group().under_way == {}
        assert world.share_group().kept.initializing[TOPIC].partitions == (0, 1)


def test_one_worker_has_both_commands_and_ends_with_its_tasks() -> None:
    async def run() -> None:
        workers = share_workers(lambda: ShareStateClient(never, never), lambda _partition: 0)
        worker, same = workers[InitializeShareState], workers[DeleteShareState]
        assert worker is same
        steps: list[Any] = []
        runner: Any = SimpleNamespace(steer=steps.append, partition=0)
        worker.carry_out(runner, DeleteShareState("g", {TOPIC: (0,)}))
        await asyncio.sleep(0)
        await worker.stop()
        assert steps == []

    async def never(*_asked: Any) -> Any:
        await asyncio.Event().wait()

    asyncio.run(run())


async def test_in_a_cluster_each_leader_is_asked_where_its_partitions_end() -> None:
    async with cluster(2, share_coordinator_state_topic_num_partitions=2) as nodes:
        await nodes.create("t", 4)
        brokers = [broker._require_running().node for broker in nodes.brokers.values()]
        topic_id = brokers[0].topics.id_of("t")
        assert topic_id is not None
        rows = [initialize_share_group_state.PartitionData(number, 1, 0) for number in range(4)]
        told = await share_state_client(brokers[0]).initialize_state("g", {topic_id: rows})
        assert {row.error_code for row in told.values()} == {ErrorCode.NONE}
        assert {nodes.state("t", number).leader for number in range(4)} == {1, 2}
        asked = AskedOffsets("g", (AskedTopic("t", topic_id, tuple(range(5)), frozenset(range(4))),))
        for node in brokers:
            (topic,) = (await describe_offsets(node, asked)).topics
            found = [(row.partition_index, row.start_offset, row.lag) for row in topic.partitions]
            assert found == [*((number, 0, 0) for number in range(4)), (4, -1, -1)]
