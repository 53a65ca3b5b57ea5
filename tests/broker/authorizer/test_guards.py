"""Guards without a broker: what reaches the handler, and what is answered for the rest.

Covers: broker/apis/_guards.py.
"""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from kohort.broker.apis import AnyRequest, Request, served_apis
from kohort.broker.apis._gate import Gate
from kohort.broker.authorizer import (
    CLUSTER_NAME,
    Acl,
    AclBindingFilter,
    Authorizer,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from kohort.protocol import (
    ApiKey,
    ErrorCode,
    KafkaError,
    ProtocolError,
    RequestContext,
)
from kohort.protocol.messages.create_topics import CreatableTopicConfigs, CreatableTopicResult
from kohort.protocol.messages.offset_fetch import OffsetFetchResponseGroup, OffsetFetchResponseTopics
from tests.broker.wire import batch, part
from tests.messages import request_of

ALICE = RequestContext(client_host="/10.0.0.1", principal="User:alice")
CLUSTER, TOPIC, GROUP = ResourceType.CLUSTER, ResourceType.TOPIC, ResourceType.GROUP
READ, WRITE, DESCRIBE, DELETE, CREATE = (
    Operation.READ,
    Operation.WRITE,
    Operation.DESCRIBE,
    Operation.DELETE,
    Operation.CREATE,
)
SEEN_ID, HIDDEN_ID, UNKNOWN_ID = uuid.UUID(int=1), uuid.UUID(int=2), uuid.UUID(int=3)
TOPICS = {"seen": SEEN_ID, "hidden": HIDDEN_ID}


def may(operation: Operation, resource: ResourceType, name: str) -> Acl:
    return Acl(resource, name, PatternType.LITERAL, "User:alice", "*", operation, Permission.ALLOW)


class _Topics:
    """Two topics, by name and by id."""

    def get(self, name: str) -> str | None:
        return name if name in TOPICS else None

    def name_of(self, topic_id: uuid.UUID) -> str | None:
        return next((name for name, known in TOPICS.items() if known == topic_id), None)


class Guarded:
    """Requests of Alice, who has ``rights``; ``handled`` are the bodies that came to the handler.

    ``answers`` makes the handler's answer from the request, an empty one unless it is given.
    """

    def __init__(self, *rights: Acl, answers: Any = None) -> None:
        self.handled: list[Any] = []
        self._gate = Gate(Authorizer(rights))
        self._answers = answers or (lambda request: request.answer())
        settings = SimpleNamespace(auto_create_topics_enable=False)
        self._node: Any = SimpleNamespace(topics=_Topics(), settings=settings)

    def ask(self, key: ApiKey, version: int, **fields: Any) -> Any:
        async def handler(_node: Any, request: AnyRequest) -> Any:
            self.handled.append(request.body)
            return self._answers(request)

        body = request_of(key)(version=version, **fields)
        api = replace(served_apis()[key], handler=handler)
        request = Request(api, version, body, ALICE, ("h", 1))
        return asyncio.run(self._gate.admit(self._node, request))


def codes(items: list[Any]) -> list[int]:
    return [int(item.error_code) for item in items]


# Fetch


def fetch_fields(version: int, replica: int, name: str = "seen") -> dict[str, Any]:
    partition = part(ApiKey.FETCH, version, "FetchTopic", "FetchPartition", partition=0)
    topic = part(
        ApiKey.FETCH,
        version,
        "FetchTopic",
        partitions=[partition],
        **({"topic": name} if version < 13 else {"topic_id": TOPICS[name]}),
    )
    if version < 15:
        return {"topics": [topic], "replica_id": replica}
    return {
        "topics": [topic],
        "replica_state": part(ApiKey.FETCH, version, "ReplicaState", replica_id=replica, replica_epoch=-1),
    }


@pytest.mark.parametrize("version", [4, 12, 14, 15, 16, 17])
@pytest.mark.parametrize("replica", [0, 1, 2])
def test_who_fetches_as_a_replica_needs_the_clusters_right_and_no_topics(version: int, replica: int) -> None:
    reader = Guarded(may(READ, TOPIC, "seen"))
    (topic,) = reader.ask(ApiKey.FETCH, version, **fetch_fields(version, replica)).responses
    assert codes(topic.partitions) == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    assert reader.handled == []
    broker = Guarded(may(Operation.CLUSTER_ACTION, CLUSTER, CLUSTER_NAME))
    broker.ask(ApiKey.FETCH, version, **fetch_fields(version, replica))
    (body,) = broker.handled
    assert len(body.topics) == 1


@pytest.mark.parametrize("version", [4, 12, 14, 15, 16, 17])
def test_a_consumer_needs_the_topics_right_and_not_the_clusters(version: int) -> None:
    reader = Guarded(may(READ, TOPIC, "seen"))
    reader.ask(ApiKey.FETCH, version, **fetch_fields(version, -1))
    assert len(reader.handled[0].topics) == 1
    broker = Guarded(may(Operation.CLUSTER_ACTION, CLUSTER, CLUSTER_NAME))
    (topic,) = broker.ask(ApiKey.FETCH, version, **fetch_fields(version, -1)).responses
    assert codes(topic.partitions) == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    assert broker.handled == []


def test_topics_without_a_name_are_for_the_handler() -> None:
    nobody = Guarded()
    topic = part(ApiKey.FETCH, 13, "FetchTopic", topic_id=UNKNOWN_ID, partitions=[])
    nobody.ask(ApiKey.FETCH, 13, topics=[topic], replica_id=-1)
    assert [item.topic_id for item in nobody.handled[0].topics] == [UNKNOWN_ID]


def test_an_error_of_the_whole_stands_alone() -> None:
    fetched = Guarded(may(READ, TOPIC, "seen"), answers=lambda request: request.answer(error_code=70))
    fields = fetch_fields(12, -1)
    fields["topics"] += fetch_fields(12, -1, "hidden")["topics"]
    answer = fetched.ask(ApiKey.FETCH, 12, **fields)
    assert (answer.error_code, answer.responses) == (70, ())
    assert [item.topic for item in fetched.handled[0].topics] == ["seen"]


# Produce, InitProducerId


def produce_fields(*names: Any, acks: int = -1, transactional: bool = False, tx: str | None = None) -> Any:
    records = batch(producer_id=1, producer_epoch=0, base_sequence=0, transactional=transactional)
    items = []
    for name in names:
        data = part(ApiKey.PRODUCE, 13, "TopicProduceData", "PartitionProduceData", index=0, records=records)
        items.append(part(ApiKey.PRODUCE, 13, "TopicProduceData", topic_id=name, partition_data=[data]))
    return {"topic_data": items, "acks": acks, "timeout_ms": 1, "transactional_id": tx}


def test_without_acks_what_is_not_allowed_ends_the_connection_and_an_unknown_id_does_not() -> None:
    writer = Guarded(may(WRITE, TOPIC, "seen"))
    writer.ask(ApiKey.PRODUCE, 13, **produce_fields(SEEN_ID, UNKNOWN_ID, acks=0))
    assert [item.topic_id for item in writer.handled[0].topic_data] == [SEEN_ID, UNKNOWN_ID]
    with pytest.raises(ProtocolError, match="a Produce with acks=0 to hidden, which is not allowed"):
        writer.ask(ApiKey.PRODUCE, 13, **produce_fields(SEEN_ID, HIDDEN_ID, acks=0))
    assert len(writer.handled) == 1


@pytest.mark.parametrize(("tx", "allowed"), [("mine", True), ("theirs", False), (None, False)])
def test_a_transactional_batch_needs_the_right_to_its_transactional_id(tx: str | None, allowed: bool) -> None:
    writer = Guarded(may(WRITE, TOPIC, "seen"), may(WRITE, ResourceType.TRANSACTIONAL_ID, "mine"))
    fields = produce_fields(SEEN_ID, transactional=True, tx=tx)
    if allowed:
        writer.ask(ApiKey.PRODUCE, 13, **fields)
        assert len(writer.handled) == 1
        return
    with pytest.raises(KafkaError) as caught:
        writer.ask(ApiKey.PRODUCE, 13, **fields)
    assert caught.value.code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert writer.handled == []


def test_a_batch_that_is_not_transactional_asks_for_no_transactional_id() -> None:
    writer = Guarded(may(WRITE, TOPIC, "seen"))
    writer.ask(ApiKey.PRODUCE, 13, **produce_fields(SEEN_ID, tx="theirs"))
    assert len(writer.handled) == 1


@pytest.mark.parametrize(
    ("rights", "tx", "code"),
    [
        ([may(WRITE, ResourceType.TRANSACTIONAL_ID, "mine")], "mine", None),
        (
            [may(WRITE, ResourceType.TRANSACTIONAL_ID, "mine"), may(WRITE, TOPIC, "seen")],
            "theirs",
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ),
        ([may(WRITE, TOPIC, "seen")], None, None),
        ([may(Operation.IDEMPOTENT_WRITE, CLUSTER, CLUSTER_NAME)], None, None),
        ([may(READ, TOPIC, "seen")], None, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ],
)
def test_who_gets_a_producer_id(rights: list[Acl], tx: str | None, code: ErrorCode | None) -> None:
    producer = Guarded(*rights)
    fields = {"transactional_id": tx, "transaction_timeout_ms": 1}
    if code is None:
        producer.ask(ApiKey.INIT_PRODUCER_ID, 2, **fields)
        assert len(producer.handled) == 1
        return
    with pytest.raises(KafkaError) as caught:
        producer.ask(ApiKey.INIT_PRODUCER_ID, 2, **fields)
    assert caught.value.code == code


# OffsetFetch, OffsetDelete


def _group(name: str, *topics: str | None) -> Any:
    asked: list[Any] | None = None
    if topics != (None,):
        asked = [
            part(
                ApiKey.OFFSET_FETCH,
                8,
                "OffsetFetchRequestGroup",
                "OffsetFetchRequestTopics",
                name=topic,
                partition_indexes=[0, 1],
            )
            for topic in topics
        ]
    return part(ApiKey.OFFSET_FETCH, 8, "OffsetFetchRequestGroup", group_id=name, topics=asked)


def _fetched(request: AnyRequest) -> Any:
    """Every group with the topics that are left of it; the first with an error, all of them for None."""
    told = []
    for at, group in enumerate(request.body.groups):
        names = ["seen", "hidden"] if group.topics is None else [topic.name for topic in group.topics]
        topics = [OffsetFetchResponseTopics(name) for name in names]
        error_code = 16 if at == 0 else 0
        told.append(OffsetFetchResponseGroup(group.group_id, topics, error_code))
    return request.answer(groups=told)


def test_offsets_of_many_groups_are_told_as_far_as_each_may_be_seen() -> None:
    fetcher = Guarded(
        *(may(DESCRIBE, GROUP, name) for name in "abc"), may(DESCRIBE, TOPIC, "seen"), answers=_fetched
    )
    groups = [_group("x", None), _group("a", None), _group("b", None), _group("c", "hidden", "seen")]
    answer = fetcher.ask(ApiKey.OFFSET_FETCH, 8, groups=groups, require_stable=False)
    told = {group.group_id: group for group in answer.groups}
    assert list(told) == ["a", "b", "c", "x"]
    assert [told[name].error_code for name in "abcx"] == [16, 0, 0, ErrorCode.GROUP_AUTHORIZATION_FAILED]
    assert [topic.name for topic in told["b"].topics] == ["seen"]
    assert [topic.name for topic in told["c"].topics] == ["seen", "hidden"]
    assert [partition._asdict() for partition in told["c"].topics[1].partitions] == [
        {
            "partition_index": index,
            "committed_offset": -1,
            "committed_leader_epoch": -1,
            "metadata": "",
            "error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        }
        for index in (0, 1)
    ]


def test_where_nothing_is_allowed_the_handler_is_not_asked() -> None:
    nobody = Guarded()
    answer = nobody.ask(ApiKey.OFFSET_FETCH, 8, groups=[_group("a", "seen")], require_stable=False)
    assert codes(answer.groups) == [ErrorCode.GROUP_AUTHORIZATION_FAILED]
    answer = nobody.ask(ApiKey.DESCRIBE_GROUPS, 0, groups=["a", "b"])
    assert codes(answer.groups) == [ErrorCode.GROUP_AUTHORIZATION_FAILED] * 2
    topics = [part(ApiKey.DELETE_TOPICS, 6, "DeleteTopicState", name="seen", topic_id=None)]
    answer = nobody.ask(ApiKey.DELETE_TOPICS, 6, topics=topics, timeout_ms=1)
    assert codes(answer.responses) == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    assert nobody.handled == []


def test_offsets_are_deleted_by_the_handler_even_of_no_topic() -> None:
    """Whether there is such a group is said in any case."""
    partition = part(
        ApiKey.OFFSET_DELETE, 0, "OffsetDeleteRequestTopic", "OffsetDeleteRequestPartition", partition_index=0
    )
    topic = part(ApiKey.OFFSET_DELETE, 0, "OffsetDeleteRequestTopic", name="hidden", partitions=[partition])
    deleter = Guarded(may(DELETE, GROUP, "g"), answers=lambda request: request.answer(error_code=69))
    answer = deleter.ask(ApiKey.OFFSET_DELETE, 0, group_id="g", topics=[topic])
    assert (answer.error_code, answer.topics) == (69, ())
    assert [body.topics for body in deleter.handled] == [[]]


# CreateTopics, DeleteTopics


def _created(request: AnyRequest) -> Any:
    shown = CreatableTopicConfigs(name="retention.ms")
    return request.answer(
        topics=[
            CreatableTopicResult(name=topic.name, num_partitions=3, replication_factor=1, configs=[shown])
            for topic in request.body.topics
        ]
    )


@pytest.mark.parametrize("names", [2, 100, 1_000])
def test_a_topic_that_is_named_twice_is_the_handlers_whose_answer_is_an_error_for_both(names: int) -> None:
    creator = Guarded(answers=lambda request: request.answer())
    wanted = ["t0", *(f"t{number}" for number in range(names - 1))]
    topics = [part(ApiKey.CREATE_TOPICS, 4, "CreatableTopic", name=name) for name in wanted]
    creator.ask(ApiKey.CREATE_TOPICS, 4, topics=topics, timeout_ms=1, validate_only=False)
    assert [topic.name for body in creator.handled for topic in body.topics] == ["t0", "t0"]


def test_configs_of_a_new_topic_are_not_told_without_the_right_to_see_them() -> None:
    creator = Guarded(
        may(CREATE, TOPIC, "a"),
        may(CREATE, TOPIC, "b"),
        may(Operation.DESCRIBE_CONFIGS, TOPIC, "a"),
        answers=_created,
    )
    topics = [part(ApiKey.CREATE_TOPICS, 5, "CreatableTopic", name=name) for name in "ab"]
    told, hidden = creator.ask(
        ApiKey.CREATE_TOPICS, 5, topics=topics, timeout_ms=1, validate_only=False
    ).topics
    assert (told.num_partitions, told.replication_factor, len(told.configs)) == (3, 1, 1)
    assert not told.topic_config_error_code
    assert (hidden.num_partitions, hidden.replication_factor, hidden.configs) == (-1, -1, [])
    assert hidden.topic_config_error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize("version", [5, 6])
@pytest.mark.parametrize(
    ("rights", "to_handler"),
    [
        ([], []),
        ([may(DESCRIBE, TOPIC, "missing")], ["missing"]),
        ([may(DESCRIBE, TOPIC, "seen")], []),
        ([may(DELETE, TOPIC, "seen")], ["seen"]),
        ([may(DELETE, CLUSTER, CLUSTER_NAME)], ["seen", "hidden", "missing"]),
    ],
)
def test_who_may_delete_which_topic_and_who_is_told_that_there_is_none(
    version: int, rights: list[Acl], to_handler: list[str]
) -> None:
    deleter = Guarded(*rights)
    names = ["seen", "hidden", "missing"]
    if version < 6:
        deleter.ask(ApiKey.DELETE_TOPICS, version, topic_names=names, timeout_ms=1)
        handled = [name for body in deleter.handled for name in body.topic_names]
    else:
        topics = [
            part(ApiKey.DELETE_TOPICS, version, "DeleteTopicState", name=name, topic_id=None)
            for name in names
        ]
        deleter.ask(ApiKey.DELETE_TOPICS, version, topics=topics, timeout_ms=1)
        handled = [topic.name for body in deleter.handled for topic in body.topics]
    assert handled == to_handler


def test_a_topic_deleted_by_an_id_that_nobody_has_is_the_handlers() -> None:
    deleter = Guarded()
    topics = [part(ApiKey.DELETE_TOPICS, 6, "DeleteTopicState", name=None, topic_id=UNKNOWN_ID)]
    deleter.ask(ApiKey.DELETE_TOPICS, 6, topics=topics, timeout_ms=1)
    assert [topic.topic_id for body in deleter.handled for topic in body.topics] == [UNKNOWN_ID]


# configs, whole requests, groups


@pytest.mark.parametrize(
    ("resource_type", "name", "right"),
    [
        (2, "seen", may(Operation.DESCRIBE_CONFIGS, TOPIC, "seen")),
        (32, "g", may(Operation.DESCRIBE_CONFIGS, GROUP, "g")),
        (4, "1", may(Operation.DESCRIBE_CONFIGS, CLUSTER, CLUSTER_NAME)),
    ],
)
def test_configs_ask_for_the_right_of_their_kind(resource_type: int, name: str, right: Acl) -> None:
    def ask(*rights: Acl) -> int:
        asked = Guarded(*rights)
        resource = part(
            ApiKey.DESCRIBE_CONFIGS,
            1,
            "DescribeConfigsResource",
            resource_type=resource_type,
            resource_name=name,
            configuration_keys=None,
        )
        asked.ask(ApiKey.DESCRIBE_CONFIGS, 1, resources=[resource], include_synonyms=False)
        return len(asked.handled)

    assert ask(right) == 1
    assert ask(right._replace(name="other")) == 0
    others = {TOPIC, GROUP, CLUSTER} - {right.resource_type}
    assert ask(*(right._replace(resource_type=other) for other in others)) == 0


def test_a_group_without_a_name_is_asked_for_as_such() -> None:
    leaver = Guarded(may(READ, GROUP, "g"))
    leaver.ask(ApiKey.LEAVE_GROUP, 2, group_id="g", member_id="m")
    with pytest.raises(KafkaError) as caught:
        leaver.ask(ApiKey.LEAVE_GROUP, 2, group_id="", member_id="m")
    assert caught.value.code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert len(leaver.handled) == 1


# the quick way of requests that come most


class _Peer:
    readable: Any = None


def _is_open(gate: Gate, peer: _Peer, key: ApiKey, group_id: str, *topics: Any) -> bool:
    asked = [
        SimpleNamespace(name=topic, topic_id=None)
        if isinstance(topic, str)
        else SimpleNamespace(name="", topic_id=topic)
        for topic in topics
    ]
    body = SimpleNamespace(group_id=group_id, topics=asked)
    return gate.is_open(key, body, peer, ALICE, _Topics())  # type: ignore[arg-type]


def test_the_quick_way_lets_through_what_is_allowed_whole() -> None:
    gate, peer = Gate(Authorizer([may(READ, GROUP, "g"), may(READ, TOPIC, "seen")])), _Peer()
    for _ in range(2):
        assert _is_open(gate, peer, ApiKey.HEARTBEAT, "g", "hidden"), "a heartbeat names no topics"
        assert not _is_open(gate, peer, ApiKey.HEARTBEAT, "other")
        assert _is_open(gate, peer, ApiKey.OFFSET_COMMIT, "g", "seen", SEEN_ID, UNKNOWN_ID)
        assert not _is_open(gate, peer, ApiKey.OFFSET_COMMIT, "g", "seen", "hidden")
        assert not _is_open(gate, peer, ApiKey.OFFSET_COMMIT, "g", HIDDEN_ID)


async def test_what_was_allowed_is_not_asked_again_until_the_rules_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    authorizer = Authorizer([may(READ, GROUP, "g"), may(READ, TOPIC, "seen")])
    gate, peer = Gate(authorizer), _Peer()
    assert _is_open(gate, peer, ApiKey.OFFSET_COMMIT, "g", "seen")
    known = peer.readable

    def asked(*_about: Any) -> bool:
        raise AssertionError("it is known")

    with monkeypatch.context() as patch:
        patch.setattr(authorizer, "allows", asked)
        assert _is_open(gate, peer, ApiKey.OFFSET_COMMIT, "g", "seen")
    assert peer.readable is known
    await authorizer.delete(authorizer.find(AclBindingFilter(resource_type=TOPIC)))
    assert not _is_open(gate, peer, ApiKey.OFFSET_COMMIT, "g", "seen")
    assert peer.readable is not known
    assert _is_open(gate, peer, ApiKey.HEARTBEAT, "g")


def _deleted(request: AnyRequest) -> Any:
    names = request.body.groups_names
    return request.answer(results=[SimpleNamespace(group_id=name, error_code=0) for name in names])


@pytest.mark.parametrize(
    ("names", "handled", "refused"),
    [
        (["a", "b"], ["a", "b"], []),
        (["a", "x"], ["a"], ["x"]),
        (["a", "a", "b"], ["a", "a", "b"], []),
        (["x", "x"], [], ["x"]),
        (["x", "a", "x", "a", "y"], ["a", "a"], ["x", "y"]),
    ],
)
def test_a_group_that_may_not_be_deleted_is_refused_once_however_often_it_is_named(
    names: list[str], handled: list[str], refused: list[str]
) -> None:
    deleter = Guarded(*(may(DELETE, GROUP, name) for name in "ab"), answers=_deleted)
    results = deleter.ask(ApiKey.DELETE_GROUPS, 2, groups_names=names).results
    assert [name for body in deleter.handled for name in body.groups_names] == handled
    told = [(result.group_id, int(result.error_code)) for result in results]
    assert told[: len(handled)] == [(name, 0) for name in handled]
    assert sorted(told[len(handled) :]) == [(name, ErrorCode.GROUP_AUTHORIZATION_FAILED) for name in refused]
