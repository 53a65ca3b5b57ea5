"""Groups without a coordinator, on a real ZooKeeper, with a broker for their records.

On kohort, and with ``--bootstrap`` on any Kafka cluster.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import closing, suppress
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.admin import NewPartitions
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NotEmptyError
from kazoo.handlers.threading import KazooTimeoutError

from kohort.admin import GroupAdmin
from kohort.cli import main
from kohort.client.errors import BrokerConnectionError, ConfigError
from kohort.consumer import AsyncGroupConsumer
from kohort.consumer.errors import CommitFailedError, StaleRecordError
from kohort.consumer.events import PartitionsLost
from kohort.consumer.group.zookeeper import ZooKeeperRegistry
from kohort.consumer.run import assembly
from kohort.protocol import TopicPartition
from kohort.service import ConsumerService, KafkaOutput
from kohort.statemachine import MemberState
from tests.cluster.servers import ZooKeeper, zookeeper
from tests.consumer.conftest import QUICK
from tests.consumer.members import Maker, Worker, read
from tests.torture.proxy import Proxy
from tests.waiting import until

pytestmark = [pytest.mark.kafka, pytest.mark.clients, pytest.mark.slow(2)]

PARTITIONS = 4


@pytest.fixture(scope="module")
def servers() -> Iterator[ZooKeeper]:
    with zookeeper() as running:
        yield running


@pytest.fixture
def address(servers: ZooKeeper) -> str:
    return servers.connect()


@pytest.fixture
def client(address: str) -> Iterator[KazooClient]:
    """Another client of the same place."""
    client = KazooClient(address)
    client.start()
    client.ensure_path("/")
    yield client
    client.stop()
    client.close()


class Group:
    """A group without a coordinator, where its members meet, and a topic that they read."""

    topic: str
    partitions: int

    def __init__(
        self,
        member: Maker,
        servers: ZooKeeper,
        address: str,
        client: KazooClient,
        name: str,
        new_topic: Callable[..., str],
        produce: Callable[..., None],
    ) -> None:
        self.servers, self.address, self.client, self.name = servers, address, client, name
        self.root = f"/consumers/{name}"
        self._member, self._new_topic, self._produce = member, new_topic, produce

    def make_topic(self, partitions: int) -> str:
        self.topic, self.partitions = self._new_topic("orders", partitions=partitions), partitions
        return self.topic

    async def produce(self, numbers: Iterable[int]) -> None:
        await asyncio.to_thread(self._produce, self.topic, numbers, partitions=self.partitions)

    async def join(self, **config: object) -> AsyncGroupConsumer:
        where = {"coordination": f"zookeeper://{self.address}", "auto_commit_interval_ms": 100}
        return await self._member(self.topic, **{"group": self.name, **where, **config})

    async def work(self, **config: object) -> Worker:
        """A member that reads."""
        return Worker(await self.join(**config))

    async def read_entry(self, path: str) -> bytes:
        data: bytes = (await asyncio.to_thread(self.client.get, path))[0]
        return data

    async def read_offsets(self) -> list[bytes]:
        """What is committed of each partition."""
        return [
            await self.read_entry(f"{self.root}/offsets/{self.topic}/{number}")
            for number in range(self.partitions)
        ]


@pytest.fixture
def group(
    member: Maker,
    servers: ZooKeeper,
    address: str,
    client: KazooClient,
    group: Callable[[str], str],
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> Group:
    for name in ("protocol", "heartbeat_interval_ms"):
        monkeypatch.delitem(QUICK, name, raising=False)
    return Group(member, servers, address, client, group("billing"), new_topic, produce)


async def end_session(consumer: AsyncGroupConsumer, hosts: str) -> None:
    """End a member's session, as ZooKeeper does with one that it has not heard of."""
    registry = consumer.parts.registry
    assert registry is not None
    assert registry._session is not None
    await end(registry._session.client, hosts)


async def end(member: KazooClient, hosts: str) -> None:
    session = member.client_id
    # another client of the session ends it, unless the member takes the connection back before that
    while member._session_id == session[0]:
        twin = KazooClient(hosts, client_id=session)
        with suppress(KazooException, KazooTimeoutError):
            await asyncio.to_thread(twin.start)
            await asyncio.to_thread(twin.stop)
        await asyncio.to_thread(twin.close)


