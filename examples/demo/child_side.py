"""Functions for every process of the demo: to report in JSON lines, and to end when the demo ends."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading


def say(**event: object) -> None:
    """Report something to the demo, as a line of JSON on standard output."""
    print(json.dumps(event), flush=True)


def end_with_the_demo() -> None:
    """Kill this process when the demo has ended, which closes the pipe at standard input."""

    def watch() -> None:
        sys.stdin.read()
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, name="end-with-the-demo", daemon=True).start()
