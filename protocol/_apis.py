"""The table of APIs, with the range of versions that has schemas.

The newest version is the newest that kafka-python 3 ships. The oldest is Apache Kafka's own, because some
clients conclude from the ranges which release a broker is. The rows are generated with the messages
(``scripts/generate_messages.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ._errors import UnsupportedVersionError
from .messages._apis import ROWS, ApiKey

#: API numbers from here on are kohort's own. ApiVersions reports them as a feature, never in its list of
#: APIs.
FIRST_PRIVATE_KEY: Final = 20_000

#: The features (KIP-584) of brokers that answer kohort's own APIs. Versions of features begin at 1, those of
#: APIs at 0.
OWN_FEATURES: Final = {
    "kohort.history": ApiKey.DESCRIBE_GROUP_HISTORY,
    "kohort.share.partitions": ApiKey.DESCRIBE_SHARE_PARTITIONS,
    "kohort.recording": ApiKey.DESCRIBE_GROUP_RECORDING,
}


@dataclass(frozen=True, slots=True)
class Api:
    """One API. Versions ``min_version`` to ``max_version``, both included, have schemas; ``flexible_from`` is
    the first flexible version (KIP-482), None if there is none.
    """

    key: ApiKey
    name: str
    min_version: int
    max_version: int
    flexible_from: int | None

    @property
    def private(self) -> bool:
        """Return whether the API is kohort's own; it may be sent only to brokers that offer its feature."""
        return self.key >= FIRST_PRIVATE_KEY

    def flexible(self, version: int) -> bool:
        """Return whether this version has compact strings and tagged fields."""
        return self.flexible_from is not None and version >= self.flexible_from

    def require(self, version: int) -> None:
        """Check that a version has a schema. Raises UnsupportedVersionError."""
        if not self.min_version <= version <= self.max_version:
            raise UnsupportedVersionError(
                f"{self.name} v{version} is not spoken here: v{self.min_version} to v{self.max_version} are"
            )


#: Every API by number.
APIS: dict[int, Api] = {row[0]: Api(*row) for row in ROWS}


def api_for(key: int) -> Api:
    """Return the API with this number. Raises UnsupportedVersionError for an unknown number."""
    try:
        return APIS[key]
    except KeyError:
        raise UnsupportedVersionError(f"unknown API number {key}") from None
