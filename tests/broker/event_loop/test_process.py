"""The process of a broker: how many files it may open, and the warning before there are too many."""

from __future__ import annotations

import logging
import os
import subprocess
import sys

import pytest

from kohort.broker.event_loop import process as _process
from kohort.broker.event_loop.process import DescriptorWatch

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


def test_it_warns_once_each_time_that_they_become_scarce(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    counts = iter((80, 81, 99, 80, 81))
    monkeypatch.setattr(os, "listdir", lambda _: [""] * next(counts))
    monkeypatch.setattr(_process, "process_limit", lambda: 100)
    watch = DescriptorWatch()
    told = []
    with caplog.at_level(logging.WARNING, "kohort.broker"):
        for _ in range(5):
            watch.count_descriptors()
            told.append(len(caplog.records))
    assert told == [0, 1, 1, 1, 2]
    assert caplog.records[0].getMessage().startswith("81 of 100 descriptors are open")
