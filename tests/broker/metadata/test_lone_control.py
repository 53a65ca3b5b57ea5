"""A broker that is alone opens its folder, and decides on topics as a controller does.

Covers: broker/metadata/lone_control.py, broker/metadata/controller_requests.py.
"""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path
from typing import Any

from kohort.cluster import PRODUCER_IDS, FolderStore
from kohort.protocol import ApiKey, ErrorCode
from kohort.testing import running_broker
from tests.broker.metadata.topic_requests import LATEST, committed, deleted_topics, grow
from tests.broker.wire import Wire, batch, create_topic, offset_at, part, produce

DATA = Path(__file__).resolve().parents[2] / "data" / "lone-data-folder" / "data.tar.gz"
SETTINGS: dict[str, Any] = {
    "offsets_topic_num_partitions": 3,
    "transaction_state_log_num_partitions": 3,
    "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super_users": "User:ANONYMOUS",
}


def test_a_folder_of_an_older_version_has_all_that_was_in_it(tmp_path: Path) -> None:
    with tarfile.open(DATA) as archive:
        archive.extractall(tmp_path, filter="data")
    with running_broker(data=tmp_path, **SETTINGS) as running, Wire(running.bootstrap) as wire:
        assert (committed(wire, "g", "orders"), committed(wire, "g", "gone")) == (2, -1)
        ends = [offset_at(wire, "orders", LATEST, partition=number).offset for number in (0, 1)]
        assert ends == [6, 4], "7 records, and a marker of each transaction in each of its partitions"
        assert offset_at(wire, "lost", LATEST).offset == 1
        node = running._broker._require_running().node
        topics = {topic.name: (len(topic.partitions), topic.configs) for topic in node.topics.all()}
        compacted = {"cleanup_policy": "compact"}
        assert topics.pop("__consumer_offsets")[1].items() >= compacted.items()
        assert topics.pop("__transaction_state")[1].items() >= compacted.items()
        # the entry of the last one was lost, and its files are there
        assert topics == {
            "orders": (2, {"retention_ms": 123_456_789}),
            "table": (1, compacted),
            "lost": (1, {}),
        }
        assert not list(tmp_path.glob("gone-0"))
        found = node.transactions.transactions()
        assert not isinstance(found, ErrorCode)
        assert [each.transactional_id for each in found] == ["t"]
        assert {user for user, _, _ in node.scram_users.all()} == {"alice"}
        assert node.settings.log_cleaner_backoff_ms == 7_000
        assert node.group_configs.of("g") == {"consumer.session.timeout.ms": 50_000}
        assert node.features.levels["transaction.version"] == 1
        assert node.authorizer is not None
        assert node.authorizer.rule_count == 1
        assert node.quotas.active
        # ids of producers go on far beyond those that the lost topic's may have
        entry = FolderStore(tmp_path).get(PRODUCER_IDS)
        assert entry is not None
        assert entry.value >= 1_000_000_000
    assert deleted_topics(tmp_path) == []


def test_a_partition_that_is_added_is_led_in_a_later_epoch_than_its_files_have(tmp_path: Path) -> None:
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        create_topic(wire, "orders", 2)
        produce(wire, "orders", batch(3), partition=1)
        left = tmp_path / "orders-1"
        shutil.copytree(left, tmp_path / "orders-2")
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        assert grow(wire, "orders", 3).error_code == 0
        topic = part(ApiKey.METADATA, 12, "MetadataRequestTopic", name="orders", topic_id=None)
        answer = wire.call(ApiKey.METADATA, 12, topics=[topic], allow_auto_topic_creation=False)
        assert [each.leader_epoch for each in answer.topics[0].partitions] == [0, 1, 1]
        assert offset_at(wire, "orders", LATEST, partition=2).offset == 3


def test_what_cannot_be_served_has_no_leader_and_no_candidate(tmp_path: Path) -> None:
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        create_topic(wire, "orders", 2)
        produce(wire, "orders", batch(3))
    (tmp_path / "orders-0" / "partition.metadata").write_text("junk")
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        assert produce(wire, "orders", batch(1)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        for kind, code in (
            (0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
            (1, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE),
        ):
            answer = wire.call(
                ApiKey.ELECT_LEADERS,
                2,
                election_type=kind,
                topic_partitions=[("orders", [0, 1])],
                timeout_ms=5,
            )
            [topic] = answer.replica_election_results
            assert [each.error_code for each in topic.partition_result] == [
                code,
                ErrorCode.ELECTION_NOT_NEEDED,
            ]
