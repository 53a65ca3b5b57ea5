"""CreateTopics (19), v2-7: creates topics with partitions and configs, or only validates (KIP-464,
KIP-525).
"""

from __future__ import annotations

from collections import Counter

from ...cluster.controller import NewTopic
from ...protocol import ApiKey, ErrorCode, KafkaError, PreparedArray
from ...protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ...settings import SettingsError
from ..authorizer import Access, Operation, ResourceType, right
from ..event_loop.stopwatch import clock
from ..event_loop.time_slices import in_slices
from ..node import Node
from ._api import AnyRequest, Guard, Request, ServedApi, always, make_result, refusal_error
from ._config_view import topic_rows
from ._errors import TOPICS_BY_NAME, in_elements
from ._guards import each

#: Most partitions one request may ask for, as in Apache Kafka.
MAX_PARTITIONS_IN_REQUEST = 10_000

#: Stands for the broker's default, of partitions and of replicas (KIP-464).
_DEFAULT = -1
#: Version from which the response has the topic's configs (KIP-525).
_CONFIGS_FROM = 5


async def handle(node: Node, request: Request[CreateTopicsRequest]) -> CreateTopicsResponse:
    """Check all topics; then create the valid ones at once."""
    times = Counter(item.name for item in request.body.topics)
    wanted = list({item.name: item for item in reversed(request.body.topics)}.values())[::-1]
    total = sum(_asked_for(node, item) for item in wanted if times[item.name] == 1)
    refused: dict[str, KafkaError] = {}
    plans: list[NewTopic] = []
    async for item in in_slices(wanted):
        try:
            if times[item.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"topic {item.name!r} is in the request twice")
            check_total(total)
            plans.append(_plan_topic(node, item))
        except KafkaError as error:
            refused[item.name] = error
    refused.update(await create_all(node, request, plans, validate_only=request.body.validate_only))
    created = {plan.name: plan for plan in plans if plan.name not in refused}
    answers = []
    # configs in the response, made and encoded once for topics with the same ones: most requests have one
    # kind
    shown: dict[str, PreparedArray] = {}
    async for item in in_slices(wanted):
        if item.name in created:
            plan = created[item.name]
            kind = repr(sorted(plan.configs.items()))
            if kind not in shown and request.version >= _CONFIGS_FROM:
                shown[kind] = _shown_configs(node, plan)
            factor = len(plan.assignments[0]) if plan.assignments else plan.replication_factor
            made = {"topic_id": plan.id, "num_partitions": plan.partitions, "replication_factor": factor}
            answers.append(make_result(CreatableTopicResult, name=plan.name, configs=shown.get(kind), **made))
        else:
            answers.append(make_result(CreatableTopicResult, refused[item.name], name=item.name, configs=[]))
    return CreateTopicsResponse(topics=answers)


async def create_all(
    node: Node, request: AnyRequest, plans: list[NewTopic], *, validate_only: bool = False
) -> dict[str, KafkaError]:
    """Create the topics that can be created; return the errors of the others, by name."""
    refused = node.topics.refusals(plans)
    refused |= node.control.refused_topics([plan for plan in plans if plan.name not in refused])
    if validate_only:
        return refused
    ready = []
    for plan in plans:
        try:
            if plan.name not in refused:
                node.throttle.mutate(request, plan.partitions, clock())
                ready.append(plan)
        except KafkaError as error:
            refused[plan.name] = error
    try:
        if ready:
            refused |= await node.topics.carry_out(ready)
    except KafkaError as error:
        refused.update((plan.name, error) for plan in ready)
    return refused


def check_total(partitions: int) -> None:
    """Raise KafkaError POLICY_VIOLATION for more new partitions than one request may ask for."""
    if partitions > MAX_PARTITIONS_IN_REQUEST:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"{partitions} partitions in one request: at most {MAX_PARTITIONS_IN_REQUEST} are allowed",
        )


def _asked_for(node: Node, item: CreatableTopic) -> int:
    count = node.settings.num_partitions if item.num_partitions == _DEFAULT else item.num_partitions
    return len(item.assignments) or max(0, count)


