"""The authorizer: super users, resources without rules, what is remembered, and what is logged."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest

from kohort.broker.authorizer import (
    Acl,
    AclBindingFilter,
    Authorizer,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    _authorizer,
)
from kohort.broker.reporting.log_lines import LINES, MAX_LOGGED_TEXT
from kohort.protocol import RequestContext

ALICE = RequestContext(client_host="/10.0.0.1", principal="User:alice")
TOPIC = ResourceType.TOPIC
RULE = Acl(TOPIC, "orders", PatternType.LITERAL, "User:alice", "10.0.0.1", Operation.READ, Permission.ALLOW)


def reads(authorizer: Authorizer, context: RequestContext = ALICE, name: str = "orders") -> bool:
    return authorizer.allows(context, Operation.READ, TOPIC, name)


def test_nobody_may_anything_without_rules() -> None:
    assert not reads(Authorizer())


def test_a_super_user_may_everything_whatever_the_rules_say() -> None:
    authorizer = Authorizer([RULE._replace(permission=Permission.DENY)], super_users=["User:alice"])
    assert reads(authorizer)
    assert authorizer.allows_some(ALICE, Operation.WRITE, TOPIC)


def test_what_no_rule_names_may_be_open_to_everyone() -> None:
    authorizer = Authorizer([RULE._replace(principal="User:bob")], allow_everyone_if_no_acl_found=True)
    assert reads(authorizer, name="bills")
    assert not reads(authorizer, name="orders"), "a rule for anyone closes it"
    assert authorizer.allows_some(ALICE, Operation.WRITE, TOPIC)


def test_what_may_be_done_to_something_counts_what_is_implied_for_all_names() -> None:
    """Of rules for some names nothing is implied, as in Apache Kafka."""
    everything = Authorizer([RULE._replace(name="*")])
    assert everything.allows_some(ALICE, Operation.DESCRIBE, TOPIC)
    assert not everything.allows_some(ALICE, Operation.DESCRIBE, ResourceType.GROUP)
    assert not everything.allows_some(ALICE, Operation.WRITE, TOPIC)
    assert not Authorizer([RULE]).allows_some(ALICE, Operation.DESCRIBE, TOPIC)
    assert Authorizer([RULE]).allows_some(ALICE, Operation.READ, TOPIC), "from this host"
    elsewhere = RequestContext(client_host="/10.0.0.2", principal="User:alice")
    assert not Authorizer([RULE]).allows_some(elsewhere, Operation.READ, TOPIC)


async def test_a_question_is_decided_once_until_the_rules_change(monkeypatch: pytest.MonkeyPatch) -> None:
    authorizer = Authorizer([RULE])
    for operation in (Operation.READ, Operation.WRITE):
        assert authorizer.shows(ALICE, operation, TOPIC, "orders") is (operation is Operation.READ)

    def decided(*_about: object) -> None:
        raise AssertionError("it is known")

    with monkeypatch.context() as patch:
        patch.setattr("kohort.broker.authorizer._rules.AclRules.verdict", decided)
        for _ in range(2):
            for operation in (Operation.READ, Operation.WRITE):
                assert authorizer.shows(ALICE, operation, TOPIC, "orders") is (operation is Operation.READ)
    await authorizer.delete([RULE])
    assert not authorizer.shows(ALICE, Operation.READ, TOPIC, "orders")


async def test_what_is_readable_is_what_was_asked_before() -> None:
    group = RULE._replace(resource_type=ResourceType.GROUP, name="g")
    authorizer = Authorizer([RULE, group])
    for operation in (Operation.READ, Operation.DESCRIBE):
        authorizer.allows(ALICE, operation, TOPIC, "orders")
        authorizer.allows(ALICE, operation, ResourceType.GROUP, "g")
    authorizer.allows(ALICE, Operation.READ, TOPIC, "bills")
    authorizer.allows(ALICE, Operation.WRITE, TOPIC, "other")
    known = authorizer.readable(ALICE)
    assert known.memory is authorizer.remembered
    assert (known.groups, known.topics) == ({"g": True}, {"orders": True, "bills": False})
    await authorizer.delete([RULE])
    assert known.memory is not authorizer.remembered
    assert (known.groups, known.topics) == ({}, {})


def test_the_host_of_a_rule_is_the_address_without_the_slash() -> None:
    authorizer = Authorizer([RULE])
    assert reads(authorizer)
    assert not reads(authorizer, RequestContext(client_host="/10.0.0.2", principal="User:alice"))


async def test_a_change_counts_at_once() -> None:
    authorizer = Authorizer()
    assert not reads(authorizer)
    await authorizer.create([RULE])
    assert reads(authorizer)
    await authorizer.create([RULE._replace(permission=Permission.DENY)])
    assert not reads(authorizer)
    await authorizer.delete(authorizer.find(AclBindingFilter(permission=Permission.DENY)))
    assert reads(authorizer)


async def test_a_change_that_cannot_be_saved_does_not_count() -> None:
    async def save(_acls: Sequence[Acl]) -> None:
        raise OSError("the disk is full")

    authorizer = Authorizer([RULE], save=save)
    with pytest.raises(OSError, match="full"):
        await authorizer.delete([RULE])
    with pytest.raises(OSError, match="full"):
        await authorizer.create([RULE._replace(name="bills")])
    assert reads(authorizer)
    assert not reads(authorizer, name="bills")


async def test_all_rules_are_saved_before_they_count() -> None:
    saved: list[Sequence[Acl]] = []

    async def save(acls: Sequence[Acl]) -> None:
        saved.append(acls)

    authorizer = Authorizer([RULE], save=save)
    other = RULE._replace(name="bills")
    await authorizer.create([RULE, other, other])
    await authorizer.create([RULE])
    await authorizer.delete([RULE])
    assert saved == [[RULE, other], [other]]


def test_operations_are_all_that_is_allowed_and_that_the_kind_of_resource_has() -> None:
    authorizer = Authorizer([RULE._replace(operation=Operation.ALL), RULE._replace(name="bills")])
    assert authorizer.operations(ALICE, TOPIC, "bills") == {Operation.READ, Operation.DESCRIBE}
    assert authorizer.operations(ALICE, TOPIC, "orders") == {3, 4, 5, 6, 7, 8, 10, 11}
    assert authorizer.operations(ALICE, ResourceType.CLUSTER, "kafka-cluster") == frozenset()


async def test_a_denial_is_logged_once_and_again_after_a_change(caplog: pytest.LogCaptureFixture) -> None:
    authorizer = Authorizer()
    with caplog.at_level(logging.INFO, "kohort.broker.authorizer"):
        assert not authorizer.shows(ALICE, Operation.READ, TOPIC, "or\nders")
        assert caplog.messages == [], "what is left out was not refused"
        for _ in range(3):
            assert not reads(authorizer, name="or\nders")
        assert caplog.messages == ["denied: 'User:alice' from 10.0.0.1 may not READ TOPIC 'or\\nders'"]
        assert caplog.records[0].levelno == logging.INFO
        await authorizer.create([RULE])
        assert not reads(authorizer, name="or\nders")
        assert len(caplog.messages) == 2


def test_denials_do_not_fill_a_disk(caplog: pytest.LogCaptureFixture) -> None:
    """Neither by their number nor by long names."""
    authorizer = Authorizer()
    with caplog.at_level(logging.INFO, "kohort.broker.authorizer"):
        for number in range(10 * LINES):
            assert not reads(authorizer, name=f"{'x' * 30_000}{number}")
    # the test may last longer than a second
    assert LINES <= len(caplog.messages) < 10 * LINES
    assert max(map(len, caplog.messages)) < 2 * MAX_LOGGED_TEXT


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_authorizer, "MAX_REMEMBERED_BYTES", 10_000)
    authorizer = Authorizer([RULE])
    for number in range(100):
        assert not reads(authorizer, name=f"t{number}")
        assert reads(authorizer)
        assert sum(len(verdicts) + 1 for verdicts in authorizer.remembered.values()) <= 33
        assert len(authorizer._told) <= 33


async def test_a_long_name_is_decided_each_time_and_not_remembered() -> None:
    long = "x" * 30_000
    authorizer = Authorizer([RULE._replace(name="x", pattern_type=PatternType.PREFIXED)])
    for _ in range(3):
        assert reads(authorizer, name=long)
        assert not reads(authorizer, name=f"y{long}")
    assert not any(authorizer.remembered.values())
    assert not authorizer._told
    await authorizer.delete([RULE._replace(name="x", pattern_type=PatternType.PREFIXED)])
    assert not reads(authorizer, name=long)
