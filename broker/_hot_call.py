"""An answer on its way: made when a request is taken, filled when the coordinator knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..protocol import HotCodec
from ._stopwatch import clock
from .quotas import ClientUse, Throttle, told_ms

if TYPE_CHECKING:
    from ._connection import Connection


class HotCall:
    """The handle of a request that was read by hand. Answers leave in the order of their requests."""

    __slots__ = ("_codec", "_connection", "_correlation_id", "response")

    def __init__(self, connection: Connection, codec: HotCodec, correlation_id: int) -> None:
        self._connection = connection
        self._codec = codec
        self._correlation_id = correlation_id
        self.response: bytes | None = None

    @property
    def parks(self) -> bool:
        """Whether the answer may have to wait for other members; nothing overtakes it then."""
        return self._codec.parks

    def set(self, body: Any) -> None:
        """The answer, from the coordinator: at once, or when what it promises is written."""
        assert self.response is None, "a request is answered once"
        self.response = self._codec.encode(self._correlation_id, body)
        self._connection.answered()


class MeteredCall(HotCall):
    """One of a client whose time is limited: answered with the delay for what it has used by now."""

    __slots__ = ("_throttle", "_use")

    def __init__(
        self,
        connection: Connection,
        codec: HotCodec,
        correlation_id: int,
        throttle: Throttle,
        use: ClientUse,
    ) -> None:
        super().__init__(connection, codec, correlation_id)
        self._throttle = throttle
        self._use = use

    def set(self, body: Any) -> None:
        """The answer. What the connection has run since its last answer is what this one cost."""
        now = clock()
        delay_s = self._throttle.time_delay_s(self._use, self._connection.lap(now), now)
        if delay_ms := told_ms(delay_s):
            body.throttle_time_ms = delay_ms
            self._connection.mute(delay_ms / 1000)
        super().set(body)
