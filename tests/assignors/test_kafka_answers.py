"""range and roundrobin against what Apache Kafka's own assignors answered (kafka_answers/ask.py)."""

from __future__ import annotations

import os
from pathlib import Path

from kohort.assignors import GroupAssignment, Member, TopicInfo, load_assignor
from kohort.protocol import Subscription, TopicPartition

#: More than the frozen sample: a file that ask.py has written, named by KAFKA_ANSWERS.
SAMPLE = Path(__file__).parent / "kafka_answers" / "cases.tsv"
CASES = Path(os.environ.get("KAFKA_ANSWERS", SAMPLE)).read_text().splitlines()


def parse(line: str) -> tuple[str, dict[str, TopicInfo], dict[str, Member], GroupAssignment]:
    case, answer = (part.split("\t") for part in line.split("\t->\t"))
    topics: dict[str, TopicInfo] = {}
    members: dict[str, Member] = {}
    for field in case[1:]:
        if "=" in field:
            name, racks = field.split("=")
            sets = tuple(frozenset(one.split("+")) - {"-"} for one in racks.split("/"))
            topics[name] = TopicInfo(len(sets), sets)
        else:
            member_id, instance, rack, *wanted = field.split(",")
            subscription = Subscription(tuple(wanted), rack=_or_none(rack))
            members[member_id] = Member(member_id, subscription, _or_none(instance))
    return case[0], topics, members, dict(_read_assignment(field) for field in answer)


def _or_none(text: str) -> str | None:
    return None if text == "-" else text


def _read_assignment(field: str) -> tuple[str, list[TopicPartition]]:
    member_id, _, given = field.partition("=")
    pairs = (one.split(":") for one in given.split(",") if one)
    return member_id, [TopicPartition(topic, int(number)) for topic, number in pairs]


def test_the_answer_is_kafkas() -> None:
    for line in CASES:
        name, topics, members, expected = parse(line)
        answer = load_assignor(name).assign(topics, members)
        assert {member: sorted(given) for member, given in answer.items()} == {
            member: sorted(given) for member, given in expected.items()
        }, line


def test_the_cases_cover_both_assignors_racks_and_static_members() -> None:
    parsed = [parse(line) for line in CASES]
    assert {name for name, *_ in parsed} == {"range", "roundrobin"}
    assert any(member.instance_id for _, _, members, _ in parsed for member in members.values())
    with_racks = [
        case
        for case in parsed
        if case[0] == "range" and len({r for t in case[1].values() for r in t.racks}) > 1
    ]
    without = (
        {m: Member(m, Subscription(x.topics), x.instance_id) for m, x in case[2].items()}
        for case in with_racks
    )
    plain = [
        load_assignor("range").assign(case[1], members)
        for case, members in zip(with_racks, without, strict=True)
    ]
    assert sum(answer != case[3] for case, answer in zip(with_racks, plain, strict=True)) > 20
