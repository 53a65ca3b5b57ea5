"""SCRAM on the broker's side (RFC 5802, RFC 7677): each side proves that it knows the password.

A replayed message is of no use: the broker's half of the nonce is new in each exchange.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets

from ._errors import LoginFailedError
from ._exchange import NOT_RIGHT, Exchange
from ._scram_users import HASHES, ScramCredential, ScramUsers

#: No two logins have one nonce, so a proof that was overheard proves nothing later. Base64 needs no padding.
_NONCE_BYTES = 24


class ScramExchange(Exchange):
    """Two rounds of messages: the name and its salt, then the proof."""

    def __init__(self, mechanism: str, users: ScramUsers) -> None:
        self._mechanism = mechanism
        self._users = users
        self._credential: ScramCredential | None = None
        self._known = False
        self._binding = self._nonce = self._messages = ""

    async def step(self, data: bytes) -> bytes:
        """Answer the client's first or last message (RFC 5802). Raises LoginFailedError."""
        try:
            text = data.decode()
            if self.done:
                raise ValueError
            return (
                self._answer_first(text) if self._credential is None else self._answer_last(text)
            ).encode()
        except (ValueError, binascii.Error):
            raise LoginFailedError(f"{self._mechanism}: not a message of this mechanism") from None

    def _answer_first(self, text: str) -> str:
        flag, wanted, bare = text.split(",", 2)
        if flag not in ("n", "y"):
            raise LoginFailedError(f"{self._mechanism}: channel binding is not offered")
        name, nonce, *more = bare.split(",")
        if not name.startswith("n=") or not nonce.startswith("r=") or not nonce[2:]:
            raise ValueError
        user = self.claimed = _unescape_name(name[2:])
        if wanted and (not wanted.startswith("a=") or _unescape_name(wanted[2:]) != user):
            raise LoginFailedError(f"{self._mechanism}: one user cannot speak for another")
        if "tokenauth=true" in more:
            raise LoginFailedError(f"{self._mechanism}: delegation tokens are not offered")
        found = self._users.get(self._mechanism, user)
        self._known = found is not None
        # made for existing users, too, so that it takes as long
        stand_in = self._users.stand_in(self._mechanism, user)
        self._credential = found or stand_in
        self._binding = base64.b64encode(f"{flag},{wanted},".encode()).decode()
        self._nonce = nonce[2:] + _make_nonce()
        salt = base64.b64encode(self._credential.salt).decode()
        answer = f"r={self._nonce},s={salt},i={self._credential.iterations}"
        self._messages = f"{bare},{answer}"
        return answer

    def _answer_last(self, text: str) -> str:
        credential, hash_name = self._credential, HASHES[self._mechanism]
        assert credential is not None, "the second message comes after the first"
        without_proof, mark, encoded = text.rpartition(",p=")
        binding, nonce, *_ = without_proof.split(",")
        if not mark or binding != f"c={self._binding}" or nonce != f"r={self._nonce}":
            raise ValueError
        proof = base64.b64decode(encoded, validate=True)
        signed = f"{self._messages},{without_proof}".encode()
        signature = hmac.digest(credential.stored_key, signed, hash_name)
        if len(proof) != len(signature):
            raise ValueError
        client_key = bytes(left ^ right for left, right in zip(proof, signature, strict=True))
        same = hmac.compare_digest(hashlib.new(hash_name, client_key).digest(), credential.stored_key)
        if not (same and self._known):
            raise LoginFailedError(NOT_RIGHT)
        self.user, self.done = self.claimed, True
        return "v=" + base64.b64encode(hmac.digest(credential.server_key, signed, hash_name)).decode()


def _make_nonce() -> str:
    return base64.b64encode(secrets.token_bytes(_NONCE_BYTES)).decode()


def _unescape_name(name: str) -> str:
    """Unescape a name: in messages a comma is ``=2C`` and an equals sign ``=3D``. Raises ValueError."""
    if not name or "=" in name.replace("=2C", "").replace("=3D", ""):
        raise ValueError
    return name.replace("=2C", ",").replace("=3D", "=")
