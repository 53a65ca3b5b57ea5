"""The cluster admin client: access rules, SCRAM users, quotas and configs of any Kafka cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from ..admin_client import AdminClient
from ..errors import Outcome, with_advice
from . import acls, configs, quotas, users
from .acls import AclQuery, AclRule
from .configs import ConfiguredResource, ConfigValue
from .quotas import ClientQuota
from .users import ScramUser


class ClusterAdmin(AdminClient):
    """``async with ClusterAdmin("localhost:9092") as admin: await admin.list_acls()``

    What ``kohort acls``, ``users``, ``quotas`` and ``configs`` do, on every broker that speaks Kafka's
    protocol. ``timeout_ms`` bounds each call, retries included. Calls raise KafkaError with the broker's
    error code and advice, and BrokerConnectionError if no broker answers in time.
    ``connection`` has settings of TLS and SASL, as consumers have them; see docs/connections.md.
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
