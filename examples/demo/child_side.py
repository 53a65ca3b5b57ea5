"""What every process of the demo does: it reports in JSON lines, and it does not outlive the demo."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading


def say(**event: object) -> None:
    """Tell the demo something: one line of JSON on standard output."""
    print(json.dumps(event), flush=True)


def end_with_the_demo() -> None:
    """Standard input is a pipe from the demo: when that breaks the demo is gone, and so is this process."""

    def watch() -> None:
        sys.stdin.read()
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, name="end-with-the-demo", daemon=True).start()
