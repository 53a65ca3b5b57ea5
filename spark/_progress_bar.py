"""A job's batches as a bar in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from ._events import BatchCommitted, CommitRefused, Event, OffsetsLost

if TYPE_CHECKING:
    from rich.console import Console


class ProgressBar:
    """Shows how far a job is, batch by batch; give it to ``on_event``. Nothing where there is no terminal.

        with ProgressBar() as bar, GroupBatches(..., on_event=bar) as batches:
            batches.run(handle, trigger="available_now")

    What is lost, and a commit that is refused, is a line above the bar.
    """

    def __init__(self, console: Console | None = None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self._console = console or Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("offsets  {task.fields[tail]}"),
            TimeElapsedColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._task = self._progress.add_task("waiting for a batch", total=None, tail="")
        self._done = 0

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def __call__(self, event: Event) -> None:
        if isinstance(event, BatchCommitted):
            self._advance(event)
        elif isinstance(event, OffsetsLost):
            self._say(f"group {event.group}: lost {', '.join(map(str, event.ranges))}")
        elif isinstance(event, CommitRefused):
            waited = f"{event.waited_seconds:.0f} s"
            self._say(f"group {event.group}: commit refused ({event.reason}), for {waited} now")

    def _advance(self, event: BatchCommitted) -> None:
        self._done += event.offsets
        rows = event.offsets if event.rows is None else event.rows
        seconds = sum(event.durations.values()) - (event.read_seconds or 0.0)
        self._progress.update(
            self._task,
            description=f"{event.group}: batch {event.number}",
            completed=self._done,
            total=self._done + event.lag,
            tail=f"{rows / max(seconds, 1e-9):,.0f} rows/s",
        )

    def _say(self, words: str) -> None:
        if self._console.is_terminal:
            self._progress.console.print(words, markup=False, highlight=False)
