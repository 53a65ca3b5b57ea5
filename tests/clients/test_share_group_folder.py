"""A data folder with share groups and the state of their records: from Apache Kafka to kohort and back."""

from __future__ import annotations

import json
import re
import time
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kohort.log.tools.dump import dump_file
from kohort.protocol import ApiKey, ErrorCode
from tests.broker.apis.share_members import ACCEPT, REJECT, RELEASE, ShareMember, acquired
from tests.broker.share_requests import (
    describe_share_group,
    join_share_group,
    share_beat,
)
from tests.broker.wire import Wire, batch, create_topic, produce
from tests.broker_process import BrokerProcess
from tests.clients.test_dump_tool import dump, files
from tests.clients.test_transaction_folder import Kafka
from tests.group_configs import change_group_configs
from tests.waiting import wait_until

pytestmark = [pytest.mark.clients, pytest.mark.slow(60)]

LIMITED = {"share_acquire_mode": 1}
TIMEOUT_S = 60.0


def offsets_of(wire: Wire, group: str) -> Any:
    """Start offset and lag of each partition of a group."""
    (told,) = wire.call(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, groups=[(group, None)]).groups
    assert told.error_code == 0, told
    return {
        (topic.topic_name, row.partition_index): (row.start_offset, row.lag)
        for topic in told.topics
        for row in topic.partitions
    }


def described(wire: Wire, group: str) -> Any:
    """The group, in what has to be the same on both brokers."""
    row = describe_share_group(wire, group)
    members = {
        each.member_id: (
            each.member_epoch,
            sorted(each.subscribed_topic_names),
            sorted((one.topic_name, sorted(one.partitions)) for one in each.assignment.topic_partitions),
        )
        for each in row.members
    }
    return row.error_code, row.group_state, row.group_epoch, row.assignment_epoch, members, row.assignor_name


def _has_coordinator(wire: Wire, group: str) -> bool:
    return not wire.call(ApiKey.FIND_COORDINATOR, 3, key=group, key_type=0).error_code


def _is_known(wire: Wire, group: str) -> bool:
    return describe_share_group(wire, group).error_code in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND)


class Moved:
    """Share groups of one broker, to be looked at and gone on with on the next: ``busy`` has a member and
    records in every state, ``reset`` was emptied and its offset altered.
    """

    def __init__(self, name: str) -> None:
        self.topic = f"{name}-topic"
        self.busy, self.reset = f"{name}-busy", f"{name}-reset"
        self.topic_id = UUID(int=0)
        self.epoch = 0
        self.seen: Any = None

    def configure(self, wire: Wire) -> None:
        """Wait until the groups have a coordinator, and set configs, which no folder has for both brokers."""
        for group in (self.busy, self.reset):
            wait_until(partial(_has_coordinator, wire, group))
            wait_until(partial(_is_known, wire, group))
            error = change_group_configs(wire, group, {"share.auto.offset.reset": "earliest"})
            assert error is ErrorCode.NONE

    def begin(self, wire: Wire, bootstrap: str) -> None:
        self.configure(wire)
        for _ in range(10):
            assert produce(wire, self.topic, batch(1)).error_code == 0
        self.epoch = join_share_group(wire, self.busy, "m", self.topic).epoch
        with ShareMember(bootstrap, self.busy, "m") as one:
            assert fetch_all(one, self.topic_id) == [(0, 9, 1)]
            said = [(0, 1, [ACCEPT]), (2, 3, [RELEASE]), (4, 4, [REJECT]), (6, 6, [ACCEPT])]
            assert one.acknowledge(self.topic_id, *said) == (0, None)
            assert acquired(one.fetch(**LIMITED)) == [(2, 3, 2)]
            assert one.acknowledge(self.topic_id, (2, 3, [RELEASE])) == (0, None)
            # the others are given back with the connection
        epoch = join_share_group(wire, self.reset, "gone", self.topic).epoch
        assert share_beat(wire, self.reset, "gone", -1).error_code == 0
        altered = wire.call(
            ApiKey.ALTER_SHARE_GROUP_OFFSETS,
            0,
            group_id=self.reset,
            topics=[(self.topic, [(0, 7)])],
        )
        assert altered.error_code == 0, altered
        assert describe_share_group(wire, self.reset).group_epoch > epoch
        self.seen = self.look(wire)

    def look(self, wire: Wire) -> Any:
        return [(described(wire, group), offsets_of(wire, group)) for group in (self.busy, self.reset)]

    def check(self, wire: Wire, bootstrap: str) -> None:
        """All is as it was, and goes on from there."""
        self.configure(wire)
        wait_until(lambda: self.look(wire) == self.seen)
        beat = share_beat(wire, self.busy, "m", self.epoch)
        # each broker has a hash of its own of the topics, and looks at them anew when it finds another one
        assert (beat.error_code, beat.member_epoch) == (0, self.epoch + 1)
        with ShareMember(bootstrap, self.busy, "m") as one:
            assert fetch_all(one, self.topic_id) == [(2, 3, 3), (5, 5, 2), (7, 9, 2)]
            said = [(2, 3, [ACCEPT]), (5, 5, [ACCEPT]), (7, 9, [ACCEPT])]
            assert one.acknowledge(self.topic_id, *said) == (0, None)
            assert offsets_of(wire, self.busy)[self.topic, 0][1] == 0
        before = describe_share_group(wire, self.reset).group_epoch
        assert join_share_group(wire, self.reset, "new", self.topic).epoch > before
        with ShareMember(bootstrap, self.reset, "new") as one:
            assert fetch_all(one, self.topic_id) == [(7, 9, 1)]


