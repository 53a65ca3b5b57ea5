"""What is served for which options: who is asked for a token, and what is said about it."""

from __future__ import annotations

import pytest

from tests.ui.conftest import TOKEN, Browser, made

NOWHERE = ("--bootstrap", "127.0.0.1:1", "--timeout", "1")


def test_on_this_machine_nobody_is_asked() -> None:
    ui = made(*NOWHERE)
    assert ui.address == "http://127.0.0.1:8090/"
    assert Browser(ui).get("/nothing").status_code == 404
    assert any("--token-file" in words for words in ui.remarks)


@pytest.mark.parametrize(
    ("words", "listening", "shown"),
    [
        ((), ("0.0.0.0", 80), "http://127.0.0.1:80/?token="),
        ((), ("10.0.0.7", 81), "http://10.0.0.7:81/?token="),
        ((), ("::", 82, 0, 0), "http://127.0.0.1:82/?token="),
        ((), ("2001:db8::1", 83, 0, 0), "http://[2001:db8::1]:83/?token="),
        (("--allow-changes",), ("127.0.0.1", 84), "http://127.0.0.1:84/?token="),
    ],
)
def test_elsewhere_and_for_changes_a_token_is_made(
    words: tuple[str, ...], listening: tuple[object, ...], shown: str
) -> None:
    first, second = (made(*NOWHERE, *words, listening=listening) for _ in range(2))
    assert first.address.startswith(shown)
    assert len(first.address.removeprefix(shown)) >= 43
    assert first.address != second.address
    assert Browser(first).get("/").status_code == 401
    assert any("without TLS" in words for words in first.remarks) == (listening[0] != "127.0.0.1")


def test_a_token_of_ones_own_is_not_printed() -> None:
    ui = made(*NOWHERE, token=TOKEN, listening=("0.0.0.0", 8090))
    assert TOKEN not in ui.address + "".join(ui.remarks)
    assert Browser(ui).get("/").status_code == 401
