"""Share groups (KIP-932), as ``kohort groups`` shows and changes them on any cluster.

Covers: admin/groups/share_groups.py, admin/groups/coordinator.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from kohort.admin import GroupAdmin, ResetTo
from kohort.client import ConfigError
from kohort.protocol import ErrorCode, KafkaError, TopicPartition
from tests.admin.conftest import Groups, id_of
from tests.broker.apis.share_members import ACCEPT, ShareMember, acquired
from tests.broker.share_requests import TIMEOUT_S, join_share_group, share_beat
from tests.broker.wire import Wire

pytestmark = pytest.mark.kafka


def starts(groups: Groups, name: str) -> list[int]:
    shown = groups("describe", name, "--json")
    assert shown.code == 0, shown.err
    return [row["start_offset"] for row in shown.document["shared"]]


def test_a_share_group_is_listed_with_its_type(queue: str, groups: Groups) -> None:
    rows = groups("list", "--type", "share", "--json").document["groups"]
    (found,) = [row for row in rows if row["group"] == queue]
    assert (found["group_type"], found["protocol_type"], found["state"]) == ("share", "share", "Empty")
    assert queue not in groups("list", "--type", "classic,consumer").out


def test_members_and_their_partitions_are_described_with_the_lag(
    queue: str, wire: Wire, jobs: str, groups: Groups
) -> None:
    for member in ("m1", "m2", "m3"):
        join_share_group(wire, queue, member, jobs)
    found = groups("describe", queue, "--json").document
    assert (found["group_type"], found["state"], found["protocol"]) == ("share", "Stable", "simple")
    assert found["epoch"] == found["target_epoch"]
    assert found["total_lag"] == 30
    members = {row["member_id"]: row for row in found["members"]}
    assert members.keys() == {"m1", "m2", "m3"}
    assert members["m3"]["topics"] == [jobs]
    assert members["m3"]["assignment"], "who comes last has its partitions at once"
    rows = [(row["partition"], row["start_offset"], row["end_offset"], row["lag"]) for row in found["shared"]]
    assert rows == [(0, 0, 20, 20), (1, 0, 10, 10)]
    readers = {
        (place["topic"], place["partition"], name)
        for name, row in members.items()
        for place in row["assignment"]
    }
    assert {(jobs, row["partition"], each) for row in found["shared"] for each in row["members"]} == readers
    shown = groups("describe", queue)
    assert ["TOPIC", "PARTITION", "START", "END", "LAG", "MEMBERS"] in [row[:6] for row in shown.rows()]
    for member in ("m1", "m2", "m3"):
        share_beat(wire, queue, member, -1)


def test_what_is_accepted_is_no_lag(
    queue: str, wire: Wire, jobs: str, bootstrap: str, groups: Groups
) -> None:
    place = id_of(wire, jobs)
    with ShareMember(bootstrap, queue, "m") as member:
        (first, last, _), *_ = acquired(member.fetch(place, 0, max_records=4, share_acquire_mode=1))
        assert (first, last) == (0, 3)
        assert member.acknowledge(place, (0, 1, [ACCEPT])) == (0, None)
        assert member.acknowledge(place, (2, 2, [ACCEPT])) == (0, None)
        row = groups("describe", queue, "--json").document["shared"][0]
    assert (row["end_offset"], row["lag"]) == (20, 17)


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        (["--to-latest"], [20, 10]),
        (["--to-offset", "12"], [12, 10]),
        (["--to-timestamp", "1700000005000"], [5, 5]),
        (["--to-datetime", "2023-11-14T22:13:25"], [5, 5]),
        (["--shift-by", "3"], [3, 3]),
    ],
)
def test_start_offsets_are_reset(queue: str, groups: Groups, to: list[str], expected: list[int]) -> None:
    planned = groups("reset-offsets", queue, "--all-topics", *to, "--json").document
    assert (planned["executed"], planned["group_type"], planned["refusal"]) == (False, "share", None)
    assert [row["new_offset"] for row in planned["changes"]] == expected
    assert starts(groups, queue) == [0, 0], "only planned"
    done = groups("reset-offsets", queue, "--all-topics", *to, "--execute")
    assert done.code == 0, done.err
    assert f"set 2 of 2 offsets of group '{queue}'" in done.err
    assert starts(groups, queue) == expected
    assert groups("describe", queue, "--json").document["total_lag"] == 30 - sum(expected)


def test_a_group_with_members_is_not_reset(queue: str, wire: Wire, jobs: str, groups: Groups) -> None:
    join_share_group(wire, queue, "m1", jobs)
    refused = groups("reset-offsets", queue, "--to-latest", "--all-topics", "--execute")
    assert refused.code == 1
    assert "it is held by m1" in refused.err
    assert starts(groups, queue) == [0, 0]
    share_beat(wire, queue, "m1", -1)


def test_a_group_of_another_type_is_no_share_group(
    group: Callable[[str], str], jobs: str, groups: Groups
) -> None:
    name = group("billing")
    reset = ("reset-offsets", name, "--to-earliest", "--topic", jobs)
    assert groups(*reset, "--execute").code == 0
    refused = groups(*reset, "--share")
    assert refused.code == 1
    assert f"group '{name}' is no share group" in refused.err


def test_offsets_are_deleted_by_topic(queue: str, jobs: str, groups: Groups) -> None:
    refused = groups("delete-offsets", queue, "--topic", f"{jobs}:0")
    assert refused.code == 2
    assert "by whole topics" in refused.err
    done = groups("delete-offsets", queue, "--topic", jobs, "--json").document["partitions"]
    assert [(row["partition"], row["error_code"]) for row in done] == [(0, 0), (1, 0)]
    assert starts(groups, queue) == []
    again = groups("delete-offsets", queue, "--topic", jobs)
    assert again.code == 1
    assert "has no offset for topic" in again.err


def test_a_group_is_deleted_when_it_has_no_members(queue: str, wire: Wire, jobs: str, groups: Groups) -> None:
    join_share_group(wire, queue, "m1", jobs)
    assert groups("delete", queue).code == 1
    share_beat(wire, queue, "m1", -1)
    assert groups("delete", queue).code == 0
    assert groups("describe", queue).code == 1


async def test_what_a_broker_refuses_is_told(
    admin: GroupAdmin, wire: Wire, jobs: str, group: Callable[[str], str]
) -> None:
    name = group("queue")
    plan = await admin.plan_reset(name, ResetTo.earliest(), {jobs: [0]}, share=True)
    join_share_group(wire, name, "m1", jobs)
    with pytest.raises(KafkaError) as refused:
        await admin.execute(plan)
    assert refused.value.code is ErrorCode.NON_EMPTY_GROUP
    with pytest.raises(ConfigError):
        await admin.delete_offsets(name, {jobs: [1]})
    told = await admin.delete_groups([name])
    assert told[name].error_code == ErrorCode.NON_EMPTY_GROUP
    found = (await admin.describe([name]))[name]
    assert found.members[0].assignment == (TopicPartition(jobs, 0), TopicPartition(jobs, 1))
    share_beat(wire, name, "m1", -1)


def test_past_epochs_say_who_came_and_went_and_which_partitions_they_got(
    queue: str, wire: Wire, jobs: str, groups: Groups
) -> None:
    join_share_group(wire, queue, "m1", jobs)
    epoch = join_share_group(wire, queue, "m2", jobs).epoch
    share_beat(wire, queue, "m1", -1)
    # the next target is computed when the last one is a second old
    deadline = time.monotonic() + TIMEOUT_S
    while share_beat(wire, queue, "m2", epoch).member_epoch == epoch:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    rows = groups("timeline", queue, "--json").document["generations"]
    assert all(row["shared"] for row in rows)
    told = [row for row in rows if row["joined"] or row["left"]]
    assert [(row["joined"], row["left"]) for row in told] == [(["m1"], []), (["m2"], []), ([], ["m1"])]
    assert told[0]["cause"] == "member m1 joined"
    got = {(move["partition"], move["to_owner"]) for row in rows for move in row["moves"]}
    assert {(0, "m1"), (1, "m1")} <= got, "the first member had both"
    shown = groups("timeline", queue).out
    assert f"{jobs} 0-1 to m1" in shown
    assert "Stable, 1 member" in shown
    share_beat(wire, queue, "m2", -1)
