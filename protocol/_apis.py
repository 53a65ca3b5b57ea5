"""The APIs, with the versions of their schemas: the newest are those that kafka-python 3 ships, the oldest
Apache Kafka's own, so that a client that reads a broker's age off the ranges reads a real one.

The table is written with the messages: see scripts/generate_messages.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ._errors import UnsupportedVersionError
from .messages._apis import ROWS, ApiKey

#: API numbers from here on are kohort's own: offered as a feature, never in the list of APIs.
FIRST_PRIVATE_KEY: Final = 20_000

#: The feature (KIP-584) that says that a broker answers DescribeGroupHistory, with its versions.
GROUP_HISTORY_FEATURE: Final = ("kohort.history", 1, 1)


@dataclass(frozen=True, slots=True)
class Api:
    """One row: ``min_version..max_version`` is inclusive; ``flexible_from`` is None where no version is."""

    key: ApiKey
    name: str
    min_version: int
    max_version: int
    flexible_from: int | None

    @property
    def private(self) -> bool:
        """Return whether it is kohort's own: ask only brokers that offer its feature."""
        return self.key >= FIRST_PRIVATE_KEY

    def flexible(self, version: int) -> bool:
        """Return whether this version has compact strings and tagged fields."""
        return self.flexible_from is not None and version >= self.flexible_from

    def require(self, version: int) -> None:
        """Raise UnsupportedVersionError unless the version is in range."""
        if not self.min_version <= version <= self.max_version:
            raise UnsupportedVersionError(
                f"{self.name} v{version} is not spoken here: v{self.min_version} to v{self.max_version} are"
            )


#: Every API by number.
APIS: dict[int, Api] = {row[0]: Api(*row) for row in ROWS}


def api_for(key: int) -> Api:
    """The row of an API number; UnsupportedVersionError for one we do not know."""
    try:
        return APIS[key]
    except KeyError:
        raise UnsupportedVersionError(f"unknown API number {key}") from None
