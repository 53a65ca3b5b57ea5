"""The checker finds each kind of anomaly that is planted, and nothing in a history that is right."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.torture.checker import ANOMALIES, check, set_back
from tests.torture.history import NOWHERE, Commit, History, Seen, Sent, WireCommit, value_of

RECORDS = 10


def right() -> History:
    """One producer, one partition, one reader, one group; everything as it should be."""
    history = History()
    history.tried["p"] = RECORDS
    history.sent["p"] = [Sent(number, 0, number) for number in range(RECORDS)]
    history.final = {(0, number): value_of("p", number) for number in range(RECORDS)}
    session = history.session("reader")
    session.got[0] = [(number, value_of("p", number)) for number in range(RECORDS)]
    group = history.group("billing")
    group.handled[0] = set(range(RECORDS))
    for number in range(1, RECORDS):
        committed(history, number)
        group.acknowledged.append(Commit(history.tick(), 0, number))
        seen(history, number)
    return history


def committed(history: History, offset: int, *, error: int = 0) -> None:
    commit = WireCommit(history.tick(), 0, offset)
    commit.answered, commit.error = history.tick(), error
    history.group("billing").wire.append(commit)


def unanswered(history: History, offset: int) -> None:
    history.group("billing").wire.append(WireCommit(history.tick(), 0, offset))


def seen(history: History, offset: int) -> None:
    history.group("billing").seen.append(Seen(history.tick(), history.tick(), 0, offset))


def test_nothing_is_found_in_a_history_that_is_right() -> None:
    assert check(right()) == []


def test_what_was_not_acknowledged_may_be_there_or_not() -> None:
    history = right()
    history.sent["p"] = history.sent["p"][::2]
    del history.final[0, 9]
    assert check(history) == []


def test_a_record_may_be_acknowledged_without_its_offset_and_must_be_there() -> None:
    history = right()
    history.sent["p"][4] = Sent(4, 0, NOWHERE)
    assert check(history) == []
    del history.final[0, 4]
    assert [anomaly.kind for anomaly in check(history)] == ["lost write"]


def lost_write(history: History) -> None:
    del history.final[0, 4]


def unseen(history: History) -> None:
    del history.final[0, 9]


def duplicate(history: History) -> None:
    history.final[1, 0] = value_of("p", 3)


def phantom(history: History) -> None:
    history.final[1, 0] = value_of("p", RECORDS)


def inconsistent_offset(history: History) -> None:
    history.sessions[0].got[0][2] = (2, value_of("p", 7))


def skipped_poll(history: History) -> None:
    del history.sessions[0].got[0][5]


def nonmonotonic_poll(history: History) -> None:
    history.sessions[0].got[0].append((3, value_of("p", 3)))


def nonmonotonic_send(history: History) -> None:
    history.sent["p"][2:4] = [Sent(2, 0, 3), Sent(3, 0, 2)]


def lost_commit(history: History) -> None:
    seen(history, 8)


def phantom_commit(history: History) -> None:
    seen(history, RECORDS + 1)


def false_acknowledgement(history: History) -> None:
    committed(history, 5, error=25)
    history.group("billing").acknowledged = [Commit(history.tick(), 0, 5)]
    history.group("billing").wire = [commit for commit in history.group("billing").wire if commit.error]
    history.group("billing").seen = []


def commit_above_work(history: History) -> None:
    history.group("billing").handled[0].discard(5)


def by_member(history: History, member: str, generation: int, offset: int = RECORDS - 1) -> None:
    committed(history, offset)
    commit = history.group("billing").wire[-1]
    commit.member, commit.generation = member, generation


def two_owners(history: History) -> None:
    by_member(history, "a", 3)
    by_member(history, "b", 3)


def generation_went_back(history: History) -> None:
    by_member(history, "a", 4)
    by_member(history, "b", 3)


def member_forgotten(history: History) -> None:
    history.group("billing").steady = True
    by_member(history, "a", 3)
    by_member(history, "a", 4)


PLANTED: dict[str, Callable[[History], None]] = {
    "lost write": lost_write,
    "unseen": unseen,
    "duplicate": duplicate,
    "phantom": phantom,
    "inconsistent offset": inconsistent_offset,
    "skipped poll": skipped_poll,
    "non-monotonic poll": nonmonotonic_poll,
    "non-monotonic send": nonmonotonic_send,
    "lost commit": lost_commit,
    "phantom commit": phantom_commit,
    "false acknowledgement": false_acknowledgement,
    "commit above work": commit_above_work,
    "two owners": two_owners,
    "generation went back": generation_went_back,
    "member forgotten": member_forgotten,
}


@pytest.mark.parametrize("kind", ANOMALIES)
def test_a_planted_anomaly_is_found(kind: str) -> None:
    history = right()
    PLANTED[kind](history)
    assert kind in {anomaly.kind for anomaly in check(history)}


def test_a_commit_may_be_seen_from_its_question_on_and_must_be_from_its_answer_on() -> None:
    history = right()
    group = history.group("billing")
    commit = WireCommit(history.tick(), 0, RECORDS)
    group.wire.append(commit)
    seen(history, RECORDS - 1)
    seen(history, RECORDS)
    commit.answered, commit.error = history.tick(), 0
    assert check(history) == []
    seen(history, RECORDS - 1)
    assert [anomaly.kind for anomaly in check(history)] == ["lost commit"]


def test_a_commit_without_an_answer_may_be_carried_out_later_until_the_broker_dies() -> None:
    history = right()
    unanswered(history, 3)
    committed(history, RECORDS)
    seen(history, 3)
    assert check(history) == []
    history.deaths[1].append(history.tick())
    committed(history, RECORDS)
    seen(history, 3)
    assert [anomaly.kind for anomaly in check(history)] == ["lost commit"]


def test_a_commit_that_was_refused_is_never_seen() -> None:
    history = right()
    committed(history, RECORDS, error=25)
    seen(history, RECORDS)
    assert [anomaly.kind for anomaly in check(history)] == ["lost commit"]


def test_a_commit_below_an_acknowledged_one_is_told_of_and_right() -> None:
    history = right()
    committed(history, 3)
    seen(history, 3)
    assert check(history) == []
    (text,) = set_back(history)
    assert text.startswith("billing 0: 3 by nobody in generation -1")


def test_no_offset_is_right_until_one_was_acknowledged() -> None:
    history = History()
    seen(history, -1)
    committed(history, 1)
    assert check(history) == []
    seen(history, -1)
    assert [anomaly.kind for anomaly in check(history)] == ["lost commit"]


def test_members_with_epochs_of_their_own_may_be_in_different_ones() -> None:
    history = right()
    history.group("billing").has_epochs = True
    by_member(history, "a", 4)
    by_member(history, "b", 3)
    assert check(history) == []


def taking_turns() -> History:
    """Broker 1 coordinates and takes a commit of 3, then broker 2 does and takes one of 4."""
    history = History()
    group = history.group("billing")
    for broker in (1, 2):
        group.tenures.append((history.tick(), broker))
        committed(history, broker + 2)
        group.wire[-1].broker = broker
    return history


def seen_at(history: History, broker: int, offset: int) -> list[str]:
    seen(history, offset)
    found = history.group("billing").seen
    found[-1] = found[-1]._replace(broker=broker)
    return [anomaly.kind for anomaly in check(history)]


def test_a_broker_that_does_not_know_yet_that_another_coordinates_may_tell_what_it_stored() -> None:
    assert seen_at(taking_turns(), 1, 3) == []


def test_a_broker_whose_turn_it_is_must_know_what_the_one_before_stored() -> None:
    history = taking_turns()
    history.group("billing").wire[1:] = []
    assert seen_at(history, 2, -1) == ["lost commit"]
    history = taking_turns()
    history.group("billing").tenures.append((history.tick(), 1))
    assert seen_at(history, 1, 3) == ["lost commit"]


def test_a_commit_that_ran_out_of_time_may_be_stored_where_there_are_other_replicas() -> None:
    history = taking_turns()
    committed(history, 5, error=7)
    history.group("billing").wire[-1].broker = 2
    assert seen_at(history, 2, 5) == []
    assert seen_at(history, 2, 4) == []
