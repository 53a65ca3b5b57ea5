"""Members of every make, with every assignor they know, that come, go, die and come back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.clients.drivers import DRIVERS, RANGE, Choice
from tests.clients.member_process import MemberProcess
from tests.clients.members import Group, shared_out, wait_until

pytestmark = [pytest.mark.clients, pytest.mark.kafka, pytest.mark.slow(6)]

PARTITIONS = 6
SESSION_MS = 1_500
LONG_SESSION_MS = 30_000  # longer than a process takes to come back
VALUES = [f"value-{number:03d}" for number in range(120)]

#: Assignors beside ``range``, which the test of the mixed group is for. librdkafka has no eager ``sticky``.
CHOICES = [
    ("kafka-python", "roundrobin"),
    ("kafka-python", "sticky"),
    ("kafka-python", "cooperative-sticky"),
    ("aiokafka", "roundrobin"),
    ("aiokafka", "sticky"),
    ("confluent-kafka", "roundrobin"),
    ("confluent-kafka", "cooperative-sticky"),
    ("kohort", "sticky"),
    ("kohort", "cooperative-sticky"),
]
#: One assignor a client for what does not depend on it.
ONE_EACH = {
    "kafka-python": "sticky",
    "aiokafka": "roundrobin",
    "confluent-kafka": "cooperative-sticky",
    "kohort": "cooperative-sticky",
}

Start = Callable[..., MemberProcess]


@pytest.fixture
def names(new_topic: Callable[..., str], group: Callable[[str], str]) -> tuple[str, str]:
    """A topic and a group."""
    return new_topic("changes", partitions=PARTITIONS), group("changes")


@pytest.fixture
def start(bootstrap: str, names: tuple[str, str]) -> Iterator[Start]:
    """``start("aiokafka", Choice(...))`` is a member of the test's group."""
    topic, group_id = names
    with ExitStack() as stack:

        def begin(driver: str, choice: Choice) -> MemberProcess:
            return stack.enter_context(MemberProcess(driver, bootstrap, group_id, topic, choice))

        yield begin


def produce(bootstrap: str, topic: str, values: list[str]) -> None:
    DRIVERS["confluent-kafka"].produce(bootstrap, topic, [value.encode() for value in values])


def settled(*members: MemberProcess) -> None:
    wait_until(lambda: shared_out(members, PARTITIONS), "the members share the partitions", members)


@pytest.mark.parametrize(("client", "assignor"), CHOICES)
def test_joined_left_and_killed(
    client: str, assignor: str, bootstrap: str, names: tuple[str, str], start: Start
) -> None:
    choice = Choice(assignor=assignor, session_timeout_ms=SESSION_MS)
    first = start(client, choice)
    settled(first)
    second, third = start(client, choice), start(client, choice)
    settled(first, second, third)

    produce(bootstrap, names[0], VALUES)
    everyone = (first, second, third)
    wait_until(lambda: sum(len(member.got) for member in everyone) >= len(VALUES), "all records", everyone)
    assert sorted(value for member in everyone for value in member.got) == VALUES

    first.stop()
    settled(second, third)

    killed = time.monotonic()
    third.kill()
    settled(second)
    # The session runs from the last heartbeat, at most a tenth of it before the end.
    assert time.monotonic() - killed >= SESSION_MS / 1000 * 0.9 - 0.15
    second.stop()
    group = Group(bootstrap, names[1])
    assert (group.state(), group.members()) == ("Empty", {})


@pytest.mark.parametrize("client", list(DRIVERS))
def test_a_static_member_that_is_killed_and_comes_back_disturbs_nobody(
    client: str, bootstrap: str, names: tuple[str, str], start: Start
) -> None:
    def static(instance: str) -> Choice:
        return Choice(ONE_EACH[client], instance, LONG_SESSION_MS)

    first = start(client, static("one"))
    settled(first)
    second = start(client, static("two"))
    settled(first, second)
    group = Group(bootstrap, names[1])
    generation, ids, held = group.generation(), group.members(), second.held
    assert ids.keys() == {"one", "two"}

    second.kill()
    second = start(client, static("two"))
    wait_until(lambda: second.held == held, "it is back with what it had", [first, second])
    assert group.generation() == generation
    assert group.members().keys() == ids.keys()
    assert group.members()["one"] == ids["one"]
    assert group.members()["two"] != ids["two"]

    produce(bootstrap, names[0], VALUES)
    wait_until(lambda: len(first.got) + len(second.got) >= len(VALUES), "all records", [first, second])
    assert sorted(first.got + second.got) == VALUES


@pytest.mark.parametrize("client", list(DRIVERS))
def test_a_rolling_restart_loses_nothing(
    client: str, bootstrap: str, names: tuple[str, str], start: Start
) -> None:
    choice = Choice(assignor=ONE_EACH[client], session_timeout_ms=SESSION_MS)
    members = [start(client, choice)]
    settled(*members)
    members += [start(client, choice)]
    settled(*members)
    ended: list[MemberProcess] = []
    for turn in range(2):
        produce(bootstrap, names[0], VALUES[turn * 40 : turn * 40 + 40])
        leaving = members.pop(0)
        leaving.stop()
        ended.append(leaving)
        members.append(start(client, choice))
        settled(*members)
    produce(bootstrap, names[0], VALUES[80:])
    everyone = [*ended, *members]
    wait_until(
        lambda: {value for member in everyone for value in member.got} == set(VALUES),
        "every record came to somebody",
        everyone,
    )


@pytest.mark.parametrize("killed", list(DRIVERS))
def test_a_killed_member_of_a_mixed_group_is_missed_after_its_session(killed: str, start: Start) -> None:
    choice = RANGE._replace(session_timeout_ms=SESSION_MS)
    victim = start(killed, choice)
    settled(victim)
    rest = [start(client, choice) for client in DRIVERS if client != killed]
    settled(victim, *rest)
    began = time.monotonic()
    victim.kill()
    settled(*rest)
    assert time.monotonic() - began >= SESSION_MS / 1000 * 0.9 - 0.15
