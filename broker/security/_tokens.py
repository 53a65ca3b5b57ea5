"""JSON web tokens: checks their signatures against their issuer's keys, and their claims.

The keys (JWKS, RFC 7517) are in a file, which is read again when it changes, or at a URL, which is fetched
when they are old or a token names an unknown key; not too often, or strangers could cause endless requests. A
token whose key is known does not wait for a URL that may hang.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
import os
import time
import urllib.request
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from ...protocol import JsonObject
from ...settings import SettingsError
from ._errors import LoginFailedError
from ._settings import SecuritySettings

log = logging.getLogger("kohort.broker")

#: Accepted algorithms: all with a public key. Never "none", never a shared secret.
ALGORITHMS = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)

#: Largest set of keys, in bytes, and the longest time to fetch it, in seconds.
MAX_KEYS_BYTES, FETCH_S = 1_048_576, 10.0

_SCHEMES = ("file", "http", "https")

#: Latest expiry of a token, in seconds since 1970.
_FAR_S = 2**40


class TokenVerifier:
    """Verifies tokens by a listener's settings. Raises SettingsError if these are missing or wrong."""

    def __init__(self, settings: SecuritySettings, steady: Callable[[], float] = time.monotonic) -> None:
        if _import_jwt() is None:
            raise SettingsError("OAUTHBEARER needs PyJWT: pip install 'kohort[security]'")
        self._settings = settings
        self._keys = _Keys(settings, steady)
        self._audience = [
            item.strip() for item in settings.sasl_oauthbearer_expected_audience.split(",") if item
        ]

    async def verify_token(self, token: str) -> tuple[str, int]:
        """The user that a token names, and its expiry in ms since 1970. Raises AuthenticationError."""
        jwt = _import_jwt()
        try:
            head = jwt.get_unverified_header(token)
            algorithm, name = head.get("alg"), head.get("kid")
            if algorithm not in ALGORITHMS:
                raise LoginFailedError("the token's signature is of a kind that is not believed")
            key = await self._keys.find_key(name, algorithm)
            claims = self._claims_of(token, key, algorithm)
        except jwt.PyJWTError as error:
            # the library's texts name the error, not the token's content
            raise LoginFailedError(f"the token is refused: {error}") from None
        except LoginFailedError:
            raise
        except Exception as error:
            raise LoginFailedError(f"the token cannot be read: {type(error).__name__}") from None
        user, end = claims.get(self._settings.sasl_oauthbearer_sub_claim_name), claims["exp"]
        if not isinstance(user, str) or not user:
            raise LoginFailedError("the token names nobody")
        if not isinstance(end, int | float):
            raise LoginFailedError("the token does not say in numbers when it ends")
        return user, int(min(end, _FAR_S) * 1000)

    def _claims_of(self, token: str, key: object, algorithm: str) -> JsonObject:
        settings = self._settings
        claims: JsonObject = _import_jwt().decode(
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
    """The keys of the tokens' issuer, by their names."""

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
        self._renewal: asyncio.Task[None] | None = None

    async def find_key(self, name: object, algorithm: str) -> object:
        """The key that signs with ``algorithm`` under this name. Raises AuthenticationError."""
        if self._path is not None:
            while _stamp_of(self._path) != self._stamp and await self._wait_for_keys():
                pass  # it may have changed while it was read
        elif self._now() - self._fetched >= self._refresh_s:
            self._begin_renewal()
        found = self._find_among(name, algorithm)
        if found is None and self._path is None and await self._wait_for_keys():
            found = self._find_among(name, algorithm)
        if found is None:
            raise LoginFailedError("the token is signed with a key that is not known")
        return found

    def _find_among(self, name: object, algorithm: str) -> object:
        fitting = [key for key in self._keys if _fits_algorithm(key, algorithm)]
        if name is None:
            return fitting[0].key if len(fitting) == 1 else None
        return next((key.key for key in fitting if key.key_id == name), None)

    def _begin_renewal(self) -> None:
        """Read the keys, unless that is in progress or the URL was fetched a moment ago."""
        rests = self._path is None and self._now() - self._asked < self._backoff_s
        if self._renewal is None and not rests:
            self._renewal = asyncio.create_task(self._renew_keys())

    async def _wait_for_keys(self) -> bool:
        """Wait until the keys are read, or the time for that is over; return whether they were."""
        self._begin_renewal()
        if (renewal := self._renewal) is None:
            return False
        before = self._keys
        await asyncio.wait({renewal}, timeout=FETCH_S)
        return self._keys is not before

    async def _renew_keys(self) -> None:
        try:
            stamp = (0, 0) if self._path is None else _stamp_of(self._path)
            data = await asyncio.to_thread(_read_url, self._url)
            self._keys = _parse_keys(data)
            self._stamp, self._fetched = stamp, self._now()
        except (OSError, ValueError, http.client.HTTPException) as error:
            log.error(
                "the keys of tokens cannot be read from %s, those of before are used: %s", self._url, error
            )
        finally:
            # counted from the end: it may have taken longer than the pause between two
            self._asked, self._renewal = self._now(), None


def _import_jwt() -> Any:
    """PyJWT, if it is installed."""
    try:
        import jwt
    except ImportError:
        return None
    return jwt


def _fits_algorithm(key: Any, algorithm: str) -> bool:
    kinds = {"R": "RSA", "P": "RSA", "E": "OKP" if algorithm == "EdDSA" else "EC"}
    return (
        key.key_type == kinds[algorithm[0]]
        and key.public_key_use in (None, "sig")
        and key._jwk_data.get("alg") in (None, algorithm)
    )


def _parse_keys(data: bytes) -> list[Any]:
    """The keys of a set that can be used. Raises ValueError."""
    jwt = _import_jwt()
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
        except (jwt.PyJWTError, LookupError, ValueError, TypeError, AttributeError):
            continue  # a type of key that is not supported
    if not found:
        raise ValueError("none of its keys can be used")
    return found


def _read_url(url: str) -> bytes:
    # the scheme was checked when the settings were read
    ends = time.monotonic() + FETCH_S
    data = b""
    with urllib.request.urlopen(url, timeout=FETCH_S) as answer:
        while len(data) <= MAX_KEYS_BYTES and (more := answer.read1(MAX_KEYS_BYTES)):
            data += more
            if time.monotonic() > ends:
                # each read has a timeout of its own
                raise TimeoutError(f"not complete after {FETCH_S:.0f} s")
    if len(data) > MAX_KEYS_BYTES:
        raise ValueError(f"more than {MAX_KEYS_BYTES} bytes")
    return data


def _stamp_of(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size
