"""The tables of rights and of APIs in docs/acls.md and docs/broker.md."""

from __future__ import annotations

from kohort.broker.apis import served_apis
from kohort.broker.apis._docs import access_table, apis_table


def test_every_right_of_every_api_has_a_line() -> None:
    head, rule, *lines = access_table().splitlines()
    assert head == "| API | operation | resource | which | error without it |"
    assert rule == "| --- | --- | --- | --- | --- |"
    assert [line.split(" | ")[0] for line in lines] == [
        f"| {api.name}" for _, api in sorted(served_apis().items()) for _ in api.access
    ]
    assert (
        "| Fetch | ClusterAction | cluster | every topic, if the request names a replica | "
        "TOPIC_AUTHORIZATION_FAILED (29) |"
    ) in lines
    assert "| ListGroups | Describe | cluster | all groups | none: left out |" in lines


def test_the_offer_is_what_clients_are_told() -> None:
    offered = dict(line.strip("| ").split(" | ")[1:] for line in apis_table().splitlines()[2:])
    assert offered["Produce"] == "0-13"
    assert offered["ApiVersions"] == "0-4"
    assert "DescribeQuorum" not in offered
