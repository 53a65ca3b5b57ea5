"""The table of rights in docs/acls.md."""

from __future__ import annotations

from kohort.broker.authorizer import ACCESS
from kohort.broker.authorizer._docs import access_table
from kohort.protocol import APIS


def test_every_right_of_every_api_has_a_line() -> None:
    head, rule, *lines = access_table().splitlines()
    assert head == "| API | operation | resource | which | error without it |"
    assert rule == "| --- | --- | --- | --- | --- |"
    assert [line.split(" | ")[0] for line in lines] == [
        f"| {APIS[key].name}" for key in sorted(ACCESS) for _ in ACCESS[key]
    ]
    assert (
        "| Fetch | ClusterAction | cluster | every topic, if the request names a replica | "
        "TOPIC_AUTHORIZATION_FAILED (29) |"
    ) in lines
    assert "| ListGroups | Describe | cluster | all groups | none: left out |" in lines
