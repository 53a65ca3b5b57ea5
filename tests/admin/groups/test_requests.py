"""What real brokers do only rarely: several of them, old ones, ones that are moving a group."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace as Body
from typing import Any

import pytest

from kohort.admin import GroupAdmin, Outcome
from kohort.admin.commands import run_program
from kohort.protocol import APIS, ApiKey, ErrorCode, KafkaError, TopicPartition, encode_assignment
from tests.client.fake_broker import FakeBroker

#: What Apache Kafka 2.4 offers of what is asked here; it has no history either.
OLD: dict[ApiKey, tuple[int, int]] = {
    ApiKey.METADATA: (0, 9),
    ApiKey.FIND_COORDINATOR: (0, 3),
    ApiKey.LIST_GROUPS: (0, 3),
    ApiKey.DESCRIBE_GROUPS: (0, 5),
    ApiKey.DELETE_GROUPS: (0, 2),
    ApiKey.OFFSET_FETCH: (0, 6),
    ApiKey.API_VERSIONS: (0, 3),
}


def listed(*names: str, code: int = 0, **more: Any) -> Body:
    rows = [
        Body(
            **{
                "group_id": n,
                "protocol_type": "consumer",
                "group_state": "Empty",
                "group_type": "classic",
                **more,
            }
        )
        for n in names
    ]
    return Body(throttle_time_ms=0, error_code=code, groups=rows)


def cluster_of(*brokers: FakeBroker) -> Callable[[Any], Body]:
    """A Metadata answer in which these are nodes 0, 1, ..."""
    rows = [Body(node_id=n, host="127.0.0.1", port=b.port, rack=None) for n, b in enumerate(brokers)]
    return lambda _: Body(
        throttle_time_ms=0, cluster_id="fake", controller_id=0, error_code=0, brokers=rows, topics=[]
    )


def coordinator(broker: FakeBroker, node: int = 0) -> Callable[[Any], Body]:
    where = {
        "node_id": node,
        "host": "127.0.0.1",
        "port": broker.port,
        "error_code": 0,
        "error_message": None,
    }
    return lambda asked: Body(
        throttle_time_ms=0,
        **where,
        coordinators=[Body(key=asked.coordinator_keys[0] if asked.coordinator_keys else "", **where)],
    )


def described(group: str, state: str, code: int = 0) -> Body:
    row = Body(
        error_code=code,
        error_message=None,
        group_id=group,
        group_state=state,
        protocol_type="consumer",
        protocol_data="",
        members=[],
        authorized_operations=0,
    )
    return Body(throttle_time_ms=0, groups=[row])


def no_offsets(group: str) -> Body:
    return Body(throttle_time_ms=0, groups=[Body(group_id=group, error_code=0, topics=[])])


async def test_every_broker_is_asked_for_its_groups() -> None:
    async with FakeBroker() as one, FakeBroker() as two:
        for broker in (one, two):
            broker.answers[ApiKey.METADATA] = cluster_of(one, two)
        one.answers[ApiKey.LIST_GROUPS] = lambda _: listed("b", "d")
        two.answers[ApiKey.LIST_GROUPS] = lambda _: listed("c", "a")
        async with GroupAdmin(one.address) as admin:
            rows = await admin.list_groups()
    assert [(row.group, row.coordinator) for row in rows] == [("a", 1), ("b", 0), ("c", 1), ("d", 0)]


@pytest.mark.parametrize(
    "code", [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE]
)
async def test_a_broker_that_loads_is_asked_again(code: ErrorCode) -> None:
    answers = [listed(code=code), listed("a")]
    async with FakeBroker() as broker:
        broker.answers[ApiKey.LIST_GROUPS] = lambda _: answers.pop(0)
        async with GroupAdmin(broker.address) as admin:
            assert [row.group for row in await admin.list_groups()] == ["a"]


async def test_a_group_that_moved_is_asked_about_at_its_new_coordinator() -> None:
    async with FakeBroker() as one, FakeBroker() as two:
        where = [coordinator(one), coordinator(two, 1)]
        for broker in (one, two):
            broker.answers[ApiKey.METADATA] = cluster_of(one, two)
            broker.answers[ApiKey.FIND_COORDINATOR] = lambda asked: where.pop(0)(asked)
        deleted = [Body(group_id="a", error_code=ErrorCode.NOT_COORDINATOR)]
        one.answers[ApiKey.DELETE_GROUPS] = lambda _: Body(throttle_time_ms=0, results=deleted)
        done = [Body(group_id="a", error_code=0)]
        two.answers[ApiKey.DELETE_GROUPS] = lambda _: Body(throttle_time_ms=0, results=done)
        async with GroupAdmin(one.address) as admin:
            assert await admin.delete_groups(["a"]) == {"a": Outcome(0, None)}
    assert where == []


async def test_tries_come_to_an_end() -> None:
    async with FakeBroker() as broker:
        broker.answers[ApiKey.LIST_GROUPS] = lambda _: listed(code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        async with GroupAdmin(broker.address, timeout_ms=300) as admin:
            with pytest.raises(KafkaError, match="was not ready in time") as refused:
                await admin.list_groups()
    assert refused.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert broker.asked.count(ApiKey.LIST_GROUPS) > 1


async def test_states_of_an_old_broker_are_found_by_describing() -> None:
    states = {"a": "Stable", "b": "Empty"}
    async with FakeBroker(OLD) as broker:
        broker.answers[ApiKey.LIST_GROUPS] = lambda _: listed(*states)
        broker.answers[ApiKey.FIND_COORDINATOR] = coordinator(broker)
        broker.answers[ApiKey.DESCRIBE_GROUPS] = lambda asked: described(
            asked.groups[0], states[asked.groups[0]]
        )
        async with GroupAdmin(broker.address) as admin:
            assert {row.group: row.state for row in await admin.list_groups()} == {"a": None, "b": None}
            assert [row.group for row in await admin.list_groups(states=["stable"])] == ["a"]
            assert [row.group for row in await admin.list_groups(types=["classic"])] == ["a", "b"]
            assert await admin.events("a") is None


@pytest.mark.parametrize(
    ("listed_type", "state"), [("classic", "Dead"), ("streams", "Stable"), ("share", "Stable")]
)
async def test_a_group_of_another_type_is_not_taken_for_a_missing_one(listed_type: str, state: str) -> None:
    """A broker may list share groups and have no ShareGroupDescribe that is spoken here, as Kafka 4.0."""
    without: dict[ApiKey, tuple[int, int]] = {
        api.key: (api.min_version, api.max_version)
        for api in APIS.values()
        if api.key != ApiKey.SHARE_GROUP_DESCRIBE
    }
    async with FakeBroker(without) as broker:
        missing = described("a", "Dead", ErrorCode.GROUP_ID_NOT_FOUND)
        broker.answers[ApiKey.FIND_COORDINATOR] = coordinator(broker)
        broker.answers[ApiKey.DESCRIBE_GROUPS] = lambda _: missing
        broker.answers[ApiKey.LIST_GROUPS] = lambda _: listed(
            "a", group_state="Stable", group_type=listed_type
        )
        broker.answers[ApiKey.OFFSET_FETCH] = lambda _: no_offsets("a")
        async with GroupAdmin(broker.address) as admin:
            found = (await admin.describe(["a"]))["a"]
    assert found.state == state
    assert any(f"{listed_type!r}" in note for note in found.notes) == found.exists
    assert found.members_known != found.exists


async def test_assignments_of_other_protocol_types_are_not_read() -> None:
    row = {"group_instance_id": None, "client_id": "connect-1", "client_host": "/h", "member_metadata": b""}
    async with FakeBroker() as broker:
        answer = described("a", "Stable")
        answer.groups[0].protocol_type = "connect"
        answer.groups[0].members = [
            Body(**row, member_id="m-1", member_assignment=b"\xff\xfe"),
            Body(**row, member_id="m-2", member_assignment=encode_assignment([TopicPartition("t", 0)])),
        ]
        broker.coordinator_is_here()
        broker.answers[ApiKey.DESCRIBE_GROUPS] = lambda _: answer
        broker.answers[ApiKey.OFFSET_FETCH] = lambda _: no_offsets("a")
        async with GroupAdmin(broker.address) as admin:
            found = (await admin.describe(["a"]))["a"]
    assert [(m.member_id, m.assignment) for m in found.members] == [("m-1", None), ("m-2", None)]
    assert found.partitions == ()
    assert found.notes == ("assignments of protocol type 'connect' are not read",)


async def test_a_consumer_whose_assignment_cannot_be_read_hides_nobody_elses() -> None:
    row = {"group_instance_id": None, "client_id": "app", "client_host": "/h", "member_metadata": b""}
    good = encode_assignment([TopicPartition("t", 0)])
    async with FakeBroker() as broker:
        answer = described("a", "Stable")
        answer.groups[0].members = [
            Body(**row, member_id="bad", member_assignment=b"\x00"),
            Body(**row, member_id="good", member_assignment=good),
            Body(**row, member_id="none", member_assignment=b""),
        ]
        broker.coordinator_is_here()
        broker.answers[ApiKey.DESCRIBE_GROUPS] = lambda _: answer
        broker.answers[ApiKey.OFFSET_FETCH] = lambda _: no_offsets("a")
        async with GroupAdmin(broker.address) as admin:
            found = (await admin.describe(["a"]))["a"]
    assert {m.member_id: m.assignment for m in found.members} == {
        "bad": None,
        "good": (TopicPartition("t", 0),),
        "none": (),
    }
    assert [(p.topic, p.partition, p.member_id, p.end_offset) for p in found.partitions] == [
        ("t", 0, "good", None)
    ]


async def test_what_is_not_allowed_says_which_right_is_missing() -> None:
    async with FakeBroker() as broker:
        broker.answers[ApiKey.FIND_COORDINATOR] = coordinator(broker)
        broker.answers[ApiKey.DESCRIBE_GROUPS] = lambda _: described(
            "a", "", ErrorCode.GROUP_AUTHORIZATION_FAILED
        )
        async with GroupAdmin(broker.address) as admin:
            with pytest.raises(KafkaError, match="ask for the right to DESCRIBE") as refused:
                await admin.describe(["a"])
    assert refused.value.code is ErrorCode.GROUP_AUTHORIZATION_FAILED


@pytest.mark.parametrize(
    ("code", "message", "words"),
    [
        (
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            "reassignments",
            "reassignments; ask for the right to DESCRIBE",
        ),
        (ErrorCode.INVALID_TOPIC_EXCEPTION, "topic 'a b'", "topic 'a b'; a name has letters, digits"),
        (ErrorCode.GROUP_ID_NOT_FOUND, "no such group; look again", "no such group; look again\n"),
    ],
)
def test_a_command_ends_with_advice_unless_its_error_has_some(
    code: ErrorCode, message: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse() -> int:
        raise KafkaError(code, message)

    assert run_program("kohort things", refuse) == 1
    assert words in capsys.readouterr().err
