"""Authorizer of a broker: the rules, the super users, and a cache of decisions."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, TypeAlias

from ...protocol import RequestContext
from ...protocol.named_tuples import NamedTuple
from ..reporting.log_lines import RateLimitedLog, cut_text
from ._acls import OPERATIONS, Acl, AclBindingFilter, Operation, ResourceType
from ._rules import AclRules, Verdict

log = logging.getLogger("kohort.broker.authorizer")

#: Kafka's name for these rules, the value of ``authorizer.class.name`` that switches them on.
STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"

#: Most bytes of cached decisions; beyond that all are dropped.
MAX_REMEMBERED_BYTES: Final = 16 << 20

#: The longest cached name, in characters: decisions about longer ones are made each time.
MAX_REMEMBERED_NAME: Final = 249

#: Bytes of a decision besides its name, and of remembering that a refusal was logged.
_DECISION_BYTES: Final = 300

#: A name of a resource that no rule names, as Apache Kafka uses it.
_ANY_NAME: Final = "hardcode"

#: Principal, host (as in RequestContext), operation and type of a resource.
Subject: TypeAlias = tuple[str, str, Operation, ResourceType]

#: Decisions by name of the resource.
Verdicts: TypeAlias = dict[str, bool]


class Readable(NamedTuple):
    """Cached decisions about the groups and topics that a client may read.

    Read-only, and valid only while ``memory`` is the authorizer's ``remembered``.
    """

    memory: dict[Subject, Verdicts]
    groups: Verdicts
    topics: Verdicts


class Authorizer:
    """Decides what clients may do; repeated decisions take one lookup.

    ``acls`` are the rules at the start; ``save`` makes a whole new set of them durable, before it is in
    force, and raises OSError if it cannot: the old set then stays in force.
    """

    def __init__(
        self,
        acls: Iterable[Acl] = (),
        *,
        super_users: Iterable[str] = (),
        allow_everyone_if_no_acl_found: bool = False,
        save: Callable[[Sequence[Acl]], Awaitable[None]] | None = None,
    ) -> None:
        self._rules = AclRules(acls)
        self._super_users = frozenset(super_users)
        self._without_rules = allow_everyone_if_no_acl_found
        self._save = save
        #: Cached decisions; a new object whenever rules have changed.
        self.remembered: dict[Subject, Verdicts] = {}
        self._bytes = 0
        self._told: set[tuple[Subject, str]] = set()
        self._denials = RateLimitedLog(logging.INFO, logger=log)

    def __repr__(self) -> str:
        return f"<Authorizer: {len(self._rules)} rules, {len(self._super_users)} super users>"

    @property
    def rule_count(self) -> int:
        """Number of rules."""
        return len(self._rules)

    def allows(
        self, context: RequestContext, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        """Return whether the sender of a request may do this. A refusal is logged once while it is cached,
        and within the limit of lines that clients cause.
        """
        verdicts = self._verdicts_of(context, operation, resource_type)
        allowed = verdicts.get(name)
        if allowed is None:
            allowed = self._decide_access(context, operation, resource_type, name)
        if not allowed:
            self._log_denial((context.principal, context.client_host, operation, resource_type), name)
        return allowed

    def shows(
        self, context: RequestContext, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        """As ``allows``, for things that are left out of a response: they are not refused, so nothing is
        logged.
        """
        allowed = self._verdicts_of(context, operation, resource_type).get(name)
        return self._decide_access(context, operation, resource_type, name) if allowed is None else allowed

    def readable(self, context: RequestContext) -> Readable:
        """Cached decisions about what a client may read: True is allowed; for all else call ``allows``."""
        groups = self._verdicts_of(context, Operation.READ, ResourceType.GROUP)
        topics = self._verdicts_of(context, Operation.READ, ResourceType.TOPIC)
        return Readable(self.remembered, groups, topics)

    def allows_some(self, context: RequestContext, operation: Operation, resource_type: ResourceType) -> bool:
        """Return whether there may be a resource of this type on which the sender of a request may do
        this.
        """
        return self.shows(context, operation, resource_type, _ANY_NAME) or self._rules.allows_some(
            context.principal, _host_address(context.client_host), operation, resource_type
        )

    def operations(self, context: RequestContext, resource_type: ResourceType, name: str) -> frozenset[int]:
        """Numbers of all operations on a resource that the sender of a request may do."""
        return frozenset(
            int(operation)
            for operation in OPERATIONS[resource_type]
            if self.shows(context, operation, resource_type, name)
        )

    def find(self, wanted: AclBindingFilter) -> list[Acl]:
        """The rules that match a filter, oldest first."""
        return self._rules.find(wanted)

    async def create(self, acls: Iterable[Acl]) -> None:
        """Add rules; they are durable and in force when this returns. Raises OSError."""
        new = [acl for acl in dict.fromkeys(acls) if acl not in self._rules]
        if new:
            if self._save is not None:
                await self._save([*self._rules, *new])
            self._rules.add(new)
            self._forget_verdicts()

    async def delete(self, acls: Iterable[Acl]) -> None:
        """Delete rules; that is durable and in force when this returns. Raises OSError."""
        gone = set(acls)
        if gone:
            if self._save is not None:
                await self._save([acl for acl in self._rules if acl not in gone])
            self._rules.remove(gone)
            self._forget_verdicts()

    def replace(self, acls: Iterable[Acl]) -> None:
        """Replace all rules by these, which are durable already."""
        self._rules = AclRules(acls)
        self._forget_verdicts()

    def _verdicts_of(
        self, context: RequestContext, operation: Operation, resource_type: ResourceType
    ) -> Verdicts:
        subject = (context.principal, context.client_host, operation, resource_type)
        known = self.remembered.get(subject)
        if known is None:
            self._make_room(context.principal)
            known = self.remembered[subject] = {}
        return known

    def _decide_access(
        self, context: RequestContext, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        principal = context.principal
        if principal in self._super_users:
            allowed = True
        else:
            host = _host_address(context.client_host)
            verdict = self._rules.verdict(principal, host, operation, resource_type, name)
            allowed = self._without_rules if verdict is Verdict.NO_RULES else verdict is Verdict.ALLOWED
        if len(name) <= MAX_REMEMBERED_NAME:
            self._make_room(name)
            self._verdicts_of(context, operation, resource_type)[name] = allowed
        return allowed

    def _make_room(self, text: str) -> None:
        """Make room for one more decision, or one more client."""
        size = _DECISION_BYTES + (len(text) if text.isascii() else 4 * len(text))
        if self._bytes + size > MAX_REMEMBERED_BYTES:
            self._forget_verdicts()
        self._bytes += size

    def _log_denial(self, subject: Subject, name: str) -> None:
        if (subject, name) in self._told:
            return
        if len(name) <= MAX_REMEMBERED_NAME:
            self._told.add((subject, name))
        principal, host, operation, resource_type = subject
        self._denials.say(
            "denied: %r from %s may not %s %s %r",
            cut_text(principal),
            _host_address(host),
            operation.name,
            resource_type.name,
            cut_text(name),
        )

    def _forget_verdicts(self) -> None:
        for verdicts in self.remembered.values():
            # connections that still hold it find nothing in it
            verdicts.clear()
        self.remembered = {}
        self._bytes = 0
        self._told.clear()


def _host_address(client_host: str) -> str:
    """The address in rules; a context has Java's slash before it."""
    return client_host.removeprefix("/")
