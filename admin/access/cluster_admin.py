"""The cluster admin client: access rules, SCRAM users, quotas, configs, features and the deletion of records
of any Kafka cluster.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from ..admin_client import AdminClient
from ..cluster import feature_levels
from ..cluster.feature_levels import FeatureLevel
from ..errors import Outcome, with_advice
from ..topics.deletion import RecordDeletion, carry_out_deletion, plan_deletion
from . import acls, configs, quotas, users
from .acls import AclQuery, AclRule
from .configs import ConfiguredResource, ConfigValue
from .quotas import ClientQuota
from .users import ScramUser


class ClusterAdmin(AdminClient):
    """``async with ClusterAdmin("localhost:9092") as admin: await admin.list_acls()``

    What ``kohort acls``, ``users``, ``quotas``, ``configs``, ``cluster features`` and ``topics
    delete-records`` do, on every broker that speaks Kafka's protocol. ``timeout_ms`` bounds each call,
    retries included. Calls raise KafkaError with the broker's error code and advice, and
    BrokerConnectionError if no broker answers in time. ``connection`` has settings of TLS and SASL, as
    consumers have them; see docs/connections.md.
    """

    @with_advice
    async def list_acls(self, *filters: AclQuery) -> list[AclRule]:
        """The rules that one of the filters matches, all without one; by principal and resource."""
        return await acls.list_acls(self.cluster, filters or (AclQuery(),))

    @with_advice
    async def add_acls(self, rules: Iterable[AclRule]) -> dict[AclRule, Outcome]:
        """Add rules, each for itself; one that exists already stays."""
        return dict(await acls.add_acls(self.cluster, rules))

    @with_advice
    async def remove_acls(self, rules: Iterable[AclRule]) -> dict[AclRule, Outcome]:
        """Remove exactly these rules, each for itself; one that is gone already is no error."""
        return dict(await acls.remove_acls(self.cluster, rules))

    @with_advice
    async def list_users(self, names: Iterable[str] | None = None) -> list[ScramUser]:
        """SCRAM users by name, all or these; those without credentials are left out."""
        return await users.list_users(self.cluster, names)

    @with_advice
    async def set_password(
        self,
        user: str,
        password: str,
        *,
        mechanisms: Collection[str] = ("SCRAM-SHA-256", "SCRAM-SHA-512"),
        iterations: int = 4_096,
    ) -> None:
        """Make a SCRAM user, or give one another password. It is salted here: no broker sees it."""
        await users.set_password(self.cluster, user, password, mechanisms, iterations)

    @with_advice
    async def remove_user(self, user: str, *, mechanisms: Sequence[str] | None = None) -> None:
        """Take a user's SCRAM credentials away, all or those for these mechanisms, which must exist."""
        if mechanisms is None:
            found = await users.list_users(self.cluster, [user])
            mechanisms = [one.mechanism for each in found for one in each.mechanisms]
        await users.remove_credentials(self.cluster, user, mechanisms)

    @with_advice
    async def list_quotas(
        self, entity: Mapping[str, str | None] | None = None, *, exact: bool = False
    ) -> list[ClientQuota]:
        """The quotas of all entities that have these parts, such as ``{"user": "alice"}``; None as a name is
        the default. With ``exact`` of this entity alone.
        """
        return await quotas.list_quotas(self.cluster, entity or {}, exact=exact)

    @with_advice
    async def alter_quotas(
        self, entity: Mapping[str, str | None], changes: Mapping[str, float | None], *, dry_run: bool = False
    ) -> None:
        """Set quotas of an entity; None removes one. With ``dry_run`` brokers only say if they would."""
        await quotas.alter_quotas(self.cluster, entity, changes, only_ask=dry_run)

    @with_advice
    async def describe_configs(
        self, resources: Iterable[ConfiguredResource]
    ) -> dict[ConfiguredResource, list[ConfigValue]]:
        """All configs of each resource, and where each value comes from."""
        return await configs.describe_configs(self.cluster, resources)

    @with_advice
    async def alter_configs(
        self, resource: ConfiguredResource, changes: Mapping[str, str | None], *, dry_run: bool = False
    ) -> None:
        """Set configs of a resource; None deletes one. With ``dry_run`` brokers only say if they would."""
        await configs.alter_configs(self.cluster, resource, changes, only_ask=dry_run)

    @with_advice
    async def list_features(self) -> list[FeatureLevel]:
        """Features by name, with the levels that every broker supports."""
        return await feature_levels.list_features(self.cluster)

    @with_advice
    async def update_features(
        self, levels: Mapping[str, int] | None = None, *, unsafe: bool = False, dry_run: bool = False
    ) -> list[FeatureLevel]:
        """Give features these levels (0: off), all or none; without ``levels`` each gets the highest that
        all brokers support. Returns all features as they were, ``then`` is what was asked for.

        A level is lowered even if metadata are lost by that only with ``unsafe``. With ``dry_run`` the
        controller only says if it would. Raises ConfigError for a feature that no broker has.
        """
        plan = await feature_levels.plan_features(self.cluster, levels)
        await feature_levels.update_features(self.cluster, plan, unsafe=unsafe, only_ask=dry_run)
        return plan

    @with_advice
    async def delete_records(
        self,
        topics: Mapping[str, Collection[int]],
        *,
        before_offset: int | None = None,
        before_ms: int | None = None,
        every: bool = False,
        dry_run: bool = False,
    ) -> list[RecordDeletion]:
        """Delete records for good, of all partitions of a topic (``{"orders": []}``) or of these: offsets
        below one, all before the first record of a time or later (in ms since 1970), or every record there
        is now. Returns what went of each partition, or with ``dry_run`` what would go; each has its outcome.

        Raises ConfigError unless one of the three is given, KafkaError for a topic or partition that is not
        there.
        """
        plan = await plan_deletion(
            self.cluster, topics, before_offset=before_offset, before_ms=before_ms, every=every
        )
        return plan if dry_run else await carry_out_deletion(self.cluster, plan)