def fetch_all(one: ShareMember, topic_id: UUID) -> list[tuple[int, int, int]]:
    """The ranges that a member is given, once the share partition is loaded."""
    deadline = time.monotonic() + TIMEOUT_S
    while not (found := acquired(one.fetch(topic_id, 0, **LIMITED))):
        assert time.monotonic() < deadline
    # what is done lies between: ranges come one after the other, or together
    while more := acquired(one.fetch(max_wait_ms=0, **LIMITED)):
        found += more
    return found


def theirs(paths: list[Path], decoder: str) -> list[tuple[int, int]]:
    """Offset and type of each record that Apache Kafka's tool can read."""
    said = dump(paths, decoder, "--print-data-log")
    found = []
    for line in said.splitlines():
        match = re.match(r"\| offset: (\d+) .* key: (\{.*\}) payload: (.*)$", line)
        if match is not None:
            key = json.loads(match[2])
            assert match[3] == "<DELETE>" or "data" in json.loads(match[3]), line
            found.append((int(match[1]), int(key["type"])))
    return found


def ours(paths: list[Path]) -> list[tuple[int, int]]:
    """The same, of our own."""
    return [
        (entry.fields["offset"], int.from_bytes(entry.fields["key"][:2]))
        for path in paths
        for entry in dump_file(path, records=True)
        if entry.kind == "record"
    ]


@pytest.mark.timeout(300)
def test_share_groups_move_from_apache_kafka_to_kohort_and_back(tmp_path: Path) -> None:
    data = tmp_path / "data"
    kafka = Kafka(tmp_path, data)
    broker = BrokerProcess(tmp_path, data=data)
    first, second = moves = [Moved("first"), Moved("second")]
    try:
        kafka.start()
        with Wire(kafka.bootstrap, timeout_s=30) as wire:
            for moved in moves:
                moved.topic_id = create_topic(wire, moved.topic, 1).topic_id
            first.begin(wire, kafka.bootstrap)
        kafka.stop()
        broker.start()
        with Wire(broker.bootstrap, timeout_s=30) as wire:
            first.check(wire, broker.bootstrap)
            second.begin(wire, broker.bootstrap)
        broker.stop()
        for pattern, decoder, kinds in (
            ("__consumer_offsets-*/*.log", "--offsets-decoder", set(range(10, 16))),
            ("__share_group_state-*/*.log", "--share-group-state-decoder", {0, 1}),
        ):
            paths = files(data, pattern)
            assert theirs(paths, decoder) == ours(paths)
            assert {kind for _, kind in ours(paths)} >= kinds
        kafka.start()
        with Wire(kafka.bootstrap, timeout_s=30) as wire:
            second.check(wire, kafka.bootstrap)
    finally:
        if broker.alive:
            broker.stop()
        kafka.stop()
