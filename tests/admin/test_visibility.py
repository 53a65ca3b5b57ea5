"""What brokers hide from a user is said: which right would show it, and never that all is well.

Covers: admin/visibility.py.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from kohort.admin import AclRule, ClusterAdmin, GroupAdmin
from kohort.admin.transactions.open_transactions import find_hanging
from kohort.admin.visibility import (
    Visibility,
    ask_visibility,
    hidden_field,
    sees_cluster,
    sees_every_topic,
    sees_every_transaction,
)
from kohort.client import Cluster, CommittedOffset
from kohort.client.requests import error_of
from kohort.producer import Producer
from kohort.protocol import ApiKey, ErrorCode, KafkaError, TopicPartition, UnsupportedVersionError
from kohort.protocol.messages.create_topics import CreatableTopicResult
from kohort.protocol.messages.describe_cluster import DescribeClusterResponse
from kohort.protocol.messages.describe_transactions import DescribeTransactionsResponse, TransactionState
from kohort.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from tests.admin.conftest import Ran, ran
from tests.secured import PASSWORD, Secured

As = Callable[..., Ran]
GROUPS = "the right to DESCRIBE the cluster shows all"
TOPICS = "the right to DESCRIBE every topic ('*') shows all"
UNKNOWN = -(1 << 31)


class Broker:
    """Answers as told; ``asked`` are the requests."""

    def __init__(self, **answers: Any) -> None:
        self._answers = answers
        self.asked: list[int] = []

    async def request(self, _: int | None, api_key: int, *__: object, **___: object) -> Any:
        self.asked.append(api_key)
        answer = self._answers[ApiKey(api_key).name.lower()]
        if isinstance(answer, Exception):
            raise answer
        return answer


def cluster_of(**answers: Any) -> Cluster:
    return cast(Cluster, Broker(**answers))


@pytest.mark.parametrize(
    ("operations", "seen"),
    [(UNKNOWN, True), (0, False), (1 << 8, True), (1 << 8 | 1 << 7, True), (1 << 12, False)],
)
async def test_the_right_to_describe_the_cluster_is_among_its_operations_if_brokers_know_them(
    operations: int, seen: bool
) -> None:
    answer = DescribeClusterResponse(cluster_authorized_operations=operations)
    assert await sees_cluster(cluster_of(describe_cluster=answer)) is seen
    # Kafka before 2.8 tells it with the metadata
    old = MetadataResponse(cluster_authorized_operations=operations)
    gone = UnsupportedVersionError(ApiKey.DESCRIBE_CLUSTER, 0)
    assert await sees_cluster(cluster_of(describe_cluster=gone, metadata=old)) is seen


@pytest.mark.parametrize(
    ("code", "seen"),
    [
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True),
        (ErrorCode.NONE, True),
        (ErrorCode.INVALID_TOPIC_EXCEPTION, True),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, False),
    ],
)
async def test_topics_are_hidden_if_one_of_any_name_may_not_be_described(code: int, seen: bool) -> None:
    answer = MetadataResponse(topics=[MetadataResponseTopic(error_code=code, name="any")])
    assert await sees_every_topic(cluster_of(metadata=answer)) is seen


@pytest.mark.parametrize(
    ("code", "seen"),
    [
        (ErrorCode.NOT_COORDINATOR, True),
        (ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, True),
        (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, False),
    ],
)
async def test_transactions_are_hidden_if_one_of_any_id_may_not_be_described(code: int, seen: bool) -> None:
    answer = DescribeTransactionsResponse(transaction_states=[TransactionState(error_code=code)])
    assert await sees_every_transaction(cluster_of(describe_transactions=answer)) is seen


@pytest.mark.parametrize("told", ["Authorization failed.", "Request(processor=2, buffer=java.nio ...)", None])
def test_of_missing_rights_brokers_words_say_less_than_what_was_asked(told: str | None) -> None:
    refused = CreatableTopicResult(
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, error_message=told, name="orders"
    )
    assert error_of(refused, "creating topic 'orders'").message == "creating topic 'orders'"
    invalid = refused._replace(error_code=ErrorCode.INVALID_PARTITIONS)
    assert error_of(invalid, "creating topic 'orders'").message == (told or "creating topic 'orders'")


async def test_brokers_without_access_rules_hide_nothing(bootstrap: str) -> None:
    async with Cluster(bootstrap) as cluster:
        assert await ask_visibility(cluster) == Visibility()
        assert await sees_every_transaction(cluster)
    assert hidden_field(()) == {}


# --- users of a broker with access rules --------------------------------------------------------------------


@pytest.fixture(scope="module")
def password(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("user") / "password"
    file.write_text(PASSWORD)
    return file


@pytest.fixture(scope="module")
def things(secured: Secured) -> dict[str, str]:
    """A topic and a group of ``owner``'s, who has rights to these alone and to names that begin with
    "kohort", and others. ``visitor`` has none, ``monitor`` sees the cluster, and ``describer`` that and
    everything in it, but may read no records.
    """
    named = {"own": "orders-of-owner", "other": "orders-of-others", "group": "owners", "others": "others"}
    for user in ("visitor", "owner", "monitor", "describer"):
        secured.create_user(user)
    rules = [
        AclRule("User:owner", "Allow", operation, kind, named[name])
        for kind, name in (("topic", "own"), ("group", "group"))
        for operation in ("Read", "Describe")
    ]
    rules.append(AclRule("User:owner", "Allow", "Describe", "topic", "kohort", "prefixed"))
    for user, kinds in (("monitor", ["cluster"]), ("describer", ["cluster", "topic", "group"])):
        names = {"cluster": "kafka-cluster"}
        rules += [AclRule(f"User:{user}", "Allow", "Describe", kind, names.get(kind, "*")) for kind in kinds]

    async def make() -> None:
        async with Cluster(secured.plain) as cluster:
            await cluster.create_topics({named["own"]: 1, named["other"]: 1, "others.dlt": 1})
            for group, topic in (("group", "own"), ("others", "other")):
                places = {TopicPartition(named[topic], 0): CommittedOffset(0)}
                await cluster.commit(named[group], places)
        async with Producer(bootstrap=secured.plain) as producer:
            await producer.send_and_wait(named["other"], b"value", partition=0)
            await producer.send_and_wait("others.dlt", b"value", partition=0)
        async with ClusterAdmin(secured.plain) as admin:
            assert all(done.ok for done in (await admin.add_acls(rules)).values())

    asyncio.run(make())
    return named


@pytest.fixture
def run_as(
    secured: Secured, things: dict[str, str], password: Path, capsys: pytest.CaptureFixture[str]
) -> As:
    """``run_as("visitor", "topics", "list")``: a command of a user."""
    assert things

    def run(user: str, *words: str) -> Ran:
        login = [
            *("--bootstrap", secured.sasl, "--security-protocol", "SASL_PLAINTEXT", "--timeout", "20"),
            *("--sasl-mechanism", "SCRAM-SHA-256", "--sasl-username", user),
            *("--sasl-password-file", str(password)),
        ]
        return ran(capsys, [*words, *login])

    return run


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("problems", 3, [GROUPS, TOPICS, "whether anything is wrong is not known"]),
        ("problems --json", 3, [GROUPS, TOPICS]),
        ("groups list", 1, [GROUPS, "no groups that this user may see"]),
        ("groups list --state Empty", 1, [GROUPS]),
        ("groups lag", 1, [GROUPS, "no groups that this user may see"]),
        ("groups lag --over 5", 1, [GROUPS]),
        ("groups describe --all-groups", 1, [GROUPS]),
        ("topics list", 1, [TOPICS, "no topics that this user may see"]),
        ("deadletters topics", 1, [TOPICS]),
        ("cluster status --wait", 1, [TOPICS, "whether all replicas are in sync cannot be known"]),
        ("transactions list", 1, ["the right to DESCRIBE every one ('*') shows all"]),
        ("transactions abort", 1, [TOPICS, "no transaction hangs in topics that this user may see"]),
    ],
)
def test_who_may_see_nothing_is_not_told_that_all_is_well(
    run_as: As, words: str, code: int, said: list[str]
) -> None:
    found = run_as("visitor", *words.split())
    assert found.code == code, found
    for each in said:
        assert each in found.err
    assert "nothing is wrong" not in found.err


@pytest.mark.parametrize(
    ("words", "shown", "said"),
    [
        ("problems", "", ["nothing is wrong with what this user may see", GROUPS, TOPICS]),
        ("groups list", "owners", [GROUPS]),
        ("groups list --state Dead", "", [GROUPS, "no groups that this user may see"]),
        ("groups lag", "owners", [GROUPS]),
        ("groups lag --over 5", "", [GROUPS, "no group that this user may see is further behind"]),
        ("groups describe --all-groups", "owners", [GROUPS]),
        ("topics list", "orders-of-owner", [TOPICS]),
        ("topics describe orders-of-owner", "orders-of-owner", ["the right to DESCRIBE_CONFIGS shows them"]),
        ("deadletters topics", "no topic that this user may see has letters", [TOPICS]),
        ("transactions abort", "", [TOPICS]),
    ],
)
def test_who_has_a_topic_and_a_group_sees_these_and_that_others_may_be_hidden(
    run_as: As, words: str, shown: str, said: list[str]
) -> None:
    found = run_as("owner", *words.split())
    assert found.code == 0, found
    assert shown in found.out
    assert "others" not in found.out
    for each in said:
        assert each in found.err


def test_groups_that_are_listed_and_may_not_be_described_are_told_one_by_one(run_as: As) -> None:
    listed = run_as("monitor", "groups", "list", "--lag")
    assert (listed.code, "owners" in listed.out) == (0, True)
    assert "owners: GROUP_AUTHORIZATION_FAILED (30)" in listed.err
    described = run_as("monitor", "groups", "describe", "--all-groups")
    assert described.code == 1
    assert "owners: GROUP_AUTHORIZATION_FAILED (30)" in described.err
    assert "others: GROUP_AUTHORIZATION_FAILED (30)" in described.err
    some = run_as("owner", "groups", "describe", "owners", "others")
    assert (some.code, "owners" in some.out) == (1, True)
    assert "others: GROUP_AUTHORIZATION_FAILED (30)" in some.err
    problems = run_as("monitor", "problems")
    assert problems.code == 3
    assert "whether anything is wrong is not known" in problems.err
    assert re.search(r"the lag of .*group.* is hidden: the right to DESCRIBE them shows it", problems.err)


def test_what_needs_the_right_to_read_is_told_as_hidden_from_problems(run_as: As) -> None:
    found = run_as("describer", "problems")
    assert re.search(r"the age of what .*others.* has not read is hidden: the right to READ its", found.err)
    assert "dead letters in topic others.dlt are hidden: the right to READ them shows them" in found.err
    assert "transactions that hang are not looked for: TOPIC_AUTHORIZATION_FAILED" in found.err
    assert "nothing is wrong, " not in found.err


def test_a_login_that_is_refused_is_no_problem_that_was_found(run_as: As) -> None:
    refused = run_as("nobody-of-this-name", "problems")
    assert (refused.code, "authentication" in refused.err.lower()) == (3, True)


def test_documents_say_what_is_hidden(run_as: As) -> None:
    for user, groups in (("owner", ["owners"]), ("visitor", [])):
        told = run_as(user, "groups", "list", "--json").document
        assert [row["group"] for row in told["groups"]] == groups
        assert GROUPS in told["hidden"][0]
    [described] = run_as("owner", "topics", "describe", "orders-of-owner", "--json").document["topics"]
    assert described["configs"] is None
    assert TOPICS in run_as("owner", "topics", "list", "--json").document["hidden"][0]
    assert GROUPS in json.loads(run_as("owner", "groups", "lag", "--json").out)["hidden"][0]


def test_whoever_may_do_all_is_told_of_nothing_hidden(run_as: As) -> None:
    for words in (["groups", "list"], ["groups", "lag"], ["topics", "list"], ["transactions", "list"]):
        found = run_as("me", *words)
        assert (found.code, "hidden" in found.err) == (0, False), found
    assert "hidden" not in run_as("me", "problems").err
    assert "hidden" not in run_as("me", "groups", "list", "--json").document


def test_records_that_may_not_be_written_are_refused_with_the_right(
    run_as: As, secured: Secured, tmp_path: Path
) -> None:
    records = tmp_path / "records"
    records.write_text("one\n")
    refused = run_as("owner", "produce", "orders-of-owner", "--file", str(records))
    assert "asking for a producer id; ask for the right to WRITE to the topic" in refused.err
    rule = AclRule("User:owner", "Allow", "Write", "topic", "elsewhere")

    async def allow() -> None:
        async with ClusterAdmin(secured.plain) as admin:
            assert (await admin.add_acls([rule]))[rule].ok

    asyncio.run(allow())
    # whoever may write to any topic gets a producer id
    refused = run_as("owner", "produce", "orders-of-owner", "--file", str(records))
    assert "1 record was refused for orders-of-owner-0; ask for the right" in refused.err
    assert refused.code == 1


def test_refusals_name_what_was_asked_for_and_the_right(run_as: As) -> None:
    """Apache Kafka says "Authorization failed." of some, and shows others as Java prints them."""
    for words, named in (
        ("topics create new", "creating topic 'new'"),
        ("topics delete orders-of-owner", "deleting topic 'orders-of-owner'"),
        ("configs list --topic orders-of-owner", "configs of topic orders-of-owner; ask for the right"),
        ("acls list", "access rules; ask for the right to DESCRIBE"),
        ("quotas list", "quotas; ask for the right to DESCRIBE"),
        ("cluster status", "reassignments; ask for the right to DESCRIBE"),
        ("transactions describe mine", "'mine'; ask for the right to DESCRIBE (to write: WRITE) the trans"),
        ("deadletters replay orders-of-owner --execute", "'kohort-deadletters-orders-of-owner'; ask for"),
    ):
        found = run_as("owner", *words.split())
        assert found.code == 1, found
        assert named in found.out + found.err
        assert "Request(" not in found.out + found.err


async def test_a_transaction_whose_coordinator_may_hide_it_does_not_hang(
    secured: Secured, things: dict[str, str]
) -> None:
    login: dict[str, Any] = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "SCRAM-SHA-256"}
    login |= {"sasl_plain_username": "owner", "sasl_plain_password": PASSWORD}
    async with Producer(bootstrap=secured.plain, transactional_id="of-others", linger_ms=0) as producer:
        producer.begin_transaction()
        await producer.send_and_wait(things["own"], b"1", partition=0)
        async with Cluster(secured.plain) as cluster:
            assert await find_hanging(cluster, [things["own"]]) == []
        async with GroupAdmin(secured.sasl, **login) as owner:
            with pytest.raises(KafkaError, match="may hide them from this user") as refused:
                await find_hanging(owner.cluster, [things["own"]])
        assert refused.value.code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        await producer.abort_transaction()
