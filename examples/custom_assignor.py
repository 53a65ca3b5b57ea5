"""An assignor of your own: the topics of a tenant ("acme.orders") are read by the members that serve it.

    python examples/custom_assignor.py

Members say whom they serve in their user data; topics of a tenant nobody serves are shared by everyone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kohort.assignors import Assignor, GroupAssignment, Member, TopicInfo, in_member_order
from kohort.protocol import Subscription, TopicPartition
from kohort.testing.assignors import check_assignor


class TenantAssignor(Assignor):
    name = "tenants"

    def __init__(self, *tenants: str) -> None:
        self.tenants = tenants

    def user_data(self, topics: Sequence[str]) -> bytes:  # noqa: ARG002
        return ",".join(self.tenants).encode()

    def assign(self, topics: Mapping[str, TopicInfo], members: Mapping[str, Member]) -> GroupAssignment:
        ordered = in_member_order(members.values())
        answer: GroupAssignment = {member.member_id: [] for member in ordered}
        for topic in sorted(topics):
            takers = [member for member in ordered if topic in member.topics]
            takers = [member for member in takers if serves(member, topic)] or takers
            for number in range(topics[topic].partition_count if takers else 0):
                least_loaded = min(takers, key=lambda member: len(answer[member.member_id]))
                answer[least_loaded.member_id].append(TopicPartition(topic, number))
        return answer


def serves(member: Member, topic: str) -> bool:
    tenant = topic.partition(".")[0].encode()
    return tenant in (member.subscription.user_data or b"").split(b",")


def main() -> None:
    topics = {"acme.orders": TopicInfo(4), "zeta.orders": TopicInfo(3), "common": TopicInfo(2)}
    tenants = {"m1": ["acme"], "m2": ["acme", "zeta"], "m3": []}
    members = {}
    for member_id, served in tenants.items():
        user_data = TenantAssignor(*served).user_data(sorted(topics))
        members[member_id] = Member(member_id, Subscription(tuple(topics), user_data))
    for member_id, given in TenantAssignor().assign(topics, members).items():
        print(member_id, "reads", ", ".join(f"{topic}-{number}" for topic, number in given) or "nothing")
    check_assignor(TenantAssignor)
    print("conforms")


if __name__ == "__main__":
    main()
