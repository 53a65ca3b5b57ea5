"""Why balance is not better: every limit is a proof that can be checked by itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kohort.assignors import BalanceLimit, Member, StickyAssignor, TopicInfo, explain_balance
from kohort.protocol import Subscription


def members(**wanted: str) -> dict[str, Member]:
    return {name: Member(name, Subscription(tuple(topics.split()))) for name, topics in wanted.items()}


def topics(**counts: int) -> dict[str, TopicInfo]:
    return {name: TopicInfo(count) for name, count in counts.items()}


def test_a_group_whose_members_all_want_the_same_has_one_limit() -> None:
    (limit,) = explain_balance(topics(t=5, u=2), members(a="t u", b="t u"))
    assert limit == BalanceLimit(("a", "b"), ("t", "u"), 7, 4, 3)
    assert str(limit) == (
        "2 members (a, b) share the 7 partitions of 2 topics (t, u), "
        "to which no member with fewer subscribes: 3 or 4 each"
    )


def test_members_that_share_a_big_topic_are_named() -> None:
    limits = explain_balance(topics(big=54, small=3), members(a="big", b="big small", c="small", idle=""))
    assert limits == [
        BalanceLimit(("a", "b"), ("big",), 54, 27, 27),
        BalanceLimit(("c",), ("small",), 3, 3, 3),
    ]
    assert str(limits[0]).endswith("topic big, to which no member with fewer subscribes: 27 each")
    assert (
        str(limits[1])
        == "member c has the 3 partitions of topic small, to which no member with fewer subscribes: 3"
    )


def test_of_many_members_a_few_are_named() -> None:
    (limit,) = explain_balance(topics(t=40), members(**{f"m{i}": "t" for i in range(8)}))
    assert str(limit).startswith("8 members (m0, m1, m2, m3, m4 and 3 more) share")


def test_without_partitions_there_are_no_limits() -> None:
    assert explain_balance({}, members(a="t")) == []
    assert explain_balance(topics(t=3), {}) == []


_SOME = st.sets(st.sampled_from("stuvw"), max_size=3)


@given(st.lists(st.integers(0, 12), min_size=5, max_size=5), st.lists(_SOME, max_size=9))
def test_every_limit_proves_itself(counts: list[int], wants: list[set[str]]) -> None:
    known = topics(**dict(zip("stuvw", counts, strict=True)))
    group = members(**{f"m{i}": " ".join(sorted(mine)) for i, mine in enumerate(wants)})
    limits = explain_balance(known, group)
    loads = {name: len(given) for name, given in StickyAssignor().assign(known, group).items()}
    before: set[str] = set()
    for limit in limits:
        before |= set(limit.members)
        # all who want these topics are among the members up to here, so these cannot be given to others
        assert {name for name, one in group.items() if set(one.topics) & set(limit.topics)} <= before
        assert limit.partitions == sum(known[topic].partition_count for topic in limit.topics)
        assert limit.high == -(-limit.partitions // len(limit.members))
        assert limit.low == limit.partitions // len(limit.members)
        assert sorted(loads[name] for name in limit.members) == sorted(
            limit.low + (i < limit.partitions % len(limit.members)) for i in range(len(limit.members))
        )
    assert [limit.high for limit in limits] == sorted((limit.high for limit in limits), reverse=True)
    active = {name for name, one in group.items() if any(known[t].partition_count for t in one.topics)}
    assert sorted(name for limit in limits for name in limit.members) == sorted(active)
