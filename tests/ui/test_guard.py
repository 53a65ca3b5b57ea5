"""Who may see the pages: names, tokens, forms, and what answers allow a browser to do."""

from __future__ import annotations

import pytest

from kohort.ui.guard import MOST_FORM_BYTES, RequestGuard
from tests.ui.conftest import TOKEN, Browser, MakeBrowser

NOWHERE = ("--bootstrap", "127.0.0.1:1", "--timeout", "1")


@pytest.fixture
def open_page(browser: MakeBrowser) -> Browser:
    """The page of somebody who listens on this machine, as it is by default."""
    return browser(*NOWHERE)


@pytest.fixture
def locked(browser: MakeBrowser) -> Browser:
    return browser(*NOWHERE, token=TOKEN)


@pytest.mark.parametrize("host", ["127.0.0.1:8090", "localhost", "LOCALHOST:99", "[::1]:8090"])
def test_the_names_of_this_machine_are_known(open_page: Browser, host: str) -> None:
    assert open_page.get("/assets/page.css", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8090",
        "127.0.0.1.evil.example",
        "10.0.0.1",
        "",
        "[",
        "a@b",
        "a@127.0.0.1",
        "127.0.0.1:x y",
        "127.0.0.1/assets/x?",
        "127.0.0.1?",
        "127.0.0.1:8090#",
    ],
)
def test_a_name_that_leads_here_from_elsewhere_is_refused(open_page: Browser, host: str) -> None:
    assert open_page.get("/assets/page.css", headers={"host": host}).status_code == 421


def test_two_host_headers_are_refused(open_page: Browser) -> None:
    headers = [("host", "127.0.0.1"), ("host", "evil.example")]
    assert open_page.get("/assets/page.css", headers=headers).status_code == 421


def test_elsewhere_every_address_and_the_allowed_names_are_known(browser: MakeBrowser) -> None:
    words = (*NOWHERE, "--allow-host", "kohort.example")
    client = browser(*words, token=TOKEN, listening=("0.0.0.0", 8090))
    for host, status in (("10.0.0.7:8090", 200), ("kohort.example", 200), ("evil.example", 421)):
        assert client.get("/assets/page.css", headers={"host": host}).status_code == status


def test_answers_let_a_browser_do_little(open_page: Browser) -> None:
    for path in ("/assets/page.js", "/nothing", "/events?of=nothing"):
        headers = open_page.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';")
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers


def test_without_the_token_nothing_is_shown(locked: Browser) -> None:
    for path in ("/", "/group?name=x", "/events?of=groups", "/topics", "/nothing", "/?token=wrong"):
        answer = locked.get(path)
        assert answer.status_code == 401, path
        assert "Token" in answer.text
        assert TOKEN not in answer.text
        assert "set-cookie" not in answer.headers
    assert locked.get("/assets/page.css").status_code == 200
    assert locked.get("/assets/../topics").status_code == 401


def test_the_token_in_the_address_becomes_a_cookie(locked: Browser) -> None:
    answer = locked.get(f"/nothing?name=a%26b&token={TOKEN}")
    assert (answer.status_code, answer.headers["location"]) == (303, "/nothing?name=a%26b")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("kohort_ui_8090=")
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert TOKEN not in cookie
    assert locked.get("/nothing").status_code == 404


def test_the_token_opens_nobody_elses_page(locked: Browser) -> None:
    answer = locked.get(f"//evil.example/?token={TOKEN}")
    assert not answer.headers.get("location", "/").startswith(("//", "http"))


def test_the_token_may_be_typed_or_sent_as_a_header(locked: Browser) -> None:
    assert locked.post("/login", data={"token": "wrong"}).status_code == 401
    answer = locked.post("/login", data={"token": TOKEN}, headers={"origin": "http://127.0.0.1:8090"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert locked.get("/nothing").status_code == 404
    locked.cookies.clear()
    assert locked.get("/nothing", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 404
    for wrong in (f"Basic {TOKEN}", "Bearer", "Bearer é"):
        assert locked.get("/nothing", headers={"authorization": wrong.encode()}).status_code == 401


@pytest.mark.parametrize("cookie", ["", "x", "é", TOKEN])
def test_a_made_up_cookie_opens_nothing(locked: Browser, cookie: str) -> None:
    header = f"kohort_ui_8090={cookie}".encode()
    assert locked.get("/nothing", headers={"cookie": header}).status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_a_form_of_another_site_is_refused(locked: Browser, headers: dict[str, str]) -> None:
    assert locked.post("/login", data={"token": TOKEN}, headers=headers).status_code == 403


def test_a_form_has_an_end(locked: Browser) -> None:
    assert locked.post("/login", data={"token": "x" * MOST_FORM_BYTES}).status_code == 413
    many = "&".join(f"f{n}=1" for n in range(200))
    assert locked.post("/login", content=many + f"&token={TOKEN}").status_code == 401
    assert locked.post("/login", content=b"token=\xff\xfe").status_code == 401
    assert locked.put("/login").status_code == 405


async def test_websockets_are_not_answered() -> None:
    async def never(*_: object) -> None:
        raise AssertionError("the application was asked")

    guard = RequestGuard(never, hosts=["localhost"], any_address=False, token=None, cookie="c")
    await guard({"type": "websocket", "headers": []}, never, never)  # type: ignore[arg-type]
