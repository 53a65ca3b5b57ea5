"""``ClusterAdmin``: rules, users, quotas and configs from Python.

Covers: admin/admin_client.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from kohort.admin import AclQuery, AclRule, ClientQuota, ClusterAdmin, ConfiguredResource, ScramUser
from kohort.admin.access.users import ScramMechanism
from kohort.protocol import ErrorCode, KafkaError
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
