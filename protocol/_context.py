"""The sender of a request."""

from __future__ import annotations

from dataclasses import dataclass

#: Principal of a connection that has not authenticated (Kafka's name for it).
ANONYMOUS = "User:ANONYMOUS"


@dataclass(frozen=True, slots=True)
class RequestContext:
    """The sender of a request, passed along with it by router and coordinator.

    ``client_host`` has a leading slash (``/127.0.0.1``), as Apache Kafka writes it into group records.
    """

    client_id: str = ""
    client_host: str = "/127.0.0.1"
    principal: str = ANONYMOUS
    listener: str = "PLAINTEXT"
