"""What rules say, and that the quick way to ask them gives what going through them all would."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.broker.authorizer import Acl, AclBindingFilter, Operation, PatternType, Permission, ResourceType
from kohort.broker.authorizer._acls import IMPLIED_BY
from kohort.broker.authorizer._rules import AclRules, Verdict

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
ALLOW, DENY = Permission.ALLOW, Permission.DENY
ALLOWED, DENIED, NO_RULES = Verdict.ALLOWED, Verdict.DENIED, Verdict.NO_RULES


def acl(
    name: str = "orders",
    pattern: PatternType = LITERAL,
    operation: Operation = Operation.READ,
    permission: Permission = ALLOW,
    principal: str = "User:alice",
    host: str = "*",
) -> Acl:
    return Acl(TOPIC, name, pattern, principal, host, operation, permission)


def asked(
    *acls: Acl, operation: Operation = Operation.READ, name: str = "orders", host: str = "10.0.0.1"
) -> Verdict:
    return AclRules(acls).verdict("User:alice", host, operation, TOPIC, name)


@pytest.mark.parametrize(
    ("acls", "verdict"),
    [
        ((), NO_RULES),
        ((acl("bills"),), NO_RULES),
        ((acl(),), ALLOWED),
        ((acl("*"),), ALLOWED),
        ((acl("ord", PREFIXED),), ALLOWED),
        ((acl("orders-", PREFIXED),), NO_RULES),
        ((acl(principal="User:*"),), ALLOWED),
        ((acl(principal="User:bob"),), DENIED),
        ((acl(host="10.0.0.1"),), ALLOWED),
        ((acl(host="10.0.0.2"),), DENIED),
        ((acl(operation=Operation.WRITE),), DENIED),
        ((acl(operation=Operation.ALL),), ALLOWED),
        ((acl(permission=DENY),), DENIED),
        ((acl(), acl("*", permission=DENY)), DENIED),
        ((acl("*"), acl("ord", PREFIXED, permission=DENY)), DENIED),
        ((acl(), acl(permission=DENY, principal="User:*")), DENIED),
        ((acl(), acl(permission=DENY, principal="User:bob")), ALLOWED),
        ((acl(), acl(permission=DENY, host="10.0.0.2")), ALLOWED),
        ((acl(operation=Operation.ALL), acl(permission=DENY, operation=Operation.WRITE)), ALLOWED),
        ((acl(operation=Operation.READ), acl(permission=DENY, operation=Operation.ALL)), DENIED),
    ],
)
def test_a_denial_wins_and_what_nothing_permits_is_denied(acls: tuple[Acl, ...], verdict: Verdict) -> None:
    assert asked(*acls) is verdict
    assert asked(*reversed(acls)) is verdict


@pytest.mark.parametrize("operation", Operation)
def test_who_may_change_or_read_may_also_describe(operation: Operation) -> None:
    describes = operation.name in {"DESCRIBE", "READ", "WRITE", "DELETE", "ALTER", "ALL"}
    of_configs = operation.name in {"DESCRIBE_CONFIGS", "ALTER_CONFIGS", "ALL"}
    allowed = acl(operation=operation)
    assert (asked(allowed, operation=Operation.DESCRIBE) is ALLOWED) == describes
    assert (asked(allowed, operation=Operation.DESCRIBE_CONFIGS) is ALLOWED) == of_configs


@pytest.mark.parametrize("operation", [Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER])
def test_a_denial_implies_nothing(operation: Operation) -> None:
    rules = acl(operation=Operation.DESCRIBE), acl(operation=operation, permission=DENY)
    assert asked(*rules, operation=Operation.DESCRIBE) is ALLOWED


def test_rules_of_another_kind_of_resource_say_nothing() -> None:
    assert AclRules([acl("*")]).verdict("User:alice", "h", Operation.READ, GROUP, "orders") is NO_RULES


@pytest.mark.parametrize(
    ("acls", "some"),
    [
        ((), False),
        ((acl("a", operation=Operation.WRITE),), True),
        ((acl("a", operation=Operation.ALL),), True),
        ((acl("a", operation=Operation.READ),), False),
        ((acl("a", operation=Operation.WRITE, principal="User:bob"),), False),
        ((acl("a", operation=Operation.WRITE, principal="User:*"),), True),
        ((acl("a", operation=Operation.WRITE, host="elsewhere"),), False),
        ((acl("a", operation=Operation.WRITE), acl("a", operation=Operation.WRITE, permission=DENY)), False),
        ((acl("ab", operation=Operation.WRITE), acl("a", PREFIXED, Operation.WRITE, DENY)), False),
        ((acl("a", PREFIXED, Operation.WRITE), acl("ab", PREFIXED, Operation.WRITE, DENY)), True),
        ((acl("a", PREFIXED, Operation.WRITE), acl("a", PREFIXED, Operation.ALL, DENY)), False),
        ((acl("a", PREFIXED, Operation.WRITE), acl("a", LITERAL, Operation.WRITE, DENY)), True),
        ((acl("*", operation=Operation.WRITE), acl("a", PREFIXED, Operation.WRITE, DENY)), True),
        ((acl("a", operation=Operation.WRITE), acl("*", operation=Operation.WRITE, permission=DENY)), False),
        ((acl("*", operation=Operation.WRITE), acl("*", PREFIXED, Operation.WRITE, DENY)), True),
        ((acl("*", PREFIXED, Operation.WRITE), acl("*", PREFIXED, Operation.WRITE, DENY)), False),
        ((acl("*", PREFIXED, Operation.WRITE),), True),
    ],
)
def test_whether_there_may_be_a_topic_to_write_to(acls: tuple[Acl, ...], some: bool) -> None:
    assert AclRules(acls).allows_some("User:alice", "10.0.0.1", Operation.WRITE, TOPIC) is some


def test_whether_there_may_be_one_is_looked_for_among_the_clients_own_rules(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    others = [acl(f"t{number}", operation=Operation.WRITE, principal=f"User:{number}") for number in range(9)]
    rules = AclRules([*others, acl("a", operation=Operation.WRITE)])
    monkeypatch.setattr(rules, "_acls", None)  # each producer asks, and there may be thousands of rules
    assert rules.allows_some("User:alice", "10.0.0.1", Operation.WRITE, TOPIC)
    assert not rules.allows_some("User:carol", "10.0.0.1", Operation.WRITE, TOPIC)


names = st.text("ab*", min_size=1, max_size=3)
any_acl = st.builds(
    Acl,
    st.sampled_from([TOPIC, GROUP]),
    names,
    st.sampled_from([LITERAL, PREFIXED]),
    st.sampled_from(["User:alice", "User:bob", "User:*"]),
    st.sampled_from(["*", "h1", "h2"]),
    st.sampled_from([Operation.READ, Operation.DESCRIBE, Operation.ALL, Operation.ALTER_CONFIGS]),
    st.sampled_from([ALLOW, DENY]),
)


def plainly(acls: list[Acl], host: str, operation: Operation, name: str) -> Verdict:
    """The verdict by looking at every rule."""
    about = [
        one
        for one in acls
        if one.resource_type is TOPIC
        and (
            (one.pattern_type is LITERAL and one.name in (name, "*"))
            or (one.pattern_type is PREFIXED and name.startswith(one.name))
        )
    ]
    if not about:
        return NO_RULES
    mine = [one for one in about if one.principal in ("User:alice", "User:*") and one.host in ("*", host)]
    if any(one.permission is DENY and one.operation in (operation, Operation.ALL) for one in mine):
        return DENIED
    permitting = {operation, Operation.ALL, *IMPLIED_BY.get(operation, ())}
    return ALLOWED if any(one.permission is ALLOW and one.operation in permitting for one in mine) else DENIED


@given(
    st.lists(any_acl, max_size=8),
    st.lists(any_acl, max_size=4),
    st.sampled_from(["h1", "h2"]),
    st.sampled_from([Operation.READ, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS, Operation.DELETE]),
    names,
)
def test_the_quick_way_says_what_looking_at_every_rule_says(
    acls: list[Acl], gone: list[Acl], host: str, operation: Operation, name: str
) -> None:
    rules = AclRules([*acls, *gone])
    assert rules.verdict("User:alice", host, operation, TOPIC, name) is plainly(
        [*acls, *gone], host, operation, name
    )
    rules.remove(gone)
    left = [one for one in acls if one not in gone]
    assert list(rules) == list(dict.fromkeys(left))
    assert rules.verdict("User:alice", host, operation, TOPIC, name) is plainly(left, host, operation, name)


any_filter = st.builds(
    AclBindingFilter,
    name=st.none() | names,
    pattern_type=st.sampled_from([PatternType.ANY, PatternType.MATCH, LITERAL, PREFIXED]),
    principal=st.sampled_from([None, "User:alice", "User:nobody"]),
    host=st.sampled_from([None, "*", "h1", "h3"]),
)


@given(st.lists(any_acl, max_size=8), st.lists(any_acl, max_size=3), any_filter)
def test_a_filter_finds_what_it_matches_oldest_first(
    acls: list[Acl], gone: list[Acl], wanted: AclBindingFilter
) -> None:
    rules = AclRules([*gone, *acls])
    rules.remove(gone)
    assert rules.find(wanted) == [one for one in rules if wanted.matches(one)]


@pytest.mark.parametrize(
    "wanted",
    [
        AclBindingFilter(name="t77"),
        AclBindingFilter(name="t77-1", pattern_type=PatternType.MATCH),
        AclBindingFilter(principal="User:77"),
        AclBindingFilter(host="h77", operation=Operation.READ),
        AclBindingFilter(name="t77", principal="User:nobody"),
    ],
)
def test_a_filter_is_compared_with_the_rules_of_its_names_alone(
    wanted: AclBindingFilter, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = AclRules(
        acl(f"t{number}", pattern, principal=f"User:{number}", host=f"h{number}")
        for number in range(1_000)
        for pattern in (LITERAL, PREFIXED)
    )
    compared: list[Acl] = []
    matches = AclBindingFilter.matches

    def noted(wanted: AclBindingFilter, one: Acl) -> bool:
        compared.append(one)
        return matches(wanted, one)

    monkeypatch.setattr(AclBindingFilter, "matches", noted)
    found = rules.find(wanted)
    assert {one.name for one in found} <= {"t77", "t7"}
    assert len(compared) <= 4
