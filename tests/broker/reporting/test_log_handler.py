"""Log lines, text and JSON; structlog is imported when there is something to write."""

from __future__ import annotations

import errno
import io
import json
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from kohort.broker import LogHandler
from kohort.broker.reporting import log_handler as _log_handler

LATEST_S = 20


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    made = logging.getLogger("kohort.test_log_handler")
    made.setLevel(logging.DEBUG)
    made.propagate = False
    yield made
    made.handlers.clear()


def written(handler: LogHandler, out: io.StringIO) -> list[str]:
    handler.open()
    handler.flush()
    return out.getvalue().splitlines()


def test_text_has_time_level_logger_sentence_and_keys(logger: logging.Logger) -> None:
    out = io.StringIO()
    logger.addHandler(handler := LogHandler("text", out))
    logger.info("said", extra={"event_fields": {"event": "MemberGone", "group": "g", "cause": "a b"}})
    logger.warning("connection from %s closed", "x")
    first, second = written(handler, out)
    stamp, rest = first.split(" ", 1)
    assert stamp.endswith("Z")
    assert rest == 'INFO kohort.test_log_handler: MemberGone group=g cause="a b"'
    assert second.endswith(" WARNING kohort.test_log_handler: connection from x closed")


def test_json_has_the_same_as_one_object_a_line(logger: logging.Logger) -> None:
    out = io.StringIO()
    logger.addHandler(handler := LogHandler("json", out))
    logger.info("said", extra={"event_fields": {"event": "MemberGone", "group": "g", "generation": 3}})
    (line,) = written(handler, out)
    found = json.loads(line)
    assert found.pop("timestamp").endswith("Z")
    assert found == {
        "level": "info",
        "logger": "kohort.test_log_handler",
        "event": "MemberGone",
        "group": "g",
        "generation": 3,
    }


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_no_name_breaks_a_line_or_steers_a_terminal(logger: logging.Logger, log_format: str) -> None:
    out = io.StringIO()
    logger.addHandler(handler := LogHandler("json" if log_format == "json" else "text", out))
    evil = "a\n\x1b[31m\u202eb\x85"
    logger.info("%s", evil, extra={"event_fields": {"group": evil}})
    (line,) = written(handler, out)
    assert line.isprintable()


def test_a_traceback_is_kept(logger: logging.Logger) -> None:
    out = io.StringIO()
    logger.addHandler(handler := LogHandler("text", out))
    try:
        raise ValueError("broken")
    except ValueError:
        logger.exception("it failed")
    lines = written(handler, out)
    assert lines[0].endswith("ERROR kohort.test_log_handler: it failed")
    assert lines[-1] == "ValueError: broken"


def test_what_comes_before_the_start_is_written_after_it(logger: logging.Logger) -> None:
    out = io.StringIO()
    logger.addHandler(handler := LogHandler("text", out))
    logger.info("early")
    time.sleep(0.01)
    assert out.getvalue() == ""
    handler.open()
    end = time.monotonic() + LATEST_S
    while "early" not in out.getvalue() and time.monotonic() < end:
        time.sleep(0.01)
    logger.info("late")
    assert [line.rsplit(" ", 1)[1] for line in out.getvalue().splitlines()] == ["early", "late"]


@pytest.mark.parametrize(("level", "seconds"), [(logging.WARNING, 0), (logging.INFO, 5)])
def test_a_start_that_waits_says_for_what(logger: logging.Logger, level: int, seconds: int) -> None:
    out = io.StringIO()
    logger.addHandler(LogHandler("text", out))
    logger.info("reads")
    record = logger.makeRecord(logger.name, level, "", 0, "waits", (), None)
    record.created += seconds
    logger.handle(record)
    end = time.monotonic() + LATEST_S
    while "waits" not in out.getvalue() and time.monotonic() < end:
        time.sleep(0.01)
    assert [line.rsplit(" ", 1)[1] for line in out.getvalue().splitlines()] == ["reads", "waits"]


def test_a_line_that_cannot_be_written_yet_comes_with_the_next(
    logger: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    formatter, met = _log_handler._make_formatter, threading.Event()

    def no_descriptor(*, as_json: bool) -> logging.Formatter:
        met.set()
        raise OSError(errno.EMFILE, f"Too many open files, as_json={as_json}")

    out = io.StringIO()
    logger.addHandler(handler := LogHandler("text", out))
    handler.open()
    monkeypatch.setattr(_log_handler, "_make_formatter", no_descriptor)
    logger.warning("no connection can be accepted")
    assert met.wait(LATEST_S)
    monkeypatch.setattr(_log_handler, "_make_formatter", formatter)
    deadline = time.monotonic() + LATEST_S
    while "accepted" not in out.getvalue():
        assert time.monotonic() < deadline
        logger.warning("again")
        time.sleep(0.01)


def test_what_waits_at_the_end_is_written() -> None:
    code = (
        "import logging, kohort.broker as b; logging.getLogger().addHandler(b.LogHandler());"
        "logging.getLogger('x').warning('last words')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.endswith("WARNING x: last words\n")


def test_nothing_said_means_nothing_imported() -> None:
    code = (
        "import logging, sys, kohort.broker as b; h = b.LogHandler(); logging.getLogger().addHandler(h);"
        "h.open(); print('structlog' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
