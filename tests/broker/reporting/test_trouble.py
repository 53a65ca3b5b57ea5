"""Lines about something that is amiss: its beginning, one now and then, and its end."""

from __future__ import annotations

import logging

import pytest

from kohort.broker.reporting.trouble import Trouble


def test_it_is_told_when_it_begins_then_at_intervals_and_when_it_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = [1_000.0]
    trouble = Trouble(logging.ERROR, repeat_s=60.0, now=lambda: now[0])
    trouble.on_absent("all is well")
    for now[0] in (1_000.0, 1_059.0, 1_060.0, 1_061.0):
        trouble.on_present("%d files are missing", 3)
    now[0] = 1_090.0
    trouble.on_absent("all is well")
    trouble.on_absent("all is well")
    assert [(each.levelno, each.getMessage()) for each in caplog.records] == [
        (logging.ERROR, "3 files are missing"),
        (logging.ERROR, "3 files are missing"),
        (logging.ERROR, "all is well, after 90 s"),
    ]


def test_one_that_comes_and_goes_is_told_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    trouble = Trouble(repeat_s=60.0, now=lambda: now[0])
    for now[0] in range(0, 60, 2):
        trouble.on_present("full")
        now[0] += 1
        trouble.on_absent("empty")
    assert [each.getMessage() for each in caplog.records] == ["full", "empty, after 1 s"]
    now[0] = 60.0
    trouble.on_present("full")
    assert repr(trouble) == "Trouble(present)"
    assert caplog.records[-1].getMessage() == "full"
