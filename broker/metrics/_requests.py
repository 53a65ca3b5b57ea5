"""Requests by API: how many, which errors, and how long each phase took."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from operator import attrgetter
from typing import Any, ClassVar, Final

from ...protocol import ApiKey, ErrorCode, api_for, response_type, struct_arrays
from ._sensors import Counter, Histogram
from ._snapshot import ApiFigures

#: Bit mask of the count: of the requests that are answered without a task, those with these bits 0, one in
#: 64, are timed.
SAMPLED: Final = 63

PHASES: Final = ("queue", "local", "remote", "throttle", "send", "total")

#: Field names that lead to an error in a response, through arrays.
_Path = tuple[str, ...]
_error_code = attrgetter("error_code")


class ApiMeter(Counter):
    """One API. The router raises ``count``; the errors are counted where responses are made. ``flat``: a
    response has one error, at its top.
    """

    flat: ClassVar[bool] = True
    __slots__ = ("errors", "items", "key", "local", "queue", "remote", "send", "throttle", "total")

    def __init__(self, key: int, now: float) -> None:
        super().__init__(now)
        self.key = key
        self.errors: dict[int, int] = {}
        #: Partitions that were answered without an error, if responses have partitions.
        self.items = 0
        self.queue = Histogram()
        self.local = Histogram()
        self.remote = Histogram()
        self.throttle = Histogram()
        self.send = Histogram()
        self.total = Histogram()

    def count_error(self, body: Any) -> None:
        """Count the error at the top of a response, if there is one."""
        if body.error_code:
            self.fail(body.error_code)

    def see_all(self, body: object) -> None:
        """Count the errors of a response, wherever they are in it."""
        for path in _error_paths(self.key):
            elements = [body]
            for name in path:
                elements = [one for element in elements for one in getattr(element, name) or ()]
            codes = list(map(_error_code, elements))
            failed = list(filter(None, codes))
            self.items += len(codes) - len(failed)
            for code in failed:
                self.fail(code)

    def fail(self, code: int) -> None:
        """Count a response whose error is outside its body, or a request without a response."""
        self.errors[code] = self.errors.get(code, 0) + 1

    def record_phases(self, queue_s: float, local_s: float, remote_s: float) -> None:
        """Record the phases of a request up to its response."""
        self.queue.record(queue_s)
        self.local.record(local_s)
        self.remote.record(remote_s)
        self.total.record(queue_s + local_s + remote_s)

    def rotate(self, now: float) -> None:
        """Begin the next window of rates and times."""
        super().rotate(now)
        for phase in PHASES:
            getattr(self, phase).rotate()

    def figures(self, now: float) -> ApiFigures:
        """Return totals, and rates and times of the last windows; ``now`` in seconds."""
        return ApiFigures(
            self.count,
            self.rate(now),
            {_error_name(code): count for code, count in sorted(self.errors.items())},
            {phase: getattr(self, phase).figures() for phase in PHASES},
        )


class CommitMeter(ApiMeter):
    """OffsetCommit: an error for each partition, read without the schema."""

    flat = False
    __slots__ = ()

    def count_error(self, body: Any) -> None:
        """Count each partition of a commit with its own error."""
        for topic in body.topics:
            partitions = topic.partitions
            self.items += len(partitions)
            for partition in partitions:
                if partition.error_code:
                    self.fail(partition.error_code)
                    self.items -= 1


class RequestMeters:
    """The meters of all APIs that were requested."""

    def __init__(self, now: float) -> None:
        self._now = now
        self._by_key: dict[int, ApiMeter] = {}

    def of(self, key: int) -> ApiMeter:
        """The meter of an API, made at its first request."""
        meter = self._by_key.get(key)
        if meter is None:
            made = CommitMeter if key == ApiKey.OFFSET_COMMIT else ApiMeter
            meter = self._by_key[key] = made(key, self._now)
        return meter

    @property
    def offsets_committed(self) -> int:
        """Number of offsets committed by OffsetCommit requests."""
        meter = self._by_key.get(ApiKey.OFFSET_COMMIT)
        return 0 if meter is None else meter.items

    def rotate(self, now: float) -> None:
        """Begin the next window of every meter."""
        self._now = now
        for meter in self._by_key.values():
            meter.rotate(now)

    def figures(self, now: float) -> dict[str, ApiFigures]:
        """The figures of each API that was used, by its name."""
        return {api_for(key).name: meter.figures(now) for key, meter in sorted(self._by_key.items())}


@cache
def _error_paths(key: int) -> tuple[_Path, ...]:
    """The paths of errors in the responses of an API."""
    return tuple(_find_errors(response_type(key), ()))


def _find_errors(message: Any, path: _Path) -> Iterator[_Path]:
    if "error_code" in message._fields:
        yield path
    for name, element in struct_arrays(message).items():
        yield from _find_errors(element, (*path, name))


def _error_name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)
