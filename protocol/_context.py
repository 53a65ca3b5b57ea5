"""The sender of a request: what is known of it besides its bytes."""

from __future__ import annotations

from dataclasses import dataclass

#: The principal of a connection that has not proved who it is (Kafka's own name for it).
ANONYMOUS = "User:ANONYMOUS"


@dataclass(frozen=True, slots=True)
class RequestContext:
    """Travels with each request through router and coordinator.

    ``client_host`` is written as Apache Kafka writes it, with a leading slash (``/127.0.0.1``); it is stored
    in group records and shown by tools.
    """

    client_id: str = ""
    client_host: str = "/127.0.0.1"
    principal: str = ANONYMOUS
    listener: str = "PLAINTEXT"
