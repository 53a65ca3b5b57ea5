"""What an assignor is told of a member."""

from __future__ import annotations

import pytest

from kohort.assignors import Member, TopicInfo, in_member_order, load_assignor
from kohort.assignors.base import member_key
from kohort.protocol import Subscription, TopicPartition

UUID = "bc4c0ffb-ff01-435d-9b13-1cd8ab15224c"


def test_a_member_says_what_its_subscription_says() -> None:
    owned = (TopicPartition("t", 1),)
    member = Member("m", Subscription(("t",), b"data", owned, 7, "r1"))
    assert (member.topics, member.user_data, member.owned) == (("t",), b"data", owned)
    assert (member.generation, member.rack) == (7, "r1")


@pytest.mark.parametrize(
    ("member_id", "instance_id", "client_id"),
    [
        (f"billing-{UUID}", None, "billing"),
        (f"a-b-{UUID}-{UUID}", None, f"a-b-{UUID}"),
        (f"pod-1-{UUID}", "pod-1", None),
        ("billing-1", None, None),
        (UUID, None, None),
    ],
)
def test_the_client_id_is_what_stands_before_a_dynamic_members_uuid(
    member_id: str, instance_id: str | None, client_id: str | None
) -> None:
    assert Member(member_id, Subscription(()), instance_id).client_id == client_id


def test_slack_and_racks_of_the_sticky_ones_come_with_the_name() -> None:
    topics = {"t": TopicInfo(8)}
    owned = tuple(TopicPartition("t", number) for number in range(8))
    members = {
        "a": Member("a", Subscription(("t",), None, owned[:5], 1)),
        "b": Member("b", Subscription(("t",), None, owned[5:], 1)),
    }
    for spec, kept in (("cooperative-sticky", 4), ("cooperative-sticky?slack=1,racks=after moves", 5)):
        assert len(load_assignor(spec).assign(topics, members)["a"]) == kept


@pytest.mark.parametrize("ids", [["c2", "c10", "c1"], ["c\ue000", "c\U0001f600", "c"], ["b", "a", "\xe4"]])
@pytest.mark.parametrize("statics", [[None, None, None], [None, "z", "\U0001f600"], ["", None, None]])
def test_members_are_in_the_order_of_their_keys(ids: list[str], statics: list[str | None]) -> None:
    members = [Member(one, Subscription(()), static) for one, static in zip(ids, statics, strict=True)]
    by_key = sorted(members, key=lambda member: member_key(member.member_id, member.instance_id))
    assert in_member_order(members) == by_key
