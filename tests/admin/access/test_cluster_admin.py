"""``ClusterAdmin``: rules, users, quotas, configs, features and the deletion of records from Python.

Covers: admin/admin_client.py, admin/cluster/feature_levels.py, admin/topics/deletion.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from kohort.admin import (
    AclQuery,
    AclRule,
    ClientQuota,
    ClusterAdmin,
    ConfiguredResource,
    RecordDeletion,
    ScramUser,
)
from kohort.admin.access.users import ScramMechanism
from kohort.client import ConfigError
from kohort.producer import Producer
from kohort.protocol import ErrorCode, KafkaError
from kohort.testing import running_broker
from tests.secured import PASSWORD, Secured

pytestmark = pytest.mark.kafka

Names = Callable[[str], str]


@pytest.fixture
async def admin(secured: Secured) -> AsyncIterator[ClusterAdmin]:
    async with ClusterAdmin(secured.plain, timeout_ms=20_000) as client:
        yield client


async def known(ask: Callable[[], Awaitable[object]], expected: object) -> None:
    """Wait until the broker knows a change: Apache Kafka's does a moment after it has answered."""
    async with asyncio.timeout(20):
        while (found := await ask()) != expected:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.02)
    assert found == expected


async def test_rules_are_added_listed_and_removed(admin: ClusterAdmin, topic: Names) -> None:
    rule = AclRule("User:etl", "Allow", "Read", "topic", topic("orders"))
    assert {key: outcome.ok for key, outcome in (await admin.add_acls([rule, rule])).items()} == {rule: True}
    await known(lambda: admin.list_acls(AclQuery("topic", rule.name, "match", ["User:etl"])), [rule])
    assert rule in await admin.list_acls()
    assert (await admin.remove_acls([rule]))[rule].ok
    await known(lambda: admin.list_acls(AclQuery("topic", rule.name)), [])


async def test_a_user_is_made_and_removed(admin: ClusterAdmin, group: Names) -> None:
    user = group("etl")
    await admin.set_password(user, "gehe1m", mechanisms=["SCRAM-SHA-512"], iterations=8_192)
    await admin.set_password(user, "gehe1m", mechanisms=["SCRAM-SHA-256"])
    both = (ScramMechanism("SCRAM-SHA-256", 4096), ScramMechanism("SCRAM-SHA-512", 8192))
    await known(lambda: admin.list_users([user]), [ScramUser(user, both)])
    await admin.remove_user(user)
    await known(lambda: admin.list_users([user]), [])


async def test_quotas_and_configs_are_asked_about_before_they_are_set(
    admin: ClusterAdmin, group: Names
) -> None:
    entity, its = {"user": group("alice")}, ConfiguredResource("group", group("billing"))
    for dry_run in (True, False):
        assert await admin.list_quotas(entity, exact=True) == []
        await admin.alter_quotas(entity, {"producer_byte_rate": 5.0}, dry_run=dry_run)
        assert not [each for each in (await admin.describe_configs([its]))[its] if each.own]
        await admin.alter_configs(its, {"consumer.session.timeout.ms": "50000"}, dry_run=dry_run)
    await known(lambda: admin.list_quotas(entity), [ClientQuota(entity, {"producer_byte_rate": 5.0})])

    async def own() -> list[tuple[str, str | None, str]]:
        found = (await admin.describe_configs([its]))[its]
        return [(each.name, each.value, each.source) for each in found if each.own]

    await known(own, [("consumer.session.timeout.ms", "50000", "group")])


async def test_levels_of_features_are_asked_about_and_what_cannot_be_is_told(admin: ClusterAdmin) -> None:
    features = {each.feature: each for each in await admin.list_features()}
    group = features["group.version"]
    assert (group.level, group.then) == (1, None)
    same = {each.feature: each for each in await admin.update_features({"group.version": 1})}
    assert same["group.version"] == replace(group, then=1)
    with pytest.raises(KafkaError, match="INVALID_UPDATE_VERSION"):
        await admin.update_features({"group.version": 9}, dry_run=True)
    with pytest.raises(ConfigError, match=r"no broker has a feature 'group\.versions', did you mean group"):
        await admin.update_features({"group.versions": 1})
    assert {each.feature: each for each in await admin.list_features()} == features


async def test_a_level_is_changed_and_raised_to_the_highest() -> None:
    with running_broker() as broker:
        async with ClusterAdmin(broker.bootstrap) as admin:

            async def level() -> int:
                return {each.feature: each.level for each in await admin.list_features()}["share.version"]

            for dry_run in (True, False):
                assert await level() == 1
                await admin.update_features({"share.version": 0}, dry_run=dry_run)
            assert await level() == 0
            found = {each.feature: each.then for each in await admin.update_features()}
            assert found["share.version"] == 1
            assert await level() == 1


async def test_records_are_deleted_as_a_dry_run_has_said(
    admin: ClusterAdmin, secured: Secured, topic: Names
) -> None:
    name = topic("orders")
    async with Producer(bootstrap_servers=secured.plain) as producer:
        for number in range(10):
            await producer.send_and_wait(name, b"x", partition=0, timestamp_ms=1_000 + number)
    for dry_run in (True, False):
        (told,) = await admin.delete_records({name: [0]}, before_offset=6, dry_run=dry_run)
        assert told == RecordDeletion(name, 0, 0, 6, 10)
    (later,) = await admin.delete_records({name: [0]}, before_ms=1_008)
    assert (later.start_offset, later.new_start_offset, later.offsets) == (6, 8, 2)
    (rest,) = await admin.delete_records({name: [0]}, every=True)
    assert (rest.start_offset, rest.new_start_offset) == (8, 10)
    assert await admin.delete_records({name: []}, every=True) == [], "nothing is left"


async def test_which_records_are_deleted_has_to_be_said_and_where(admin: ClusterAdmin, topic: Names) -> None:
    which: list[dict[str, Any]] = [
        {},
        {"before_offset": 0, "every": True},
        {"before_offset": 0, "before_ms": 0},
    ]
    for each in which:
        with pytest.raises(ConfigError, match="say which records"):
            await admin.delete_records({"orders": []}, **each)
    with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        await admin.delete_records({topic("not-there"): []}, every=True)


async def test_a_refusal_has_the_brokers_number_and_advice(secured: Secured) -> None:
    login = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": "bob",
        "sasl_plain_password": PASSWORD,
    }
    async with ClusterAdmin(secured.sasl, timeout_ms=20_000, **login) as admin:
        with pytest.raises(KafkaError, match="ask for the right to DESCRIBE") as caught:
            await admin.list_acls()
        assert caught.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        with pytest.raises(KafkaError, match="CLUSTER_AUTHORIZATION_FAILED"):
            await admin.set_password("bob", "x")
