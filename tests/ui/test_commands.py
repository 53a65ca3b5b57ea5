"""``kohort ui`` as it is typed: what it prints, how it ends, and what it says when it cannot begin."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

from kohort.testing import RunningBroker
from kohort.ui.commands import _listen_on
from tests.admin.conftest import ran


def test_it_serves_until_it_is_told_to_end_whoever_looks(broker: RunningBroker) -> None:
    words = ["ui", "--bootstrap", broker.bootstrap, "--port", "0"]
    with subprocess.Popen(
        [sys.executable, "-m", "kohort", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        try:
            assert running.stdout is not None
            found = re.fullmatch(
                r"kohort ui ready on (http://127\.0\.0\.1:\d+/)\n", running.stdout.readline()
            )
            assert found, running.stderr and running.stderr.read()
            with urllib.request.urlopen(found[1], timeout=30) as answer:
                assert b"<h1>Problems</h1>" in answer.read()
            with urllib.request.urlopen(f"{found[1]}events?of=groups", timeout=30) as stream:
                assert stream.readline() == b"retry: 2000\n"
                running.send_signal(signal.SIGTERM)
                rest = stream.read()  # it ends; nobody has to be waited for
            assert b"event: page" in rest or not rest.strip()
            _, errors = running.communicate(timeout=30)
        finally:
            running.kill()
    assert (running.returncode, errors) == (0, "")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--port", "70000"], "is no port"),
        (["--token-file", "/nowhere"], "No such file"),
        (["--security-protocol", "SASL_SSL"], "sasl"),
        (["--host", "no.such.host.invalid"], "cannot listen on no.such.host.invalid"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    done = ran(capsys, ["ui", "--port", "0", *words])
    assert done.code == 2
    assert told in done.err
    assert done.err.count("\n") == 1


def test_a_port_that_is_taken_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = ran(capsys, ["ui", "--port", str(port)])
    assert done.code == 2
    assert f"cannot listen on 127.0.0.1:{port}" in done.err


def test_a_token_that_is_short_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "token"
    for content, told in ((b"short\n", "is short: give 16"), (b"\xff" * 20, "no text in UTF-8")):
        file.write_bytes(content)
        done = ran(capsys, ["ui", "--port", "0", "--token-file", str(file)])
        assert done.code == 2
        assert told in done.err


def test_without_the_extra_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "kohort.ui.server", raising=False)
    done = ran(capsys, ["ui", "--port", "0"])
    assert done.code == 2
    assert "pip install 'kohort[ui]'" in done.err


def test_it_listens_where_it_is_told() -> None:
    with suppress(OSError), socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::1", 0))
        with _listen_on("::1", 0) as listening:
            assert listening.getsockname()[0] == "::1"
    with _listen_on("localhost", 0) as listening:
        assert listening.getsockname()[0] in ("127.0.0.1", "::1")


def test_the_command_line_loads_no_server() -> None:
    heavy = ("starlette", "uvicorn", "kohort.broker")
    script = (
        "import sys\nfrom kohort.cli import _make_parser\n"
        "_make_parser(['ui']).parse_args(['ui', '--port', '0'])\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
