"""What a client tries in vain: a warning soon, then at intervals, while its caller waits.

A call may be retried for minutes before it raises; without these lines a wrong address looks like a cluster
that is slow.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..protocol import KafkaError
from .errors import BrokerConnectionError
from .metadata import Address

log = logging.getLogger("kohort.client")

#: When the first warning comes, and the time between two, in seconds.
FIRST_S = 1.5
AGAIN_S = 10.0

#: Time without another attempt after which nobody tries any more, in seconds: longer than the default
#: back-offs.
_IDLE_S = 5.0


@dataclass(slots=True)
class _Outage:
    """An address, or a call, without success ``since`` a time; ``pending`` attempts are under way."""

    text: str
    since: float
    last: float
    pending: int = 0


class Outages:
    """The addresses that ``client_id`` cannot connect to, and its calls that are answered with errors."""

    def __init__(self, client_id: str) -> None:
        self._client_id = client_id
        self._outages: dict[Hashable, _Outage] = {}
        # since when, if that was told
        self._told_since: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        return f"Outages({self._client_id}, {len(self._outages)} now)"

    @contextmanager
    def connecting(self, address: Address) -> Iterator[None]:
        """Runs one attempt to connect."""
        outage = self._note_outage(address, f"{address}: no answer yet")
        outage.pending += 1
        try:
            yield
        except BrokerConnectionError as error:
            outage.text = str(error)
            raise
        except BaseException:
            self.on_given_up(address)
            raise
        else:
            self.on_succeeded(address)
        finally:
            outage.pending -= 1
            outage.last = asyncio.get_running_loop().time()

    def on_refused(self, call: Hashable, error: KafkaError) -> None:
        """A call got an error for which it is retried."""
        outage = self._note_outage(call, "")
        outage.text = str(error)
        outage.last = asyncio.get_running_loop().time()

    def on_succeeded(self, place: Hashable) -> None:
        """An address is connected to, or a call is answered."""
        if self._outages.pop(place, None) is None or self._outages:
            return
        if self._told_since is not None:
            lasted_s = asyncio.get_running_loop().time() - self._told_since
            log.warning("client %s has success again, after %.0f s", self._client_id, lasted_s)
        self.close()

    def on_given_up(self, place: Hashable) -> None:
        """An address, or a call, is tried no more."""
        if self._outages.pop(place, None) is not None and not self._outages:
            self.close()

    def lasts_s(self) -> float:
        """Seconds for which something that is still tried has had no success; 0 if all has."""
        if not self._outages:
            return 0.0
        now = asyncio.get_running_loop().time()
        return now - min((each.since for each in self._live_outages(now).values()), default=now)

    def close(self) -> None:
        """Tell nothing more."""
        self._told_since = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _note_outage(self, place: Hashable, text: str) -> _Outage:
        loop = asyncio.get_running_loop()
        if self._timer is None:
            self._timer = loop.call_later(FIRST_S, self._log_outage)
        return self._outages.setdefault(place, _Outage(text, loop.time(), loop.time()))

    def _log_outage(self) -> None:
        self._timer = None
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._outages = self._live_outages(now)
        if not self._outages:
            self._told_since = None
            return
        self._told_since = since = min(each.since for each in self._outages.values())
        texts = dict.fromkeys(each.text for each in self._outages.values())
        log.warning(
            "client %s has had no success for %.0f s: %s", self._client_id, now - since, "; ".join(texts)
        )
        self._timer = loop.call_later(AGAIN_S, self._log_outage)

    def _live_outages(self, now: float) -> dict[Hashable, _Outage]:
        """Those that somebody still tries to end."""
        return {
            place: each for place, each in self._outages.items() if each.pending or now - each.last < _IDLE_S
        }
