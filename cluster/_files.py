"""Small durable files in the data folder: one JSON document each, for what Apache Kafka keeps in its quorum.

A document is replaced as a whole: a new file is written beside it, synced and renamed. Steps of one that is
large are written behind each other into a second file instead, and now and then taken in by the document. So
a change is made entirely or not at all, whenever the broker dies. Only the owner may read the files (0600):
they may hold credentials.

===============  =============================================================================
line of steps    content
===============  =============================================================================
8 digits         CRC-32 of the JSON, hexadecimal
a blank
JSON             an object: ``step``, the step's number, and whatever the step is; then ``\\n``
===============  =============================================================================
"""

from __future__ import annotations

import errno
import json
import logging
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from zlib import crc32

from ..protocol import JsonObject, KohortError

log = logging.getLogger("kohort.broker")

T = TypeVar("T")

# readable, and still written by json's C encoder: with an indent it is the Python one, thirty times slower
_A_LINE_EACH = (",\n", ": ")


class StateFileError(KohortError):
    """A document cannot be read; the text names the file and says what to do."""


@dataclass(frozen=True, slots=True)
class StateFile:
    """One document. ``without`` ends the sentence of an error: what removing an unreadable file would lose.
    ``version`` is written with it, the newest that can be read.
    """

    path: Path
    without: str
    version: int = 1

    def load(self, parse: Callable[[JsonObject], T]) -> T | None:
        """The document as ``parse`` reads it; None if there is none.

        Raises StateFileError if the file is not a document of this version, or ``parse`` raises ValueError,
        KeyError, TypeError or AttributeError.
        """
        try:
            content = json.loads(self.path.read_bytes())
            if not 1 <= content["version"] <= self.version:
                raise ValueError(f"its version is {content['version']}, this kohort knows {self.version}")
            return parse(content)
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise self.unreadable(error) from error

    def unreadable(self, error: Exception) -> StateFileError:
        """The error for malformed content."""
        return StateFileError(
            f"{self.path} cannot be read ({error}): restore it from a copy; without it {self.without}"
        )

    def save(self, content: Mapping[str, object]) -> int:
        """Replace the document, and return its length. Raises OSError; the content then stays as it was.

        If only the folder cannot be synced, the new content is in force; the broker's log warns that a power
        failure could lose it.
        """
        text = json.dumps({"version": self.version, **content}, separators=_A_LINE_EACH)
        beside = self.path.with_suffix(".json.tmp")
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, self.path)
        try:
            _sync_folder(self.path.parent)
        except OSError as error:
            log.error("%s is written, but would be lost if power failed now: %s", self.path, error)
        return len(text)


class StepFile:
    """The steps that a document has not taken in. What one costs does not depend on the document's length."""

    def __init__(self, path: Path) -> None:
        self.path = path
        #: Length of the steps; 0: the next one begins the file.
        self.size = 0

    def read(self, taken_in: int) -> list[JsonObject]:
        """The steps behind number ``taken_in``, without one that a crash has interrupted. Raises ValueError
        if one is damaged or missing.
        """
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return []
        self.size = len(content)
        steps = [_parse_step(line) for line in content.split(b"\n")]
        while steps and steps[-1] is None:
            steps.pop()
        found: list[JsonObject] = []
        for number, step in enumerate(steps, start=1):
            if step is None:
                raise ValueError(f"line {number} of {self.path.name} is damaged")
            if step["step"] <= taken_in:
                continue
            if step["step"] != taken_in + len(found) + 1:
                raise ValueError(f"line {number} of {self.path.name} does not follow on what is known before")
            found.append(step)
        return found

    def append(self, number: int, step: Mapping[str, object]) -> None:
        """Make a step durable. Raises OSError: then it is not made, and the document must be saved before the
        next one.
        """
        text = json.dumps({"step": number, **step}, separators=(",", ":")).encode()
        line = b"%08x %s\n" % (crc32(text), text)
        begins = 0 if self.size else os.O_TRUNC
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | begins, 0o600)
        try:
            if os.write(descriptor, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
            os.fsync(descriptor)
            if begins:
                _sync_folder(self.path.parent)
        except OSError:
            with suppress(OSError):
                os.ftruncate(descriptor, self.size)
            raise
        finally:
            os.close(descriptor)
        self.size += len(line)

    def remove(self) -> None:
        """Remove them: the document has taken them in. Those that stay are known by their numbers."""
        self.size = 0
        with suppress(OSError):
            os.unlink(self.path)


def _parse_step(line: bytes) -> JsonObject | None:
    """A step; None for a line that is not whole."""
    digits, _, text = line.partition(b" ")
    return json.loads(text) if digits == b"%08x" % crc32(text) else None


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
