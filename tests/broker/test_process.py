"""Four fifths of the descriptors are worth a line."""

from __future__ import annotations

import logging
import os

import pytest

from kohort.broker import _descriptor_watch
from kohort.broker._descriptor_watch import DescriptorWatch


def test_it_warns_once_each_time_that_they_become_scarce(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    counts = iter((80, 81, 99, 80, 81))
    monkeypatch.setattr(os, "listdir", lambda _: [""] * next(counts))
    monkeypatch.setattr(_descriptor_watch, "process_limit", lambda: 100)
    watch = DescriptorWatch()
    told = []
    with caplog.at_level(logging.WARNING, "kohort.broker"):
        for _ in range(5):
            watch.look()
            told.append(len(caplog.records))
    assert told == [0, 1, 1, 1, 2]
    assert caplog.records[0].getMessage().startswith("81 of 100 descriptors are open")
