"""OffsetFetch and OffsetDelete: what is read, what waits, what is left alone.

Covers: coordinator/offsets/delete.py.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from kohort.coordinator import Request
from kohort.coordinator.engine.runner import Call as Handle
from kohort.coordinator.offsets.fetch import fetch_refusal, join_fetches, split_fetch
from kohort.coordinator.shared_responses import NO_TOPIC_ID
from kohort.offsets_topic import OffsetCommitted, OffsetDeleted, decode
from kohort.protocol import ApiKey, ErrorCode, RequestContext
from kohort.protocol.messages.offset_fetch import OffsetFetchResponse as FetchReply
from kohort.protocol.messages.offset_fetch import OffsetFetchResponseGroup as FetchedGroup
from kohort.protocol.messages.offset_fetch import OffsetFetchResponsePartitions as FetchedPartition
from kohort.protocol.messages.offset_fetch import OffsetFetchResponseTopics as FetchedTopic
from tests.coordinator.bodies import DIRECTORY, TOPIC_IDS, protocols, subscription
from tests.coordinator.driver import World, errors_of

STRANGE_ID = uuid.UUID(int=99)
NOTHING = FetchedPartition(0, -1, -1, "", 0)


def fetched(world: World, group: str, topic: str = "t", partition: int = 0, *, stable: bool = False) -> Any:
    reply: FetchedGroup = world.fetch_call(group, [(topic, partition)], stable=stable).reply
    return reply.topics[0].partitions[0]


class TestFetch:
    @pytest.mark.row("3.8/missing")
    def test_a_missing_group_has_nothing_anywhere(self) -> None:
        world = World()
        assert fetched(world, "missing") == NOTHING
        assert world.fetch_call("missing").reply == FetchedGroup("missing", [], 0)

    @pytest.mark.row("3.8/none")
    def test_the_topic_need_not_exist(self) -> None:
        assert fetched(World(), "g", "nothing") == NOTHING

    @pytest.mark.parametrize("topic", ["t", None])
    def test_offsets_of_an_earlier_topic_of_the_same_name_are_left_out(self, topic: str | None) -> None:
        world = World()
        world.commit("s", {("t", 0): 42})
        told = []
        for topic_id in (TOPIC_IDS["t"], STRANGE_ID):
            present = world.shard.state.topics = replace(DIRECTORY, id_of_topic={"t": topic_id}.get)
            asked = None if topic is None else [SimpleNamespace(name=topic, partition_indexes=[0])]
            group = SimpleNamespace(group_id="s", topics=asked, member_id=None, member_epoch=-1)
            body = SimpleNamespace(groups=[group], require_stable=False)
            call = world.send(ApiKey.OFFSET_FETCH, 9, split_fetch(9, body, present)[0])
            told += [each.committed_offset for each in call.reply.topics[0].partitions]
        assert told == [42, -1]

    def test_a_record_without_a_topic_id_is_of_whatever_topic_has_the_name(self) -> None:
        world = World()
        world.shard.state.durable.commit([OffsetCommitted("s", "t", 0, 42, -1, "", 0)], 0, -1)
        assert fetched(world, "s") == FetchedPartition(0, 42, -1, "", 0)

    def test_what_was_committed_comes_back(self) -> None:
        world = World()
        world.commit("s", {("t", 0): 42}, metadata="m", epoch=7)
        assert fetched(world, "s") == FetchedPartition(0, 42, 7, "m", 0)

    @pytest.mark.row("3.8/all", "3.1/OffsetFetch-v2")
    def test_no_topics_at_all_means_all_and_an_empty_list_none(self) -> None:
        world = World()
        world.commit("s", {("t", 0): 1, ("u", 3): 2})
        assert world.fetch("s") == {("t", 0): 1, ("u", 3): 2}
        assert world.fetch_call("s", []).reply.topics == []

    @pytest.mark.row("3.8/durable")
    def test_it_waits_for_a_commit_of_its_group_that_is_under_way(self) -> None:
        world = World()
        world.hold_writes = True
        commit = world.commit("s", {("t", 0): 5})
        fetch = world.fetch_call("s")
        other = world.fetch_call("another group")
        assert (commit.parked, fetch.parked, other.parked) == (True, True, False)
        world.write()
        assert fetch.reply.topics[0].partitions[0].committed_offset == 5

    def test_a_commit_that_failed_leaves_what_was_there(self) -> None:
        world = World()
        world.commit("s", {("t", 0): 1})
        world.hold_writes = True
        world.commit("s", {("t", 0): 2})
        fetch = world.fetch_call("s")
        world.fail_next_write = ErrorCode.KAFKA_STORAGE_ERROR
        world.write()
        assert fetch.reply.topics[0].partitions[0].committed_offset == 1

    @pytest.mark.row("3.8/stable", "3.1/OffsetFetch-v7", "5.5/pending")
    def test_an_open_transaction_is_unstable_only_for_who_asks(self) -> None:
        world = World()
        world.commit("s", {("t", 0): 1})
        world.shard.apply((OffsetCommitted("s", "t", 0, 9, -1, "", 0),), 50, producer_id=7)
        assert fetched(world, "s") == FetchedPartition(0, 1)
        unstable = FetchedPartition(0, -1000, error_code=int(ErrorCode.UNSTABLE_OFFSET_COMMIT))
        assert fetched(world, "s", stable=True) == unstable
        assert fetched(world, "s", partition=1, stable=True) == FetchedPartition(1, -1)
        world.shard.end_transaction(7, committed=True)
        assert fetched(world, "s", stable=True) == FetchedPartition(0, 9)

    @pytest.mark.row("3.1/OffsetFetch-v8")
    def test_from_version_8_many_groups_are_asked_one_by_one(self) -> None:
        groups = [SimpleNamespace(group_id=g, topics=None) for g in ("a", "b")]
        requests = split_fetch(8, SimpleNamespace(groups=groups, require_stable=True), DIRECTORY)
        assert [(r.group_id, r.topics, r.require_stable) for r in requests] == [
            ("a", None, True),
            ("b", None, True),
        ]

    def test_below_version_8_there_is_one(self) -> None:
        topics = [SimpleNamespace(name="t", partition_indexes=[0, 1])]
        body = SimpleNamespace(group_id="a", topics=topics, require_stable=False)
        (request,) = split_fetch(7, body, DIRECTORY)
        assert request.topics is not None
        assert (request.topics[0].name, request.topics[0].partitions) == ("t", [0, 1])
        reply = join_fetches(7, [FetchedGroup("a", [], 14)], DIRECTORY)
        assert (reply.error_code, reply.groups) == (14, ())

    @pytest.mark.row("3.1/OffsetFetch-v10")
    def test_from_version_10_topics_go_by_id_and_unknown_ids_have_an_error(self) -> None:
        world = World()
        world.commit("s", {("t", 0): 5})
        ids = [TOPIC_IDS["t"], DIRECTORY.id_of_topic("u")]
        topics = [SimpleNamespace(topic_id=i, partition_indexes=[0]) for i in ids]
        topics.append(SimpleNamespace(topic_id=STRANGE_ID, partition_indexes=[0]))
        body = SimpleNamespace(
            groups=[SimpleNamespace(group_id="s", topics=topics, member_id=None, member_epoch=-1)],
            require_stable=False,
        )
        (request,) = split_fetch(10, body, DIRECTORY)
        answer = world.send(ApiKey.OFFSET_FETCH, 10, request).reply
        found = join_fetches(10, [answer], DIRECTORY).groups[0].topics
        offsets = [(t.topic_id, t.partitions[0].committed_offset, t.partitions[0].error_code) for t in found]
        assert offsets == [(ids[0], 5, 0), (ids[1], -1, 0), (STRANGE_ID, -1, ErrorCode.UNKNOWN_TOPIC_ID)]

    def test_of_all_topics_in_version_10_those_without_an_id_are_left_out(self) -> None:
        topics = [FetchedTopic(name, NO_TOPIC_ID, [FetchedPartition(0, 1)]) for name in ("t", "deleted")]
        reply = join_fetches(10, [FetchedGroup("s", topics)], DIRECTORY)
        assert [(t.name, t.topic_id) for t in reply.groups[0].topics] == [("t", TOPIC_IDS["t"])]

    def test_a_topic_that_was_asked_for_by_its_id_is_answered_by_it(self) -> None:
        """A topic may have been recreated under its name meanwhile."""
        topic = FetchedTopic("t", STRANGE_ID, [FetchedPartition(0, -1)])
        reply = join_fetches(10, [FetchedGroup("s", [topic])], DIRECTORY)
        assert [t.topic_id for t in reply.groups[0].topics] == [STRANGE_ID]

    def test_the_groups_are_below_the_answer_from_version_8_on(self) -> None:
        group = FetchedGroup("a", [FetchedTopic("t", NO_TOPIC_ID, [FetchedPartition(0, 1)])], 14)
        assert join_fetches(8, [group], DIRECTORY) == FetchReply(groups=[group])
        assert join_fetches(7, [group], DIRECTORY) == FetchReply(0, group.topics, 14)  # type: ignore[arg-type]

    @pytest.mark.row("3.8/v1")
    @pytest.mark.parametrize(("version", "partitions"), [(1, [14]), (2, []), (8, [])])
    def test_an_error_of_the_group_is_on_each_partition_in_version_1(
        self, version: int, partitions: list[int]
    ) -> None:
        topics = [SimpleNamespace(name="t", partition_indexes=[3])]
        group = SimpleNamespace(
            group_id="g", topics=topics, require_stable=False, member_id=None, member_epoch=-1
        )
        body = SimpleNamespace(groups=[group], require_stable=False) if version >= 8 else group
        (request,) = split_fetch(version, body, DIRECTORY)
        refused = fetch_refusal(Request(9, version, request, RequestContext(), Handle()), 14)
        assert [p.error_code for topic in refused.topics for p in topic.partitions] == partitions
        assert (refused.group_id, refused.error_code) == ("g", 14)
        told = [
            (topic.name, topic.topic_id, p.partition_index)
            for topic in refused.topics
            for p in topic.partitions
        ]
        assert told == ([("t", NO_TOPIC_ID, 3)] if version < 2 else [])


class TestDelete:
    @pytest.mark.row("3.9/missing")
    @pytest.mark.parametrize(
        ("group", "error"), [("", ErrorCode.INVALID_GROUP_ID), ("missing", ErrorCode.GROUP_ID_NOT_FOUND)]
    )
    def test_the_group_must_exist(self, group: str, error: ErrorCode) -> None:
        assert World().offset_delete(group, ("t", 0)).error == error

    @pytest.mark.row("3.9/tombstones", "5.4/offset-delete")
    def test_of_an_empty_group_everything_may_go(self) -> None:
        world = World()
        world.commit("s", {("t", 0): 1, ("t", 1): 2})
        before = len(world.log)
        deleted = world.offset_delete("s", ("t", 0), ("t", 5), ("nothing", 0))
        answered = [
            (t.name, [(p.partition_index, p.error_code) for p in t.partitions]) for t in deleted.reply.topics
        ]
        assert answered == [("nothing", [(0, 3)]), ("t", [(0, 0), (5, 0)])]
        assert [decode(*pair) for pair in world.log[before:]] == [OffsetDeleted("s", "t", 0)]
        assert world.fetch("s") == {("t", 1): 2}

    @pytest.mark.row("3.9/subscribed")
    def test_what_members_read_stays(self) -> None:
        world = World()
        (a,) = world.stable()
        world.commit("g", {("t", 0): 1, ("u", 0): 1}, a, 1)
        deleted = world.offset_delete("g", ("t", 0), ("u", 0))
        assert errors_of(deleted) == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, 0]
        assert world.fetch() == {("t", 0): 1}

    @pytest.mark.row("3.9/subscribed", "1.2/subscribed-topics")
    def test_when_it_is_not_known_what_they_read_everything_stays(self) -> None:
        world = World()
        world.stable(offers=protocols(range=b"no subscription"))
        assert errors_of(world.offset_delete("g", ("u", 0))) == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]

    @pytest.mark.row("3.9/tombstones", "5.5/tombstone")
    def test_an_offset_that_is_named_often_has_one_tombstone(self) -> None:
        world = World()
        world.commit("s", {("t", 0): 5})
        before = len(world.log)
        deleted = world.offset_delete("s", *[("t", 0)] * 100)
        assert errors_of(deleted) == [0] * 100
        assert len(world.log) == before + 1

    def test_a_pending_transactional_offset_is_deleted_too(self) -> None:
        world = World()
        world.commit("s", {("t", 1): 1})
        world.shard.apply((OffsetCommitted("s", "t", 0, 9, -1, "", 0),), 50, producer_id=7)
        assert errors_of(world.offset_delete("s", ("t", 0))) == [0]
        world.shard.end_transaction(7, committed=True)
        assert world.fetch("s") == {("t", 1): 1}

    @pytest.mark.row("2.10/last-offset")
    def test_the_last_offset_gone_a_simple_group_is_forgotten_at_the_next_pass(self) -> None:
        world = World()
        world.commit("s")
        world.offset_delete("s", ("t", 0))
        assert [g.group_id for g in world.list_groups()] == ["s"]
        world.advance(world.settings.offsets_retention_check_interval_ms)
        assert world.list_groups() == []

    def test_a_failed_write_is_the_answer(self) -> None:
        world = World()
        world.commit("s")
        world.fail_next_write = ErrorCode.KAFKA_STORAGE_ERROR
        assert world.offset_delete("s", ("t", 0)).error == ErrorCode.NOT_COORDINATOR
        assert world.fetch("s") == {("t", 0): 1}


@pytest.mark.row("3.9/type")
def test_a_group_with_other_metadata_than_consumers_have_is_no_obstacle_when_empty() -> None:
    world = World()
    (a,) = world.stable(type_="connect", offers=protocols(default=subscription("t")))
    world.commit("g", {("t", 0): 1}, a, 1)
    assert world.offset_delete("g", ("t", 0)).error == ErrorCode.NON_EMPTY_GROUP
    world.leave("g", (a, None))
    assert errors_of(world.offset_delete("g", ("t", 0))) == [0]
