"""Nulls in requests: which are refused, at any depth and version."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.broker._nulls import null_in
from kohort.protocol import ApiKey, request_class


def body(key: ApiKey, version: int, /, **fields: Any) -> Any:
    return request_class(key)(version=version, **fields)


def commit(version: int, *, group_id: str | None = "g", metadata: str | None = "") -> Any:
    key = ApiKey.OFFSET_COMMIT
    topic = request_class(key).OffsetCommitRequestTopic
    partition = topic.OffsetCommitRequestPartition(version=version, committed_metadata=metadata)
    topics = [topic(version=version, name="t", partitions=[partition])]
    return body(key, version, group_id=group_id, member_id="", topics=topics)


def test_nulls_are_found_at_any_depth() -> None:
    key = ApiKey.LIST_OFFSETS
    topic = request_class(key).ListOffsetsTopic
    good = topic(version=5, name="a", partitions=[])
    bad = topic(version=5, name="a", partitions=None)
    assert null_in(key, 5, body(key, 5, topics=[good, bad])) == "topics[1].partitions"
    assert null_in(key, 5, body(key, 5, topics=[good])) is None


def test_nulls_in_a_list_of_names_are_found() -> None:
    key = ApiKey.DELETE_GROUPS
    assert null_in(key, 2, body(key, 2, groups_names=["a", None])) == "groups_names[1]"
    assert null_in(key, 2, body(key, 2, groups_names=["a", ""])) is None


@pytest.mark.parametrize(("version", "found"), [(1, "topics"), (2, None), (7, None)])
def test_a_field_that_became_nullable_may_be_null_from_then_on(version: int, found: str | None) -> None:
    key = ApiKey.OFFSET_FETCH
    assert null_in(key, version, body(key, version, group_id="g", topics=None)) == found


@pytest.mark.parametrize("version", [2, 7, 9])
def test_only_what_may_not_be_null_is_found(version: int) -> None:
    assert null_in(ApiKey.OFFSET_COMMIT, version, commit(version, metadata=None)) is None
    assert null_in(ApiKey.OFFSET_COMMIT, version, commit(version, group_id=None)) == "group_id"


def test_a_topic_id_of_zeros_is_no_null() -> None:
    key = ApiKey.OFFSET_FETCH
    group_class = request_class(key).OffsetFetchRequestGroup
    topic = group_class.OffsetFetchRequestTopics(version=10, topic_id=None, partition_indexes=[0])
    group = group_class(version=10, group_id="g", member_id=None, topics=[topic])
    assert null_in(key, 10, body(key, 10, groups=[group])) is None
