"""A SCRAM client of the tests' own, each message of which can be kept and changed (RFC 5802)."""

from __future__ import annotations

import base64
import hashlib
import hmac

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}


class ScramClient:
    def __init__(
        self,
        mechanism: str,
        user: str,
        password: str,
        *,
        nonce: str = "fyko+d2lbbFgONRv9qkxdawL",
        header: str = "n,,",
    ) -> None:
        self._hash = HASHES[mechanism]
        self._password = password
        self._header = header
        self._bare = f"n={user},r={nonce}"
        self._signed = b""
        self._salted = b""

    def first(self) -> bytes:
        return (self._header + self._bare).encode()

    def last(self, answer: bytes) -> bytes:
        fields = dict(item.split("=", 1) for item in answer.decode().split(","))
        salt, iterations = base64.b64decode(fields["s"]), int(fields["i"])
        self._salted = hashlib.pbkdf2_hmac(self._hash, self._password.encode(), salt, iterations)
        key = hmac.digest(self._salted, b"Client Key", self._hash)
        stored = hashlib.new(self._hash, key).digest()
        binding = base64.b64encode(self._header.encode()).decode()
        without_proof = f"c={binding},r={fields['r']}"
        self._signed = f"{self._bare},{answer.decode()},{without_proof}".encode()
        signature = hmac.digest(stored, self._signed, self._hash)
        proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def knows(self, answer: bytes) -> bool:
        """Whether the broker's last message proves that it has the credential."""
        key = hmac.digest(self._salted, b"Server Key", self._hash)
        return answer == b"v=" + base64.b64encode(hmac.digest(key, self._signed, self._hash))
