"""SCRAM users (KIP-554): the requests about them. Passwords are salted here: brokers never see them."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ...client import Cluster
from ...client.requests import controller, error_of
from ...protocol import ApiKey, ErrorCode
from ...protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ...protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName

#: Kafka's numbers of the mechanisms, and the hash of each.
_NUMBERS: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_SALT_BYTES: Final = 32


class ScramMechanism(NamedTuple):
    """A way for a user to log in, and the iterations of the stored password."""

    mechanism: str
    iterations: int


@dataclass(frozen=True, slots=True)
class ScramUser:
    """A user with credentials."""

    user: str
    mechanisms: tuple[ScramMechanism, ...]


async def list_users(cluster: Cluster, users: Iterable[str] | None = None) -> list[ScramUser]:
    """Users by name, all or these; those without credentials are left out. Raises KafkaError."""
    wanted = [UserName(user) for user in dict.fromkeys(users or ())]
    if users is not None and not wanted:
        return []
    # an empty list is all, as None is; to that Apache Kafka 4.3 gives no answer where the right is missing
    body = DescribeUserScramCredentialsRequest(wanted)
    names = {number: name for name, number in _NUMBERS.items()}

    async def attempt() -> list[ScramUser]:
        answer = await cluster.request(None, ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, body)
        if answer.error_code:
            raise error_of(answer, "the users")
        found = []
        for row in answer.results:
            if row.error_code == ErrorCode.RESOURCE_NOT_FOUND:
                continue
            if row.error_code:
                raise error_of(row, f"user {row.user!r}")
            mechanisms = (
                ScramMechanism(names.get(one.mechanism, str(one.mechanism)), one.iterations)
                for one in row.credential_infos
            )
            found.append(ScramUser(row.user, tuple(sorted(mechanisms))))
        return sorted(found, key=lambda user: user.user)

    return await cluster.retrying(attempt)


async def set_password(
    cluster: Cluster, user: str, password: str, mechanisms: Collection[str], iterations: int
) -> None:
    """Make a user, or give one another password, for one of these mechanisms after the other: Apache Kafka
    refuses a request that names a user twice. Raises KafkaError.
    """
    for mechanism in mechanisms:
        salt = secrets.token_bytes(_SALT_BYTES)
        salted = hashlib.pbkdf2_hmac(_HASHES[mechanism], password.encode(), salt, iterations)
        row = ScramCredentialUpsertion(user, _NUMBERS[mechanism], iterations, salt, salted)
        await _alter(cluster, AlterUserScramCredentialsRequest([], [row]))


async def remove_credentials(cluster: Cluster, user: str, mechanisms: Sequence[str]) -> None:
    """Take a user's credentials for these mechanisms away, which must exist. Raises KafkaError."""
    for mechanism in mechanisms:
        row = ScramCredentialDeletion(user, _NUMBERS[mechanism])
        await _alter(cluster, AlterUserScramCredentialsRequest([row], []))


async def _alter(cluster: Cluster, body: AlterUserScramCredentialsRequest) -> None:
    async def attempt() -> None:
        answer = await cluster.request(await controller(cluster), ApiKey.ALTER_USER_SCRAM_CREDENTIALS, body)
        for row in answer.results:
            if row.error_code:
                raise error_of(row, f"user {row.user!r}")

    await cluster.retrying(attempt)