def owned(*workers: Worker) -> list[list[int]]:
    return [sorted(partition.partition for partition in each.consumer.assignment()) for each in workers]


def lost(worker: Worker) -> list[TopicPartition]:
    events = worker.consumer.events.recent
    return [
        partition for event in events if isinstance(event, PartitionsLost) for partition in event.partitions
    ]


async def test_a_member_whose_client_of_zookeeper_has_ended_is_a_member_again_with_another_one(
    group: Group,
) -> None:
    topic = group.make_topic(PARTITIONS)
    worker = await group.work(session_timeout_ms=1_500)
    await until(lambda: owned(worker) == [[0, 1, 2, 3]])
    registry = worker.consumer.parts.registry
    assert registry is not None
    assert registry._session is not None
    former = registry._session.client

    def fails(*_: object) -> None:
        raise OSError("the clock has gone back")

    former._connection._connect_attempt = fails
    former._connection._socket.shutdown(socket.SHUT_RDWR)
    await until(lambda: sorted(lost(worker)) == [TopicPartition(topic, each) for each in range(PARTITIONS)])
    await until(lambda: owned(worker) == [[0, 1, 2, 3]])
    assert registry._session.client is not former
    await group.produce(range(20))
    await until(lambda: len(worker.seen) >= 20)


async def test_members_take_their_ranges_and_every_record_is_read_once_as_they_come_and_go(
    group: Group,
) -> None:
    topic = group.make_topic(PARTITIONS)
    first = await group.work()
    await until(lambda: owned(first) == [[0, 1, 2, 3]])
    await group.produce(range(100))
    await until(lambda: len(first.seen) >= 50)
    second = await group.work()
    await until(lambda: sorted(owned(first, second)) == [[0, 1], [2, 3]])
    registry = first.consumer.parts.registry
    assert registry is not None
    assert registry.watches_fired > 0
    await group.produce(range(100, 200))
    await until(lambda: len(first.seen) + len(second.seen) >= 200)
    ids = await asyncio.to_thread(group.client.get_children, f"{group.root}/ids")
    entry = json.loads(await group.read_entry(f"{group.root}/ids/{ids[0]}"))
    assert entry.items() >= {"version": 1, "subscription": {topic: 1}, "pattern": "static"}.items()
    owner, stat = await asyncio.to_thread(group.client.get, f"{group.root}/owners/{topic}/0")
    assert owner.decode().removesuffix("-0") in ids
    assert stat.ephemeralOwner
    await first.stop()
    await until(lambda: owned(second) == [[0, 1, 2, 3]])
    await group.produce(range(200, 240))
    await until(lambda: len(first.seen) + len(second.seen) >= 240)
    await second.stop()
    assert sorted(first.seen + second.seen) == list(range(240))
    assert await group.read_offsets() == [b"60"] * PARTITIONS
    assert await asyncio.to_thread(group.client.get_children, f"{group.root}/ids") == []


async def test_a_member_whose_session_ends_loses_what_it_had_and_commits_nothing_more(group: Group) -> None:
    group.make_topic(1)
    await group.produce(range(10))
    consumer = await group.join()
    records = await read(consumer, 10)
    await end_session(consumer, group.servers.hosts)
    await until(lambda: any(isinstance(event, PartitionsLost) for event in consumer.events.recent))
    with pytest.raises(StaleRecordError):
        consumer.done(records[0])
    await until(lambda: bool(consumer.assignment()))
    again = await read(consumer, 10)
    assert [record.offset for record in again] == list(range(10))


async def test_whoever_owned_a_partition_before_can_commit_nothing_more(group: Group) -> None:
    topic = group.make_topic(1)
    partition = TopicPartition(topic, 0)
    consumer = await group.join(enable_auto_commit=False)
    await until(lambda: bool(consumer.assignment()))
    assert await consumer.committed() == {}
    await consumer.commit({partition: 3})
    assert (await consumer.committed())[partition].offset == 3
    path = f"{group.root}/offsets/{topic}/0"
    # as the next owner does at first
    await asyncio.to_thread(group.client.set, path, b"3")
    with pytest.raises(CommitFailedError, match="no longer owned"):
        await consumer.commit({partition: 5})
    assert await group.read_entry(path) == b"3"
    await until(lambda: bool(consumer.assignment()))
    await consumer.commit({partition: 6})
    assert await group.read_entry(path) == b"6"


