"""Share sessions: epochs, partitions that stay until they are forgotten, and how many there may be."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.protocol import ErrorCode, KafkaError
from kohort.share_partitions import CLOSING_EPOCH, ShareSession, ShareSessions, TopicPlace

TOPIC = UUID(int=7)
A, B, C = (TopicPlace(TOPIC, index) for index in range(3))


def opened(*places: TopicPlace) -> tuple[ShareSessions, ShareSession]:
    sessions = ShareSessions()
    session = sessions.open("g", "m", 10)
    sessions.update(session, places, ())
    return sessions, session


def test_the_first_epoch_after_the_opening_is_1_and_after_the_last_comes_1_again() -> None:
    sessions, session = opened()
    assert sessions.resume("g", "m", 1) is session
    assert session.epoch == 2
    session.epoch = 2**31 - 1
    sessions.resume("g", "m", 2**31 - 1)
    assert session.epoch == 1


@pytest.mark.parametrize("epoch", [0, 2, 5, -2])
def test_a_wrong_epoch_is_refused_and_the_session_goes_on(epoch: int) -> None:
    sessions, session = opened()
    with pytest.raises(KafkaError) as refused:
        sessions.resume("g", "m", epoch)
    assert refused.value.code is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert sessions.resume("g", "m", 1) is session


@pytest.mark.parametrize(("group", "member"), [("g", "other"), ("other", "m")])
@pytest.mark.parametrize("epoch", [1, CLOSING_EPOCH])
def test_who_has_no_session_cannot_go_on_with_one(group: str, member: str, epoch: int) -> None:
    sessions, _ = opened()
    with pytest.raises(KafkaError) as refused:
        sessions.resume(group, member, epoch)
    assert refused.value.code is ErrorCode.SHARE_SESSION_NOT_FOUND


def test_partitions_stay_until_they_are_forgotten() -> None:
    sessions, session = opened(A, B)
    sessions.update(session, [C, A], [B])
    assert list(session.places) == [A, C]
    assert sessions.partitions == 2


def test_each_partition_is_the_first_once_in_a_while() -> None:
    _, session = opened(A, B, C)
    assert [session.in_turn(epoch)[0] for epoch in (0, 1, 2, 3)] == [A, B, C, A]
    assert session.in_turn(1) == [B, C, A]
    assert opened()[1].in_turn(4) == []


def test_a_member_that_opens_again_has_one_session() -> None:
    sessions, former = opened(A, B)
    session = sessions.open("g", "m", 1)
    assert (len(sessions), sessions.partitions, list(session.places)) == (1, 0, [])
    assert not sessions.close(former), "it is closed already"
    assert sessions.close(session)
    assert not sessions.has_group("g")


def test_nothing_is_added_to_a_session_that_has_ended() -> None:
    sessions, session = opened(A)
    sessions.close(session)
    with pytest.raises(KafkaError) as refused:
        sessions.update(session, [B], ())
    assert refused.value.code is ErrorCode.SHARE_SESSION_NOT_FOUND
    assert sessions.partitions == 0


def test_no_more_sessions_than_allowed() -> None:
    sessions = ShareSessions()
    sessions.open("g", "a", 2)
    sessions.open("g", "b", 2)
    with pytest.raises(KafkaError) as refused:
        sessions.open("g", "c", 2)
    assert refused.value.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert sessions.find("g", "c") is None


def test_no_more_partitions_than_allowed() -> None:
    sessions = ShareSessions(most_partitions=2)
    session = sessions.open("g", "a", 9)
    with pytest.raises(KafkaError) as refused:
        sessions.update(session, [A, B, C], ())
    assert refused.value.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert (sessions.partitions, len(session.places)) == (2, 2)
    sessions.update(session, [A, C], [B])
    assert list(session.places) == [A, C]


def test_no_more_partitions_in_one_session_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kohort.share_partitions.sessions.MOST_OF_SESSION", 2)
    sessions, session = opened(A, B)
    with pytest.raises(KafkaError) as refused:
        sessions.update(session, [C], ())
    assert refused.value.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED
    other = sessions.open("g", "other", 10)
    sessions.update(other, [C], ())
    assert sessions.partitions == 3


_STEP = st.tuples(
    st.sampled_from(["open", "add", "forget", "close"]),
    st.sampled_from("gh"),
    st.sampled_from("mn"),
    st.integers(0, 2),
)


@given(steps=st.lists(_STEP, max_size=40))
def test_what_is_counted_is_what_is_there(steps: list[tuple[str, str, str, int]]) -> None:
    sessions = ShareSessions()
    model: dict[tuple[str, str], set[TopicPlace]] = {}
    for action, group, member, index in steps:
        place = TopicPlace(TOPIC, index)
        if action == "open":
            sessions.open(group, member, 9)
            model[group, member] = set()
        elif (session := sessions.find(group, member)) is not None:
            if action == "close":
                assert sessions.close(session)
                del model[group, member]
            else:
                both = ([place], ()) if action == "add" else ((), [place])
                sessions.update(session, *both)
                model[group, member] = (model[group, member] | set(both[0])) - set(both[1])
        assert len(sessions) == len(model)
        assert sessions.partitions == sum(map(len, model.values()))
        assert {group for group in "gh" if sessions.has_group(group)} == {group for group, _ in model}
        for (group, member), places in model.items():
            assert set(sessions.find(group, member).places) == places  # type: ignore[union-attr]
