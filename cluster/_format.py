"""The format of entries that brokers share, so that builds of several ages can run together.

Each entry says which build has written it, and which format a reader must know. A build that meets a newer
one does not guess: it refuses its metadata, whole. The field ``kohort`` of an entry says so: ``format``, the
lowest that a reader must know, and ``version``, the build that wrote it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..protocol import KohortError

#: The newest format that this build reads. It rises only where a build that does not know it would misread an
#: entry, or do harm with it: fields that such a build may pass over, and lose when it writes the entry again,
#: need none. A build that reads a new format must write the one before as long as brokers that are registered
#: may know no other.
FORMAT: Final = 1

#: The field of an entry that says so.
_STAMP: Final = "kohort"


class NewerFormatError(KohortError):
    """The metadata have an entry in a format that this build does not know."""

    def __init__(self, path: str, needed: object, writer: object) -> None:
        super().__init__(
            f"the entry {path} of the cluster's metadata needs format {needed}, and was written by kohort "
            f"{writer}; this build is {own_version()} and knows format {FORMAT} at most: start this broker "
            "with a build that is as new as the others; nothing was changed"
        )


def own_version() -> str:
    """The version of this build."""
    from .. import __version__

    return __version__


def add_stamp(value: object) -> object:
    """The value as it is stored. Numbers, which Apache Kafka has for some entries, say nothing."""
    if not isinstance(value, Mapping):
        return value
    return {**value, _STAMP: {"format": FORMAT, "version": own_version()}}


def remove_stamp(path: str, stored: object) -> object:
    """The value of an entry that was read. Raises NewerFormatError. One without a stamp is of a build that
    wrote none, or of somebody's hand.
    """
    if not isinstance(stored, dict) or _STAMP not in stored:
        return stored
    stamp = stored.pop(_STAMP)
    known = stamp if isinstance(stamp, dict) else {}
    needed, writer = known.get("format"), known.get("version")
    if not isinstance(needed, int) or needed > FORMAT:
        raise NewerFormatError(path, needed, writer)
    return stored