async def test_a_partition_that_a_client_of_kafka_0_8_owns_is_waited_for(group: Group) -> None:
    topic = group.make_topic(2)
    other = {"version": 1, "subscription": {topic: 1}, "pattern": "static", "timestamp": "1"}
    root = group.root
    group.client.create(f"{root}/ids/zz-old", json.dumps(other).encode(), ephemeral=True, makepath=True)
    for number in range(2):
        group.client.create(f"{root}/owners/{topic}/{number}", b"zz-old-0", ephemeral=True, makepath=True)
    group.client.create(f"{root}/offsets/{topic}/0", b"0", makepath=True)
    worker = await group.work()
    await until(lambda: worker.consumer.state.state is MemberState.COMPLETING)
    assert owned(worker) == [[]]
    group.client.delete(f"{root}/owners/{topic}/0")
    await until(lambda: owned(worker) == [[0]])
    group.client.delete(f"{root}/owners/{topic}/1")
    group.client.delete(f"{root}/ids/zz-old")
    await until(lambda: owned(worker) == [[0, 1]])
    await worker.stop()


async def test_offsets_are_committed_to_the_group_as_well_and_read_from_it(
    group: Group, bootstrap: str
) -> None:
    topic = group.make_topic(1)
    await group.produce(range(10))
    worker = await group.work(dual_commit=True)
    await until(lambda: len(worker.seen) == 10)
    await worker.stop()
    async with AsyncGroupConsumer(
        topic, bootstrap=bootstrap, group=group.name, auto_offset_reset="earliest"
    ) as after:
        await until(lambda: bool(after.assignment()))
        partition = TopicPartition(topic, 0)
        assert (await after.committed(partition))[partition].offset == 10


