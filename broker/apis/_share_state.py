"""What the APIs of the share coordinator share: they are about partitions of topics, by id, for one group."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from ...coordinator.share_groups import SHARE_VERSION
from ...protocol import ApiKey
from ..authorizer import Operation, ResourceType, right
from ..coordinators.share_state import answer_request
from ..node import Node
from ._api import AnswerT, BodyT, Request, ServedApi
from ._errors import Level, in_elements, same_fields
from ._guards import whole


async def answer_share_state(node: Node, request: Request[Any], response: type[AnswerT]) -> AnswerT:
    """Answer a request of the share coordinator's APIs by its ``response``."""
    if not request.body.group_id:
        # as Apache Kafka does: there is no error for all of it, and nothing for a partition
        return response()
    answer: AnswerT = await answer_request(node, request.body)
    return answer


def serve_share_state(
    key: ApiKey,
    handler: Callable[[Node, Request[BodyT]], Awaitable[AnswerT]],
    *,
    versions: tuple[int, int],
    reads_only: bool,
) -> ServedApi[BodyT, AnswerT]:
    """An API of the share coordinator, which group coordinators and leaders of partitions ask."""
    return ServedApi(
        key=key,
        versions=versions,
        handler=handler,
        guard=whole(right(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, "all of it")),
        errors=in_elements(
            Level("topics", "results", same_fields("topic_id")),
            Level("partitions", "partitions", same_fields("partition")),
        ),
        feature=SHARE_VERSION,
        reads_only=reads_only,
        # what a leader has sent is written, even if its connection is gone by then
        carried_out=not reads_only,
    )
