"""The controller at work: elected, replaced, cut off; on a home in memory and on ZooKeeper.

Covers: cluster/controller/_controller.py, cluster/controller/writes.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any, TypeAlias
from uuid import UUID

import pytest
import pytest_asyncio

from kohort.cluster import (
    BrokerRegistration,
    Change,
    ClusterView,
    Create,
    Delete,
    MetadataStore,
    PartitionState,
    Put,
    Registration,
    TopicAssignment,
    topic_path,
)
from kohort.cluster.controller import Controller, NewTopic, alter_configs, create_topics, delete_topics
from kohort.cluster.controller.decisions import Decision, Rules
from kohort.cluster.layout import (
    CONTROLLER,
    CONTROLLER_EPOCH,
    PARTITION_STATES,
    states_path,
    topic_config_path,
)
from kohort.protocol import ErrorCode, KafkaError
from kohort.testing.memory_store import MemoryHome
from tests.cluster.servers import until

Home: TypeAlias = Callable[[], Awaitable[Any]]
_clock = itertools.count(1)


class Broker:
    """What a broker of a cluster has of this: a session, an image, a registration, and its controller."""

    def __init__(self, store: Any, node_id: int, session_s: float = 0.0) -> None:
        self.node_id = node_id
        self.store: Any = store
        self.view = ClusterView(store, lambda: self.controller.wake())
        now_ms = partial(next, _clock)
        self.registration = Registration(store, BrokerRegistration(node_id), now_ms)
        self.controller = Controller(store, self.view, node_id, now_ms, session_s=session_s)

    def states(self, topic: str) -> list[PartitionState]:
        found = self.view.image.topic(topic)
        return [] if found is None else list(found.partitions)

    async def create(self, *topics: NewTopic) -> Any:
        return await self.controller.ask(lambda image, _: create_topics(image, topics))

    def close(self) -> None:
        self.controller.close()
        self.registration.close()
        self.store.close()


def active(broker: Broker) -> bool:
    return broker.controller.is_active


async def started(store: MetadataStore, node_id: int) -> Broker:
    broker = Broker(store, node_id)
    await broker.registration.register()
    broker.controller.start()
    return broker


async def three(home: Home) -> list[Broker]:
    brokers = [await started(await home(), node_id) for node_id in (1, 2, 3)]
    await until(lambda: active(brokers[0]))
    await until(lambda: all(len(each.view.image.brokers) == 3 for each in brokers))
    return brokers


@pytest_asyncio.fixture
async def brokers(home: Home) -> AsyncIterator[list[Broker]]:
    running = await three(home)
    yield running
    for broker in running:
        broker.close()


@pytest_asyncio.fixture
async def in_memory() -> AsyncIterator[list[Broker]]:
    memory = MemoryHome()

    async def home() -> MetadataStore:
        return memory.open()

    running = await three(home)
    yield running
    for broker in running:
        broker.close()


async def test_one_broker_is_controller_and_another_when_it_goes(brokers: list[Broker]) -> None:
    first, second, third = brokers
    assert [active(each) for each in brokers] == [True, False, False]
    await until(lambda: all(each.view.image.controller_id == 1 for each in brokers))
    first.close()
    await until(lambda: active(second) or active(third))
    assert not (active(second) and active(third))
    await until(lambda: third.view.image.controller_id in (2, 3))
    epoch = third.store.get(CONTROLLER_EPOCH)
    assert (epoch.value, epoch.version) == (2, 1)


async def test_every_broker_sees_what_the_controller_has_decided(brokers: list[Broker]) -> None:
    first, second, third = brokers
    wanted = NewTopic("orders", UUID(int=1), partitions=6, replication_factor=3)
    assert await first.create(wanted) == {"orders": None}
    for broker in brokers:
        await until(lambda broker=broker: len(broker.states("orders")) == 6)  # type: ignore[misc]
        assert [state.leader for state in broker.states("orders")] == [1, 2, 3, 1, 2, 3]
    third.close()
    await until(lambda: all(state.leader in (1, 2) for state in second.states("orders")))
    assert all(set(state.isr) == {1, 2} for state in second.states("orders"))
    with pytest.raises(KafkaError) as refused:
        await second.create(wanted)
    assert refused.value.code is ErrorCode.NOT_CONTROLLER


async def test_partitions_of_the_controllers_broker_get_leaders_from_the_next(brokers: list[Broker]) -> None:
    first, second, third = brokers
    await first.create(NewTopic("orders", UUID(int=1), partitions=3, replication_factor=3))
    await until(lambda: len(third.states("orders")) == 3)
    first.close()
    await until(lambda: all(state.leader in (2, 3) for state in third.states("orders")))
    assert third.states("orders")[0].leader_epoch == 1
    await until(lambda: second.states("orders") == third.states("orders"))


async def test_a_topic_that_somebody_else_wrote_gets_leaders(brokers: list[Broker]) -> None:
    _, second, third = brokers
    assignment = TopicAssignment(UUID(int=9), ((2, 3), (3, 1)))
    await third.store.commit(Create(topic_path("foreign"), assignment.to_document()))
    await until(lambda: [state.leader for state in second.states("foreign")] == [2, 3])


async def test_what_is_asked_at_once_is_decided_one_after_the_other(brokers: list[Broker]) -> None:
    topics = [NewTopic("orders", UUID(int=number), 2) for number in range(1, 6)]
    answers = await asyncio.gather(*(brokers[0].create(topic) for topic in topics))
    assert [answer["orders"] for answer in answers].count(None) == 1


async def test_a_controller_that_was_replaced_writes_nothing(in_memory: list[Broker]) -> None:
    first, second, third = in_memory
    # it does not know yet that its session is over
    home = first.store._home
    home.sessions.remove(first.store)
    home.drop_owned(first.store)
    await until(lambda: active(second) or active(third))
    assert active(first)
    with pytest.raises(KafkaError, match=r"NOT_CONTROLLER.*another broker is") as refused:
        await first.create(NewTopic("orders", UUID(int=1)))
    assert refused.value.retriable
    assert not active(first)
    assert second.view.image.topics() == []
    home.sessions.append(first.store)


async def test_a_controller_whose_session_ends_stands_again(in_memory: list[Broker]) -> None:
    first, second, third = in_memory
    first.store.suspend()
    assert active(first), "its entry is there"
    first.store.resume()
    assert (await first.create(NewTopic("orders", UUID(int=1))))["orders"] is None
    first.store.suspend()
    first.store.expire()
    assert not active(first)
    await until(lambda: active(second) or active(third))
    first.store.resume()
    for each in (second, third):
        each.store.suspend()
        each.store.expire()
    await until(lambda: active(first))
    assert first.store.get(CONTROLLER).value["brokerid"] == 1


@pytest.mark.parametrize("change", [Put(CONTROLLER_EPOCH, 1), Delete(CONTROLLER_EPOCH), Delete(CONTROLLER)])
async def test_there_is_a_controller_whatever_somebody_does_to_its_entries(
    in_memory: list[Broker], change: Change
) -> None:
    first, second, third = in_memory
    await second.store.commit(change)
    # a write tells who was controller that it is not
    with contextlib.suppress(KafkaError):
        await first.create(NewTopic("orders", UUID(int=1)))
    await until(lambda: sum(map(active, in_memory)) == 1)
    [controller] = filter(active, in_memory)
    await controller.create(NewTopic("orders", UUID(int=1)))
    await until(lambda: len(third.states("orders")) == 1)


async def test_configs_that_are_reset_and_set_again_and_those_of_a_name_used_again(
    in_memory: list[Broker],
) -> None:
    first, second, _ = in_memory
    topic_id, configs = UUID(int=1), {"retention.ms": "5"}
    await first.create(NewTopic("orders", topic_id, configs=configs))

    def seen() -> Any:
        topic = second.view.image.topic("orders")
        return None if topic is None else topic.configs

    async def alter(given: dict[str, str]) -> None:
        await first.controller.ask(lambda image, _: alter_configs(image, {topic_id: given}))

    for given in ({}, configs, {}):
        await alter(given)
        assert seen() == given
    await first.controller.ask(lambda image, _: delete_topics(image, ["orders"]))
    assert await first.create(NewTopic("orders", UUID(int=2), configs=configs)) == {"orders": None}
    assert seen() == configs
    # what somebody removes is written again, before the topic as well as after it
    await second.store.commit(Delete(topic_config_path("orders")))
    await second.store.commit(Delete(topic_path("orders")))
    await until(lambda: second.store.get(topic_path("orders")) is not None)
    assert seen() == configs
    assert second.store.get(topic_config_path("orders")).value["config"] == configs


@pytest.mark.parametrize("is_back", [True, False])
async def test_a_controller_whose_session_ended_with_all_others_waits_for_the_brokers_that_were_there(
    is_back: bool,
) -> None:
    home, session_s = MemoryHome(), 60.0 if is_back else 0.3
    brokers = [Broker(home.open(), node_id, session_s) for node_id in (1, 2, 3)]
    for broker in brokers:
        await broker.registration.register()
        broker.controller.start()
    await until(lambda: active(brokers[0]))
    await brokers[0].create(NewTopic("orders", UUID(int=1), 3, 3))
    before = [state._replace(offline=()) for state in brokers[0].states("orders")]
    for broker in brokers:
        broker.store.suspend()
    for broker in brokers:
        broker.store.expire()
    first, second, third = brokers[::-1]
    first.store.resume()
    await until(lambda: active(first) and first.registration.epoch > 0)
    second.store.resume()
    await until(lambda: len(first.view.image.brokers) == 2)
    if is_back:
        third.store.resume()
        # what is asked meanwhile is decided afterwards
        assert await first.create(NewTopic("clicks", UUID(int=2), 1, 3)) == {"clicks": None}
        assert first.states("orders") == before
    else:
        await until(lambda: all(set(state.isr) == {2, 3} for state in first.states("orders")))
        assert all(state.leader in (2, 3) for state in first.states("orders"))
    for broker in brokers:
        broker.close()


async def test_a_broker_that_has_gone_and_come_unseen_leads_nothing_of_what_it_led(
    in_memory: list[Broker],
) -> None:
    first, second, _ = in_memory
    await first.create(NewTopic("orders", UUID(int=1), assignments=[[2, 1, 3]]))
    await until(lambda: [each.leader for each in second.states("orders")] == [2])
    first.store.suspend()
    second.store.expire()
    second.store.resume()
    await until(lambda: second.registration.epoch > 0)
    first.store.resume()
    await until(lambda: [each.leader_epoch for each in first.states("orders")] == [1])
    [state] = first.states("orders")
    assert (state.leader, state.isr) == (1, (1, 3))


async def test_what_cannot_be_written_is_refused_and_work_goes_on_afterwards(
    in_memory: list[Broker], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, _ = in_memory

    async def no_answer(*_: object) -> None:
        raise ConnectionError("no answer")

    with monkeypatch.context() as patch:
        patch.setattr(first.store, "commit", no_answer)
        with pytest.raises(KafkaError, match=r"NOT_CONTROLLER.*out of reach"):
            await first.create(NewTopic("orders", UUID(int=1)))
        second.close()
    assert (await first.create(NewTopic("orders", UUID(int=1), 1, 2)))["orders"] is None
    await until(lambda: first.states("orders")[0].isr in ((1, 3), (3, 1)))


async def test_a_decision_that_fails_is_reported_and_the_next_one_is_made(
    in_memory: list[Broker], caplog: pytest.LogCaptureFixture
) -> None:
    first = in_memory[0]

    def wrong(*_: object) -> Decision[None]:
        raise RuntimeError("a bug")

    def refused(*_: object) -> Decision[None]:
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH)

    with pytest.raises(KafkaError, match="STALE_BROKER_EPOCH"):
        await first.controller.ask(refused)
    with pytest.raises(KafkaError, match=r"UNKNOWN_SERVER_ERROR.*the controller failed: a bug"):
        await first.controller.ask(wrong)
    assert "the controller failed" in caplog.text
    assert active(first)
    assert (await first.create(NewTopic("orders", UUID(int=1))))["orders"] is None


async def test_an_entry_that_is_in_the_way_is_told_to_who_asked_and_to_nobody_else(
    in_memory: list[Broker], caplog: pytest.LogCaptureFixture
) -> None:
    first, second, _ = in_memory
    await second.store.commit(Create(topic_path("junk"), "junk"))
    with pytest.raises(KafkaError, match=r"create of /brokers/topics/junk cannot be done"):
        await first.create(NewTopic("junk", UUID(int=1)))
    assert (await first.create(NewTopic("orders", UUID(int=1))))["orders"] is None
    assert "cannot be read and is passed over" in caplog.text


async def test_rules_are_asked_for_each_time(in_memory: list[Broker]) -> None:
    seen: list[Rules] = []

    def look(_: object, rules: Rules) -> Decision[None]:
        seen.append(rules)
        return Decision(None)

    first = in_memory[0]
    first.controller._rules = lambda: Rules(unclean_leader_election=True)
    await first.controller.ask(look)
    assert seen == [Rules(unclean_leader_election=True)]


async def test_leaders_are_balanced_now_and_then(in_memory: list[Broker]) -> None:
    first = in_memory[0]
    first.controller.close()
    await until(lambda: not active(first))
    first.controller = Controller(first.store, first.view, 1, first.controller._now_ms, rules=lambda: rules)
    rules = Rules(balance=False, balance_interval_s=0.01)
    first.store.expire()
    first.store.resume()
    first.controller.start()
    for other in in_memory[1:]:
        other.controller.close()
        other.store.expire()
        other.store.resume()
    await until(lambda: active(first))
    await until(lambda: len(first.view.image.brokers) == 3)
    await first.create(NewTopic("orders", UUID(int=1), assignments=[[3, 1]]))
    states = first.store.get(states_path(0))
    (topic,) = states.value["topics"].values()
    topic["0"]["leader"] = 1
    await first.store.commit(Put(states_path(0), states.value))
    await asyncio.sleep(0.05)
    assert first.states("orders")[0].leader == 1
    rules = Rules(balance_interval_s=0.01)
    await until(lambda: first.states("orders")[0].leader == 3)


async def test_rules_that_change_are_applied_to_what_is_there(in_memory: list[Broker]) -> None:
    first, _, third = in_memory
    await first.create(NewTopic("orders", UUID(int=1), assignments=[[3, 2]]))
    states = first.store.get(states_path(0))
    (topic,) = states.value["topics"].values()
    topic["0"]["isr"] = [3]
    await first.store.commit(Put(states_path(0), states.value))
    third.close()
    await until(lambda: first.states("orders")[0].leader == -1)
    first.controller._rules = lambda: Rules(unclean_leader_election=True)
    first.controller.wake()
    await until(lambda: first.states("orders")[0].leader == 2)


async def test_states_are_kept_in_entries_of_500_and_a_topic_is_written_in_one_step(
    in_memory: list[Broker],
) -> None:
    first, second, _ = in_memory
    torn: list[int] = []

    def look(path: str) -> None:
        second.store.watch(path, look)
        asyncio.get_running_loop().call_soon(look_now)

    def look_now() -> None:
        states = second.states("large")
        if len(states) != 1_200 or any(state.leader == -1 for state in states):
            torn.append(len(states))

    second.store.watch(topic_path("large"), look)
    await first.create(NewTopic("large", UUID(int=1), 1_200, 3), NewTopic("small", UUID(int=2), 10))
    assert torn == []

    def sizes() -> dict[int, int]:
        return {number: len(states) for number, states in first.view.entries().items()}

    assert sizes() == {0: 500, 1: 500, 2: 210}
    await first.controller.ask(lambda image, _: delete_topics(image, ["large"]))
    assert sum(sizes().values()) == 10
    assert second.view.image.topic("large") is None
    many = [NewTopic(f"t{number}", UUID(int=10 + number)) for number in range(450)]
    assert set((await first.create(*many)).values()) == {None}
    assert sizes() == {0: 450, 1: 0, 2: 10}
    assert list(first.store.children(PARTITION_STATES)) == ["0", "1", "2"]


async def test_an_unclean_election_and_offline_partitions_are_told(
    in_memory: list[Broker], caplog: pytest.LogCaptureFixture
) -> None:
    first, second, third = in_memory
    await first.create(
        NewTopic(
            "risky", UUID(int=1), assignments=[[3, 2]], configs={"unclean.leader.election.enable": "true"}
        ),
        NewTopic("safe", UUID(int=2), assignments=[[3]]),
    )
    states = first.store.get(states_path(0))
    for topic in states.value["topics"].values():
        topic["0"]["isr"] = [3]
    await first.store.commit(Put(states_path(0), states.value))
    with caplog.at_level(logging.ERROR, "kohort.cluster"):
        third.close()
        await until(lambda: first.states("risky")[0].leader == 2 and first.states("safe")[0].leader == -1)
    assert sorted(caplog.messages) == [
        "risky-0: unclean election of broker 2: records that were acknowledged may be lost",
        "safe-0 is offline: none of its in-sync replicas (3,) can be used",
    ]
    assert second.states("risky")[0].recovering
