"""The gate, which every request passes on its way to a handler if there are access rules."""

from __future__ import annotations

from typing import Any

from ...protocol import ApiKey, RequestContext
from ..authorizer import Authorizer, Operation, ResourceType
from ..clients.client_state import Peer
from ..metadata.topics import Topics
from ..node import Node
from ._api import AnyRequest

# The rights of the most frequent requests: the known decisions about READ of a peer are looked up first.
_READ, _GROUP, _TOPIC, _COMMIT = Operation.READ, ResourceType.GROUP, ResourceType.TOPIC, ApiKey.OFFSET_COMMIT


class Gate:
    """Passes requests to the guards of their APIs, with the rights that ``authorizer`` knows."""

    def __init__(self, authorizer: Authorizer) -> None:
        self.authorizer = authorizer

    async def admit(self, node: Node, request: AnyRequest) -> object:
        """The response to the allowed part of a request. Raises KafkaError if no part is allowed."""
        request.authorizer = self.authorizer
        return await request.api.guard.admit(node, request)

    def is_open(
        self, api_key: ApiKey, body: Any, peer: Peer, context: RequestContext, topics: Topics
    ) -> bool:
        """Return whether all of a request without a task is known to be allowed; if not, use ``admit``."""
        known = peer.readable
        if known is None or known[0] is not self.authorizer.remembered:
            known = peer.readable = self.authorizer.readable(context)
        _, groups, readable = known
        group_id = body.group_id
        if not (groups.get(group_id) or self.authorizer.allows(context, _READ, _GROUP, group_id)):
            return False
        if api_key is ApiKey.CONSUMER_GROUP_HEARTBEAT and body.subscribed_topic_names:
            return False
        if api_key is _COMMIT:
            for topic in body.topics:
                name = topic.name or topics.name_of(topic.topic_id)
                if name is not None and not (
                    readable.get(name) or self.authorizer.allows(context, _READ, _TOPIC, name)
                ):
                    return False
        return True
