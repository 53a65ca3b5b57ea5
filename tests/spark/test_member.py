"""A driver that has its group for itself."""

from __future__ import annotations

import pytest
from kafka.errors import InconsistentGroupProtocolError

from kohort.spark import CommitRefusedError, GroupTakenError, _member
from kohort.spark._client import Client
from kohort.spark._member import ExclusiveMember
from tests.kafka_python import group_consumer
from tests.spark.conftest import Side
from tests.spark.loops import Driver, Named, NewTopic, bounds, next_of
from tests.spark.test_driver_refusals import member_of

pytestmark = pytest.mark.kafka


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_member, "JOIN_PATIENCE_SECONDS", 0.5)


@pytest.mark.usefixtures("impatient")
def test_while_it_runs_nobody_else_can_join_and_nobody_else_can_commit(
    bootstrap: str, side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 10})
    batches = driver(etl, orders, group_mode="exclusive", max_offsets=4)
    batch = next_of(batches)
    consumer = group_consumer(orders, etl, bootstrap_servers=bootstrap)
    with pytest.raises(InconsistentGroupProtocolError):
        consumer.poll(timeout_ms=60_000)
    consumer.close()
    with pytest.raises(GroupTakenError, match=f"'{etl}' has other members"):
        driver(etl, orders, group_mode="exclusive").next_batch()
    with pytest.raises(CommitRefusedError):
        driver(
            etl, orders, fail_on_commit_error=True, max_offsets=3, starting_offsets="earliest"
        ).next_batch()
    batch.commit()
    assert side.committed(etl, orders) == {0: 4}
    batches.close()
    assert next_of(driver(etl, orders, group_mode="exclusive")).ranges[0].start == 4


@pytest.mark.usefixtures("impatient")
def test_a_group_with_members_is_not_taken(
    bootstrap: str, side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 10})
    with (
        member_of(bootstrap, etl, orders),
        pytest.raises(GroupTakenError, match="give this job a group of its own"),
    ):
        driver(etl, orders, group_mode="exclusive").next_batch()
    assert side.committed(etl, orders) == {}


def test_a_driver_beside_an_exclusive_one_is_not_handed_the_batch_that_that_one_has_announced(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 10})
    exclusive = driver(etl, orders, group_mode="exclusive", max_offsets=4)
    announced = next_of(exclusive)
    with pytest.raises(CommitRefusedError, match="has live members"):
        driver(etl, orders, fail_on_commit_error=True).next_batch()

    def go_on_and_leave(_: object) -> None:
        """The other driver ends its batch while this one waits."""
        if not announced.committed:
            announced.commit()
            next_of(exclusive).commit()
            exclusive.close()

    waiting = driver(etl, orders, on_event=go_on_and_leave)
    batch = next_of(waiting)
    assert (batch.number, batch.replayed, bounds(batch)) == (2, False, {0: (8, 10)})


def test_a_driver_that_has_lost_its_membership_cannot_commit(
    bootstrap: str, side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 10})
    zombie = driver(etl, orders, group_mode="exclusive", max_offsets=4)
    batch = next_of(zombie)
    remove_members(bootstrap, etl)
    after = driver(etl, orders, group_mode="exclusive")
    replayed = next_of(after)
    assert replayed.replayed
    with pytest.raises(CommitRefusedError, match="has lost its membership"):
        batch.commit()
    replayed.commit()
    assert side.committed(etl, orders) == {0: 4}


def test_tools_see_a_member_with_all_partitions(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    from kafka import KafkaAdminClient

    orders, etl = new_topic("orders", partitions=2), group("etl")
    side.produce(orders, {0: 1})
    next_of(driver(etl, orders, group_mode="exclusive"))
    with KafkaAdminClient(bootstrap_servers=side.bootstrap) as admin:
        described = admin.describe_groups([etl])[etl]
    assert described["group_state"] == "Stable"
    assert len(described["members"]) == 1


def test_a_membership_that_was_never_taken_is_left_without_a_word(side: Side, group: Named) -> None:
    member = ExclusiveMember(side.client, group("etl"), ["orders"], [])
    member.leave()
    assert member.generation == -1


def remove_members(bootstrap: str, group: str) -> None:
    """As the end of their sessions does, at once."""
    from kohort.consumer import Cluster
    from kohort.protocol import ApiKey
    from kohort.spark._client import ConnectionOptions
    from tests.messages import request_of

    async def remove(cluster: Cluster) -> None:
        describe = request_of(ApiKey.DESCRIBE_GROUPS)
        found = await cluster.request_coordinator(group, describe(groups=[group]))
        make = request_of(ApiKey.LEAVE_GROUP)
        for member in found.groups[0].members:
            who = make.MemberIdentity(member_id=member.member_id, group_instance_id=None, reason="test")
            await cluster.request_coordinator(
                group, make(group_id=group, member_id=member.member_id, members=[who])
            )

    client = Client(ConnectionOptions(bootstrap, "test-remove"))
    try:
        client.run(remove)
    finally:
        client.close()
