"""docs/security.md: its steps from nothing to a user who may read, as they stand there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ports import free_ports

PAGE = Path(__file__).resolve().parents[3] / "docs" / "security.md"


def blocks(language: str) -> list[str]:
    guide = PAGE.read_text().partition("## A broker that can stand on a network")[2].partition("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", guide, re.DOTALL)


@pytest.mark.slow(3)
@pytest.mark.skipif(shutil.which("openssl") is None, reason="the guide makes its certificate with openssl")
def test_its_steps_lead_to_a_user_who_may_read(tmp_path: Path) -> None:
    first = free_ports(range(2))
    ports = {"9093": str(first), "9094": str(first + 1)}

    def here(text: str) -> str:
        return re.sub("909[34]", lambda match: ports[match[0]], text)

    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "XDG_CONFIG_HOME": str(tmp_path / "settings"),
    }
    certificate, first_user_and_broker, rights = blocks("sh")
    add_user, start_broker = first_user_and_broker.strip().splitlines()
    (settings,) = blocks("properties")
    (profile,) = blocks("toml")
    (client,) = blocks("python")

    def run(words: list[str], typed: str = "") -> str:
        done = subprocess.run(
            words, cwd=tmp_path, env=environment, input=typed, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run(["bash", "-ec", certificate])
    (tmp_path / "server.properties").write_text(here(settings))
    run(["bash", "-ec", add_user], typed="the password\n")
    check = run(["kohort", "serve-check", "--settings", "server.properties", "--data", "data"])
    warnings = check.partition("warnings\n")[2].splitlines()
    # how many files may be open is this machine's matter
    assert [line for line in warnings if "raise ulimit -n" not in line] == []
    (tmp_path / "settings" / "kohort").mkdir(parents=True)
    (tmp_path / "settings" / "kohort" / "profiles.toml").write_text(here(profile))
    broker = subprocess.Popen(
        ["bash", "-ec", f"exec {start_broker}"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert broker.stdout is not None
        assert "kohort broker ready on" in broker.stdout.readline()
        told = run(["bash", "-ec", rights], typed="the password\nits password\n")
        assert [line.split()[2:5] for line in told.splitlines()[-3:]] == [
            ["Read", "group", "billing"],
            ["Describe", "topic", "orders"],
            ["Read", "topic", "orders"],
        ]
        assert "orders" in run([sys.executable, "-c", here(client)])
    finally:
        broker.terminate()
        assert broker.wait(30) == 0
