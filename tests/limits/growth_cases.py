"""What a broker is given more and more of: each case returns when that is done, with its lines counted."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

from kohort.cluster.controller import NewTopic, create_topics
from kohort.coordinator.consumer_groups.group import Failure
from kohort.coordinator.consumer_groups.target import ComputeTarget
from kohort.coordinator.groups.groups import GroupShard
from kohort.protocol import ApiKey, Subscription, decode_response, encode_subscription
from kohort.share_partitions import AcknowledgedRange, BatchOffsets, ShareLimits, SharePartition
from tests.broker.wire import commit_fields
from tests.cluster.controller.clusters import Cluster
from tests.limits.growing import GrowingBroker, Lines, Link, frame_of, growing_broker
from tests.waiting import until

Case: TypeAlias = Callable[[Path, Lines, int], Awaitable[None]]

TOPIC: Final = "t"
GROUP: Final = "g"
MINUTES_MS: Final = 60_000
#: Later than any session ends, and offsets are due.
LATER_MS: Final = 30 * 24 * 60 * MINUTES_MS


def _numbered(count: int, what: str = "n") -> list[str]:
    return [f"{what}-{number:05d}" for number in range(count)]


async def _let_time_pass(broker: GrowingBroker) -> None:
    """All timers of groups fire, as those of members that have gone silent do, and what goes on a moment
    later.
    """
    coordinator = broker.parts.coordinator
    later = coordinator._clock_ms() + LATER_MS
    end = later + MINUTES_MS

    def fire_next(shard: GroupShard, _now_ms: int) -> bool:
        due = shard.next_deadline()
        if due is None or due > end:
            return False
        shard.advance(max(due, later))
        return True

    while coordinator.steer(GROUP, fire_next):  # noqa: ASYNC110 - time is moved
        await asyncio.sleep(0)


# --- connections --------------------------------------------------------------------------------------------


async def connections_come_and_ask(data: Path, lines: Lines, count: int) -> None:
    async with growing_broker(data, lines) as broker:
        ask = frame_of(ApiKey.API_VERSIONS, 0)
        with lines.counted():
            for link in [await broker.connect() for _ in range(count)]:
                await link.ask([ask])


async def all_connections_are_lost_at_once(data: Path, lines: Lines, count: int) -> None:
    async with growing_broker(data, lines) as broker:
        links = [await broker.connect() for _ in range(count)]
        for link in links:
            await link.ask([frame_of(ApiKey.API_VERSIONS, 0)])
        with lines.counted():
            for link in links:
                link.drop()
            await broker.until_unconnected(1)


async def silent_connections_are_looked_at(data: Path, lines: Lines, count: int) -> None:
    async with growing_broker(data, lines) as broker:
        for _ in range(count):
            await (await broker.connect()).ask([frame_of(ApiKey.API_VERSIONS, 0)])
        with lines.counted():
            broker.parts.server._sweep_connections()


# --- groups that only commit --------------------------------------------------------------------------------


async def _commit(broker: GrowingBroker, groups: Iterable[str], partitions: int = 1) -> None:
    frames = [
        frame_of(ApiKey.OFFSET_COMMIT, 8, **commit_fields(group, TOPIC, 1, partition=number))
        for group in groups
        for number in range(partitions)
    ]
    for answer in await broker.link.ask(frames):
        told = decode_response(ApiKey.OFFSET_COMMIT, 8, answer)[1]
        assert not told.topics[0].partitions[0].error_code, told


async def groups_commit(data: Path, lines: Lines, count: int) -> None:
    async with growing_broker(data, lines) as broker:
        await broker.create((TOPIC, 1))
        await broker.until_coordinated()
        frames = [
            frame_of(ApiKey.OFFSET_COMMIT, 8, **commit_fields(group, TOPIC, 1)) for group in _numbered(count)
        ]
        with lines.counted():
            await broker.link.ask(frames)


async def a_group_commits_partitions(data: Path, lines: Lines, count: int) -> None:
    async with growing_broker(data, lines) as broker:
        await broker.create((TOPIC, count))
        await broker.until_coordinated()
        frames = [
            frame_of(ApiKey.OFFSET_COMMIT, 8, **commit_fields(GROUP, TOPIC, 1, partition=number))
            for number in range(count)
        ]
        with lines.counted():
            await broker.link.ask(frames)


@asynccontextmanager
async def _groups_with_offsets(data: Path, lines: Lines, count: int) -> AsyncIterator[GrowingBroker]:
    """A broker with so many groups, each of which has committed an offset."""
    async with growing_broker(data, lines) as broker:
        await broker.create((TOPIC, 1))
        await broker.until_coordinated()
        await _commit(broker, _numbered(count))
        yield broker


async def groups_are_loaded(data: Path, lines: Lines, count: int) -> None:
    async with _groups_with_offsets(data, lines, count) as broker:
        with lines.counted():
            await broker.parts.coordinator.load(0)


async def groups_are_listed(data: Path, lines: Lines, count: int) -> None:
    async with _groups_with_offsets(data, lines, count) as broker:
        frame = frame_of(ApiKey.LIST_GROUPS, 4, states_filter=[])
        with lines.counted():
            await broker.link.ask([frame])


async def offsets_of_groups_expire(data: Path, lines: Lines, count: int) -> None:
    async with _groups_with_offsets(data, lines, count) as broker:
        with lines.counted():
            await _let_time_pass(broker)
        listed = frame_of(ApiKey.LIST_GROUPS, 4, states_filter=[])
        (answer,) = await broker.link.ask([listed])
        assert b"n-0" not in answer, "they are gone"


async def groups_are_deleted(data: Path, lines: Lines, count: int) -> None:
    async with _groups_with_offsets(data, lines, count) as broker:
        frame = frame_of(ApiKey.DELETE_GROUPS, 2, groups_names=_numbered(count))
        with lines.counted():
            await broker.link.ask([frame])


async def a_topic_of_many_groups_is_deleted(data: Path, lines: Lines, count: int) -> None:
    async with _groups_with_offsets(data, lines, count) as broker:
        frame = frame_of(ApiKey.DELETE_TOPICS, 4, topic_names=[TOPIC], timeout_ms=60_000)
        with lines.counted():
            await broker.link.ask([frame])


# --- members of a classic group -----------------------------------------------------------------------------


class Classic:
    """A member on a connection of its own."""

    def __init__(self, link: Link, instance: str | None = None) -> None:
        self.link, self.instance, self.id, self.generation = link, instance, "", -1
        self._metadata = encode_subscription(Subscription((TOPIC,)), version=1)

    def send_join(self) -> None:
        frame = frame_of(
            ApiKey.JOIN_GROUP,
            9,
            group_id=GROUP,
            session_timeout_ms=10 * MINUTES_MS,
            rebalance_timeout_ms=10 * MINUTES_MS,
            member_id=self.id,
            group_instance_id=self.instance,
            protocol_type="consumer",
            protocols=[("range", self._metadata)],
        )
        self.link.send([frame])

    async def name(self) -> None:
        """Get an id."""
        self.send_join()
        self.id = decode_response(ApiKey.JOIN_GROUP, 9, await self.link.receive())[1].member_id

    async def joined(self) -> list[str]:
        """The answer to a JoinGroup has come: the members, if this one leads."""
        told = decode_response(ApiKey.JOIN_GROUP, 9, await self.link.receive())[1]
        assert not told.error_code, told
        self.id, self.generation, self.leads = (
            told.member_id,
            told.generation_id,
            told.leader == told.member_id,
        )
        return [each.member_id for each in told.members]

    def send_sync(self, members: Iterable[str] = ()) -> None:
        frame = frame_of(
            ApiKey.SYNC_GROUP,
            5,
            group_id=GROUP,
            generation_id=self.generation,
            member_id=self.id,
            group_instance_id=self.instance,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[(each, b"assignment") for each in members],
        )
        self.link.send([frame])

    def heartbeat(self) -> bytes:
        return frame_of(
            ApiKey.HEARTBEAT,
            4,
            group_id=GROUP,
            generation_id=self.generation,
            member_id=self.id,
            group_instance_id=self.instance,
        )


async def _join_all(members: Sequence[Classic]) -> None:
    for member in members:
        member.send_join()
    led = [await member.joined() for member in members]
    for member, others in zip(members, led, strict=True):
        member.send_sync(others)
    for member in members:
        await member.link.receive()


async def _classic_members(
    broker: GrowingBroker, count: int, instances: Sequence[str | None] | None = None
) -> list[Classic]:
    """Members of a stable group."""
    await broker.create((TOPIC, 1))
    await broker.until_coordinated()
    members = [Classic(await broker.connect(), instance) for instance in instances or [None] * count]
    if instances is None:
        for member in members:
            await member.name()
    await _join_all(members)
    # a round may have ended before all were there
    while len({member.generation for member in members}) > 1:
        await _join_all(members)
    return members


async def classic_members_join_at_once(data: Path, lines: Lines, count: int) -> None:
    async with growing_broker(data, lines, group_initial_rebalance_delay_ms=200) as broker:
        await broker.create((TOPIC, 1))
        await broker.until_coordinated()
        members = [Classic(await broker.connect()) for _ in range(count)]
        for member in members:
            await member.name()
        with lines.counted():
            for member in members:
                member.send_join()
            await asyncio.wait([asyncio.ensure_future(members[0].link.receive())])


async def classic_members_send_heartbeats(data: Path, lines: Lines, count: int) -> None:
    async with growing_broker(data, lines, group_initial_rebalance_delay_ms=200) as broker:
        members = await _classic_members(broker, count)
        frames = [member.heartbeat() for member in members]
        with lines.counted():
            for member, frame in zip(members, frames, strict=True):
                await member.link.ask([frame])


async def classic_members_leave_in_one_request(data: Path, lines: Lines, count: int) -> None:
    async with growing_broker(data, lines, group_initial_rebalance_delay_ms=200) as broker:
        members = await _classic_members(broker, count)
        frame = frame_of(
            ApiKey.LEAVE_GROUP, 5, group_id=GROUP, members=[(member.id, None, None) for member in members]
        )
        with lines.counted():
            await broker.link.ask([frame])


async def classic_members_leave_one_by_one(data: Path, lines: Lines, count: int) -> None:
    async with growing_broker(data, lines, group_initial_rebalance_delay_ms=200) as broker:
        members = await _classic_members(broker, count)
        frames = [
            frame_of(ApiKey.LEAVE_GROUP, 5, group_id=GROUP, members=[(member.id, None, None)])
            for member in members
        ]
        with lines.counted():
            await broker.link.ask(frames)


async def classic_sessions_end(data: Path, lines: Lines, count: int) -> None:
    async with growing_broker(data, lines, group_initial_rebalance_delay_ms=200) as broker:
        await _classic_members(broker, count)
        with lines.counted():
            await _let_time_pass(broker)


async def classic_static_members_return_at_once(data: Path, lines: Lines, count: int) -> None:
    async with growing_broker(data, lines, group_initial_rebalance_delay_ms=200) as broker:
        members = await _classic_members(broker, count, _numbered(count))
        new = [Classic(await broker.connect(), member.instance) for member in members]
        with lines.counted():
            for member in new:
                member.send_join()
            for member in new:
                await member.joined()


# --- members of a group that the coordinator assigns --------------------------------------------------------


def _beat(key: ApiKey, member: str, epoch: int, **fields: Any) -> bytes:
    if key is ApiKey.CONSUMER_GROUP_HEARTBEAT and epoch == 0:
        fields |= {"rebalance_timeout_ms": 10 * MINUTES_MS, "topic_partitions": []}
    if epoch == 0 and "subscribed_topic_regex" not in fields:
        fields["subscribed_topic_names"] = fields.get("subscribed_topic_names", [TOPIC])
    return frame_of(key, 1, group_id=GROUP, member_id=member, member_epoch=epoch, **fields)


class Assigned:
    """Members of a group that the coordinator assigns: their epochs, and what they were told."""

    def __init__(self, broker: GrowingBroker, key: ApiKey) -> None:
        self._broker, self._key = broker, key
        self.epochs: dict[str, int] = {}
        self._owned: dict[str, Any] = {}

    async def beat(self, frames: Mapping[str, bytes]) -> None:
        """Send a heartbeat of each of these members."""
        for name, answer in zip(frames, await self._broker.link.ask([*frames.values()]), strict=True):
            told = decode_response(self._key, 1, answer)[1]
            assert not told.error_code, told
            self.epochs[name] = told.member_epoch
            if told.assignment is not None:
                self._owned[name] = [
                    (row.topic_id, row.partitions) for row in told.assignment.topic_partitions
                ]

    async def join(self, names: Iterable[str], **fields: Any) -> None:
        await self.beat({name: _beat(self._key, name, 0, **fields) for name in names})

    async def settle(self) -> None:
        """Send heartbeats until nothing changes any more."""
        still = 0
        for _ in range(100):
            if still == 3:
                return
            before = self.epochs.copy()
            await self.beat({name: self._follow(name) for name in before})
            still = still + 1 if self.epochs == before and len({*before.values()}) == 1 else 0
        raise AssertionError(f"members do not settle: {set(self.epochs.values())}")

    def _follow(self, name: str) -> bytes:
        """A heartbeat of a member that has done what it was told."""
        tells = self._key is ApiKey.CONSUMER_GROUP_HEARTBEAT
        owned = {"topic_partitions": self._owned.get(name, [])} if tells else {}
        return _beat(self._key, name, self.epochs[name], **owned)

    def heartbeats(self, epoch: int | None = None, **fields: Any) -> list[bytes]:
        """Heartbeats of all of them that tell nothing, or with another epoch."""
        return [
            _beat(self._key, name, own if epoch is None else epoch, **fields)
            for name, own in self.epochs.items()
        ]


async def _assigned_members(broker: GrowingBroker, key: ApiKey, count: int, **fields: Any) -> Assigned:
    """Members of a group, all of which have what is theirs."""
    await broker.create((TOPIC, count))
    await broker.until_coordinated()
    members = Assigned(broker, key)
    await members.join(_numbered(count, "m"), **fields)
    await members.settle()
    return members


def _assigned_cases(key: ApiKey, kind: str) -> Iterable[Case]:
    settings = {f"group_{kind}_assignment_interval_ms": 0}

    async def members_join(data: Path, lines: Lines, count: int) -> None:
        # the first has a target, and no other is computed meanwhile
        async with growing_broker(data, lines, **{f"group_{kind}_assignment_interval_ms": 15_000}) as broker:
            await broker.create((TOPIC, count))
            await broker.until_coordinated()
            frames = [_beat(key, name, 0) for name in _numbered(count, "m")]
            await broker.link.ask(frames[:1])
            with lines.counted():
                await broker.link.ask(frames[1:])

    async def target_is_computed_and_members_move(data: Path, lines: Lines, count: int) -> None:
        async with growing_broker(data, lines, **settings) as broker:
            members = await _assigned_members(broker, key, count)
            with lines.counted():
                await members.join(["new"])
                await members.settle()

    async def members_send_heartbeats(data: Path, lines: Lines, count: int) -> None:
        async with growing_broker(data, lines, **settings) as broker:
            members = await _assigned_members(broker, key, count)
            frames = members.heartbeats()
            with lines.counted():
                await broker.link.ask(frames)

    async def members_leave(data: Path, lines: Lines, count: int) -> None:
        async with growing_broker(data, lines, **settings) as broker:
            members = await _assigned_members(broker, key, count)
            frames = members.heartbeats(-1)
            with lines.counted():
                await broker.link.ask(frames)

    async def sessions_end(data: Path, lines: Lines, count: int) -> None:
        async with growing_broker(data, lines, **settings) as broker:
            await _assigned_members(broker, key, count)
            with lines.counted():
                await _let_time_pass(broker)

    async def members_are_loaded(data: Path, lines: Lines, count: int) -> None:
        async with growing_broker(data, lines, **settings) as broker:
            members = await _assigned_members(broker, key, count)
            with lines.counted():
                await broker.parts.coordinator.load(0)
                await broker.link.ask(members.heartbeats())

    async def a_topic_gets_partitions(data: Path, lines: Lines, count: int) -> None:
        async with growing_broker(data, lines, **settings) as broker:
            members = await _assigned_members(broker, key, count)
            with lines.counted():
                await broker.link.call(
                    ApiKey.CREATE_PARTITIONS,
                    3,
                    topics=[(TOPIC, 2 * count, None)],
                    timeout_ms=60_000,
                    validate_only=False,
                )
                await members.settle()

    cases = (
        members_join,
        target_is_computed_and_members_move,
        members_send_heartbeats,
        members_leave,
        sessions_end,
        members_are_loaded,
        a_topic_gets_partitions,
    )
    for case in cases:
        case.__name__ = f"{kind}_{case.__name__}"
    return cases


@asynccontextmanager
async def _a_topic_for_each(
    data: Path, lines: Lines, count: int, **settings: Any
) -> AsyncIterator[tuple[GrowingBroker, list[str]]]:
    """A broker with a topic for each of so many members, and the names that both have."""
    async with growing_broker(data, lines, **settings) as broker:
        names = _numbered(count, "m")
        await broker.create(*((name, 1) for name in names))
        await broker.until_coordinated()
        yield broker, names


async def consumers_that_read_topics_of_their_own_join(data: Path, lines: Lines, count: int) -> None:
    key = ApiKey.CONSUMER_GROUP_HEARTBEAT
    async with _a_topic_for_each(data, lines, count, group_consumer_assignment_interval_ms=15_000) as (
        broker,
        names,
    ):
        frames = [_beat(key, name, 0, subscribed_topic_names=[name]) for name in names]
        await broker.link.ask(frames[:1])
        with lines.counted():
            await broker.link.ask(frames[1:])


def _beats_of_own_topics(names: Iterable[str]) -> dict[str, bytes]:
    """Heartbeats of members of a share group that join, each with the topic of its name."""
    return {
        name: _beat(ApiKey.SHARE_GROUP_HEARTBEAT, name, 0, subscribed_topic_names=[name]) for name in names
    }


async def share_consumers_that_read_topics_of_their_own_join_and_leave(
    data: Path, lines: Lines, count: int
) -> None:
    async with _a_topic_for_each(data, lines, count, group_share_assignment_interval_ms=15_000) as (
        broker,
        names,
    ):
        members = Assigned(broker, ApiKey.SHARE_GROUP_HEARTBEAT)
        await members.beat(_beats_of_own_topics(names[:1]))
        with lines.counted():
            await members.beat(_beats_of_own_topics(names[1:]))
            await broker.link.ask(members.heartbeats(-1))


async def share_consumers_that_read_topics_of_their_own_are_assigned(
    data: Path, lines: Lines, count: int
) -> None:
    async with _a_topic_for_each(data, lines, count, group_share_assignment_interval_ms=15_000) as (
        broker,
        names,
    ):
        members = Assigned(broker, ApiKey.SHARE_GROUP_HEARTBEAT)
        await members.beat(_beats_of_own_topics(names))
        group = _find_group(broker)
        await until(lambda: len(group.kept.initialized) == count)
        group.target_ms = 0  # the next target need not be waited for
        with lines.counted():
            await members.settle()
        assert all(members._owned[name] for name in names)


async def consumers_that_hold_heartbeats_leave(data: Path, lines: Lines, count: int) -> None:
    key = ApiKey.CONSUMER_GROUP_HEARTBEAT
    async with growing_broker(data, lines, group_consumer_assignment_interval_ms=15_000) as broker:
        members = await _assigned_members(broker, key, count)
        other = await broker.connect()
        other.send(members.heartbeats(hold_ms=4_000)[1::2])
        await asyncio.sleep(0.3)
        frames = members.heartbeats(-1)[::2]
        with lines.counted():
            await broker.link.ask(frames)


def _find_group(broker: GrowingBroker) -> Any:
    return broker.parts.coordinator.steer(GROUP, lambda shard, _: shard.state.find(GROUP))


async def consumers_send_heartbeats_when_their_assignor_has_failed(
    data: Path, lines: Lines, count: int
) -> None:
    key = ApiKey.CONSUMER_GROUP_HEARTBEAT
    async with growing_broker(data, lines, group_consumer_assignment_interval_ms=15_000) as broker:
        members = await _assigned_members(broker, key, count)
        frames = members.heartbeats()
        await members.join(["new"])
        group = _find_group(broker)
        assert group.epoch > group.target_epoch
        group.target_ms = 0
        group.failure = Failure(group.epoch, "uniform", broker.parts.coordinator._clock_ms(), "it hangs")
        with lines.counted():
            await broker.link.ask(frames)
        assert group.epoch > group.target_epoch


async def consumers_of_a_regex_get_a_topic(data: Path, lines: Lines, count: int) -> None:
    key = ApiKey.CONSUMER_GROUP_HEARTBEAT
    async with growing_broker(data, lines, group_consumer_assignment_interval_ms=0) as broker:
        await broker.create((TOPIC, count))
        await broker.until_coordinated()
        members = Assigned(broker, key)
        await members.join(_numbered(count, "m"), subscribed_topic_regex="t.*")
        group = _find_group(broker)
        await until(lambda: group.regexes and group.resolving is None)
        await members.settle()
        group.resolved_ms = 0  # the next resolution need not be waited for
        with lines.counted():
            await broker.create(("t2", 4 * count))
            await broker.link.ask(members.heartbeats()[:1])
            await until(lambda: any("t2" in each.topics for each in group.regexes.values()))
            await members.settle()


async def consumer_static_members_are_replaced(data: Path, lines: Lines, count: int) -> None:
    key = ApiKey.CONSUMER_GROUP_HEARTBEAT
    async with growing_broker(data, lines, group_consumer_assignment_interval_ms=0) as broker:
        await broker.create((TOPIC, count))
        await broker.until_coordinated()
        names, members = _numbered(count, "m"), Assigned(broker, key)
        for name in names:
            await members.join([name], instance_id=name)
        await members.settle()
        frames = [
            frame
            for name in names
            for frame in (
                _beat(key, name, -2, instance_id=name),
                _beat(key, f"{name}-again", 0, instance_id=name),
            )
        ]
        with lines.counted():
            await broker.link.ask(frames)


async def static_members_return_while_a_target_is_computed(data: Path, lines: Lines, count: int) -> None:
    del data
    asked = ComputeTarget(GROUP, 1, "uniform", "uniform", {}, {})
    with lines.counted():
        for name in _numbered(count):
            asked.note_rename(name, f"{name}-again")


# --- topics and partitions ----------------------------------------------------------------------------------


async def topics_are_created_in_one_request(data: Path, lines: Lines, count: int) -> None:
    async with growing_broker(data, lines) as broker:
        with lines.counted():
            await broker.create(*((name, 1) for name in _numbered(count)))


async def topics_are_created_one_by_one(data: Path, lines: Lines, count: int) -> None:
    async with growing_broker(data, lines) as broker:
        with lines.counted():
            for name in _numbered(count):
                await broker.create((name, 1))


async def a_topic_of_many_partitions_is_created(data: Path, lines: Lines, count: int) -> None:
    async with growing_broker(data, lines) as broker:
        with lines.counted():
            await broker.create((TOPIC, count))


async def topics_are_deleted_in_one_request(data: Path, lines: Lines, count: int) -> None:
    async with growing_broker(data, lines) as broker:
        await broker.create(*((name, 1) for name in _numbered(count)))
        frame = frame_of(ApiKey.DELETE_TOPICS, 4, topic_names=_numbered(count), timeout_ms=60_000)
        with lines.counted():
            await broker.link.ask([frame])


async def all_topics_are_described(data: Path, lines: Lines, count: int) -> None:
    async with growing_broker(data, lines) as broker:
        await broker.create(*((name, 1) for name in _numbered(count)))
        frame = frame_of(ApiKey.METADATA, 12, topics=None)
        with lines.counted():
            await broker.link.ask([frame])


async def a_broker_starts_with_topics(data: Path, lines: Lines, count: int) -> None:
    async with growing_broker(data, lines) as broker:
        await broker.create(*((name, 1) for name in _numbered(count)))
    with lines.counted():
        async with growing_broker(data, lines):
            pass


async def metrics_are_read(data: Path, lines: Lines, count: int) -> None:
    async with growing_broker(data, lines) as broker:
        await broker.create(*((name, 1) for name in _numbered(count)))
        await broker.until_coordinated()
        await _commit(broker, [])
        with lines.counted():
            broker.parts.snapshot()


# --- brokers of a cluster -----------------------------------------------------------------------------------


async def a_broker_of_many_is_lost(data: Path, lines: Lines, count: int) -> None:
    """As many partitions, however many brokers there are: what a controller decides."""
    del data
    cluster = Cluster(*range(1, count + 1))
    topic = NewTopic(TOPIC, partitions=60, replication_factor=min(3, count))
    with lines.counted():
        cluster.do(create_topics(cluster.image, [topic]))
        cluster.kill(1)
    assert all(state.leader not in (1, -1) for state in cluster.states(TOPIC))


# --- records in flight --------------------------------------------------------------------------------------


async def records_are_in_flight(data: Path, lines: Lines, count: int) -> None:
    del data
    limits, share = ShareLimits(record_locks=1 << 30), SharePartition(0)
    order = random.Random(7).sample(range(count), count)
    with lines.counted():
        for offset in range(count):
            share.acquire("m", [BatchOffsets(offset, offset)], limits, 0, most=1)
        for offset in order[: count // 2]:
            write = share.acknowledge("m", [AcknowledgedRange(offset, offset, [1])], limits, 0)
            if write is not None:
                share.complete(write)
        write = share.release_member("m", limits)
        if write is not None:
            share.complete(write)
        share.summarize()


CASES: Final[Sequence[Case]] = (
    connections_come_and_ask,
    all_connections_are_lost_at_once,
    silent_connections_are_looked_at,
    groups_commit,
    a_group_commits_partitions,
    groups_are_loaded,
    groups_are_listed,
    offsets_of_groups_expire,
    groups_are_deleted,
    a_topic_of_many_groups_is_deleted,
    classic_members_join_at_once,
    classic_members_send_heartbeats,
    classic_members_leave_in_one_request,
    classic_members_leave_one_by_one,
    classic_sessions_end,
    classic_static_members_return_at_once,
    *_assigned_cases(ApiKey.CONSUMER_GROUP_HEARTBEAT, "consumer"),
    consumers_that_read_topics_of_their_own_join,
    consumers_that_hold_heartbeats_leave,
    consumers_send_heartbeats_when_their_assignor_has_failed,
    consumers_of_a_regex_get_a_topic,
    consumer_static_members_are_replaced,
    static_members_return_while_a_target_is_computed,
    *_assigned_cases(ApiKey.SHARE_GROUP_HEARTBEAT, "share"),
    share_consumers_that_read_topics_of_their_own_join_and_leave,
    share_consumers_that_read_topics_of_their_own_are_assigned,
    topics_are_created_in_one_request,
    topics_are_created_one_by_one,
    a_topic_of_many_partitions_is_created,
    topics_are_deleted_in_one_request,
    all_topics_are_described,
    a_broker_starts_with_topics,
    metrics_are_read,
    a_broker_of_many_is_lost,
    records_are_in_flight,
)
