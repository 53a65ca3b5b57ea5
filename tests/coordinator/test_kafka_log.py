"""The offsets topic that Apache Kafka 4.3.1 wrote is loaded to what that broker itself answered."""

from __future__ import annotations

import json
import tarfile
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kohort.coordinator import CoordinatorEvent, GroupCoordinator, GroupSettings, RecordSkipped
from kohort.log import DataFolder, LogConfig
from kohort.offsets_topic import OffsetsStore
from kohort.protocol import ApiKey, RequestContext
from tests.coordinator.bodies import START_MS

DATA = Path(__file__).resolve().parent.parent / "data" / "kafka-data-folder"
EXPECTED: dict[str, Any] = json.loads((DATA / "expected.json").read_text())
CONTEXT = RequestContext("test")


def no_id(_name: str) -> uuid.UUID | None:
    return None


@pytest.fixture
async def loaded(tmp_path: Path) -> AsyncIterator[tuple[GroupCoordinator, list[CoordinatorEvent]]]:
    with tarfile.open(DATA / "data.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    folder = DataFolder.open(tmp_path)
    logs = {
        partition: folder.open_log(topic, partition, LogConfig(), now_ms=START_MS)
        for topic, partition in folder.partitions()
        if topic == "__consumer_offsets"
    }
    notes: list[CoordinatorEvent] = []
    coordinator = GroupCoordinator(
        settings=GroupSettings(),
        store=OffsetsStore(logs),
        partition_count_of=lambda topic: 8 if topic in EXPECTED["topics"] else None,
        topic_of_id=lambda _id: None,
        id_of_topic=no_id,
        on_event=notes.append,
    )
    await coordinator.start()
    yield coordinator, notes
    await coordinator.stop()
    for log in logs.values():
        log.close()
    folder.close()


@pytest.mark.row("5.7/kafka")
async def test_groups_members_and_offsets_are_those_that_kafka_answered(
    loaded: tuple[GroupCoordinator, list[CoordinatorEvent]],
) -> None:
    coordinator, notes = loaded
    assert [note for note in notes if isinstance(note, RecordSkipped)] == []
    for group, expected in EXPECTED["groups"].items():
        asked = SimpleNamespace(groups=[group], include_authorized_operations=False)
        (found,) = (await coordinator.handle(ApiKey.DESCRIBE_GROUPS, 5, asked, CONTEXT)).groups
        members = [
            [
                m.member_id,
                m.group_instance_id,
                m.client_id,
                m.member_metadata.hex(),
                m.member_assignment.hex(),
            ]
            for m in found.members
        ]
        state = [found.group_state, found.protocol_type, found.protocol_data]
        assert state == [expected["state"], expected["protocol_type"], expected["protocol"]], group
        assert sorted(members) == sorted(expected["members"]), group
        body = SimpleNamespace(
            groups=[SimpleNamespace(group_id=group, topics=None, member_id=None, member_epoch=-1)],
            require_stable=True,
        )
        (fetched,) = (await coordinator.handle(ApiKey.OFFSET_FETCH, 9, body, CONTEXT)).groups
        offsets = [
            [t.name, p.partition_index, p.committed_offset, p.committed_leader_epoch, p.metadata]
            for t in fetched.topics
            for p in t.partitions
        ]
        assert sorted(offsets) == sorted(expected["offsets"]), group


async def test_the_list_of_groups_is_kafkas(loaded: tuple[GroupCoordinator, list[CoordinatorEvent]]) -> None:
    coordinator, _ = loaded
    body = SimpleNamespace(states_filter=[], types_filter=[])
    reply = await coordinator.handle(ApiKey.LIST_GROUPS, 4, body, CONTEXT)
    listed = sorted([g.group_id, g.protocol_type, g.group_state] for g in reply.groups)
    assert listed == sorted(EXPECTED["list"])
