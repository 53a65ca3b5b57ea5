"""An answer on its way: made when a request is taken, filled when the coordinator knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..protocol import HotCodec

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
