"""Errors of clients. All derive from KohortError."""

from __future__ import annotations

from ..protocol import KohortError


class ClientError(KohortError):
    """Base class of the errors that a client, a consumer or a service raises."""


class ConfigError(ClientError, ValueError):
    """A setting is unknown, of the wrong type or out of range. Raised before any connection is opened."""


class BrokerConnectionError(ClientError):
    """A broker cannot be reached, or its connection broke. A retry may help. ``address``: host:port."""

    def __init__(self, address: str, message: str) -> None:
        super().__init__(f"{address}: {message}")
        self.address = address


class ZooKeeperConnectionError(BrokerConnectionError):
    """ZooKeeper does not answer, or refuses a request, where it has what brokers have for other groups."""


class BrokerRefusedError(BrokerConnectionError):
    """Nothing listens at the port: the machine can be reached, and refuses the connection."""


class AuthenticationError(ClientError):
    """The broker refuses the client's credentials, or the client the broker's certificate. Do not retry.

    ``address``: host:port, or the URL of the server that issues tokens.
    """

    def __init__(self, address: str, message: str) -> None:
        super().__init__(f"{address}: {message}")
        self.address = address


class BrokerTimeoutError(BrokerConnectionError):
    """A broker did not answer in time. The connection is closed, since later requests would wait too."""


class ResponseTooLargeError(BrokerConnectionError):
    """A response of ``size`` bytes is over this client's ``limit``. The connection is closed; the same
    request would be answered alike.
    """

    def __init__(self, address: str, message: str, size: int, limit: int) -> None:
        super().__init__(address, message)
        self.size = size
        self.limit = limit


class ConsumerClosedError(ClientError):
    """The consumer or client is closed or was not started. Use it in ``async with`` (or ``with``)."""
