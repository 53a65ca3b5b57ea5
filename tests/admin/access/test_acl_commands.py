"""``kohort acls``: rules are shown, added and removed, on kohort's broker and on Apache Kafka.

Covers: admin/access/acls.py, admin/access/acl_words.py.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.admin.access.conftest import Command

pytestmark = pytest.mark.kafka

Names = Callable[[str], str]
Types = Callable[[str], None]


def rules(operator: Command, *words: object) -> list[tuple[str, ...]]:
    """What is listed, with all but the host."""
    found = operator("acls", "list", *words, "--json").document["rules"]
    return [
        (r["principal"], r["permission"], r["operation"], r["resource"], r["name"], r["pattern"])
        for r in found
    ]


def test_a_consumer_gets_what_it_needs_and_can_then_read(
    operator: Command, as_user: Command, topic: Names, group: Names
) -> None:
    name, reader = topic("orders"), group("billing")
    operator("topics", "create", name)
    assert as_user("alice", "consume", name, "--group", reader).code == 1
    added = operator("acls", "add", "--allow", "alice", "--consumer", "--topic", name, "--group", reader)
    assert added.code == 0, added.err
    assert [row[2:5] + row[-1:] for row in added.rows()[1:]] == [
        ["Read", "topic", name, "added"],
        ["Describe", "topic", name, "added"],
        ["Read", "group", reader, "added"],
    ]
    assert as_user("alice", "consume", name, "--group", reader).code == 0
    assert operator("acls", "remove", "--principal", "alice", "--topic", name).code == 0
    assert rules(operator, "--topic", name) == []
    assert [row[2:5] for row in rules(operator, "--principal", "alice", "--group", reader)] == [
        ("Read", "group", reader)
    ]
    assert as_user("alice", "consume", name, "--group", reader).code == 1


def test_a_producer_with_a_transactional_id(operator: Command, topic: Names) -> None:
    name, its_id = topic("orders"), topic("tx")
    words = ("--producer", "--topic", name, "--transactional-id", its_id)
    assert operator("acls", "add", "--allow", "etl", *words).code == 0
    assert {row[2:5] for row in rules(operator, "--topic", name, "--transactional-id", its_id)} == {
        *(("Write", "topic", name), ("Describe", "topic", name), ("Create", "topic", name)),
        *(("Write", "transactional-id", its_id), ("Describe", "transactional-id", its_id)),
    }


def test_a_name_shows_all_rules_that_hold_for_it_and_removes_its_own_only(
    operator: Command, topic: Names
) -> None:
    name = topic("orders-eu")
    begin = name[:-3]
    for words in ((begin, "--prefixed"), (name,), (f"{name}x",)):
        operator("acls", "add", "--allow", "a", "--operation", "read", "--topic", *words)
    held = [row[4:] for row in rules(operator, "--topic", name) if row[4] != "*"]
    assert held == [(begin, "prefixed"), (name, "literal")]
    assert rules(operator, "--topic", begin, "--prefixed") == [
        ("User:a", "Allow", "Read", "topic", begin, "prefixed")
    ]
    removed = operator("acls", "remove", "--topic", name, "--json").document["rules"]
    assert [(row["name"], row["result"], row["error_code"]) for row in removed] == [(name, "removed", 0)]
    assert operator("acls", "remove", "--topic", begin, "--prefixed").code == 0
    assert [row[4] for row in rules(operator, "--topic", f"{name}x")] == [f"{name}x"]


def test_odd_names_and_hosts_come_back_as_they_were_given(operator: Command, group: Names) -> None:
    odd, principal = group('we"ird, ü*\\ '), "User:CN=Doe\\, Jane,O=A:B"
    words = ("--operation", "DESCRIBE_CONFIGS,alter-configs", "--group", odd, "--host", "10.0.0.1")
    assert operator("acls", "add", "--deny", principal, *words).code == 0
    found = operator("acls", "list", "--principal", principal, "--group", odd, "--json").document["rules"]
    assert [(r["permission"], r["operation"], r["name"], r["host"]) for r in found] == [
        ("Deny", "AlterConfigs", odd, "10.0.0.1"),
        ("Deny", "DescribeConfigs", odd, "10.0.0.1"),
    ]
    chosen = ("--permission", "deny", "--operation", "AlterConfigs", "--host", "10.0.0.1")
    assert operator("acls", "remove", "--principal", principal, *chosen).code == 0
    assert [row[2] for row in rules(operator, "--group", odd)] == ["DescribeConfigs"]


def test_a_dry_run_tells_what_is_there_and_changes_nothing(operator: Command, topic: Names) -> None:
    name = topic("orders")
    add = ("acls", "add", "--allow", "a", "--topic", name, "--operation")
    assert operator(*add, "read,read").code == 0
    planned = operator(*add, "read,write", "--dry-run", "--json").document["rules"]
    assert [(row["operation"], row["result"]) for row in planned] == [
        ("Read", "exists"),
        ("Write", "would be added"),
    ]
    gone = operator("acls", "remove", "--topic", name, "--dry-run")
    assert (gone.code, gone.rows()[1][-3:]) == (0, ["would", "be", "removed"])
    assert [row[2] for row in rules(operator, "--topic", name)] == ["Read"]


@pytest.mark.parametrize(("answer", "code", "left"), [("n\n", 1, 1), ("y\n", 0, 0)])
def test_on_a_terminal_the_rules_are_shown_before_they_go(
    operator: Command, topic: Names, on_terminal: Types, answer: str, code: int, left: int
) -> None:
    name = topic("orders")
    operator("acls", "add", "--allow", "*", "--operation", "Read", "--topic", name)
    on_terminal(answer)
    removed = operator("acls", "remove", "--topic", name)
    assert removed.code == code
    assert f"Allow User:* Read on topic {name}\nRemove this rule? [y/N]" in removed.err
    assert len(rules(operator, "--principal", "*", "--topic", name)) == left


def test_nobody_without_the_right_sees_or_changes_rules(
    operator: Command, as_user: Command, topic: Names
) -> None:
    name = topic("orders")
    operator("acls", "add", "--allow", "a", "--operation", "Read", "--topic", name)
    seen = as_user("bob", "acls", "list")
    assert (seen.code, seen.out) == (1, "")
    assert "CLUSTER_AUTHORIZATION_FAILED" in seen.err
    added = as_user("bob", "acls", "add", "--allow", "bob", "--operation", "All", "--topic", name)
    assert added.code == 1
    assert "CLUSTER_AUTHORIZATION_FAILED" in added.out
    assert [row[0] for row in rules(operator, "--topic", name)] == ["User:a"]


def test_a_rule_that_is_not_there_is_told(operator: Command, topic: Names) -> None:
    removed = operator("acls", "remove", "--topic", topic("nothing"))
    assert (removed.code, removed.out) == (1, "")
    assert "no such rule" in removed.err


def test_a_cluster_without_rules_says_which_setting_it_lacks(operator: Command, bootstrap: str) -> None:
    found = operator("acls", "list", to=bootstrap)
    assert found.code == 1
    assert "SECURITY_DISABLED" in found.err
    assert "until authorizer.class.name is set" in found.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["add", "--operation", "Read", "--topic", "t"], "who? give --allow"),
        (["add", "--allow", "a", "--topic", "t"], "what? give --operation"),
        (["add", "--allow", "a", "--operation", "Read"], "on what? give --topic"),
        (["add", "--allow", "a", "--operation", "Raed", "--topic", "t"], "did you mean Read?"),
        (["add", "--allow", "User:", "--operation", "Read", "--topic", "t"], "'User:' is no principal"),
        (["add", "--allow", "a", "--operation", "Write", "--group", "g"], "Write is no operation on a group"),
        (["add", "--allow", "a", "--consumer", "--topic", "t"], "--consumer needs --topic and --group"),
        (["add", "--allow", "a", "--producer", "--group", "g"], "--producer needs --topic"),
        (
            ["add", "--allow", "a", "--operation", "All", "--cluster", "--prefixed"],
            "the cluster has one name",
        ),
        (["add", "--allow", "a", "--operation", "All", "--topic", ""], "a name is not empty"),
        (["remove"], "which rules? give --principal"),
        (["list", "--prefixed"], "--prefixed needs a name"),
        (["list", "--permission", "maybe"], "invalid choice: 'Maybe'"),
    ],
)
def test_wrong_use_is_told_before_a_broker_is_asked(operator: Command, words: list[str], said: str) -> None:
    found = operator("acls", *words, to="127.0.0.1:1")
    assert found.code == 2
    assert said in found.err


def test_an_unknown_broker_is_told(operator: Command) -> None:
    found = operator("acls", "list", to="127.0.0.1:1")
    assert found.code == 3
    assert "is --bootstrap right?" in found.err
