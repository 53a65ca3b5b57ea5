"""What a recording holds, as plain rows. Times are in milliseconds since 1970."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

#: Longest texts in a row, in characters, and most bytes of its extras: longer texts are cut, longer extras
#: are left out.
MAX_TEXT = 300
MAX_CAUSE = 2_000
MAX_DETAILS = 4_000
MAX_EXTRAS = 64_000


class EventRow(NamedTuple):
    """Something that happened in a group. ``generation`` is -1 if it is unknown.

    ``details`` and ``extras`` are JSON objects, or empty. A ``lasting`` row stays when details are thinned
    out, without its extras; any other goes then.
    """

    group: str
    timestamp_ms: int
    kind: str
    generation: int = -1
    cause: str = ""
    member: str = ""
    client_id: str = ""
    client_host: str = ""
    lasting: bool = False
    details: str = ""
    extras: str = ""


class LagSample(NamedTuple):
    """The lag of a group at a time, in records and as the age of the oldest unread record; None: unknown."""

    group: str
    timestamp_ms: int
    records: int | None
    age_ms: int | None = None
    members: int | None = None


class Stretch(NamedTuple):
    """A stretch of time."""

    from_ms: int
    until_ms: int


class Loss(NamedTuple):
    """``lost`` events of a stretch of time that were not recorded: of ``group``, or of any group ("")."""

    group: str
    from_ms: int
    until_ms: int
    lost: int


class KeptRow(NamedTuple):
    """A row that was read back, with its number: numbers rise in the order of arrival."""

    number: int
    event: EventRow


@dataclass(frozen=True, slots=True)
class GroupRecording:
    """What is known of a group in a stretch of time, oldest first.

    Outside ``watched`` nobody looked. Of events before ``details_from_ms`` only lasting rows are left,
    without extras; before ``events_from_ms`` none, and no samples before ``samples_from_ms``. ``hidden_ms``
    is when groups may last have been hidden from the recorder. ``has_older`` says that more rows of this
    stretch are there than were asked for.
    """

    watched: tuple[Stretch, ...] = ()
    losses: tuple[Loss, ...] = ()
    rows: tuple[KeptRow, ...] = ()
    samples: tuple[LagSample, ...] = ()
    details_from_ms: int = 0
    events_from_ms: int = 0
    samples_from_ms: int = 0
    hidden_ms: int = 0
    has_older: bool = False


def gaps_between(watched: tuple[Stretch, ...], from_ms: int, until_ms: int) -> list[Stretch]:
    """The parts of a stretch of time that no span covers."""
    gaps: list[Stretch] = []
    known_ms = from_ms
    for span in sorted(watched):
        if span.from_ms > known_ms:
            gaps.append(Stretch(known_ms, min(span.from_ms, until_ms)))
        known_ms = max(known_ms, span.until_ms)
        if known_ms >= until_ms:
            break
    if known_ms < until_ms:
        gaps.append(Stretch(known_ms, until_ms))
    return [gap for gap in gaps if gap.from_ms < gap.until_ms]
