"""AlterUserScramCredentials (51), v0: sets and removes SCRAM credentials (KIP-554).

Clients send salted and iterated passwords; the broker never sees the password itself.
"""

from __future__ import annotations

from functools import partial
from typing import TypeAlias

from ...protocol import ApiKey, ErrorCode, KafkaError
from ...protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ..authorizer import Operation, ResourceType, right
from ..node import Node
from ..security._scram_users import MAX_ITERATIONS, MIN_ITERATIONS, ScramCredential
from ._api import Request, ServedApi, always, make_result
from ._errors import ErrorShape
from ._guards import whole

#: Kafka's numbers of the mechanisms.
MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}

#: Credentials by mechanism and user.
_Credentials = dict[tuple[str, str], ScramCredential]
#: A change of a credential, as a client asks for it.
_Change: TypeAlias = ScramCredentialDeletion | ScramCredentialUpsertion
#: Changed credentials by mechanism and user; None: removed.
_Changes = dict[tuple[str, str], ScramCredential | None]


async def handle(
    node: Node, request: Request[AlterUserScramCredentialsRequest]
) -> AlterUserScramCredentialsResponse:
    """Change all of a user's credentials, or none; users are independent of each other."""
    body = request.body
    items_of: dict[str, list[_Change]] = {}
    for item in _changes_in(body):
        items_of.setdefault(item.name, []).append(item)
    before = node.scram_users.copy()
    errors: dict[str, KafkaError | None] = {}
    changed: _Changes = dict(before)
    for user, items in items_of.items():
        try:
            # make all of a user's changes, or none
            changed.update(_changes_of_user(before, items))
            errors[user] = None
        except KafkaError as error:
            errors[user] = error
    kept = {key: credential for key, credential in changed.items() if credential is not None}
    if kept != before:
        await node.scram_users.change(kept)
    make = partial(make_result, AlterUserScramCredentialsResult)
    return AlterUserScramCredentialsResponse(
        results=[make(error, user=user) for user, error in errors.items()]
    )


def _changes_in(body: AlterUserScramCredentialsRequest) -> list[_Change]:
    return [*body.deletions, *body.upsertions]


def _changes_of_user(before: _Credentials, items: list[_Change]) -> _Changes:
    """The changes of one user's credentials. Raises KafkaError for the first invalid one."""
    changes: _Changes = {}
    for item in items:
        key, credential = _to_credential(before, item)
        if key in changes:
            raise KafkaError(ErrorCode.DUPLICATE_RESOURCE, "a credential may be changed once in a request")
        changes[key] = credential
    return changes


def _to_credential(before: _Credentials, item: _Change) -> tuple[tuple[str, str], ScramCredential | None]:
    mechanism = MECHANISMS.get(item.mechanism)
    if not item.name:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "a user has a name")
    if mechanism is None:
        text = f"mechanism {item.mechanism}: 1 and 2 are known (SHA-256, -512)"
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, text)
    key = mechanism, item.name
    if not isinstance(item, ScramCredentialUpsertion):
        if key not in before:
            text = f"user {item.name!r} has no {mechanism} credential"
            raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, text)
        return key, None
    if not MIN_ITERATIONS <= item.iterations <= MAX_ITERATIONS:
        text = f"{item.iterations} iterations: {MIN_ITERATIONS} to {MAX_ITERATIONS} are allowed"
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, text)
    if not item.salt or not item.salted_password:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "a credential has a salt and a salted password")
    salted = bytes(item.salt), bytes(item.salted_password)
    return key, ScramCredential.of_salted(mechanism, *salted, item.iterations)


def _with_error(body: AlterUserScramCredentialsRequest, _version: int, code: ErrorCode) -> dict[str, object]:
    users = dict.fromkeys(item.name for item in _changes_in(body))
    return {"results": [AlterUserScramCredentialsResult(user=user, error_code=code) for user in users]}


API = ServedApi(
    key=ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    versions=(0, 0),
    handler=handle,
    guard=whole(right(Operation.ALTER, ResourceType.CLUSTER, "all users")),
    errors=ErrorShape(fields=_with_error),
    by_controller=always,
    one_at_a_time=True,
)
