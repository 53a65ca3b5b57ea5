"""CreateTopics (19), v2-7: topics with partitions and configs, or a check of them (KIP-464, KIP-525)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from ...protocol import ErrorCode, KafkaError
from .._config_view import topic_rows
from .._requests import Request
from .._stopwatch import clock
from .._topics import TopicPlan
from .._validation import SettingsError

if TYPE_CHECKING:
    from .._node import Node

#: Most partitions one request may ask for, as in Apache Kafka.
MAX_PARTITIONS_IN_REQUEST = 10_000

_DEFAULT = -1
_CONFIGS_FROM = 5


async def handle(node: Node, request: Request) -> Any:
    wanted = request.body.topics
    repeated = {name for name, times in Counter(item.name for item in wanted).items() if times > 1}
    total = sum(max(item.num_partitions, len(item.assignments)) for item in wanted)
    answers = []
    for item in _first_of_each(wanted):
        try:
            if item.name in repeated:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"topic {item.name!r} is in the request twice")
            if total > MAX_PARTITIONS_IN_REQUEST:
                raise KafkaError(
                    ErrorCode.POLICY_VIOLATION,
                    f"{total} partitions in one request: at most {MAX_PARTITIONS_IN_REQUEST} are allowed",
                )
            answers.append(_created(node, request, item))
        except KafkaError as error:
            answers.append(_refused(request, item, error))
    return request.answer(topics=answers)


def _first_of_each(wanted: list[Any]) -> list[Any]:
    return list({item.name: item for item in reversed(wanted)}.values())[::-1]


def _created(node: Node, request: Request, item: Any) -> Any:
    """What is wrong is told in Apache Kafka's order: the name, configs, replicas, partitions."""
    node.topics.check_free(item.name)
    configs = _configs(item)
    try:
        node.topics.check_configs(configs)
    except SettingsError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None
    plan = node.topics.plan(item.name, _partition_count(node, item), configs)
    if not request.body.validate_only:
        node.throttle.mutate(request, plan.partitions, clock())
        node.topics.carry_out(plan)
    return _answer(node, request, plan)


def _partition_count(node: Node, item: Any) -> int:
    if item.assignments:
        _check_assignments(node, item)
        return len(item.assignments)
    check_replication_factor(item.replication_factor)
    if item.num_partitions < _DEFAULT or item.num_partitions == 0:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"{item.num_partitions} partitions: ask for 1 or more, or -1 for the default",
        )
    count: int = item.num_partitions
    return node.settings.num_partitions if count == _DEFAULT else count


def check_replication_factor(factor: int) -> None:
    """One broker holds one replica."""
    if factor not in (_DEFAULT, 1):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"replication factor {factor}: there is one broker, ask for 1 or -1",
        )


def _check_assignments(node: Node, item: Any) -> None:
    if item.replication_factor != _DEFAULT or item.num_partitions != _DEFAULT:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "with assignments, number of partitions and replication factor must be -1",
        )
    if sorted(one.partition_index for one in item.assignments) != list(range(len(item.assignments))):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "assigned partitions must be 0, 1, 2 and so on"
        )
    for one in item.assignments:
        if list(one.broker_ids) != [node.node_id]:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"partition {one.partition_index} is assigned to brokers {list(one.broker_ids)}: "
                f"{node.node_id} is the only one",
            )


def _configs(item: Any) -> dict[str, str]:
    nulls = [config.name for config in item.configs if config.value is None]
    if nulls:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"the topic configs {', '.join(nulls)} have no value")
    return {config.name: config.value for config in item.configs}


def _answer(node: Node, request: Request, plan: TopicPlan) -> Any:
    return request.part("CreatableTopicResult")(
        name=plan.name,
        topic_id=plan.id,
        error_code=ErrorCode.NONE,
        error_message=None,
        num_partitions=plan.partitions,
        replication_factor=1,
        configs=_shown_configs(node, request, plan) if request.version >= _CONFIGS_FROM else None,
    )


def _shown_configs(node: Node, request: Request, plan: TopicPlan) -> list[Any]:
    make = request.part("CreatableTopicResult", "CreatableTopicConfigs")
    return [
        make(name=row.name, value=row.value, read_only=False, config_source=row.source, is_sensitive=False)
        for row in topic_rows(node, plan.configs)
    ]


def _refused(request: Request, item: Any, error: KafkaError) -> Any:
    return request.part("CreatableTopicResult")(
        name=item.name, error_code=error.code, error_message=error.message, configs=[]
    )
