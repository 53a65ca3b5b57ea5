"""docs/operator.md: its commands do what they say, one after the other, on a broker that runs."""

from __future__ import annotations

import asyncio
import io
import re
import shlex
from pathlib import Path

import pytest

from kohort.testing import running_broker
from tests.admin.conftest import ran

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "operator.md").read_text()
RULES = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
#: All but those of data folders and of clusters, which tests/broker/test_commands.py has.
LINES = [
    line
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines()
    if "--data" not in line and "--settings" not in line
]


def test_every_command_of_the_page_succeeds(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ETL_PASSWORD", "secret")
    (tmp_path / "etl").write_text("secret\n")
    (tmp_path / "overrides.txt").write_text("127.0.0.1:100\n")
    with running_broker(authorizer_class_name=RULES, super_users="User:ANONYMOUS") as broker:
        to = ["--bootstrap", broker.bootstrap]
        assert ran(capsys, ["topics", "create", "orders", *to]).code == 0
        for line in LINES:
            monkeypatch.setattr("sys.stdin", io.StringIO("secret\n"))
            words = shlex.split(line.replace("/run/secrets/", f"{tmp_path}/"))
            done = ran(capsys, [*words[1:], *to])
            assert done.code == 0, (line, done.out, done.err)


def test_the_python_of_the_page_allows_reading(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    with running_broker(authorizer_class_name=RULES, super_users="User:ANONYMOUS") as broker:
        names: dict[str, object] = {}
        exec(code.replace("localhost:9092", broker.bootstrap), names)
    assert names["asyncio"] is asyncio
    assert "principal='User:billing', permission='Allow', operation='Read'" in capsys.readouterr().out
