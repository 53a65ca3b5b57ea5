"""One file for each API (the group APIs share one: they are the coordinator's)."""

from __future__ import annotations

from collections.abc import Mapping

from ...protocol import ApiKey
from .._requests import Handler
from . import (
    alter_client_quotas,
    alter_configs,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_records,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    fetch,
    find_coordinator,
    group_history,
    groups,
    init_producer_id,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    produce,
    sasl,
    scram_credentials,
)

#: What is offered, besides ApiVersions.
HANDLERS: Mapping[ApiKey, Handler] = {
    ApiKey.PRODUCE: produce.handle,
    ApiKey.FETCH: fetch.handle,
    ApiKey.LIST_OFFSETS: list_offsets.handle,
    ApiKey.METADATA: metadata.handle,
    ApiKey.FIND_COORDINATOR: find_coordinator.handle,
    ApiKey.CREATE_TOPICS: create_topics.handle,
    ApiKey.DELETE_TOPICS: delete_topics.handle,
    ApiKey.DELETE_RECORDS: delete_records.handle,
    ApiKey.INIT_PRODUCER_ID: init_producer_id.handle,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: offset_for_leader_epoch.handle,
    ApiKey.DESCRIBE_ACLS: describe_acls.handle,
    ApiKey.CREATE_ACLS: create_acls.handle,
    ApiKey.DELETE_ACLS: delete_acls.handle,
    ApiKey.DESCRIBE_CONFIGS: describe_configs.handle,
    ApiKey.ALTER_CONFIGS: alter_configs.handle,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: alter_configs.handle,
    ApiKey.CREATE_PARTITIONS: create_partitions.handle,
    ApiKey.SASL_HANDSHAKE: sasl.handle,
    ApiKey.SASL_AUTHENTICATE: sasl.handle,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: scram_credentials.describe,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: scram_credentials.alter,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: describe_client_quotas.handle,
    ApiKey.ALTER_CLIENT_QUOTAS: alter_client_quotas.handle,
    ApiKey.DESCRIBE_CLUSTER: describe_cluster.handle,
    ApiKey.DESCRIBE_GROUP_HISTORY: group_history.handle,
    **dict.fromkeys(groups.GROUP_APIS, groups.handle),
}
