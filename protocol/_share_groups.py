"""Values of share groups (KIP-932) in several APIs: types of acknowledgements, keys of share partitions.

A key is in FindCoordinator and in hashes: ``group:topic-id:partition``, the id in base64url without padding,
the number in decimal digits. The group may contain colons, the other two cannot.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from enum import IntEnum
from typing import Self
from uuid import UUID

from .named_tuples import NamedTuple


class AcknowledgeType(IntEnum):
    """What a member says of a record, with its number in ShareFetch and ShareAcknowledge."""

    #: The offset holds no record: a transaction's marker, or what compaction removed.
    GAP = 0
    #: Done.
    ACCEPT = 1
    #: To be delivered again, perhaps to another member.
    RELEASE = 2
    #: Never to be delivered again.
    REJECT = 3
    #: Still worked on: the lock begins anew.
    RENEW = 4


class SharePartitionKey(NamedTuple):
    """A share partition: what one share group knows of one partition of a topic."""

    group_id: str
    topic_id: UUID
    partition: int

    def __str__(self) -> str:
        topic_id = urlsafe_b64encode(self.topic_id.bytes).rstrip(b"=").decode()
        return f"{self.group_id}:{topic_id}:{self.partition}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the share partition with this key. Raises ValueError if it is not written as keys are."""
        wrong = ValueError(f"{text!r} is not group:topic-id:partition")
        parts = text.rsplit(":", 2)
        if len(parts) < len(cls._fields) or not parts[0].strip():
            raise wrong
        try:
            key = cls(parts[0], UUID(bytes=urlsafe_b64decode(parts[1] + "==")), int(parts[2]))
        except ValueError as error:
            raise wrong from error
        # neither reader is strict, and another spelling has another hash
        if key.partition < 0 or str(key) != text:
            raise wrong
        return key
