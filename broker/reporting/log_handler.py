"""Log lines as text with keys and values, or as JSON objects, made by structlog.

Importing structlog takes longer than everything else at a start: records wait until ``open``, and the first
one imports it in a thread. A start that takes long, or has something to warn of, does not wait: it may be all
that anybody hears of it.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections import deque
from collections.abc import MutableMapping
from typing import Any, Final, Literal, TextIO, TypeAlias

LogFormat: TypeAlias = Literal["text", "json"]

#: Most records that wait to be written; beyond that the oldest are dropped.
MAX_WAITING: Final = 10_000

#: Seconds between two records that wait after which a start takes long.
_LONG_S: Final = 2.0

_EventDict: TypeAlias = MutableMapping[str, Any]


class LogHandler(logging.Handler):
    """Writes to ``stream`` (standard error). Records that wait at the end of the process are written then."""

    def __init__(self, log_format: LogFormat = "text", stream: TextIO | None = None) -> None:
        super().__init__()
        self._json = log_format == "json"
        self._stream = stream or sys.stderr
        self._waiting: deque[logging.LogRecord] = deque(maxlen=MAX_WAITING)
        self._open = False
        self._loader: threading.Thread | None = None

    def open(self) -> None:
        """Start to write, pending records first; returns at once."""
        self._open = True
        if self._waiting:
            self._load_soon()

    def emit(self, record: logging.LogRecord) -> None:
        """See logging.Handler. The first lines wait, as loading the formatter takes long."""
        if self.formatter is None:
            self._waiting.append(record)
            takes_long = record.created - self._waiting[0].created > _LONG_S
            if self._open or takes_long or record.levelno >= logging.WARNING:
                self._load_soon()
            return
        try:
            self._stream.write(self.formatter.format(record) + "\n")
            self._stream.flush()
        except Exception:
            self.handleError(record)

    def flush(self) -> None:
        """Write the lines that wait."""
        self.acquire()
        try:
            if self._waiting:
                self._load_structlog()
        finally:
            self.release()

    def _load_soon(self) -> None:
        if self._loader is None:
            self._loader = threading.Thread(target=self._load_apart, name="kohort-log", daemon=True)
            self._loader.start()

    def _load_apart(self) -> None:
        try:
            self._load_structlog()
        except OSError:
            # no descriptor is left for the import: the next record tries again, and writes this one, too
            self._loader = None

    def _load_structlog(self) -> None:
        formatter = _make_formatter(as_json=self._json)
        self.acquire()
        try:
            self.setFormatter(formatter)
            while self._waiting:
                self.emit(self._waiting.popleft())
        finally:
            self.release()


def _make_formatter(*, as_json: bool) -> logging.Formatter:
    import structlog

    last = structlog.processors.JSONRenderer() if as_json else _text_renderer()
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            _add_time,
            _add_event_fields,
        ],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            *([] if as_json else [_escape_control]),
            last,
        ],
    )


def _add_time(_logger: object, _method: str, event: _EventDict) -> _EventDict:
    """Add the time at which the record was made, in UTC to the millisecond: it may have waited."""
    from datetime import UTC, datetime

    made = datetime.fromtimestamp(event["_record"].created, UTC)
    event["timestamp"] = made.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return event


def _add_event_fields(_logger: object, _method: str, event: _EventDict) -> _EventDict:
    """Replace the sentence of a coordinator event by its fields."""
    event.update(getattr(event["_record"], "event_fields", {}))
    return event


def _escape_control(_logger: object, _method: str, event: _EventDict) -> _EventDict:
    """Escape control characters: no client can break a line or steer a terminal."""
    for name, value in event.items():
        if isinstance(value, str) and name != "exception" and not value.isprintable():
            event[name] = "".join(
                c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in value
            )
    return event


def _text_renderer() -> Any:
    import structlog

    pairs = structlog.processors.LogfmtRenderer()

    def render(logger: object, method: str, event: _EventDict) -> str:
        time, level, name = event.pop("timestamp"), event.pop("level").upper(), event.pop("logger")
        text, trace = event.pop("event"), event.pop("exception", "")
        rest = pairs(logger, method, event)
        line = f"{time} {level} {name}: {text}" + (f" {rest}" if rest else "")
        return f"{line}\n{trace}" if trace else line

    return render
