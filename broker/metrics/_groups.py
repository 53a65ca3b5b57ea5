"""What happens in groups, counted from the coordinator's events; accepted commits are counted as requests."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Final

from ...coordinator import (
    GenerationAbandoned,
    MemberGone,
    Note,
    OffsetsRemoved,
    RebalanceNote,
    RecordSkipped,
    Refusal,
)
from ._sensors import Histogram

#: Kinds of causes by the words that a cause begins with or has in it; the first that fits counts.
CAUSES: Final = (
    ("join", r"^(static )?member .* joined"),
    ("leave", r"^member .* left|was removed by its instance id"),
    ("session_expired", r"^session of "),
    ("late_join", r"did not (re)?join within|did not finish joining"),
    ("late_sync", r"did not sync within"),
    ("changed_subscription", r"^(leader|member) .* changed its |^rejoin of static"),
    ("asked_for", r"asked for a rebalance"),
    ("not_written", r"could not be written"),
    ("too_large", r"group\.max\.size"),
)
_CAUSES: Final = [(kind, re.compile(words)) for kind, words in CAUSES]
_EXPIRED: Final = re.compile(r"^session of ")

#: A cause of no known kind.
OTHER: Final = "other"


def kind_of(cause: str) -> str:
    """The kind of a cause; of several that of the first."""
    first = cause.split("; ", 1)[0]
    return next((kind for kind, words in _CAUSES if words.search(first)), OTHER)


class GroupCounters:
    """Give ``see`` the events."""

    __slots__ = (
        "_then",
        "abandoned",
        "expired_members",
        "offsets_removed",
        "rebalance_times",
        "rebalances",
        "records_skipped",
        "refusals",
    )

    def __init__(self, then: Callable[[Note], None] | None = None) -> None:
        self._then = then
        self.rebalances: Counter[str] = Counter()
        self.rebalance_times = Histogram()
        self.abandoned = 0
        self.expired_members = 0
        self.offsets_removed = 0
        self.refusals = 0
        self.records_skipped = 0

    def see(self, event: Note) -> None:
        """Count an event and hand it on."""
        if isinstance(event, RebalanceNote):
            self.rebalances[kind_of(event.cause)] += 1
            self.rebalance_times.record(event.duration_ms / 1000)
        elif isinstance(event, Refusal):
            self.refusals += 1
        elif isinstance(event, GenerationAbandoned):
            self.abandoned += 1
        elif isinstance(event, MemberGone):
            self.expired_members += _EXPIRED.match(event.cause) is not None
        elif isinstance(event, OffsetsRemoved):
            self.offsets_removed += event.count
        elif isinstance(event, RecordSkipped):
            self.records_skipped += 1
        if self._then is not None:
            self._then(event)
