"""What is served for which options: who is asked for a token, and what is said about it."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kohort.recording import FILE_NAME
from kohort.ui import server as module
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


def test_a_connection_that_asks_for_nothing_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REQUEST_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = listening.getsockname()
        server = module.PageServer(made(*NOWHERE, token=TOKEN, listening=address))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            ask = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
            for sent, answered in ((b"", False), (ask, False), (ask + b"\r\n" + ask, True)):
                with socket.create_connection(address, 20) as idle:
                    idle.sendall(sent)
                    found = b""
                    with suppress(ConnectionResetError):
                        while part := idle.recv(65_536):
                            found += part
                    assert (b"401 Unauthorized" in found) == answered
            monkeypatch.setattr(module, "MOST_CONNECTIONS", 0)
            with socket.create_connection(address, 20) as refused, suppress(ConnectionResetError):
                assert refused.recv(1) == b""
        finally:
            server.should_exit = True
            thread.join(30)


def test_an_answer_that_the_end_of_the_server_cuts_off_prints_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_server(("127.0.0.1", 0)) as silent,
    ):
        brokers = f"127.0.0.1:{silent.getsockname()[1]}"
        server = module.PageServer(made("--bootstrap", brokers, listening=listening.getsockname()))
        server.config.timeout_graceful_shutdown = 1
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        with socket.create_connection(listening.getsockname(), 20) as asking:
            asking.sendall(b"GET /records?name=orders HTTP/1.1\r\nHost: localhost\r\n\r\n")
            # it has been taken in: the client connects
            silent.settimeout(30)
            connected, _ = silent.accept()
            server.should_exit = True
            thread.join(30)
            connected.close()
    [line] = capsys.readouterr().err.splitlines()
    assert "Cancel 1 running task(s)" in line


def test_a_recording_is_begun_and_ended_with_the_server(tmp_path: Path) -> None:
    ui = made(
        "--record", str(tmp_path), "--record-size", "5", "--record-days", "2", "--bootstrap", "localhost:1"
    )
    assert any(str(tmp_path) in words for words in ui.remarks)

    async def serve_once() -> None:
        messages = iter(({"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}))
        said: list[str] = []

        async def receive() -> Any:
            # the recorder has begun before the server is to end
            return next(messages)

        async def send(message: Any) -> None:
            said.append(message["type"])

        await ui.app({"type": "lifespan", "asgi": {"version": "3.0"}}, receive, send)
        assert said == ["lifespan.startup.complete", "lifespan.shutdown.complete"]

    asyncio.run(serve_once())
    assert (tmp_path / FILE_NAME).exists()
