"""SCRAM credentials: salted and iterated, never the password (RFC 5802), in a document of the metadata store.

A client gets the salt and the iterations of its user before it proves anything. So users that do not exist
have them too, made from a secret that is stored with the credentials, and shaped like those of real users.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import math
import secrets
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from ...cluster import ConflictError, Document
from ...protocol import JsonObject
from ...protocol.named_tuples import NamedTuple
from ...settings import SettingsError

#: The least and the most iterations, as Apache Kafka allows them.
MIN_ITERATIONS, MAX_ITERATIONS = 4_096, 16_384

#: The hash behind each mechanism.
HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}

#: So long that nobody can prepare a table of passwords for every salt.
_SALT_BYTES = 32

#: Fields of a credential that are written in base64.
_BYTES = ("salt", "stored_key", "server_key")

#: By mechanism and user.
Credentials = dict[tuple[str, str], "ScramCredential"]

#: Letters of the salts of Java's clients.
_LETTERS: Final = b"0123456789abcdefghijklmnopqrstuvwxyz"


class _Shape(NamedTuple):
    """The part of a credential that unauthenticated clients see, except for the salt itself."""

    iterations: int
    salt_bytes: int
    letters: bool


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """A password as the broker stores it: enough to verify a client, not enough to log in with."""

    iterations: int
    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)

    @classmethod
    def of_salted(
        cls, mechanism: str, salt: bytes, salted_password: bytes, iterations: int
    ) -> ScramCredential:
        """Make one from a password that a client has salted and iterated."""
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
        """Make one from a password, with a new salt."""
        salt = secrets.token_bytes(_SALT_BYTES)
        salted = hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations)
        return cls.of_salted(mechanism, salt, salted, iterations)


class ScramUsers:
    """Credentials by mechanism and user. A change is on the disk before it is in force."""

    def __init__(self) -> None:
        self._credentials: Credentials = {}
        self._file: Document | None = None
        self._secret = secrets.token_bytes(_SALT_BYTES)
        self._kept = False
        self._shapes: Mapping[str, Counter[_Shape]] = {}

    def __repr__(self) -> str:
        return f"ScramUsers({len(self._credentials)} credentials)"

    def open(self, document: Document) -> None:
        """Read the document, and save changes to it. Raises StateFileError."""
        self._file = document
        self.load()

    def follow(self) -> None:
        """Load the document whenever another broker has changed it."""
        assert self._file is not None, "it was opened"
        self._file.follow(self.load)

    def load(self) -> None:
        """Replace all credentials by those of the document, if there is one. Raises StateFileError."""
        assert self._file is not None, "it was opened"
        found = self._file.load(lambda content: (_parse_users(content), _parsed_secret(content)))
        if found is not None:
            credentials, secret = found
            self._kept = secret is not None
            self._secret = secret or self._secret
            self._take_credentials(credentials)

    def add_missing(self, text: str) -> None:
        """Create those users of ``NAME=PASSWORD,...`` that do not exist. Raises SettingsError."""
        made = self._make_missing(text)
        # an older kohort kept no secret
        if made or (self._credentials and not self._kept):
            self.replace({**self._credentials, **made})

    async def add_missing_shared(self, text: str) -> None:
        """Do the same if brokers share their users: another may create them first. Also raises OSError."""
        while made := self._make_missing(text):
            try:
                await self.change({**self._credentials, **made})
            except ConflictError:
                self.load()

    def add_in_memory(self, text: str) -> None:
        """Do the same in memory only, to show the result."""
        self._take_credentials({**self._credentials, **self._make_missing(text)})

    def _make_missing(self, text: str) -> Credentials:
        made: Credentials = {}
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
        """Find the credential of a user for a mechanism."""
        return self._credentials.get((mechanism, user))

    def stand_in(self, mechanism: str, user: str) -> ScramCredential:
        """The credential of a user that does not exist; always the same, so that nobody can tell who exists.

        It has the shape of a real user's, more likely a shape that more users have. When users are added and
        removed it keeps its shape, unless the shape was theirs.
        """
        who = f"{mechanism}:{user}"
        shapes = self._shapes.get(mechanism) or {_Shape(MIN_ITERATIONS, _SALT_BYTES, letters=False): 1}
        shape = min(
            shapes,
            key=lambda each: -math.log(self._pseudo_random_fraction(f"{tuple(each)}:{who}")) / shapes[each],
        )
        salt = self._draw_bytes(who, shape.salt_bytes)
        if shape.letters:
            salt = bytes(_LETTERS[byte % len(_LETTERS)] for byte in salt)
        key = bytes(hashlib.new(HASHES[mechanism]).digest_size)
        return ScramCredential(shape.iterations, salt, key, key)

    def _draw_bytes(self, text: str, size: int) -> bytes:
        """Bytes that cannot be told from random ones without the secret."""
        return hashlib.shake_256(self._secret + text.encode()).digest(size)

    def _pseudo_random_fraction(self, text: str) -> float:
        return (int.from_bytes(self._draw_bytes(text, 6), "big") + 1) / 2**48

    def all(self) -> Iterator[tuple[str, str, ScramCredential]]:
        """Yield user, mechanism and credential, sorted by user."""
        for mechanism, user in sorted(self._credentials, key=lambda key: key[::-1]):
            yield user, mechanism, self._credentials[mechanism, user]

    def copy(self) -> dict[tuple[str, str], ScramCredential]:
        """A copy by mechanism and user, to change and pass to ``replace``."""
        return dict(self._credentials)

    async def change(self, credentials: dict[tuple[str, str], ScramCredential]) -> None:
        """Replace all credentials. Raises OSError, and then changes nothing."""
        if self._file is not None:
            await self._file.save(self._to_document(credentials))
            self._kept = True
        self._take_credentials(credentials)

    def replace(self, credentials: dict[tuple[str, str], ScramCredential]) -> None:
        """As ``change``, at the start and in commands, where no event loop runs."""
        if self._file is not None:
            self._file.save_now(self._to_document(credentials))
            self._kept = True
        self._take_credentials(credentials)

    def _to_document(self, credentials: Credentials) -> dict[str, object]:
        users = [_user_document(*key, one) for key, one in credentials.items()]
        return {"secret": base64.b64encode(self._secret).decode(), "users": users}

    def _take_credentials(self, credentials: Credentials) -> None:
        self._credentials = credentials
        shapes: dict[str, Counter[_Shape]] = {mechanism: Counter() for mechanism in HASHES}
        for (mechanism, _), one in credentials.items():
            shapes[mechanism][_Shape(one.iterations, len(one.salt), one.salt.isascii())] += 1
        self._shapes = shapes


def _user_document(mechanism: str, user: str, credential: ScramCredential) -> dict[str, object]:
    return {
        "user": user,
        "mechanism": mechanism,
        "iterations": credential.iterations,
        **{name: base64.b64encode(getattr(credential, name)).decode() for name in _BYTES},
    }


def _parsed_secret(content: JsonObject) -> bytes | None:
    """None in the document of an older kohort."""
    return base64.b64decode(content["secret"], validate=True) if "secret" in content else None


def _parse_users(content: JsonObject) -> Credentials:
    found: Credentials = {}
    for item in content["users"]:
        mechanism, iterations = item["mechanism"], int(item["iterations"])
        if mechanism not in HASHES or iterations < MIN_ITERATIONS:
            raise ValueError(f"{mechanism} with {iterations} iterations is not known")
        found[mechanism, str(item["user"])] = ScramCredential(
            iterations,
            *(base64.b64decode(item[name], validate=True) for name in _BYTES),
        )
    return found
