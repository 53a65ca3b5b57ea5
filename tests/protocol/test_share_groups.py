"""The key of a share partition."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.protocol import SharePartitionKey

ID = UUID("0198f1a0-37f1-7d6c-8f3a-0d0c0b0a0908")


def test_a_key_is_written_as_apache_kafka_does() -> None:
    assert str(SharePartitionKey("orders", ID, 7)) == "orders:AZjxoDfxfWyPOg0MCwoJCA:7"


def test_the_group_may_hold_colons() -> None:
    assert SharePartitionKey.parse("a:b:c:AZjxoDfxfWyPOg0MCwoJCA:0") == SharePartitionKey("a:b:c", ID, 0)


@given(st.text(min_size=1).filter(str.strip), st.uuids(), st.integers(0, 2**31 - 1))
def test_every_key_is_read_as_it_was_written(group: str, topic_id: UUID, partition: int) -> None:
    key = SharePartitionKey(group, topic_id, partition)
    assert SharePartitionKey.parse(str(key)) == key


@pytest.mark.parametrize(
    "text",
    [
        "",
        "orders",
        "orders:AZjxoDfxfWyPOg0MCwoJCA",
        ":AZjxoDfxfWyPOg0MCwoJCA:0",
        "orders:AZjxoDfxfWyPOg0MCwoJCA:",
        "orders:AZjxoDfxfWyPOg0MCwoJCA:-1",
        "orders:AZjxoDfxfWyPOg0MCwoJCA:one",
        "orders:AZjxoDfxfWyPOg0MCwo:0",
        "orders:Ä:0",
        "orders:AZjxoDfxfWyPOg0MCwoJCAAA:0",
    ],
)
def test_another_form_is_refused_with_what_is_wrong(text: str) -> None:
    with pytest.raises(ValueError, match="is not"):
        SharePartitionKey.parse(text)
