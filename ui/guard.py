"""Access to the pages: the Host header, the token, and the headers that restrict browsers.

Anyone who reaches the port sees what kohort may see of the cluster. So the server listens on 127.0.0.1; on
other addresses, or if it may change something, it requires a token.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Collection
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from . import layout

#: Largest form, in bytes, and most fields of it.
MOST_FORM_BYTES: Final = 16_384
_MOST_FIELDS: Final = 128
#: Time for a form to arrive.
_FORM_S: Final = 10.0

_HEADERS: Final = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
#: Paths that need no token: the assets of the page that asks for it.
_OPEN: Final = "/assets/"
_LOGIN: Final = "/login"


class RequestGuard:
    """Checks requests before the application. ``token`` is None if none is required.

    ``hosts`` are the names of this server; with ``any_address`` every IP address is one too. A page of
    another site whose name resolves to this address (DNS rebinding) has a name that is not among them.
    """

    def __init__(
        self, app: ASGIApp, *, hosts: Collection[str], any_address: bool, token: str | None, cookie: str
    ) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)
        self._any_address = any_address
        self._token = token
        self._cookie = cookie
        # the cookie has a keyed hash, not the token itself
        self._session = _sign_text(token, "session") if token is not None else ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        request = Request(scope, receive)
        answer = self._refusal_of(request) or await self._refusal_without_token(request)
        await (answer or self._app)(scope, receive, guarded)

    def _refusal_of(self, request: Request) -> Response | None:
        """The response to a request that no page of ours sends; None for others."""
        if not self._is_known(_host_name(request.headers)):
            return PlainTextResponse("kohort ui is not known by this name: see --allow-host\n", 421)
        if request.method in ("GET", "HEAD"):
            return None
        if request.method != "POST":
            return PlainTextResponse("method not allowed\n", 405)
        if not is_same_origin(request.headers):
            return PlainTextResponse("this form is not from a page of kohort ui\n", 403)
        length = request.headers.get("content-length", "")
        if not length.isdecimal() or int(length) > MOST_FORM_BYTES:
            return PlainTextResponse("the form is too large\n", 413)
        return None

    def _is_known(self, host: str) -> bool:
        if host in self._hosts:
            return True
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return False
        return self._any_address

    async def _refusal_without_token(self, request: Request) -> Response | None:
        """The response to a client without the token; None for a client that has it."""
        path = request.scope["path"]
        if self._token is None or path.startswith(_OPEN):
            return None
        if path == _LOGIN and request.method == "POST":
            given, where = (await form_of(request)).get("token", ""), "/"
        else:
            given = request.query_params.get("token", "")
            rest = [(k, v) for k, v in request.query_params.multi_items() if k != "token"]
            where = f"{request.url.path}?{urlencode(rest)}" if rest else request.url.path
        if given:
            if _is_equal(given, self._token):
                # a browser would follow "//host/path" to another host
                answer: Response = RedirectResponse("/" + where.lstrip("/\\"), 303)
                answer.set_cookie(self._cookie, self._session, httponly=True, samesite="strict")
                return answer
            return layout.login("This is not the token.")
        if _is_equal(request.cookies.get(self._cookie, ""), self._session):
            return None
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and _is_equal(bearer, self._token):
            return None
        return layout.login("")


class CsrfTokens:
    """Tokens in forms, which pages of other sites cannot know (CSRF)."""

    def __init__(self, cookie: str) -> None:
        self._key = secrets.token_urlsafe(32)
        self._cookie = cookie

    def of(self, request: Request) -> str:
        """The token for the sender of a request."""
        return _sign_text(self._key, request.cookies.get(self._cookie, ""))

    def fits(self, request: Request, given: str) -> bool:
        """Whether a token is that of the sender of a request."""
        return _is_equal(given, self.of(request))


async def form_of(request: Request) -> dict[str, str]:
    """Fields of a form; {} if the body is none. The guard has limited its size."""
    body = b""
    try:
        async with asyncio.timeout(_FORM_S):
            async for part in request.stream():
                body += part
                if len(body) > MOST_FORM_BYTES:
                    return {}
        return dict(
            parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict")
        )
    except (ValueError, TimeoutError):
        return {}


def _host_name(headers: Headers) -> str:
    """The host of the Host header, without its port; "" where that is none."""
    given = headers.getlist("host")
    if len(given) != 1:
        return ""
    try:
        parts = urlsplit(f"//{given[0]}")
        # a path in it would change the URL that some versions of Starlette build for the request
        if parts.netloc != given[0] or "@" in parts.netloc or parts.port == 0:
            return ""
        return (parts.hostname or "").lower()
    except ValueError:
        return ""


def is_same_origin(headers: Headers) -> bool:
    """Whether a browser says that a request comes from a page of this server, or does not say."""
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).netloc.lower() == headers.get("host", "").lower()


def _sign_text(key: str, text: str) -> str:
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()


def _is_equal(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(), wanted.encode())
