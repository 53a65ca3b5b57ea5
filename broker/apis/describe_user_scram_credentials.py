"""DescribeUserScramCredentials (50), v0: users with SCRAM credentials, and their iterations (KIP-554)."""

from __future__ import annotations

from collections import Counter

from ...protocol import ApiKey, ErrorCode
from ...protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from ..authorizer import Operation, ResourceType, right
from ..node import Node
from ._api import Request, ServedApi
from ._errors import at_top
from ._guards import whole
from .alter_user_scram_credentials import MECHANISMS

_NUMBERS = {name: number for number, name in MECHANISMS.items()}


async def handle(
    node: Node, request: Request[DescribeUserScramCredentialsRequest]
) -> DescribeUserScramCredentialsResponse:
    """List mechanisms and iterations of users, of all if none is named; never the credentials."""
    found: dict[str, list[tuple[str, int]]] = {}
    for user, mechanism, credential in node.scram_users.all():
        found.setdefault(user, []).append((mechanism, credential.iterations))
    names = [item.name for item in request.body.users or ()]
    times = Counter(names)
    results = []
    for user in times or sorted(found):
        code, message = ErrorCode.NONE, None
        if times[user] > 1:
            code, message = ErrorCode.DUPLICATE_RESOURCE, f"user {user!r} may be named once"
        elif user not in found:
            code, message = ErrorCode.RESOURCE_NOT_FOUND, f"user {user!r} has no SCRAM credential"
        infos = (
            []
            if code
            else [CredentialInfo(mechanism=_NUMBERS[name], iterations=n) for name, n in found[user]]
        )
        results.append(
            DescribeUserScramCredentialsResult(
                user=user, error_code=code, error_message=message, credential_infos=infos
            )
        )
    return DescribeUserScramCredentialsResponse(results=results)


def _with_error(
    body: DescribeUserScramCredentialsRequest, _version: int, code: ErrorCode
) -> dict[str, object]:
    # as in Apache Kafka: at the top, and for each user
    return {"results": [DescribeUserScramCredentialsResult(error_code=code) for _ in body.users or ()]}


API = ServedApi(
    key=ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    versions=(0, 0),
    handler=handle,
    guard=whole(right(Operation.DESCRIBE, ResourceType.CLUSTER, "all users")),
    errors=at_top(_with_error),
)
