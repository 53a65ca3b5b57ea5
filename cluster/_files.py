"""Small durable files in the data folder: one JSON document each, for what Apache Kafka keeps in its quorum.

A document is replaced as a whole: a new file is written beside it, synced and renamed. So a change is made
entirely or not at all, whenever the broker dies. Only the owner may read the files (0600): they may hold
credentials.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ..protocol import JsonObject, KohortError

log = logging.getLogger("kohort.broker")

T = TypeVar("T")

# readable, and still written by json's C encoder: with an indent it is the Python one, thirty times slower
_A_LINE_EACH = (",\n", ": ")


class StateFileError(KohortError):
    """A document cannot be read; the text names the file and says what to do."""


def encode_lines(value: object) -> str:
    """Encode a value as documents have it."""
    return json.dumps(value, separators=_A_LINE_EACH)


@dataclass(frozen=True, slots=True)
class StateFile:
    """One document. ``without`` ends the sentence of an error: what removing an unreadable file would lose.
    ``version`` is written with it and must be the same when it is read.
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
            if content["version"] != self.version:
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

    def save(self, content: Mapping[str, object]) -> None:
        """Replace the document; see ``save_text``."""
        self.save_text(encode_lines({"version": self.version, **content}))

    def save_text(self, text: str) -> None:
        """Replace the document by its whole text. Raises OSError; the content then stays as it was.

        If only the folder cannot be synced, the new content is in force; the broker's log warns that a power
        failure could lose it.
        """
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


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
