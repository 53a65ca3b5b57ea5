"""``kohort deadletters --share``: what a share group archived is listed, and sent again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from kohort.admin.groups.results import HistoryEntry
from kohort.admin.groups.share_groups import ToldByLeaders
from kohort.admin.records import archived
from kohort.protocol import EventName, JsonObject, TopicPartition
from tests.admin.conftest import Groups, Ran, id_of, ran
from tests.broker.apis.share_members import ACCEPT, REJECT, RELEASE, ShareMember
from tests.broker.wire import Wire
from tests.group_configs import set_group_configs

Command = Callable[..., Ran]
Consume = Callable[..., list[JsonObject]]


@pytest.fixture
def deadletters(bootstrap: str, capsys: pytest.CaptureFixture[str]) -> Command:
    """``deadletters("list", ...)``: ``kohort deadletters`` on the tests' cluster."""

    def run(*words: object) -> Ran:
        return ran(capsys, ["deadletters", "--bootstrap", bootstrap, "--timeout", "20", *map(str, words)])

    return run


@pytest.fixture
def worked_on(queue: str, wire: Wire, jobs: str, bootstrap: str) -> Iterator[str]:
    """A share group that has archived records 1, 3 and 4: two rejected by m1, one released twice, by m2 at
    last.
    """
    set_group_configs(bootstrap, queue, share_delivery_count_limit=2)
    place = id_of(wire, jobs)
    with ShareMember(bootstrap, queue, "m1") as member:
        member.fetch(place, 0, max_records=5, share_acquire_mode=1)
        ranges = [(at, at, [kind]) for at, kind in enumerate([ACCEPT, REJECT, ACCEPT, REJECT, RELEASE])]
        assert member.acknowledge(place, *ranges) == (0, None)
        with ShareMember(bootstrap, queue, "m2") as other:
            other.fetch(place, 0, max_records=1, share_acquire_mode=1)
            assert other.acknowledge(place, (4, 4, [RELEASE])) == (0, None)
            yield queue


def test_archived_records_are_listed_with_reason_count_and_last_member(
    worked_on: str, jobs: str, deadletters: Command
) -> None:
    found = deadletters("list", "--group", worked_on, "--share", "--json").document
    assert (found["group"], found["errors"]) == (worked_on, {"rejected": 2, "delivery-limit": 1})
    rows = [
        (row["topic"], row["partition"], row["offset"], row["attempts"], row["error"], row["member"])
        for row in found["letters"]
    ]
    assert rows == [
        (jobs, 0, 1, 1, "rejected", "m1"),
        (jobs, 0, 3, 1, "rejected", "m1"),
        (jobs, 0, 4, 2, "delivery-limit", "m2"),
    ]
    assert all(row["value"] is not None and row["archived"] > 0 for row in found["letters"])
    some = deadletters("list", "--group", worked_on, "--share", "--error", "delivery*", "--limit", "0")
    assert "1 more: --limit N" in some.out
    shown = deadletters("list", "--group", worked_on, "--share")
    assert ["TOPIC", "PARTITION", "OFFSET", "ATTEMPTS", "ERROR", "MEMBER", "KEY", "VALUE"] in shown.rows()
    assert [jobs, "0", "4", "2", "delivery-limit", "m2"] in [row[:6] for row in shown.rows()]


def test_archived_records_are_sent_again_to_their_topic_or_another(
    worked_on: str, jobs: str, deadletters: Command, new_topic: Callable[..., str], consume: Consume
) -> None:
    looked = deadletters("replay", "--group", worked_on, "--share")
    assert "nothing is written: add --execute" in looked.out
    done = deadletters(
        "replay", "--group", worked_on, "--share", "--error", "rejected", "--execute", "--json"
    )
    assert done.document == {"executed": True, "replayed": {jobs: 2}, "no_letters": 0}
    other = new_topic("other", partitions=1)
    done = deadletters("replay", "--group", worked_on, "--share", "--to", other, "--execute")
    assert "not remembered" in done.out
    before = {row["offset"]: row for row in consume(jobs, "--partition", 0)}
    again = [row for row in before.values() if row["headers"]]
    assert [row["value"] for row in again] == [before[1]["value"], before[3]["value"]]
    assert again[0]["headers"] == [["kohort.replayed", f"{jobs}-0@1"]]
    assert [row["value"] for row in consume(other)] == [before[at]["value"] for at in (1, 3, 4)]


def test_what_brokers_do_not_know_is_said(
    worked_on: str, jobs: str, deadletters: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    details = {"topic": jobs, "partition": 0, "records": 9, "offsets": "2 6-7 1000", "delivery_count": 1}
    event = HistoryEntry(5, 1, EventName.SHARE_RECORDS_REJECTED, -1, "", "m1", "", "", details)
    told = ToldByLeaders({}, [event], 4, (1,), (2, 3))

    async def ask(*_: object) -> ToldByLeaders:
        return told

    monkeypatch.setattr(archived, "ask_leaders", ask)
    shown = deadletters("list", "--group", worked_on, "--share", "--json")
    assert [row["offset"] for row in shown.document["letters"]] == [2, 6, 7]
    assert "1 archived records are not in their topics any more" in shown.err
    assert "5 more records were archived whose offsets the brokers do not know" in shown.err
    assert "4 older events of the group have made way" in shown.err
    assert "where these brokers lead: 2, 3" in shown.err
    told = ToldByLeaders({}, [], 0, (), (1,))
    refused = deadletters("list", "--group", worked_on, "--share")
    assert refused.code == 1
    assert "only kohort's brokers do" in refused.err


def test_nothing_archived_is_said(queue: str, deadletters: Command) -> None:
    assert f"that share group {queue} archived" in deadletters("list", "--group", queue, "--share").out
    assert "(nothing to replay)" in deadletters("replay", "--group", queue, "--share", "--execute").out


def test_only_share_groups_archive(
    group: Callable[[str], str], jobs: str, groups: Groups, deadletters: Command
) -> None:
    name = group("billing")
    assert "does not exist" in deadletters("list", "--group", name, "--share").err
    groups("reset-offsets", name, "--to-earliest", "--topic", jobs, "--execute")
    assert "is no share group" in deadletters("list", "--group", name, "--share").err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["list", "--share"], "name the share group with --group"),
        (["list", "letters", "--share", "--group", "g"], "and no topic"),
        (["list"], "name the topic of the letters"),
        (["replay", "--share", "--group", "g", "--progress-group", "p"], "is for replays of all letters"),
    ],
)
def test_wrong_use_is_told(deadletters: Command, words: list[str], says: str) -> None:
    found = deadletters(*words)
    assert found.code == 2
    assert says in found.err


def test_offsets_far_apart_are_read_apart() -> None:
    assert archived._spans_of([5, 1_000, 7, 1_001]) == [(1_000, 1_002), (5, 8)]


def test_events_of_other_things_name_nothing() -> None:
    found = archived.ArchivedOffsets()
    found.note_event(HistoryEntry(1, 1, EventName.SHARE_LOCKS_LOST, -1, "", "m", "", "", {}))
    assert found.places == dict[TopicPartition, dict[int, archived.Archiving]]()


@pytest.fixture
def consume(bootstrap: str, capsys: pytest.CaptureFixture[str]) -> Consume:
    """The records of a topic, as ``kohort consume --json`` has them."""

    def run(*words: object) -> list[JsonObject]:
        found = ran(capsys, ["consume", "--bootstrap", bootstrap, "--json", *map(str, words)])
        assert found.code == 0, found.err
        return [json.loads(line) for line in found.out.splitlines()]

    return run
