"""What members of groups and of share groups have in common: settings, and why they get no records."""

from __future__ import annotations

import argparse
from typing import Any

from ...consumer.events import BrokerUnavailable, Event, PartitionFailed
from ..connection import connection_of
from ..screen import Screen


def member_settings(options: argparse.Namespace, client_id: str, fetch_max_wait_ms: int) -> dict[str, Any]:
    """The consumer's settings that ``options`` give; a fetch waits no longer than half their timeout."""
    timeout_ms = max(1, round(options.timeout * 1_000))
    return {
        **connection_of(options).settings(),
        "group": options.group,
        "client_id": client_id,
        "default_api_timeout_ms": timeout_ms,
        "request_timeout_ms": timeout_ms,
        "fetch_max_wait_ms": min(fetch_max_wait_ms, timeout_ms // 2),
    }


class Complaints:
    """Tells a person on standard error each reason once, until there is another."""

    def __init__(self) -> None:
        self._told = ""
        self._screen = Screen(as_json=False)

    def note_event(self, event: Event) -> None:
        """Tell what an event says, if it is a reason."""
        if isinstance(event, BrokerUnavailable | PartitionFailed) and str(event.error) != self._told:
            self._told = str(event.error)
            self._screen.remark(f"{self._told}: trying again")
