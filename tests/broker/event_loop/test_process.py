"""The process of a broker: how many files it may open."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import resource
from kohort.broker import allow_open_files
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
allow_open_files()
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
"""


def test_a_broker_may_open_as_many_files_as_there_may_be() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
