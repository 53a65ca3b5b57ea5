"""The gate: every request goes through it on its way to a handler, where there are access rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ...protocol import ApiKey, ErrorCode, KafkaError, RequestContext
from .._requests import Handler, Request
from .._topics import Topics
from ._access import ACCESS, Access
from ._acls import Operation, ResourceType
from ._authorizer import Authorizer
from ._data_guards import fetch, init_producer_id, leader_epoch, produce
from ._group_guards import describe_groups, find_coordinator, list_groups, offset_fetch
from ._guard import Asked, Guard, configs, groups, topics, whole
from ._metadata_guards import describe_cluster, metadata
from ._topic_guards import create_topics, delete_topics

if TYPE_CHECKING:
    from .._node import Node
    from ..network._peer import Peer


# The rights of the requests that come most, as in ACCESS: what is readable is looked up by a peer's own way.
_READ, _GROUP, _TOPIC, _COMMIT = Operation.READ, ResourceType.GROUP, ResourceType.TOPIC, ApiKey.OFFSET_COMMIT


class Gate:
    """Asks ``authorizer`` what the sender of a request may do, by the guard of its API."""

    def __init__(self, authorizer: Authorizer) -> None:
        self.authorizer = authorizer

    async def admit(self, handler: Handler, node: Node, request: Request) -> Any:
        """The answer to a request as far as it is allowed. Raises KafkaError if nothing of it is."""
        if request.api.key in OPEN_TO_ALL:
            return await handler(node, request)
        guard = GUARDS.get(request.api.key)
        if guard is None:
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, f"nobody may use {request.api.name}")
        return await guard(Asked(self.authorizer, node, request, handler))

    def is_open(
        self, api_key: ApiKey, body: Any, peer: Peer, context: RequestContext, topics: Topics
    ) -> bool:
        """Whether all of a Heartbeat, JoinGroup, SyncGroup or OffsetCommit is allowed; quick.

        What is not allowed all has to be answered through ``admit``.
        """
        known = peer.readable
        if known is None or known[0] is not self.authorizer.remembered:
            known = peer.readable = self.authorizer.readable(context)
        _, groups, readable = known
        group_id = body.group_id
        if not (groups.get(group_id) or self.authorizer.allows(context, _READ, _GROUP, group_id)):
            return False
        if api_key is _COMMIT:
            for topic in body.topics:
                name = topic.name or topics.name_of(topic.topic_id)
                if name is not None and not (
                    readable.get(name) or self.authorizer.allows(context, _READ, _TOPIC, name)
                ):
                    return False
        return True


def _only(key: ApiKey) -> Access:
    (access,) = ACCESS[key]
    return access


_GROUP_ID: Final = "group_id"
_COMMIT_GROUP, _COMMIT_TOPIC = ACCESS[ApiKey.OFFSET_COMMIT]
_REMOVE_GROUP, _REMOVE_TOPIC = ACCESS[ApiKey.OFFSET_DELETE]

#: What needs no right: it is how one says who one is.
OPEN_TO_ALL: Final = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})

#: The guard of each API; the same ones that :data:`ACCESS` has.
GUARDS: Final[dict[ApiKey, Guard]] = {
    ApiKey.PRODUCE: produce,
    ApiKey.FETCH: fetch,
    ApiKey.LIST_OFFSETS: topics(_only(ApiKey.LIST_OFFSETS)),
    ApiKey.METADATA: metadata,
    ApiKey.OFFSET_COMMIT: whole(_COMMIT_GROUP, field=_GROUP_ID, then=topics(_COMMIT_TOPIC)),
    ApiKey.OFFSET_FETCH: offset_fetch,
    ApiKey.FIND_COORDINATOR: find_coordinator,
    **{
        key: whole(_only(key), field=_GROUP_ID)
        for key in (
            ApiKey.JOIN_GROUP,
            ApiKey.HEARTBEAT,
            ApiKey.LEAVE_GROUP,
            ApiKey.SYNC_GROUP,
            ApiKey.DESCRIBE_GROUP_HISTORY,
        )
    },
    ApiKey.DESCRIBE_GROUPS: describe_groups,
    ApiKey.LIST_GROUPS: list_groups,
    ApiKey.CREATE_TOPICS: create_topics,
    ApiKey.DELETE_TOPICS: delete_topics,
    ApiKey.DELETE_RECORDS: topics(_only(ApiKey.DELETE_RECORDS)),
    ApiKey.INIT_PRODUCER_ID: init_producer_id,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: leader_epoch,
    **{
        key: whole(_only(key))
        for key in (
            ApiKey.DESCRIBE_ACLS,
            ApiKey.CREATE_ACLS,
            ApiKey.DELETE_ACLS,
            ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
            ApiKey.DESCRIBE_CLIENT_QUOTAS,
            ApiKey.ALTER_CLIENT_QUOTAS,
        )
    },
    **{
        key: configs(*ACCESS[key])
        for key in (ApiKey.DESCRIBE_CONFIGS, ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS)
    },
    ApiKey.CREATE_PARTITIONS: topics(_only(ApiKey.CREATE_PARTITIONS)),
    ApiKey.DELETE_GROUPS: groups(_only(ApiKey.DELETE_GROUPS), refused_once=True),
    ApiKey.OFFSET_DELETE: whole(_REMOVE_GROUP, field=_GROUP_ID, then=topics(_REMOVE_TOPIC, always=True)),
    ApiKey.DESCRIBE_CLUSTER: describe_cluster,
}
