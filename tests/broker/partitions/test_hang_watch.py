"""What a broker says of a disk whose calls do not return, in its log, its metrics and its responses.

Covers: broker/partitions/hang_watch.py, log/_disk_calls.py.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from kohort.broker import Broker
from kohort.broker.metrics._exposer import exposition
from kohort.broker.partitions.hang_watch import HangWatch
from kohort.log import DiskCalls
from kohort.protocol import ApiKey, ErrorCode
from kohort.testing import running_broker
from tests.broker.wire import Wire, batch, create_topic, produce
from tests.waiting import wait_until


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@contextmanager
def another_thread(calls: DiskCalls, kind: str, path: str) -> Iterator[None]:
    """Within it a call of another thread is under way."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(calls.begin, kind, path).result()
        yield
        thread.submit(calls.end).result()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("kohort.log._disk_calls.monotonic", clock)
    return clock


def test_a_call_that_does_not_return_is_told_once_a_minute_and_so_is_its_end(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    calls = DiskCalls()
    watch = HangWatch("/data", lambda: 10_000, calls, clock)
    with another_thread(calls, "flush", "/data/t-0/0.log"):
        for clock.now in (5.0, 9.0, 10.0, 11.0, 69.0):
            watch.look()
        assert watch.hanging_s == 69.0
        assert [record.levelname for record in caplog.records] == ["ERROR"]
        assert "the disk of /data hangs: a flush of /data/t-0/0.log has not returned for 10 s" in caplog.text
        clock.now = 70.0
        watch.look()
        assert "has not returned for 70 s" in caplog.text
    clock.now = 71.0
    watch.look()
    assert caplog.records[-1].getMessage() == "the disk of /data no longer hangs, after 71 s"
    assert (watch.hanging_s, len(caplog.records)) == (0.0, 3)


@pytest.mark.parametrize(
    ("path", "limit_ms"), [("/data-2/t-0/0.log", 10_000), ("/data/t-0/0.log", 0), ("/data/t-0/0.log", 30_000)]
)
def test_calls_for_other_folders_and_those_within_the_limit_do_not_hang(
    clock: Clock, path: str, limit_ms: int, caplog: pytest.LogCaptureFixture
) -> None:
    calls = DiskCalls()
    watch = HangWatch("/data", lambda: limit_ms, calls, clock)
    with another_thread(calls, "write", path):
        for clock.now in (20.0, 21.0):
            watch.look()
    assert (caplog.text, watch.hanging_s) == ("", 0.0)


def test_a_call_that_is_seen_once_does_not_hang_as_the_process_may_have_stood_still(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    calls = DiskCalls()
    watch = HangWatch("/data", lambda: 10_000, calls, clock)
    for clock.now in (100.0, 200.0):
        with another_thread(calls, "flush", "/data"):
            clock.now += 50
            watch.look()
    assert caplog.text == ""


@pytest.mark.parametrize(("name", "kind"), [("fsync", "flush"), ("pwrite", "write")])
def test_a_file_that_hangs_is_told_while_it_lasts_also_where_it_blocks_the_event_loop(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str, kind: str, tmp_path: Path
) -> None:
    goes_on, real = threading.Event(), getattr(os, name)

    def hang(descriptor: int, *rest: object) -> object:
        if re.search(r"orders-0/\d+\.log", os.readlink(f"/proc/self/fd/{descriptor}")):
            goes_on.wait(60)
        return real(descriptor, *rest)

    monkeypatch.setattr("kohort.broker.partitions.hang_watch.LOOK_S", 0.01)
    with (
        running_broker(data=tmp_path, kohort_log_dir_hang_ms=50) as broker,
        Wire(broker.bootstrap) as wire,
    ):
        create_topic(wire, "orders", flush_messages="1")
        with ThreadPoolExecutor(1) as thread, monkeypatch.context() as hanging:
            hanging.setattr(os, name, hang)
            try:
                sent = thread.submit(produce, wire, "orders", batch(3))
                wait_until(lambda: f"a {kind} of {tmp_path}/orders-0/" in caplog.text)
                if kind == "flush":
                    tell_of(broker.bootstrap, ErrorCode.REQUEST_TIMED_OUT)
            finally:
                goes_on.set()
            assert sent.result().error_code == ErrorCode.NONE
        wait_until(lambda: "no longer hangs" in caplog.text)
        tell_of(broker.bootstrap, ErrorCode.NONE)


def tell_of(bootstrap: str, error: ErrorCode) -> None:
    with Wire(bootstrap) as wire:
        (folder,) = wire.call(ApiKey.DESCRIBE_LOG_DIRS, 4, topics=[]).results
        assert folder.error_code == error


async def test_metrics_tell_for_how_long_it_has_hung(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Broker() as broker:
        assert "kohort_log_dir_hanging_seconds 0.0" in exposition(broker.metrics())[0].decode()
        monkeypatch.setattr(HangWatch, "hanging_s", 12.5)
        assert "kohort_log_dir_hanging_seconds 12.5" in exposition(broker.metrics())[0].decode()
