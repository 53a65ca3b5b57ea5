"""JSON web tokens: their signatures, checked against the keys of who issues them, and what they claim.

The keys (JWKS, RFC 7517) lie in a file, which is read again when it changes, or at an address. That is asked
when they are old, and when a token names a key that is not among them; how often is limited, or strangers
could make us ask without end.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
import urllib.request
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from .._validation import SettingsError
from ._errors import AuthenticationError
from ._settings import SecuritySettings

log = logging.getLogger("kohort.broker")

#: Signatures that are believed: each has a public key. Never "none", never a shared secret.
ALGORITHMS = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)

#: Largest set of keys, in bytes, and how long its address may take to answer, in seconds.
MAX_KEYS_BYTES, FETCH_S = 1_048_576, 10.0

_SCHEMES = ("file", "http", "https")

#: Tokens that end later than this, in seconds since 1970, end then.
_FAR_S = 2**40


class Tokens:
    """Verifies tokens by a listener's settings. Raises SettingsError where those do not suffice."""

    def __init__(
        self,
        settings: SecuritySettings,
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        if _library() is None:
            raise SettingsError("OAUTHBEARER needs PyJWT: pip install 'kohort[security]'")
        self._settings = settings
        self._wall = wall
        self._keys = _Keys(settings, steady)
        self._audience = [
            item.strip() for item in settings.sasl_oauthbearer_expected_audience.split(",") if item
        ]

    async def verified(self, token: str) -> tuple[str, int]:
        """The user that a token names, and when it ends in ms. Raises AuthenticationError."""
        jwt = _library()
        try:
            head = jwt.get_unverified_header(token)
            algorithm, name = head.get("alg"), head.get("kid")
            if algorithm not in ALGORITHMS:
                raise AuthenticationError("the token's signature is of a kind that is not believed")
            key = await self._keys.find(name, algorithm)
            claims = self._claims(token, key, algorithm)
        except jwt.PyJWTError as error:
            # the library's texts name what is wrong, not what is in the token
            raise AuthenticationError(f"the token is refused: {error}") from None
        except AuthenticationError:
            raise
        except Exception as error:
            raise AuthenticationError(f"the token cannot be read: {type(error).__name__}") from None
        user, end = claims.get(self._settings.sasl_oauthbearer_sub_claim_name), claims["exp"]
        if not isinstance(user, str) or not user:
            raise AuthenticationError("the token names nobody")
        if not isinstance(end, int | float):
            raise AuthenticationError("the token does not say in numbers when it ends")
        return user, int(min(end, _FAR_S) * 1000)

    def _claims(self, token: str, key: Any, algorithm: str) -> dict[str, Any]:
        settings = self._settings
        claims: dict[str, Any] = _library().decode(
            token,
            key=key,
            algorithms=[algorithm],
            audience=self._audience or None,
            issuer=settings.sasl_oauthbearer_expected_issuer or None,
            leeway=settings.sasl_oauthbearer_clock_skew_seconds,
            options={"require": ["exp", "iat"], "verify_aud": bool(self._audience)},
        )
        return claims


class _Keys:
    """The keys of who issues tokens, by their names."""

    def __init__(self, settings: SecuritySettings, now: Callable[[], float]) -> None:
        self._url = settings.sasl_oauthbearer_jwks_endpoint_url
        scheme = urlsplit(self._url).scheme
        if scheme not in _SCHEMES:
            raise SettingsError(
                f"sasl.oauthbearer.jwks.endpoint.url={self._url} is not allowed: tokens are checked by keys "
                "that are at an https: or file: address"
            )
        self._path = url2pathname(urlsplit(self._url).path) if scheme == "file" else None
        self._refresh_s = settings.sasl_oauthbearer_jwks_endpoint_refresh_ms / 1000
        self._backoff_s = settings.sasl_oauthbearer_jwks_endpoint_retry_backoff_ms / 1000
        self._now = now
        self._keys: list[Any] = []
        self._fetched = self._asked = float("-inf")
        self._stamp = (0, 0)
        self._lock = asyncio.Lock()

    async def find(self, name: object, algorithm: str) -> Any:
        """The key that signs with ``algorithm`` under this name. Raises AuthenticationError."""
        await self._renew(due=self._due())
        found = self._among(name, algorithm)
        if found is None:
            # a file is read when it changes, and has been
            await self._renew(due=self._path is None)
            found = self._among(name, algorithm)
        if found is None:
            raise AuthenticationError("the token is signed with a key that is not known")
        return found

    def _among(self, name: object, algorithm: str) -> Any:
        fitting = [key for key in self._keys if _fits(key, algorithm)]
        if name is None:
            return fitting[0].key if len(fitting) == 1 else None
        return next((key.key for key in fitting if key.key_id == name), None)

    def _due(self) -> bool:
        if self._path is not None:
            return _stamp(self._path) != self._stamp
        return self._now() - self._fetched >= self._refresh_s

    async def _renew(self, *, due: bool) -> None:
        if not due:
            return
        async with self._lock:
            if self._path is None and self._now() - self._asked < self._backoff_s:
                return
            self._asked = self._now()
            try:
                stamp = (0, 0) if self._path is None else _stamp(self._path)
                data = await asyncio.to_thread(_read, self._url)
                self._keys = _parsed(data)
                self._stamp, self._fetched = stamp, self._now()
            except (OSError, ValueError) as error:
                log.error(
                    "the keys of tokens cannot be read from %s, those of before are used: %s",
                    self._url,
                    error,
                )


def _library() -> Any:
    """PyJWT, if it is installed."""
    try:
        import jwt
    except ImportError:
        return None
    return jwt


def _fits(key: Any, algorithm: str) -> bool:
    kinds = {"R": "RSA", "P": "RSA", "E": "OKP" if algorithm == "EdDSA" else "EC"}
    return (
        key.key_type == kinds[algorithm[0]]
        and key.public_key_use in (None, "sig")
        and key._jwk_data.get("alg") in (None, algorithm)
    )


def _parsed(data: bytes) -> list[Any]:
    """The keys of a set that can be used. Raises ValueError."""
    jwt = _library()
    try:
        content = json.loads(data)
    except RecursionError as error:
        raise ValueError("no set of keys: it is nested too deeply") from error
    if not isinstance(content, dict) or not isinstance(content.get("keys"), list):
        raise ValueError("no set of keys")
    found = []
    for item in content["keys"]:
        try:
            found.append(jwt.PyJWK.from_dict(item))
        except (jwt.PyJWTError, ValueError, TypeError, AttributeError):
            continue  # of a kind that is not for us
    if not found:
        raise ValueError("none of its keys can be used")
    return found


def _read(url: str) -> bytes:
    # the scheme was looked at when the settings were read
    with urllib.request.urlopen(url, timeout=FETCH_S) as answer:
        data: bytes = answer.read(MAX_KEYS_BYTES + 1)
    if len(data) > MAX_KEYS_BYTES:
        raise ValueError(f"more than {MAX_KEYS_BYTES} bytes")
    return data


def _stamp(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size
