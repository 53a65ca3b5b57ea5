"""Descriptors that become scarce are told before there are none."""

from __future__ import annotations

import logging
import os

import pytest

from kohort.broker.reporting import descriptor_watch
from kohort.broker.reporting.descriptor_watch import DescriptorWatch
from kohort.broker.reporting.trouble import REPEAT_S


def test_it_warns_when_they_become_scarce_and_tells_when_there_are_more(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    counts = iter((80, 81, 99, 80, 81, 82))
    now = [0.0]
    monkeypatch.setattr(os, "listdir", lambda _: [""] * next(counts))
    monkeypatch.setattr(descriptor_watch, "process_limit", lambda: 100)
    watch = DescriptorWatch(lambda: now[0])
    told = []
    with caplog.at_level(logging.WARNING, "kohort.broker"):
        for now[0] in (0.0, 30.0, 60.0, 90.0, 120.0, 30.0 + REPEAT_S):
            watch.count_descriptors()
            told.append(len(caplog.records))
    assert told == [0, 1, 1, 2, 2, 3]
    assert caplog.records[0].getMessage().startswith("81 of 100 descriptors are open")
    assert caplog.records[1].getMessage() == "80 of 100 descriptors are open again, after 60 s"
