"""``pytest examples/tenants``, once the package is installed."""

from __future__ import annotations

from kohort_tenants import TenantAssignor

from kohort.assignors import Member, TopicInfo
from kohort.protocol import Subscription
from kohort.testing.assignors import conformance_tests

TestTenants = conformance_tests(TenantAssignor)

TOPICS = {"acme.orders": TopicInfo(4), "zeta.orders": TopicInfo(3), "common": TopicInfo(2)}


def test_a_tenants_topics_stay_with_those_that_serve_it() -> None:
    members = {}
    for name, tenants in {"m1": "acme", "m2": "acme+zeta", "m3": ""}.items():
        data = TenantAssignor(tenants).user_data(sorted(TOPICS))
        members[name] = Member(name, Subscription(tuple(TOPICS), data))
    answer = TenantAssignor().assign(TOPICS, members)
    topics = {name: {partition.topic for partition in given} for name, given in answer.items()}
    assert topics == {"m1": {"acme.orders"}, "m2": {"acme.orders", "zeta.orders"}, "m3": {"common"}}


def test_in_the_coordinator_client_ids_name_the_tenants() -> None:
    members = {
        name: Member(name, Subscription(tuple(TOPICS)), known_client_id=tenants)
        for name, tenants in {"m1": "acme", "m2": "acme+zeta", "m3": "billing"}.items()
    }
    answer = TenantAssignor().assign(TOPICS, members)
    topics = {name: {partition.topic for partition in given} for name, given in answer.items()}
    assert topics == {"m1": {"acme.orders"}, "m2": {"acme.orders", "zeta.orders"}, "m3": {"common"}}
