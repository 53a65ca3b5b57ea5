"""The rules of a cluster and their verdicts, as pure functions.

A rule that denies overrides every rule that allows, whether it is for the literal name, a prefix of it or the
wildcard. What no rule allows is denied; resources that no rule names at all are a case of their own
(``allow.everyone.if.no.acl.found``).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Iterable, Iterator
from enum import Enum
from itertools import chain

from ._acls import (
    EVERYONE,
    IMPLIED_BY,
    WILDCARD,
    Acl,
    AclBindingFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)


class Verdict(Enum):
    """Verdict of the rules. NO_RULES: no rule names the resource, for any principal."""

    ALLOWED = "allowed"
    DENIED = "denied"
    NO_RULES = "no rules"


#: The rules of one name, by principal.
_ByPrincipal = dict[str, list[Acl]]


class AclRules:
    """Any number of rules, indexed by literal name, and by each prefix with rules."""

    def __init__(self, acls: Iterable[Acl] = ()) -> None:
        # with their places in the order in which they came, in which they are listed
        self._acls: dict[Acl, int] = {}
        self._last = 0
        # the rules by one of their fields, for filters
        self._by_name: dict[str, list[Acl]] = {}
        self._by_principal: dict[str, list[Acl]] = {}
        self._by_host: dict[str, list[Acl]] = {}
        self._names: dict[tuple[ResourceType, PatternType], dict[str, _ByPrincipal]] = {}
        self._prefix_lengths: dict[ResourceType, list[int]] = {}
        self.add(acls)

    def __len__(self) -> int:
        return len(self._acls)

    def __iter__(self) -> Iterator[Acl]:
        return iter(self._acls)

    def __contains__(self, acl: object) -> bool:
        return acl in self._acls

    def add(self, acls: Iterable[Acl]) -> None:
        """Add rules; one that exists already stays as it is."""
        for acl in acls:
            if acl not in self._acls:
                self._last += 1
                self._acls[acl] = self._last
                self._index_rule(acl)

    def remove(self, acls: Iterable[Acl]) -> None:
        """Remove rules; one that does not exist is no error."""
        gone = [acl for acl in acls if acl in self._acls]
        for acl in gone:
            self._acls.pop(acl, None)
        if gone:
            self._names.clear()
            self._prefix_lengths.clear()
            for index in (self._by_name, self._by_principal, self._by_host):
                index.clear()
            for acl in self._acls:
                self._index_rule(acl)

    def find(self, wanted: AclBindingFilter) -> list[Acl]:
        """The rules that match a filter, oldest first. Only those are looked at that have its name, its
        principal or its host, whichever are the fewest.
        """
        given: list[Collection[Acl]] = [self._acls]
        if wanted.principal is not None:
            given.append(self._by_principal.get(wanted.principal, ()))
        if wanted.host is not None:
            given.append(self._by_host.get(wanted.host, ()))
        if wanted.name is not None:
            given.append(self._rules_named(wanted.name, matched=wanted.pattern_type is PatternType.MATCH))
        return [acl for acl in min(given, key=len) if wanted.matches(acl)]

    def _rules_named(self, name: str, *, matched: bool) -> list[Acl]:
        """The rules with this name, oldest first; ``matched``: and those whose patterns may match it."""
        found = self._by_name.get(name, [])
        if not matched:
            return found
        lengths = {length for each in self._prefix_lengths.values() for length in each if length < len(name)}
        names = dict.fromkeys([WILDCARD, *(name[:length] for length in lengths)])
        names.pop(name, None)
        more = [acl for other in names for acl in self._by_name.get(other, ())]
        return sorted([*found, *more], key=self._acls.__getitem__) if more else found

    def verdict(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> Verdict:
        """Return whether ``principal`` on ``host`` may do ``operation`` to the resource."""
        verdict = Verdict.NO_RULES
        for rules in self._patterns_of(resource_type, name):
            if verdict is Verdict.NO_RULES:
                verdict = Verdict.DENIED  # until a rule permits it
            for acl in chain(rules.get(principal, ()), rules.get(EVERYONE, ())):
                if acl.host not in (WILDCARD, host) or not _speaks_of(acl, operation):
                    continue
                if acl.permission is Permission.DENY:
                    return Verdict.DENIED
                verdict = Verdict.ALLOWED
        return verdict

    def allows_some(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType
    ) -> bool:
        """Return whether there may be a resource of this type on which ``operation`` is allowed (KIP-679).

        As in Apache Kafka: some pattern allows it and no rule denies that whole pattern. Nothing is implied
        here: for WRITE only rules for WRITE and ALL count.
        """
        mine = [
            acl
            for acl in chain(self._by_principal.get(principal, ()), self._by_principal.get(EVERYONE, ()))
            if acl.resource_type is resource_type
            and acl.host in (host, WILDCARD)
            and acl.operation in (operation, Operation.ALL)
        ]
        denied = {(acl.pattern_type, acl.name) for acl in mine if acl.permission is Permission.DENY}
        if (PatternType.LITERAL, WILDCARD) in denied:
            return False
        return any(
            acl.permission is Permission.ALLOW
            and (
                (acl.pattern_type is PatternType.LITERAL and acl.name == WILDCARD)
                or not _is_covered(acl, denied)
            )
            for acl in mine
        )

    def _patterns_of(self, resource_type: ResourceType, name: str) -> Iterator[_ByPrincipal]:
        """The rules of every pattern that matches the name."""
        literal = self._names.get((resource_type, PatternType.LITERAL))
        if literal is not None:
            for key in (name, WILDCARD) if name != WILDCARD else (name,):
                if key in literal:
                    yield literal[key]
        prefixed = self._names.get((resource_type, PatternType.PREFIXED))
        if prefixed is not None:
            for length in self._prefix_lengths[resource_type]:
                if length > len(name):
                    break
                rules = prefixed.get(name[:length])
                if rules is not None:
                    yield rules

    def _index_rule(self, acl: Acl) -> None:
        self._by_name.setdefault(acl.name, []).append(acl)
        self._by_principal.setdefault(acl.principal, []).append(acl)
        self._by_host.setdefault(acl.host, []).append(acl)
        names = self._names.setdefault((acl.resource_type, acl.pattern_type), {})
        names.setdefault(acl.name, {}).setdefault(acl.principal, []).append(acl)
        if acl.pattern_type is PatternType.PREFIXED:
            lengths = self._prefix_lengths.setdefault(acl.resource_type, [])
            if len(acl.name) not in lengths:
                insort(lengths, len(acl.name))


def _speaks_of(acl: Acl, operation: Operation) -> bool:
    if acl.operation in (operation, Operation.ALL):
        return True
    return acl.permission is Permission.ALLOW and acl.operation in IMPLIED_BY.get(operation, ())


def _is_covered(acl: Acl, denied: set[tuple[PatternType, str]]) -> bool:
    """Return whether the rules deny everything that an allowing rule's pattern matches."""
    if acl.pattern_type is PatternType.LITERAL and (PatternType.LITERAL, acl.name) in denied:
        return True
    return any((PatternType.PREFIXED, acl.name[:end]) in denied for end in range(1, len(acl.name) + 1))
