"""A PostgreSQL server of a test's own, where PostgreSQL is installed."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def _programs() -> Path:
    """Where initdb and pg_ctl are: distributions keep them out of PATH."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = shutil.which("initdb", path=os.pathsep.join([os.environ.get("PATH", ""), *map(str, places)]))
    if found is None:
        pytest.skip("PostgreSQL is not installed here (Debian and Ubuntu: apt-get install postgresql)")
    return Path(found).resolve().parent


@contextmanager
def postgres_server(port: int | None = None) -> Iterator[str]:
    """Its connection string. It listens on a socket in a folder of its own, and on this port of 127.0.0.1."""
    programs, folder = _programs(), Path(f"/tmp/kohort-postgres-{os.getpid()}")
    user = None
    if os.geteuid() == 0:  # it refuses to run as root
        user = "postgres"
        if not any(known.pw_name == user for known in pwd.getpwall()):
            pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
    folder.mkdir()
    try:
        if user:
            shutil.chown(folder, user)
        data, log = folder / "data", folder / "log"
        command = [f"{programs}/initdb", "--pgdata", f"{data}", "--username", "kohort", "--auth", "trust"]
        subprocess.run(command, check=True, capture_output=True, user=user, cwd=folder)
        address = "" if port is None else f"127.0.0.1 -c port={port}"
        options = f"-c listen_addresses={address} -c unix_socket_directories={folder}"
        control = [f"{programs}/pg_ctl", "--pgdata", f"{data}", "--log", f"{log}", "--wait"]
        subprocess.run([*control, "--options", options, "start"], check=True, user=user, cwd=folder)
        try:
            yield f"host={folder} user=kohort dbname=postgres" + ("" if port is None else f" port={port}")
        finally:
            stop = [*control, "--mode", "immediate", "stop"]
            subprocess.run(stop, check=True, user=user, cwd=folder)
    finally:
        shutil.rmtree(folder)