async def test_a_zookeeper_that_does_not_answer_is_named(bootstrap: str) -> None:
    consumer = AsyncGroupConsumer(
        "orders",
        bootstrap=bootstrap,
        group="billing",
        coordination="zookeeper://127.0.0.1:1",
        default_api_timeout_ms=500,
    )
    with pytest.raises(BrokerConnectionError, match=r"no answer from ZooKeeper at 127\.0\.0\.1:1"):
        await consumer.start()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"coordination": "zookeeper:/127.0.0.1"}, "it is 'kafka', or 'zookeeper://HOST:PORT"),
        ({"coordination": "zookeeper://"}, "'' is no address of a ZooKeeper"),
        ({"coordination": "zookeeper://h"}, "'h' is no address"),
        ({"coordination": "zookeeper://h:1,"}, "'h:1,' is no address"),
        ({"coordination": "zookeeper://h:x"}, "'h:x' is no address"),
        ({"coordination": "zookeeper://h:0"}, "'h:0' is no address"),
        ({"coordination": "zookeeper://h:65536"}, "'h:65536' is no address"),
        ({"coordination": "zookeeper://h:1/"}, "without '/' at its end"),
        ({"coordination": "zookeeper://h:1/a/../b"}, "is no address"),
        ({"coordination": "zookeeper://h:1", "assignor": "range"}, "assignor is for groups that brokers"),
        ({"coordination": "zookeeper://h:1", "protocol": "consumer"}, "protocol is for groups that brokers"),
        ({"dual_commit": True}, "dual_commit is for coordination by ZooKeeper"),
        (
            {"coordination": "zookeeper://h:1", "group": "a/b"},
            "in ZooKeeper a group's name is one part",
        ),
        ({"coordination": "zookeeper://h:1", "group": ".."}, "in ZooKeeper a group's name is one part"),
        (
            {"coordination": "zookeeper://h:1", "group": "a\x01"},
            "in ZooKeeper a group's name is one part",
        ),
        (
            {"coordination": "zookeeper://h:1", "group": "\N{GRINNING FACE}"},
            "those beyond U\\+FFFF such as emoji",
        ),
        ({"coordination": "zookeeper://h:1/\N{GRINNING FACE}"}, "those beyond U\\+FFFF such as emoji"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        AsyncGroupConsumer("orders", bootstrap="localhost:9092", **{"group": "billing", **settings})


def test_transactions_which_commit_to_brokers_groups_are_refused() -> None:
    settings: dict[str, Any] = {"group": "billing", "coordination": "zookeeper://h:1"}
    consumer = AsyncGroupConsumer("orders", bootstrap="localhost:9092", **settings)
    with pytest.raises(ConfigError, match="transactions commit offsets to a group that brokers coordinate"):
        consumer.group_metadata()
    service = ConsumerService(bootstrap="localhost:9092", **settings)
    with pytest.raises(ConfigError, match="a KafkaOutput commits offsets to a group that brokers coordinate"):
        service.exactly_once(KafkaOutput())


async def test_offsets_are_imported_into_the_group_once_nobody_is_registered(
    group: Group, bootstrap: str, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = group.make_topic(2)
    await group.produce(range(20))
    for number, offset in enumerate((b"4", b"70")):
        group.client.create(f"{group.root}/offsets/{topic}/{number}", offset, makepath=True)
    group.client.create(f"{group.root}/ids/old", b"{}", makepath=True)

    async def imported(*more: str) -> int:
        command = [
            "groups",
            "--bootstrap",
            bootstrap,
            "import",
            group.name,
            "--zookeeper",
            f"zookeeper://{group.address}",
        ]
        return await asyncio.to_thread(main, [*command, *more])

    assert await imported("--execute") == 1
    assert f"group '{group.name}' has members in ZooKeeper (old): stop them first" in capsys.readouterr().err
    group.client.delete(f"{group.root}/ids/old")
    assert await imported() == 0
    assert "70 is after the end: 10 taken" in capsys.readouterr().out
    async with GroupAdmin(bootstrap) as admin:
        assert await admin.offsets(group.name) == {}
        assert await imported("--execute") == 0
        found = await admin.offsets(group.name)
    assert {partition.partition: value.offset for partition, value in found.items()} == {0: 4, 1: 10}
    assert await imported("--zookeeper", f"{group.address}/elsewhere") == 1
    assert "is --zookeeper right?" in capsys.readouterr().err
    await asyncio.to_thread(group.client.set, f"{group.root}/offsets/{topic}/0", b"1")
    assert await imported() == 0
    assert "back by 3: the group has committed more on the brokers" in capsys.readouterr().out
    assert await imported("--zookeeper", f"{group.address}/") == 2
    assert "is no address of a ZooKeeper" in capsys.readouterr().err
    assert await imported("--zookeeper", "127.0.0.1:1", "--timeout", "0.5") == 3
    (said,) = capsys.readouterr().err.splitlines()
    assert "no answer from ZooKeeper at 127.0.0.1:1" in said
    assert "--bootstrap" not in said


async def test_an_import_takes_numbers_of_partitions_and_names_the_rest(
    group: Group, bootstrap: str, caplog: pytest.LogCaptureFixture
) -> None:
    topic = group.make_topic(4)
    await group.produce(range(20))
    entries = {f"{topic}/0": b"4", f"{topic}/1": b"-1", f"{topic}/2": b"x" * 1_000, f"{topic}/03": b"2"}
    entries |= {f"{topic}/7": b"3", f"{topic}/{9**20}": b"1", "gone/0": b"1"}
    for path, offset in entries.items():
        group.client.create(f"{group.root}/offsets/{path}", offset, makepath=True)
    async with GroupAdmin(bootstrap) as admin:
        planned = await admin.plan_import(group.name, group.address)
        assert {(each.topic, each.partition): each.new_offset for each in planned.changes} == {
            (topic, 0): 4,
            (topic, 7): None,
            ("gone", 0): None,
        }
        await admin.execute(planned)
        assert {p: value.offset for p, value in (await admin.offsets(group.name)).items()} == {
            TopicPartition(topic, 0): 4
        }
    assert f"the offset of {topic}-2 in ZooKeeper is no number: b'xxx" in caplog.text
    assert f"{topic}-1" not in caplog.text


async def test_members_find_each_other_again_when_the_groups_folder_is_removed(group: Group) -> None:
    group.make_topic(PARTITIONS)
    first, second = await group.work(), await group.work()
    await until(lambda: sorted(owned(first, second)) == [[0, 1], [2, 3]])
    before = [(each, each.consumer.state.generation) for each in (first, second)]
    with suppress(NotEmptyError):  # members are quick to come back
        await asyncio.to_thread(group.client.delete, group.root, recursive=True)
    await until(lambda: all(each.consumer.state.generation != former for each, former in before))
    await until(lambda: sorted(owned(first, second)) == [[0, 1], [2, 3]])
    await first.stop()
    await until(lambda: owned(second) == [[0, 1, 2, 3]])
    await second.stop()


async def test_an_owner_that_somebody_removes_is_one_again_before_anybody_else_is(group: Group) -> None:
    topic = group.make_topic(1)
    worker = await group.work()
    await until(lambda: owned(worker) == [[0]])
    await asyncio.to_thread(group.client.delete, f"{group.root}/owners/{topic}/0")
    await until(lambda: any(isinstance(event, PartitionsLost) for event in worker.consumer.events.recent))
    await until(lambda: owned(worker) == [[0]])
    assert group.client.get(f"{group.root}/owners/{topic}/0")[1].ephemeralOwner
    await worker.stop()


async def test_folders_on_the_way_to_the_group_are_made(group: Group) -> None:
    group.make_topic(1)
    worker = await group.work(coordination=f"zookeeper://{group.address}/a/b")
    await until(lambda: owned(worker) == [[0]])
    await worker.stop()


async def test_an_offset_that_somebody_removes_is_written_again_by_the_owner(group: Group) -> None:
    topic = group.make_topic(1)
    consumer = await group.join(enable_auto_commit=False)
    await until(lambda: bool(consumer.assignment()))
    path = f"{group.root}/offsets/{topic}/0"
    # nobody who owned the partition before can make the entry now
    assert await group.read_entry(path) == b"-1"
    for offset in (3, 5):
        await consumer.commit({TopicPartition(topic, 0): offset})
        assert await group.read_entry(path) == b"%d" % offset
        await asyncio.to_thread(group.client.delete, path)


async def test_of_two_members_with_one_id_the_second_waits_for_the_first_to_go(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assembly, "new_member_id", lambda *_: "same")
    group.make_topic(2)
    first = await group.work()
    await until(lambda: owned(first) == [[0, 1]])
    second = await group.work()
    await until(lambda: any("NodeExistsError" in str(event) for event in second.consumer.events.recent))
    assert owned(first, second) == [[0, 1], []]
    await first.stop()
    await until(lambda: owned(second) == [[0, 1]])
    await second.stop()


async def test_members_come_and_go_behind_a_slow_network_that_breaks(group: Group) -> None:
    group.make_topic(PARTITIONS)
    with closing(Proxy(lambda: group.servers.port)) as proxy:
        proxy.delay_s = 0.02
        workers: list[Worker] = []
        for number in range(4):
            far = f"zookeeper://127.0.0.1:{proxy.port}/{group.name}"
            workers.append(await group.work(coordination=far))
            numbers = range(40 * number, 40 * number + 40)
            await group.produce(numbers)
            await asyncio.to_thread(proxy.cut)
            if number == 2:
                await workers[0].stop()
        await until(lambda: sorted(owned(*workers[1:])) == [[0, 1], [2], [3]])
        await until(lambda: {each for worker in workers for each in worker.seen} == set(range(160)))
        for worker in workers[1:]:
            await worker.stop()


@pytest.mark.parametrize(
    ("goes", "comes"),
    [
        pytest.param(ZooKeeper.kill, ZooKeeper.again, id="killed"),
        pytest.param(ZooKeeper.stand_still, ZooKeeper.go_on, id="stands-still"),
    ],
)
async def test_members_go_on_when_zookeeper_was_away_for_longer_than_a_session(
    group: Group, goes: Callable[[ZooKeeper], None], comes: Callable[[ZooKeeper], None]
) -> None:
    topic = group.make_topic(PARTITIONS)
    short = {"session_timeout_ms": 1_500}
    workers = [await group.work(**short), await group.work(**short)]
    await until(lambda: sorted(owned(*workers)) == [[0, 1], [2, 3]])
    await group.produce(range(40))
    await until(lambda: sum(len(each.seen) for each in workers) >= 40)
    await asyncio.to_thread(goes, group.servers)
    try:
        # before their partitions are lost, nothing is delivered any more
        await until(lambda: all(each.consumer.parts.delivery.halted for each in workers))
        await group.produce(range(40, 80))
        await until(lambda: owned(*workers) == [[], []])
        await until(lambda: [len(lost(each)) for each in workers] == [2, 2])
        await asyncio.sleep(1.5)
        assert not any(number >= 40 for each in workers for number in each.seen)
    finally:
        await asyncio.to_thread(comes, group.servers)
    await until(lambda: sorted(owned(*workers)) == [[0, 1], [2, 3]])
    await until(lambda: {each for worker in workers for each in worker.seen} == set(range(80)))
    owners = {
        number: (await group.read_entry(f"{group.root}/owners/{topic}/{number}")).decode()
        for number in range(PARTITIONS)
    }
    assert owners == {
        partition.partition: f"{each.consumer.parts.membership.member_id}-0"
        for each in workers
        for partition in each.consumer.assignment()
    }
    for worker in workers:
        await worker.stop()
    assert await group.read_offsets() == [b"20"] * PARTITIONS


@pytest.mark.slow(15)
async def test_fifty_members_start_at_once_and_leave_at_once(group: Group) -> None:
    members, partitions, records = 50, 75, 300
    topic = group.make_topic(partitions)
    await group.produce(range(records))
    patient = {"session_timeout_ms": 30_000, "default_api_timeout_ms": 120_000}
    workers = [
        Worker(each) for each in await asyncio.gather(*(group.join(**patient) for _ in range(members)))
    ]

    def settled() -> bool:
        shares = owned(*workers)
        # the topic's range: the first ones get one more, and nobody has another's partition
        sizes, numbers = sorted(map(len, shares)), sorted(number for share in shares for number in share)
        return sizes == [1] * 25 + [2] * 25 and numbers == list(range(partitions))

    await until(settled, timeout_s=180)
    await until(lambda: sum(len(each.seen) for each in workers) >= records, timeout_s=180)
    await asyncio.gather(*(each.stop() for each in workers))
    seen = [number for each in workers for number in each.seen]
    assert set(seen) == set(range(records))
    root = group.root
    await until(lambda: group.client.get_children(f"{root}/ids") == [])
    assert group.client.get_children(f"{root}/owners/{topic}") == []
    assert await group.read_offsets() == [b"4"] * partitions


async def test_a_session_that_ends_in_the_middle_of_a_release_gives_the_partition_to_the_next(
    group: Group,
) -> None:
    group.make_topic(2)
    first = await group.work()
    await until(lambda: owned(first) == [[0, 1]])
    registry = first.consumer.parts.registry
    assert registry is not None
    remove = registry._remove_entry

    async def over(path: str) -> None:
        registry._remove_entry = remove  # type: ignore[method-assign]
        await end_session(first.consumer, group.servers.hosts)
        await remove(path)

    registry._remove_entry = over  # type: ignore[method-assign]
    second = await group.work()
    # the first hears of its session's end later than the second sees the released partition
    await until(lambda: any(isinstance(event, PartitionsLost) for event in first.consumer.events.recent))
    await until(lambda: sorted(owned(first, second)) == [[0], [1]])
    await first.stop()
    await second.stop()


async def test_what_others_write_that_makes_no_sense_stops_nobody(group: Group) -> None:
    topic = group.make_topic(2)
    worker = await group.work()
    await until(lambda: owned(worker) == [[0, 1]])
    root = group.root
    for number, entry in enumerate([b"{", b"", b'{"subscription":{"%s":"x"}}' % topic.encode(), b"\xff"]):
        group.client.create(f"{root}/ids/other-{number}", entry)
    group.client.create(f"{root}/ids/\N{SNOWMAN}", b'{"subscription":[]}')
    group.client.create(f"{root}/owners/{topic}/no-number", b"other")
    group.client.create(f"{root}/offsets/{topic}/no-number", b"5")
    group.client.set(f"{root}/owners/{topic}/0", b"\xff\x00")
    another = await group.work()
    await until(lambda: sorted(owned(worker, another)) == [[0], [1]])
    await another.stop()
    await until(lambda: owned(worker) == [[0, 1]])
    await worker.stop()


@pytest.mark.parametrize(
    "data", [None, b"", b"\x00" * 900_000, b"9" * 900_000], ids=["none", "empty", "huge", "9s"]
)
async def test_entries_with_any_data_stop_nobody(group: Group, bootstrap: str, data: bytes | None) -> None:
    topic = group.make_topic(2)
    root = group.root
    for path in (f"ids/{group.name}", f"owners/{topic}/1", f"offsets/{topic}/0", f"offsets/{topic}/1"):
        group.client.create(f"{root}/{path}", data, makepath=True)
    async with GroupAdmin(bootstrap) as admin:
        planned = await admin.plan_import(group.name, group.address)
        assert planned.changes == ()
        assert f"has members in ZooKeeper ({group.name})" in str(planned.refusal)
    await group.produce(range(10))
    worker = await group.work()
    await until(lambda: owned(worker) == [[0]])
    group.client.delete(f"{root}/owners/{topic}/1")
    await until(lambda: owned(worker) == [[0, 1]])
    await until(lambda: sorted(worker.seen) == list(range(10)))
    await worker.stop()
    assert await group.read_offsets() == [b"5", b"5"]


@pytest.mark.parametrize(
    ("request_name", "path"),
    [
        ("create", "/ids/"),
        ("get_children", "/ids"),
        ("get", "/ids/"),
        ("create", "/owners/"),
        ("exists", "/owners/"),
        ("get", "/offsets/"),
        ("create", "/offsets/"),
        ("set", "/offsets/"),
        ("delete", "/owners/"),
        ("delete", "/ids/"),
    ],
)
async def test_a_session_that_ends_at_any_step_leaves_each_partition_to_one_member(
    group: Group, monkeypatch: pytest.MonkeyPatch, request_name: str, path: str
) -> None:
    """The first request of this kind finds that the session is over: to join, share, read or leave."""
    group.make_topic(PARTITIONS)
    await group.produce(range(40))
    call = ZooKeeperRegistry._call_client
    ended: list[str] = []

    def ends_before(registry: ZooKeeperRegistry, request: str, at: str, *arguments: Any) -> Awaitable[Any]:
        async def ended_first() -> Any:
            assert registry._session is not None
            await end(registry._session.client, group.servers.hosts)
            return await call(registry, request, at, *arguments)

        if not ended and request == request_name and path in at:
            ended.append(at)
            return asyncio.ensure_future(ended_first())
        return call(registry, request, at, *arguments)

    monkeypatch.setattr(ZooKeeperRegistry, "_call_client", ends_before)
    first = await group.work()
    await until(lambda: len(first.seen) > 0)
    second = await group.work()
    await until(lambda: sorted(owned(first, second)) == [[0, 1], [2, 3]])
    await until(lambda: set(first.seen + second.seen) == set(range(40)))
    await first.stop()
    await until(lambda: owned(second) == [[0, 1, 2, 3]])
    assert ended
    await group.produce(range(40, 60))
    await until(lambda: set(first.seen + second.seen) == set(range(60)))
    await second.stop()
    assert group.client.get_children(f"{group.root}/ids") == []
    assert await group.read_offsets() == [b"15"] * PARTITIONS


async def test_the_entry_of_an_owner_that_never_goes_is_named_until_somebody_removes_it(
    group: Group, caplog: pytest.LogCaptureFixture
) -> None:
    topic = group.make_topic(4)
    root = group.root
    group.client.create(f"{root}/owners/{topic}/1", b"left-behind-0", makepath=True)
    group.client.create(
        f"{root}/ids/left-behind", b'{"subscription":{"%s":1}}' % topic.encode(), makepath=True
    )
    worker = await group.work()
    await until(lambda: owned(worker) == [[0]])
    await until(lambda: f"{root}/owners/{topic}/1 in ZooKeeper belongs to no session" in caplog.text)
    assert f"{root}/ids/left-behind in ZooKeeper belongs to no session" in caplog.text
    group.client.delete(f"{root}/owners/{topic}/1")
    await until(lambda: owned(worker) == [[0, 1]])
    group.client.delete(f"{root}/ids/left-behind")
    await until(lambda: owned(worker) == [[0, 1, 2, 3]])
    await worker.stop()


async def test_partitions_are_added_and_a_topic_is_deleted_and_made_anew(
    group: Group, bootstrap: str
) -> None:
    topic = group.make_topic(1)
    await group.produce(range(30))
    workers = [await group.work(metadata_max_age_ms=200) for _ in range(2)]
    await until(lambda: sum(len(each.seen) for each in workers) == 30)
    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        await asyncio.to_thread(admin.create_partitions, {topic: NewPartitions(2)})
        await until(lambda: sorted(owned(*workers)) == [[0], [1]])
        group.partitions = 2
        await asyncio.to_thread(admin.delete_topics, [topic])
        await until(lambda: owned(*workers) == [[], []])
        await asyncio.to_thread(
            admin.create_topics,
            {topic: {"num_partitions": 2, "replication_factor": 1}},
            wait_for_metadata=True,
        )
    await until(lambda: sorted(owned(*workers)) == [[0], [1]])
    await group.produce(range(30, 50))
    await until(lambda: {each for worker in workers for each in worker.seen} == set(range(50)))
    for worker in workers:
        await worker.stop()


async def test_partitions_that_are_added_before_a_member_comes_have_readers_as_soon_as_it_is_there(
    group: Group, bootstrap: str
) -> None:
    topic = group.make_topic(4)
    settings = {"metadata_max_age_ms": 600_000}
    first = await group.work(**settings)
    await until(lambda: owned(first) == [[0, 1, 2, 3]])
    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        await asyncio.to_thread(admin.create_partitions, {topic: NewPartitions(8)})
    second = await group.work(**settings)
    await until(lambda: sorted(owned(first, second)) == [[0, 1, 2, 3], [4, 5, 6, 7]])
    for worker in (first, second):
        await worker.stop()


async def test_a_handler_that_hangs_holds_a_partition_no_longer_than_the_drain(group: Group) -> None:
    group.make_topic(2)
    await group.produce(range(2))
    hanging = await group.join(drain_timeout_ms=200)
    assert len(await read(hanging, 2)) == 2  # and neither is done
    other = await group.work()
    await until(
        lambda: sorted([*owned(other), sorted(p.partition for p in hanging.assignment())]) == [[0], [1]]
    )
    await until(lambda: len(other.seen) == 1)
    await other.stop()


async def test_with_one_side_refused_an_offset_is_stored_on_the_other_and_the_commit_fails(
    group: Group, bootstrap: str
) -> None:
    topic = group.make_topic(1)
    partition = TopicPartition(topic, 0)
    consumer = await group.join(dual_commit=True, enable_auto_commit=False)
    await until(lambda: bool(consumer.assignment()))
    path = f"{group.root}/offsets/{topic}/0"
    async with AsyncGroupConsumer(topic, bootstrap=bootstrap, group=group.name) as member:
        await until(lambda: bool(member.assignment()))
        with pytest.raises(CommitFailedError, match="UNKNOWN_MEMBER_ID"):
            await consumer.commit({partition: 3})
        assert await group.read_entry(path) == b"3"
    await consumer.commit({partition: 4})
    await asyncio.to_thread(group.client.set, path, b"2")
    with pytest.raises(CommitFailedError, match="no longer owned"):
        await consumer.commit({partition: 5})
    async with GroupAdmin(bootstrap) as admin:
        assert (await admin.offsets(group.name))[partition].offset == 4
    await until(lambda: bool(consumer.assignment()))
    await consumer.commit({partition: 6})
    assert await group.read_entry(path) == b"6"
