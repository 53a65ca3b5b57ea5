"""Each client with its default settings: produce, join, consume, commit, leave; the next goes on there."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kafka import KafkaAdminClient

from tests.clients.drivers import PRODUCERS, Driver
from tests.clients.members import Member, wait_for_records

pytestmark = [pytest.mark.clients, pytest.mark.kafka]

VALUES = [b"value-%03d" % number for number in range(300)]
LATER = [b"later-%03d" % number for number in range(60)]


def state_of(bootstrap: str, group: str) -> str:
    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        state: str = admin.describe_groups([group])[group]["group_state"]
    return state


def test_a_default_client_does_a_whole_life_in_a_group(
    driver: Driver, bootstrap: str, new_topic: Callable[..., str], group: Callable[[str], str]
) -> None:
    topic, group_id = new_topic("life", partitions=3), group("life")
    driver.produce(bootstrap, topic, VALUES)

    with Member(driver, bootstrap, group_id, topic) as first:
        got = wait_for_records([first], len(VALUES))
        assert sorted(record.value or b"" for record in got) == VALUES
        assert first.held == {0, 1, 2}
        assert state_of(bootstrap, group_id) == "Stable"
        first.commit()
    assert state_of(bootstrap, group_id) == "Empty"

    driver.produce(bootstrap, topic, LATER)
    with Member(driver, bootstrap, group_id, topic) as second:
        got = wait_for_records([second], len(LATER))
        assert sorted(record.value or b"" for record in got) == LATER


def test_records_of_one_partition_come_in_order_and_without_a_gap(
    driver: Driver, bootstrap: str, new_topic: Callable[..., str], group: Callable[[str], str]
) -> None:
    topic = new_topic("order", partitions=2)
    driver.produce(bootstrap, topic, VALUES)
    with Member(driver, bootstrap, group("order"), topic) as member:
        got = wait_for_records([member], len(VALUES))
    for partition in (0, 1):
        offsets = [record.offset for record in got if record.partition == partition]
        assert offsets == list(range(len(offsets)))
        values = [record.value or b"" for record in got if record.partition == partition]
        assert values == sorted(values)


@pytest.mark.parametrize("writer", list(PRODUCERS))
def test_every_client_reads_what_every_other_wrote(
    writer: str,
    driver: Driver,
    bootstrap: str,
    new_topic: Callable[..., str],
    group: Callable[[str], str],
) -> None:
    topic = new_topic("cross", partitions=1)
    PRODUCERS[writer].produce(bootstrap, topic, VALUES)
    with Member(driver, bootstrap, group("cross"), topic) as member:
        got = wait_for_records([member], len(VALUES))
    assert [(record.key, record.value) for record in got] == [(value, value) for value in VALUES]


def test_a_topic_nobody_made_is_made_by_the_first_producer(
    driver: Driver, bootstrap: str, topic: Callable[[str], str], group: Callable[[str], str]
) -> None:
    name = topic("auto")
    driver.produce(bootstrap, name, [b"one"])
    with Member(driver, bootstrap, group("auto"), name) as member:
        got = wait_for_records([member], 1)
    assert [record.value for record in got] == [b"one"]
