"""Errors of clients, by who has to act. All derive from KohortError."""

from __future__ import annotations

from ..protocol import KohortError


class ClientError(KohortError):
    """Root of the errors that a client, a consumer or a service raises."""


class ConfigError(ClientError, ValueError):
    """A setting that is unknown, of the wrong type or out of range. Raised before any connection."""


class BrokerConnectionError(ClientError):
    """A broker cannot be reached or its connection broke; trying again may help. ``address``: host:port."""

    def __init__(self, address: str, message: str) -> None:
        super().__init__(f"{address}: {message}")
        self.address = address


class ZooKeeperConnectionError(BrokerConnectionError):
    """ZooKeeper does not answer, or refuses a request, where it has what brokers have for other groups."""


class BrokerRefusedError(BrokerConnectionError):
    """Nothing listens at the address: the machine is reachable and refuses the connection."""


class AuthenticationError(ClientError):
    """A broker refuses this client's identity, or this client the broker's. Trying again cannot help."""

    def __init__(self, address: str, message: str) -> None:
        super().__init__(f"{address}: {message}")
        self.address = address


class BrokerTimeoutError(BrokerConnectionError):
    """A broker did not answer in time. The connection has been closed: later requests would wait too."""


class ConsumerClosedError(ClientError):
    """The consumer or client is closed, or was not started: use it in ``async with`` (or ``with``)."""