def _plan_topic(node: Node, item: CreatableTopic) -> NewTopic:
    """Check a topic in Apache Kafka's order: the name, configs, replicas, partitions. Raises KafkaError."""
    node.topics.check_free(item.name)
    nulls = [config.name for config in item.configs if config.value is None]
    if nulls:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"the topic configs {', '.join(nulls)} have no value")
    try:
        configs = node.topics.check_configs({config.name: config.value or "" for config in item.configs})
    except SettingsError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None
    factor = item.replication_factor
    return NewTopic(
        item.name,
        partitions=_partition_count(node, item),
        replication_factor=node.settings.default_replication_factor if factor == _DEFAULT else factor,
        assignments=_chosen_replicas(item),
        configs=configs,
    )


def _chosen_replicas(item: CreatableTopic) -> list[list[int]] | None:
    """The replicas of each partition, if the client chose them; else None."""
    chosen = {one.partition_index: list(one.broker_ids) for one in item.assignments}
    return [chosen[index] for index in range(len(chosen))] or None


def _partition_count(node: Node, item: CreatableTopic) -> int:
    if item.assignments:
        _check_assignments(item)
        return len(item.assignments)
    if item.replication_factor < _DEFAULT or item.replication_factor == 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"replication factor {item.replication_factor}: ask for 1 or more, or -1 for the default",
        )
    if item.num_partitions < _DEFAULT or item.num_partitions == 0:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"{item.num_partitions} partitions: ask for 1 or more, or -1 for the default",
        )
    return _asked_for(node, item)


def _check_assignments(item: CreatableTopic) -> None:
    if item.replication_factor != _DEFAULT or item.num_partitions != _DEFAULT:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "with assignments, number of partitions and replication factor must be -1",
        )
    if sorted(one.partition_index for one in item.assignments) != list(range(len(item.assignments))):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "assigned partitions must be 0, 1, 2 and so on"
        )


def _shown_configs(node: Node, plan: NewTopic) -> PreparedArray:
    rows = topic_rows(node, plan.configs)
    return PreparedArray(
        [
            CreatableTopicConfigs(
                row.name, row.value, read_only=False, config_source=row.source, is_sensitive=False
            )
            for row in rows
        ]
    )


_CREATE_ANY_RIGHT = Access(
    Operation.CREATE,
    ResourceType.CLUSTER,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    "each topic, if the next right is missing",
)
_CREATE_RIGHT = right(Operation.CREATE, ResourceType.TOPIC, "each topic")
_CONFIGS_RIGHT = right(
    Operation.DESCRIBE_CONFIGS,
    ResourceType.TOPIC,
    "the configs in the answer; without it the topic is created and they are not told",
)


async def _guard(node: Node, request: Request[CreateTopicsRequest]) -> object:
    times = Counter(item.name for item in request.body.topics)
    cluster = request.shows(_CREATE_ANY_RIGHT)
    # a name that is in the request twice is an error in any case
    answer = await each(
        node, request, lambda item: None if cluster or times[item.name] > 1 else (_CREATE_RIGHT, item.name)
    )

    def shown(topic: CreatableTopicResult) -> CreatableTopicResult:
        if topic.error_code or request.shows(_CONFIGS_RIGHT, topic.name):
            return topic
        return topic._replace(
            topic_config_error_code=refusal_error(_CONFIGS_RIGHT).code,
            num_partitions=-1,
            replication_factor=-1,
            configs=[],
        )

    return answer._replace(topics=[shown(topic) async for topic in in_slices(answer.topics)])


API = ServedApi(
    key=ApiKey.CREATE_TOPICS,
    versions=(2, 7),
    handler=handle,
    guard=Guard((_CREATE_ANY_RIGHT, _CREATE_RIGHT, _CONFIGS_RIGHT), _guard),
    errors=in_elements(TOPICS_BY_NAME),
    carried_out=True,
    refused_over_quota_from=6,
    by_controller=always,
)
