"""A custom assignor: the topics of a tenant ("acme.orders") go to the members that serve this tenant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kohort.assignors import Assignor, GroupAssignment, Member, TopicInfo, in_member_order
from kohort.protocol import TopicPartition


class TenantAssignor(Assignor):
    """Assigns a tenant's topics to the members that serve it, and all other topics to every subscriber."""

    name = "tenants"
    version = 1

    def __init__(self, serves: str = "") -> None:
        self.serves = serves  # tenants with "+" between them

    def user_data(self, topics: Sequence[str]) -> bytes:  # noqa: ARG002
        return self.serves.encode()

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
    # in the coordinator there is no user data, so the client id names the tenants
    told = member.client_id or "" if member.user_data is None else member.user_data.decode(errors="replace")
    return topic.partition(".")[0] in told.split("+")
