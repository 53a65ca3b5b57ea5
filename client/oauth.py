"""Tokens for OAUTHBEARER by client credentials (RFC 6749, 4.4); importing it loads an HTTP client."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from base64 import b64encode
from typing import Final
from urllib.parse import quote, urlencode

from ..protocol import JsonObject
from .errors import AuthenticationError
from .sasl import ClientCredentials

#: Longest wait for a token, in seconds.
_TOKEN_WITHIN_S: Final = 10.0
#: Fraction of a token's lifetime after which a new one is requested.
_FRESH: Final = 0.8
#: Lifetime of a token if the server does not send one, in seconds.
_DEFAULT_LIFE_S: Final = 60.0
#: Most bytes that are read of an answer.
_LONGEST_ANSWER: Final = 1 << 20


class TokenSource:
    """Gets tokens for client credentials, and keeps each for 80 % of its lifetime. Thread-safe."""

    def __init__(self, credentials: ClientCredentials) -> None:
        self._credentials = credentials
        self._lock = threading.Lock()
        self._token = ""
        self._until = 0.0

    def __call__(self) -> str:
        """Return a token. Raises AuthenticationError if the server refuses (HTTP 400, 401 or 403), OSError
        if it cannot be reached or fails, ValueError if its answer has no token.
        """
        with self._lock:
            if time.monotonic() >= self._until:
                self._token, life_s = self._ask_server()
                self._until = time.monotonic() + _FRESH * life_s
            return self._token

    def _ask_server(self) -> tuple[str, float]:
        who = self._credentials
        form = {"grant_type": "client_credentials"} | ({"scope": who.scope} if who.scope else {})
        login = b64encode(f"{quote(who.client_id, safe='')}:{quote(who.secret, safe='')}".encode()).decode()
        request = urllib.request.Request(
            who.url,
            urlencode(form).encode(),
            {"Authorization": f"Basic {login}", "Accept": "application/json"},
        )
        try:
            with _opener.open(request, timeout=_TOKEN_WITHIN_S) as answer:
                said = _json_object(answer.read(_LONGEST_ANSWER))
        except urllib.error.HTTPError as error:
            with error:
                said = _json_object(error.read(_LONGEST_ANSWER))
            reason = ": ".join(str(said[name]) for name in ("error", "error_description") if name in said)
            words = f"no token for {who.client_id!r}: HTTP {error.code} {reason}".strip()[:300]
            if error.code in (400, 401, 403):
                raise AuthenticationError(who.url, words) from None
            raise OSError(words) from None
        token, life = said.get("access_token"), said.get("expires_in", _DEFAULT_LIFE_S)
        if not isinstance(token, str) or not token:
            raise ValueError(f"{who.url} gave no access_token")
        return token, float(life)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirects, so that the secret is sent only to the configured token endpoint."""

    def redirect_request(self, *_: object) -> None:
        return None


_opener: Final = urllib.request.build_opener(_NoRedirect)


def _json_object(data: bytes) -> JsonObject:
    try:
        found = json.loads(data)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
