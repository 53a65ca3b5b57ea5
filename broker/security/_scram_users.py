"""SCRAM credentials: salted and iterated, never the password (RFC 5802), in a document of the data folder."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .._state_file import StateFile
from .._validation import SettingsError

#: The least and the most iterations, as Apache Kafka allows them.
MIN_ITERATIONS, MAX_ITERATIONS = 4_096, 16_384

#: The hash behind each mechanism.
HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}

_SALT_BYTES = 32
_WITHOUT = "nobody can log in by SCRAM until users are made anew"


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """What the broker keeps of a password: enough to check one, not enough to be one."""

    iterations: int
    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)

    @classmethod
    def of_salted(
        cls, mechanism: str, salt: bytes, salted_password: bytes, iterations: int
    ) -> ScramCredential:
        """From what a client has salted and iterated."""
        name = HASHES[mechanism]
        client_key = hmac.digest(salted_password, b"Client Key", name)
        return cls(
            iterations,
            salt,
            hashlib.new(name, client_key).digest(),
            hmac.digest(salted_password, b"Server Key", name),
        )

    @classmethod
    def of_password(cls, mechanism: str, password: str, iterations: int = MIN_ITERATIONS) -> ScramCredential:
        """From the password, with a fresh salt."""
        salt = secrets.token_bytes(_SALT_BYTES)
        salted = hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations)
        return cls.of_salted(mechanism, salt, salted, iterations)


class ScramUsers:
    """Credentials by mechanism and user. A change is on the disk before it is in force."""

    def __init__(self) -> None:
        self._credentials: dict[tuple[str, str], ScramCredential] = {}
        self._file: StateFile | None = None
        self._secret = secrets.token_bytes(_SALT_BYTES)

    def __repr__(self) -> str:
        return f"ScramUsers({len(self._credentials)} credentials)"

    def open(self, folder: Path) -> None:
        """Read what the data folder has. Raises StateFileError."""
        self._file = StateFile.of(folder, "scram-users", without=_WITHOUT)
        self._credentials = self._file.load(_parsed) or {}

    def add_missing(self, text: str) -> None:
        """Make the users of ``NAME=PASSWORD,...`` that are not known. Raises SettingsError."""
        made = self._made(text)
        if made:
            self.replace({**self._credentials, **made})

    def add_in_memory(self, text: str) -> None:
        """The same, forgotten at the end of the process: to see what there would be."""
        self._credentials.update(self._made(text))

    def _made(self, text: str) -> dict[tuple[str, str], ScramCredential]:
        made = {}
        for item in filter(None, text.split(",")):
            name, sign, password = item.partition("=")
            if not sign or not name or not password:
                raise SettingsError(
                    "kohort.scram.users=(hidden) is not allowed: it must be NAME=PASSWORD, with commas"
                )
            for mechanism in HASHES:
                if (mechanism, name) not in self._credentials:
                    made[mechanism, name] = ScramCredential.of_password(mechanism, password)
        return made

    def get(self, mechanism: str, user: str) -> ScramCredential | None:
        return self._credentials.get((mechanism, user))

    def stand_in(self, mechanism: str, user: str) -> ScramCredential:
        """For a user that is not there, always the same: a stranger cannot tell who exists."""
        salt = hmac.digest(self._secret, f"{mechanism}:{user}".encode(), "sha256")
        key = bytes(hashlib.new(HASHES[mechanism]).digest_size)
        return ScramCredential(MIN_ITERATIONS, salt, key, key)

    def all(self) -> Iterator[tuple[str, str, ScramCredential]]:
        """User, mechanism, credential, sorted."""
        for mechanism, user in sorted(self._credentials, key=lambda key: key[::-1]):
            yield user, mechanism, self._credentials[mechanism, user]

    def copy(self) -> dict[tuple[str, str], ScramCredential]:
        """By mechanism and user, to be changed and given to ``replace``."""
        return dict(self._credentials)

    def replace(self, credentials: dict[tuple[str, str], ScramCredential]) -> None:
        """Let these be all there are. Raises OSError; nothing has changed then."""
        if self._file is not None:
            self._file.save({"users": [_stored(*key, one) for key, one in credentials.items()]})
        self._credentials = credentials


def _stored(mechanism: str, user: str, credential: ScramCredential) -> dict[str, Any]:
    return {
        "user": user,
        "mechanism": mechanism,
        "iterations": credential.iterations,
        "salt": base64.b64encode(credential.salt).decode(),
        "stored_key": base64.b64encode(credential.stored_key).decode(),
        "server_key": base64.b64encode(credential.server_key).decode(),
    }


def _parsed(content: dict[str, Any]) -> dict[tuple[str, str], ScramCredential]:
    found = {}
    for item in content["users"]:
        mechanism, iterations = item["mechanism"], int(item["iterations"])
        if mechanism not in HASHES or iterations < MIN_ITERATIONS:
            raise ValueError(f"{mechanism} with {iterations} iterations is not known")
        found[mechanism, str(item["user"])] = ScramCredential(
            iterations,
            *(base64.b64decode(item[name], validate=True) for name in ("salt", "stored_key", "server_key")),
        )
    return found
