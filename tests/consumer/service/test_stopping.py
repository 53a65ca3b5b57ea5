"""SIGTERM, to services in processes of their own: no broker, and handlers that hang."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

PROGRAM = """
import logging, threading
from kohort.consumer import ConsumerService

logging.basicConfig(level="INFO")
service = ConsumerService(
    bootstrap={bootstrap!r}, group={group!r}, auto_offset_reset="earliest", drain_timeout_ms=300,
    leave_notice_ms=0,
)

@service.handler({topic!r})
def handle(record):
    print("handling", flush=True)
    threading.Event().wait()

service.run()
print("ended", flush=True)
"""


def _start(bootstrap: str, group: str, topic: str) -> subprocess.Popen[str]:
    text = PROGRAM.format(bootstrap=bootstrap, group=group, topic=topic)
    return subprocess.Popen(
        [sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_without_a_broker_there_is_a_warning_and_sigterm_ends_it() -> None:
    process = _start("127.0.0.1:1", "billing", "orders")
    lines: list[str] = []
    assert process.stderr is not None
    watchdog = threading.Timer(90, process.kill)
    watchdog.start()
    try:
        while not any("no broker of 127.0.0.1:1 has answered" in line for line in lines):
            lines.append(process.stderr.readline())
            assert lines[-1], f"it has ended: {lines}"
        process.send_signal(signal.SIGTERM)
        # far less than the minute for which it would go on
        out, err = process.communicate(timeout=30)
    finally:
        watchdog.cancel()
        process.kill()
    assert (process.returncode, out) == (0, "ended\n"), err


@pytest.mark.kafka
def test_a_plain_handler_that_hangs_does_not_keep_the_process(
    bootstrap: str,
    new_topic: Callable[..., str],
    group: Callable[[str], str],
    produce: Callable[..., None],
) -> None:
    topic = new_topic("orders", partitions=1)
    produce(topic, range(3))
    process = _start(bootstrap, group("billing"), topic)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "handling\n"
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, out) == (0, "ended\n"), err
    assert "had not finished" in err
