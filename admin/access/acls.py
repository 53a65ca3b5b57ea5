"""Access rules (KIP-11, KIP-290) in words, and the requests about them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from ...client import Cluster
from ...client.requests import controller, error_of, refusal_text
from ...protocol import ApiKey
from ...protocol.messages.create_acls import AclCreation, CreateAclsRequest
from ...protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ...protocol.messages.describe_acls import DescribeAclsRequest
from ..errors import Outcome, outcome_of
from .acl_words import OPERATIONS, PATTERNS, PERMISSIONS, RESOURCES

#: Matches everything, in each field of a request's filter.
_ANY: Final = 1


class AclRule(NamedTuple):
    """A rule: ``principal`` from ``host`` may ("Allow") or may not ("Deny") do ``operation`` ("Read",
    "DescribeConfigs" ...) on the resources of the type ("topic", "group", "cluster", "transactional-id" ...)
    that have the ``name`` ("literal") or begin with it ("prefixed"). What has no name here is its number.
    """

    principal: str
    permission: str
    operation: str
    resource: str
    name: str
    pattern: str = "literal"
    host: str = "*"

    def __str__(self) -> str:
        name = f"{self.name}..." if self.pattern == "prefixed" else self.name
        where = "" if self.host == "*" else f" from {self.host}"
        return f"{self.permission} {self.principal} {self.operation} on {self.resource} {name}{where}"


class AclQuery(NamedTuple):
    """What rules must have to be listed; None and no names match all. The pattern "match" takes the rules
    that hold for ``name``: the literal one, prefixes of it, and those for every name.
    """

    resource: str | None = None
    name: str | None = None
    pattern: str = "any"
    principals: Sequence[str] = ()
    operations: Sequence[str] = ()
    permission: str | None = None
    hosts: Sequence[str] = ()

    def takes(self, rule: AclRule) -> bool:
        """Return whether a rule of a resource that was asked for is wanted."""
        return (
            (not self.principals or rule.principal in self.principals)
            and (not self.operations or rule.operation in self.operations)
            and self.permission in (None, rule.permission)
            and (not self.hosts or rule.host in self.hosts)
        )


Outcomes: TypeAlias = list[tuple[AclRule, Outcome]]


def _number(names: Sequence[str], name: str) -> int:
    return int(name) if name.isdigit() else names.index(name)


def _name(names: Sequence[str], number: int) -> str:
    return names[number] if 0 <= number < len(names) else str(number)


def _fields(rule: AclRule) -> tuple[int, str, int, str, str, int, int]:
    """The fields of a rule as requests to add and to delete have them."""
    return (
        _number(RESOURCES, rule.resource),
        rule.name,
        _number(PATTERNS, rule.pattern),
        rule.principal,
        rule.host,
        _number(OPERATIONS, rule.operation),
        _number(PERMISSIONS, rule.permission),
    )


def _rule(resource: int, name: str, pattern: int, row: object) -> AclRule:
    principal, host, operation, permission = (
        getattr(row, field) for field in ("principal", "host", "operation", "permission_type")
    )
    return AclRule(
        principal,
        _name(PERMISSIONS, permission),
        _name(OPERATIONS, operation),
        _name(RESOURCES, resource),
        name,
        _name(PATTERNS, pattern),
        host,
    )


async def list_acls(cluster: Cluster, wanted: Iterable[AclQuery] = (AclQuery(),)) -> list[AclRule]:
    """The rules that one of the filters matches, by principal and resource. Raises KafkaError."""
    filters = list(wanted)
    found: set[AclRule] = set()
    for one in filters:
        resource = _ANY if one.resource is None else _number(RESOURCES, one.resource)
        body = DescribeAclsRequest(resource, one.name, _number(PATTERNS, one.pattern), None, None, _ANY, _ANY)

        async def attempt(body: DescribeAclsRequest = body) -> list[AclRule]:
            answer = await cluster.request(None, ApiKey.DESCRIBE_ACLS, body)
            if answer.error_code:
                raise error_of(answer, "access rules")
            return [
                _rule(each.resource_type, each.resource_name, each.pattern_type, row)
                for each in answer.resources
                for row in each.acls
            ]

        found.update(rule for rule in await cluster.retrying(attempt) if one.takes(rule))
    return sorted(found, key=lambda rule: (rule.principal, rule.resource, rule.name, rule))


async def add_acls(cluster: Cluster, rules: Iterable[AclRule]) -> Outcomes:
    """Add rules, each for itself; one that exists already stays. Raises KafkaError if none is looked at."""
    wanted = list(dict.fromkeys(rules))
    rows = [AclCreation(*_fields(each)) for each in wanted]

    async def attempt() -> Outcomes:
        body = CreateAclsRequest(rows)
        answer = await cluster.request(await controller(cluster), ApiKey.CREATE_ACLS, body)
        return [
            (rule, outcome_of(row.error_code, refusal_text(row, "")))
            for rule, row in zip(wanted, answer.results, strict=True)
        ]

    return await cluster.retrying(attempt)


async def remove_acls(cluster: Cluster, rules: Iterable[AclRule]) -> Outcomes:
    """Remove exactly these rules; one that is gone already is no error. Raises KafkaError if none is looked
    at.
    """
    wanted = list(dict.fromkeys(rules))
    rows = [DeleteAclsFilter(*_fields(each)) for each in wanted]

    async def attempt() -> Outcomes:
        body = DeleteAclsRequest(rows)
        answer = await cluster.request(await controller(cluster), ApiKey.DELETE_ACLS, body)
        done: Outcomes = []
        for rule, row in zip(wanted, answer.filter_results, strict=True):
            # of the rules that a filter matches each may be refused; an exact one matches one
            failures = [(row.error_code, row.error_message)]
            failures += [(one.error_code, one.error_message) for one in row.matching_acls]
            code, text = max(failures, key=lambda each: each[0] != 0)
            done.append((rule, outcome_of(code, text or "")))
        return done

    return await cluster.retrying(attempt)
