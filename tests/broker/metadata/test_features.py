"""Levels of features: what they change, that they last, and what cannot be.

Covers: broker/metadata/features.py, broker/apis/update_features.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kohort.log import decode_records
from kohort.protocol import OWN_FEATURES, ApiKey, ErrorCode, iter_batches
from kohort.testing import running_broker
from tests.broker.coordinators.test_transactions import Producer
from tests.broker.wire import Wire, create_topic

UPGRADE, SAFE, UNSAFE = 1, 2, 3
GROUPS, SHARE, TRANSACTIONS = "group.version", "share.version", "transaction.version"


def update(wire: Wire, *rows: tuple[str, int, int], version: int = 1, **fields: Any) -> Any:
    names = ("feature", "max_version_level", "upgrade_type")
    updates = [dict(zip(names, row, strict=True)) for row in rows]
    return wire.call(ApiKey.UPDATE_FEATURES, version, feature_updates=updates, **fields)


def told(wire: Wire) -> dict[str, int]:
    """The levels of Kafka's features that are in force, as ApiVersions tells them, and their epoch."""
    answer = wire.call(ApiKey.API_VERSIONS, 4, client_software_name="x", client_software_version="1")
    levels = {each.name: each.max_version_level for each in answer.finalized_features}
    found = {name: levels[name] for name in levels.keys() - OWN_FEATURES}
    return found | {"epoch": answer.finalized_features_epoch}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def link(data: Path) -> Iterator[Wire]:
    with running_broker(data=data) as broker, Wire(broker.bootstrap) as wire:
        yield wire


def test_all_features_begin_at_their_highest_level(link: Wire) -> None:
    assert told(link) == {GROUPS: 1, SHARE: 1, TRANSACTIONS: 2, "epoch": 0}


def test_levels_last_and_those_of_zero_are_not_told(data: Path) -> None:
    with running_broker(data=data) as broker, Wire(broker.bootstrap) as wire:
        answer = update(wire, (TRANSACTIONS, 0, SAFE), (GROUPS, 1, UPGRADE))
        assert [tuple(each) for each in answer.results] == [(TRANSACTIONS, 0, "NONE"), (GROUPS, 0, "NONE")]
        assert told(wire) == {GROUPS: 1, SHARE: 1, "epoch": 1}
    with running_broker(data=data) as broker, Wire(broker.bootstrap) as wire:
        assert told(wire) == {GROUPS: 1, SHARE: 1, "epoch": 1}
        assert update(wire, (TRANSACTIONS, 2, UPGRADE), version=2) == (0, 0, None, ())
        assert told(wire) == {GROUPS: 1, SHARE: 1, TRANSACTIONS: 2, "epoch": 2}


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ((TRANSACTIONS, 3, UPGRADE), "Local controller 1 only supports versions 0-2"),
        ((TRANSACTIONS, -1, UPGRADE), "A feature version cannot be less than 0."),
        ((TRANSACTIONS, 1, UPGRADE), "Can't downgrade the version of this feature without"),
        ((TRANSACTIONS, 1, 0), "The controller does not support the given upgrade type."),
        (("tea.version", 1, UPGRADE), "Local controller 1 does not support this feature."),
        (("tea.version", 0, UPGRADE), "Feature tea.version not found."),
    ],
)
def test_what_is_refused_changes_nothing(link: Wire, row: tuple[str, int, int], why: str) -> None:
    answer = update(link, (GROUPS, 0, UNSAFE), row)
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert f"version {row[1]} for feature {row[0]}. {why}" in answer.error_message
    assert not answer.results
    assert told(link) == {GROUPS: 1, SHARE: 1, TRANSACTIONS: 2, "epoch": 0}


def test_a_downgrade_goes_no_higher(link: Wire) -> None:
    update(link, (GROUPS, 0, SAFE))
    answer = update(link, (GROUPS, 1, SAFE))
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert "Can't downgrade to a newer version." in answer.error_message


def test_what_is_only_validated_is_not_changed(link: Wire) -> None:
    assert update(link, (GROUPS, 0, SAFE), validate_only=True).error_code == 0
    assert told(link)["epoch"] == 0


def test_without_the_feature_there_are_no_consumer_groups(link: Wire) -> None:
    fields: dict[str, Any] = {"group_id": "g", "member_id": "m", "rebalance_timeout_ms": 10_000}
    first: dict[str, Any] = {"member_epoch": 0, "subscribed_topic_names": ["t"], "topic_partitions": []}

    def heartbeat() -> int:
        return int(link.call(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, **fields, **first).error_code)

    assert heartbeat() == 0
    update(link, (GROUPS, 0, SAFE))
    assert heartbeat() == ErrorCode.UNSUPPORTED_VERSION
    (group,) = link.call(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, group_ids=["g"]).groups
    assert group.error_code == ErrorCode.UNSUPPORTED_VERSION
    update(link, (GROUPS, 1, UPGRADE))
    assert heartbeat() == 0


@pytest.mark.parametrize(("level", "value_version"), [(0, 0), (1, 1), (2, 1)])
def test_records_are_written_as_the_level_asks_for(data: Path, level: int, value_version: int) -> None:
    """An Apache Kafka that is downgraded behind it has to read them."""
    with running_broker(data=data) as broker, Wire(broker.bootstrap) as wire:
        assert create_topic(wire, "orders").error_code == 0
        update(wire, (TRANSACTIONS, level, SAFE if level < 2 else UPGRADE))
        producer = Producer(wire, new=False)
        assert producer.add("orders", 0) == [0]
        # a second producer: the coordinator aborts what is open, by the protocol in force
        assert producer.initialize().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
        producer.settle("CompleteAbort")
        assert producer.describe().producer_epoch == 1
        assert producer.initialize().producer_epoch == 2
    records = [record for found in _records(data) for record in found]
    assert {value[1] for _, _, _, value in records if value} == {value_version}


def test_levels_that_are_not_known_are_no_levels(data: Path) -> None:
    with running_broker(data=data) as broker, Wire(broker.bootstrap) as wire:
        update(wire, (GROUPS, 0, SAFE))
    file = data / "kohort-features.json"
    kept = json.loads(file.read_text())
    file.write_text(file.read_text().replace(f'"{TRANSACTIONS}": 2', f'"{TRANSACTIONS}": 3'))
    assert json.loads(file.read_text()) != kept
    with pytest.raises(Exception, match="kohort-features"), running_broker(data=data):
        pass


def test_a_feature_that_an_older_version_lacked_is_off_until_it_is_raised(data: Path) -> None:
    with running_broker(data=data) as broker, Wire(broker.bootstrap) as wire:
        update(wire, (TRANSACTIONS, 0, SAFE))
    file = data / "kohort-features.json"
    kept = json.loads(file.read_text())
    del kept["levels"][GROUPS], kept["levels"][SHARE]
    file.write_text(json.dumps(kept))
    with running_broker(data=data) as broker, Wire(broker.bootstrap) as wire:
        assert told(wire) == {"epoch": 1}
        update(wire, (GROUPS, 1, UPGRADE), (SHARE, 1, UPGRADE))
        assert told(wire) == {GROUPS: 1, SHARE: 1, "epoch": 2}


def _records(data: Path) -> Iterator[Any]:
    for file in sorted(data.glob("__transaction_state-*/*.log")):
        content = file.read_bytes()
        for position, header in iter_batches(content):
            yield decode_records(content, header, position)
