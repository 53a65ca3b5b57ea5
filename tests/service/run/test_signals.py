"""Signals, in a process of their own."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import pytest

from kohort.service.run.signals import ONE_SIGNAL_S, graceful_signals

PROGRAM = """
import asyncio
from kohort.service.run.signals import graceful_signals

async def main():
    stopping = asyncio.Event()
    with graceful_signals(lambda reason: (print("stop", reason, flush=True), stopping.set())):
        print("ready", flush=True)
        await stopping.wait()
        await asyncio.sleep({drain_s})

asyncio.run(main())
"""


def start(drain_s: float) -> subprocess.Popen[str]:
    program = [sys.executable, "-c", PROGRAM.format(drain_s=drain_s)]
    process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_asks_for_an_end(number: signal.Signals) -> None:
    process = start(drain_s=0)
    process.send_signal(number)
    out, _ = process.communicate(timeout=20)

    assert (process.returncode, out) == (0, f"stop {number.name}\n")


def test_the_second_signal_ends_at_once() -> None:
    process = start(drain_s=60)
    process.send_signal(signal.SIGTERM)
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(ONE_SIGNAL_S + 0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)

    assert process.returncode == 128 + signal.SIGINT
    assert "leaving at once, without commit" in err


def test_two_signals_at_once_are_one() -> None:
    process = start(drain_s=1)
    process.send_signal(signal.SIGTERM)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=20)

    assert (process.returncode, err) == (0, "")


def test_outside_the_main_thread_signals_are_left_alone() -> None:
    before = signal.getsignal(signal.SIGTERM)
    seen: list[object] = []

    def run() -> None:
        with graceful_signals(lambda _: None):
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()

    assert seen == [before]
