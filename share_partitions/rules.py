"""What a group's configs say of its share partitions (KIP-932)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from .partition import ShareLimits


@dataclass(frozen=True)
class ShareRules:
    """Settings of one group that matter where its records are read.

    ``committed``: share.isolation.level is read_committed. ``start``: share.auto.offset.reset, where a share
    partition begins that was never read; a number is the age in ms of the first record (by_duration).
    """

    limits: ShareLimits = field(default_factory=ShareLimits)
    committed: bool = False
    start: Literal["latest", "earliest"] | int = "latest"
