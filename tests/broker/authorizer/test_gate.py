"""The gate of a broker that runs: rules that last, requests read by hand, and what is told of nothing.

Covers: broker/apis/_gate.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kohort.broker.apis import served_apis
from kohort.broker.authorizer import (
    STANDARD_AUTHORIZER,
    Operation,
    Permission,
    ResourceType,
)
from kohort.cluster import StateFileError
from kohort.protocol import ApiKey, ErrorCode
from kohort.protocol.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from kohort.testing import running_broker
from tests.broker.authorizer import share_requests as share
from tests.broker.authorizer.other_requests import acl_filter
from tests.broker.authorizer.place import Place
from tests.broker.authorizer.topic_requests import offset_fetch_twice
from tests.broker.authorizer.world import Right, World, commit_fields
from tests.broker.wire import Wire, batch, fetch_fields, part, produce, produce_fields

READ_GROUP = Right(Operation.READ, ResourceType.GROUP, "g/seen")
READ_TOPIC = Right(Operation.READ, ResourceType.TOPIC, "t/seen")


@pytest.fixture
def world(place: Place) -> Iterator[World]:
    with place.world() as made:
        yield made


def creation(principal: str = "User:ANONYMOUS", operation: Operation = Operation.DESCRIBE) -> Any:
    return part(
        ApiKey.CREATE_ACLS,
        3,
        "AclCreation",
        resource_type=ResourceType.CLUSTER,
        resource_name="kafka-cluster",
        resource_pattern_type=3,
        principal=principal,
        host="*",
        operation=operation,
        permission_type=Permission.ALLOW,
    )


def rules(wire: Wire) -> Any:
    wanted = acl_filter(resource_type_filter=ResourceType.CLUSTER, resource_name_filter=None)
    return wire.call(ApiKey.DESCRIBE_ACLS, 3, **wanted)


def test_rules_outlive_a_restart(tmp_path: Path) -> None:
    rights: dict[str, Any] = {"data": tmp_path, "authorizer_class_name": STANDARD_AUTHORIZER}
    with running_broker(**rights, super_users="User:ANONYMOUS") as broker, Wire(broker.bootstrap) as wire:
        wire.call(ApiKey.CREATE_ACLS, 3, creations=[creation()])
    with running_broker(**rights) as broker, Wire(broker.bootstrap) as wire:
        (resource,) = rules(wire).resources
        assert [acl.principal for acl in resource.acls] == ["User:ANONYMOUS"]
        answer = wire.call(ApiKey.CREATE_ACLS, 3, creations=[creation()])
        assert answer.results[0].error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_a_broker_does_not_start_with_rules_that_it_cannot_read(tmp_path: Path) -> None:
    (tmp_path / "kohort-acls.json").write_text("{")
    with (
        pytest.raises(StateFileError, match=r"kohort-acls\.json"),
        running_broker(data=tmp_path, authorizer_class_name=STANDARD_AUTHORIZER),
    ):
        raise AssertionError("it has started")
    with running_broker(data=tmp_path):
        pass  # who wants no rules does not read them, and the folder was given back


def test_without_an_authorizer_there_are_no_rules_to_ask_for(wire: Wire) -> None:
    disabled = ErrorCode.SECURITY_DISABLED
    assert rules(wire).error_code == disabled
    assert wire.call(ApiKey.CREATE_ACLS, 3, creations=[creation()]).results[0].error_code == disabled
    wanted = part(ApiKey.DELETE_ACLS, 3, "DeleteAclsFilter", **acl_filter())
    assert wire.call(ApiKey.DELETE_ACLS, 3, filters=[wanted]).filter_results[0].error_code == disabled


def test_what_is_read_by_hand_asks_for_what_the_table_says() -> None:
    hot = (ApiKey.HEARTBEAT, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.OFFSET_COMMIT)
    asked = {
        key: [
            (access.operation, access.resource)
            for access in {api.key: api.access for api in served_apis().values()}[key]
        ]
        for key in hot
    }
    member = [(Operation.READ, ResourceType.GROUP)]
    assert asked == {
        **dict.fromkeys(hot, member),
        ApiKey.OFFSET_COMMIT: [*member, (Operation.READ, ResourceType.TOPIC)],
    }


def test_answers_keep_their_order_where_some_are_not_allowed(world: World) -> None:
    world.allow([READ_GROUP])
    heartbeats = [
        {"group_id": world[group], "generation_id": 1, "member_id": "nobody", "group_instance_id": None}
        for group in ("g/seen", "g/hidden", "g/seen", "g/hidden", "g/hidden", "g/seen")
    ]
    last = world.alice.send_together(ApiKey.HEARTBEAT, 4, heartbeats)
    told = [
        world.alice.receive(ApiKey.HEARTBEAT, 4, number).error_code
        for number in range(last - len(heartbeats) + 1, last + 1)
    ]
    unknown, refused = ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert told == [unknown, refused, unknown, refused, refused, unknown]


def test_a_group_that_is_named_without_end_shows_no_more_than_once(world: World) -> None:
    world.allow([READ_GROUP, READ_TOPIC])
    fields = offset_fetch_twice(*[("t/hidden",), ("t/seen",), None] * 30)(world)
    answers = world.alice.call(ApiKey.OFFSET_FETCH, 8, **fields).groups
    assert [answer.group_id for answer in answers] == [world["g/seen"]] * 90
    offsets = {
        (topic.name, partition.committed_offset)
        for answer in answers
        for topic in answer.topics
        for partition in topic.partitions
    }
    assert {name for name, offset in offsets if offset >= 0} == {world["t/seen"]}
    assert [answer.error_code for answer in answers[:11]] == [0] * 11
    assert {answer.error_code for answer in answers[11:]} == {ErrorCode.INVALID_REQUEST}


def test_rules_count_for_connections_that_are_there(world: World) -> None:
    fields = commit_fields(world, "g/seen", 9)

    def told() -> set[int]:
        answer = world.alice.call(ApiKey.OFFSET_COMMIT, 9, **fields)
        return {partition.error_code for topic in answer.topics for partition in topic.partitions}

    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert told() == {ErrorCode.GROUP_AUTHORIZATION_FAILED}
    world.allow([READ_GROUP])
    assert told() == {refused}
    world.allow([READ_GROUP, READ_TOPIC])
    assert told() == {0, refused}
    world.allow([READ_GROUP, READ_TOPIC], Permission.DENY)
    assert told() == {ErrorCode.GROUP_AUTHORIZATION_FAILED}


@pytest.mark.parametrize("version", [6, 9, 10])
def test_a_commit_that_comes_again_is_answered_by_the_rules_as_the_first(world: World, version: int) -> None:
    def topic(name: str, *partitions: int) -> Any:
        rows = [OffsetCommitRequestPartition(number, 5) for number in partitions]
        return OffsetCommitRequestTopic(world[name], world.ids[name], rows)

    def told(*topics: Any) -> Any:
        fields = {"group_id": world["g/seen"], "generation_id_or_member_epoch": -1, "member_id": ""}
        answers = [
            world.alice.call(ApiKey.OFFSET_COMMIT, version, **fields, group_instance_id=None, topics=topics)
            for _ in range(6)
        ]
        assert all(answer == answers[0] for answer in answers)
        return [each.error_code for topic in answers[0].topics for each in topic.partitions]

    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    world.allow([READ_GROUP, READ_TOPIC])
    assert told(topic("t/seen", 0)) == [0]
    assert told(topic("t/seen", 0), topic("t/hidden")) == [0]
    assert told(topic("t/hidden"), topic("t/seen")) == []
    assert told(topic("t/hidden", 0), topic("t/seen", 0)) == [0, refused]
    assert told(topic("t/seen", 0)) == [0]
    world.allow([READ_GROUP])
    assert told(topic("t/seen", 0)) == [refused]
    world.allow([READ_GROUP, READ_TOPIC])
    assert told(topic("t/seen", 0)) == [0]
    world.allow([READ_TOPIC])
    assert told(topic("t/seen", 0)) == [ErrorCode.GROUP_AUTHORIZATION_FAILED]


def test_a_produce_without_acks_that_is_not_allowed_closes_the_connection(world: World) -> None:
    topic = world["t/seen"]
    before = produce(world.admin, topic, batch()).base_offset
    world.alice.send(ApiKey.PRODUCE, 9, **produce_fields(topic, batch(), acks=0))
    assert world.alice.closed_by_broker()
    assert produce(world.admin, topic, batch()).base_offset == before + 1


def test_the_history_of_a_group_is_told_to_who_may_describe_it(world: World) -> None:
    def told() -> int:
        key = ApiKey.DESCRIBE_GROUP_HISTORY
        return int(world.alice.call(key, 0, group_id=world["g/seen"], limit=-1, after=-1).error_code)

    assert told() == ErrorCode.GROUP_AUTHORIZATION_FAILED
    world.allow([Right(Operation.DESCRIBE, ResourceType.GROUP, "g/seen")])
    assert told() == 0


def test_share_partitions_are_told_to_who_may_describe_the_group_and_the_topic(world: World) -> None:
    share.ready(world)
    world.admin.call(ApiKey.SHARE_FETCH, 2, **share.fetch(0)(world) | {"max_records": 1, "max_wait_ms": 50})

    def told() -> tuple[int, list[str]]:
        answer = world.alice.call(ApiKey.DESCRIBE_SHARE_PARTITIONS, 0, group_id=world["g/seen"])
        return int(answer.error_code), [topic.topic_name for topic in answer.topics]

    assert told() == (ErrorCode.GROUP_AUTHORIZATION_FAILED, [])
    describe = Right(Operation.DESCRIBE, ResourceType.GROUP, "g/seen")
    world.allow([describe])
    assert told() == (0, [])
    world.allow([describe, READ_TOPIC])
    # its state may be on the way to the leader
    world.wait(lambda: told() == (0, [world["t/seen"]]))


def test_what_a_fetch_session_has_already_is_not_read_without_the_right(world: World) -> None:
    world.allow([READ_TOPIC])
    fields = {**fetch_fields(world["t/seen"], 0), "session_epoch": 0}
    first = world.alice.call(ApiKey.FETCH, 12, **fields)
    assert [each.error_code for each in first.responses[0].partitions] == [ErrorCode.NONE]
    world.allow([])
    produce(world.admin, world["t/seen"], batch())
    fields |= {"topics": [], "session_id": first.session_id, "session_epoch": 1}
    (row,) = world.alice.call(ApiKey.FETCH, 12, **fields).responses[0].partitions
    assert (row.error_code, row.records or b"") == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, b"")
