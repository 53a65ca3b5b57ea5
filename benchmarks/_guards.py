"""Access rules and quotas of a broker that is measured with them: many, and none that is in the way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kohort.protocol import ApiKey

from ._brokers import Contender, Running, kohort
from .quotas import Client, part

#: Rules and quotas of others.
OTHERS = 300
#: What the load itself may have: more than there is.
PLENTY = {"producer_byte_rate": 1e12, "consumer_byte_rate": 1e12, "request_percentage": 1e6}

_TOPIC, _GROUP = 2, 3
_READ, _ALL = 3, 2
_ALLOW, _LITERAL = 3, 3

_SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin;User:operator",
    # whoever sets the rules up is nobody that a rule could name beforehand
    "allow.everyone.if.no.acl.found": "true",
}


@contextmanager
def _guarded() -> Iterator[Running]:
    with kohort(_SETTINGS) as running:
        admin = Client(running.bootstrap, "admin")
        _set_quotas(admin)
        _set_rules(admin)
        yield running


def _set_quotas(admin: Client) -> None:
    api = ApiKey.ALTER_CLIENT_QUOTAS

    def entry(user: str, quotas: dict[str, float]) -> Any:
        entity = part(api, "EntityData", entity_type="user", entity_name=user)
        ops = [part(api, "OpData", key=key, value=value, remove=False) for key, value in quotas.items()]
        return part(api, "EntryData", entity=[entity], ops=ops)

    others = [entry(f"user-{number}", {"request_percentage": 50.0}) for number in range(OTHERS)]
    answer = admin.call(api, 1, entries=[*others, entry("ANONYMOUS", PLENTY)], validate_only=False)
    assert not any(one.error_code for one in answer.entries), answer


def _set_rules(admin: Client) -> None:
    api = ApiKey.CREATE_ACLS

    def rule(resource_type: int, name: str, principal: str, operation: int) -> Any:
        return part(
            api,
            "AclCreation",
            resource_type=resource_type,
            resource_name=name,
            resource_pattern_type=_LITERAL,
            principal=principal,
            host="*",
            operation=operation,
            permission_type=_ALLOW,
        )

    rules = [
        rule(kind, f"name-{number}", f"User:user-{number}", _READ)
        for number in range(OTHERS // 2)
        for kind in (_TOPIC, _GROUP)
    ]
    rules += [rule(kind, "*", "User:ANONYMOUS", _ALL) for kind in (_TOPIC, _GROUP)]
    answer = admin.call(api, 2, creations=rules)
    assert not any(one.error_code for one in answer.results), answer


GUARDED = Contender("kohort, guarded", _guarded)
