"""What counting for /metrics costs a service: ``python -m benchmarks.service_metrics [ROUNDS]``, no broker.

Records go through a handler that does nothing (lanes by key, concurrency 32), as the code is and, by turns
with that, with each counter counted eleven times instead of once. A tenth of the difference is what counting
costs: once more or less cannot be told from what a machine is up to.
"""

from __future__ import annotations

import asyncio
import importlib.util
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from kohort.consumer import Record
from kohort.service import Retry
from kohort.service.handlers import handler as _handlers
from kohort.service.run import running_handler as _running

RECORDS, AT_ONCE, TIMES, MOST_BYTES = 20_000, 500, 11, 1 << 26
_COUNTING = r"^\s*self\.(?:counters\.handled|finished) \+= .*$"

Service = tuple[ModuleType, ModuleType]


def changed(module: ModuleType, times: int) -> ModuleType:
    """The module with its counting done so many times."""
    assert module.__file__ is not None, "it has a file"
    source = Path(module.__file__).read_text()
    source, found = re.subn(_COUNTING, lambda line: "\n".join([line[0]] * times), source, flags=re.M)
    assert found, f"{module.__name__} counts nothing"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "changed.py"
        file.write_text(source)
        spec = importlib.util.spec_from_file_location(module.__name__, file)
        assert spec is not None, "it is a file of Python"
        assert spec.loader is not None, "and can be loaded"
        new = sys.modules[module.__name__] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(new)
    return new


def service(times: int) -> Service:
    return changed(_handlers, times), changed(_running, times)


async def us_per_record(modules: Service, records: list[Record]) -> float:
    """Processor time."""
    handlers, running = modules

    async def handle(_: Record) -> None:
        pass

    handler = handlers.Handler(
        function=handle,
        topics=("orders",),
        model=None,
        lanes="key",
        concurrency=32,
        retry=Retry(),
        dead_letter=None,
        batch=1,
        takes_batches=False,
        validate=None,
        is_async=True,
        counters=handlers.Counters(),
    )
    nothing: Callable[..., Any] = lambda *_: None  # noqa: E731 - stands for five of them
    runs = running.RunningHandler(
        handler, done=nothing, send=nothing, on_failure=nothing, pause=nothing, resume=nothing
    )
    began = time.process_time()
    for first in range(0, len(records), AT_ONCE):
        some = records[first : first + AT_ONCE]
        runs.hand_over(some[0].topic_partition, some, MOST_BYTES)
        await asyncio.sleep(0)
    while runs.queues.backlog:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0)
    took = time.process_time() - began
    await runs.close()
    assert handler.counters.handled >= len(records)
    return took * 1e6 / len(records)


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    records = [
        Record("orders", n // AT_ONCE % 4, n, 0, b"key-%d" % (n % 1_000), b"x" * 100) for n in range(RECORDS)
    ]
    pair = service(1), service(TIMES)
    took: tuple[list[float], list[float]] = [], []
    for number in range(rounds):
        for which in (0, 1) if number % 2 else (1, 0):
            took[which].append(asyncio.run(us_per_record(pair[which], records)))
    for name, pick in (("least", min), ("median", statistics.median)):
        once, often = pick(took[0]), pick(took[1])
        cost = (often - once) / (TIMES - 1)
        print(f"{name}: {once:.2f} us a record, of which counting {cost:.3f} us, {100 * cost / once:.1f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
