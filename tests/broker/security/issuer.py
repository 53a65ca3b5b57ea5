"""Who issues tokens: a key, its public half as a file of keys, and tokens with any claims."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec


class Issuer:
    """Keys by name in ``path``. A token is for ``alice`` and ``kafka`` unless its claims say otherwise."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._keys: dict[str, Any] = {}
        self.rotate("first")

    @property
    def url(self) -> str:
        return self.path.as_uri()

    def rotate(self, name: str) -> None:
        """Sign with another key from now on; only that one is in the file."""
        self._keys = {name: ec.generate_private_key(ec.SECP256R1())}
        self.path.write_text(json.dumps({"keys": [self.public(name)]}))

    def public(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = jwt.algorithms.ECAlgorithm.to_jwk(self._keys[name].public_key(), as_dict=True)
        return {**found, "kid": name, "use": "sig", "alg": "ES256"}

    def token(self, *, lifetime_s: float = 300, headers: dict[str, Any] | None = None, **claims: Any) -> str:
        now = time.time()
        ((name, key),) = self._keys.items()
        content = {
            "sub": "alice",
            "aud": "kafka",
            "iss": "issuer",
            "iat": now,
            "exp": now + lifetime_s,
            **claims,
        }
        content = {name: value for name, value in content.items() if value is not None}
        return jwt.encode(content, key, algorithm="ES256", headers={"kid": name, **(headers or {})})


def message(token: str, head: str = "n,,") -> bytes:
    """What an OAUTHBEARER client sends."""
    return f"{head}\x01auth=Bearer {token}\x01\x01".encode()
