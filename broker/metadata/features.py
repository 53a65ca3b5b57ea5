"""Features of the cluster and their levels (KIP-584), which determine what clients and coordinators may
use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from ...cluster import Document
from ...coordinator.groups.kinds import KINDS
from ...protocol import ErrorCode, JsonObject, KafkaError
from ...transactions import EPOCH_BUMP_VERSION

#: The protocol of transactions (KIP-890).
TRANSACTION_VERSION: Final = "transaction.version"

#: The highest level of each supported feature, of types of groups and others, which is in force until one is
#: changed. The lowest is 0.
SUPPORTED: Final = {
    **{kind.feature.name: kind.feature.highest for kind in KINDS if kind.feature is not None},
    TRANSACTION_VERSION: EPOCH_BUMP_VERSION,
}

#: Types of an update. Safe and unsafe downgrades are the same for these features.
_UPGRADE, _DOWNGRADES = 1, (2, 3)


@dataclass(slots=True)
class Features:
    """``levels`` by feature; ``epoch`` rises with every change, and ``on_change`` is called after one."""

    node_id: int
    file: Document
    levels: dict[str, int] = field(default_factory=SUPPORTED.copy)
    epoch: int = 0
    on_change: list[Callable[[], None]] = field(default_factory=list)

    def load(self) -> None:
        """Load what was saved and put it in force. Raises StateFileError."""
        kept = self.file.load(_parse_levels)
        if kept is not None:
            self.levels, self.epoch = kept
            for tell in self.on_change:
                tell()

    def levels_after(self, updates: Iterable[tuple[str, int, int]]) -> dict[str, int]:
        """Return the levels after updates of (feature, level, upgrade type), of which the last one for a
        feature counts. Raises KafkaError INVALID_UPDATE_VERSION for the first invalid one.
        """
        levels = dict(self.levels)
        for name, (level, kind) in {name: (level, kind) for name, level, kind in updates}.items():
            if why := self._refusal_of(name, level, kind):
                raise KafkaError(
                    ErrorCode.INVALID_UPDATE_VERSION,
                    "The update failed for all features since the following feature had an error: "
                    f"Invalid update version {level} for feature {name}. {why}",
                )
            levels[name] = level
        return levels

    async def set(self, levels: dict[str, int]) -> None:
        """Set the levels. Raises OSError; nothing is changed then."""
        if levels == self.levels:
            return
        await self.file.save({"levels": levels, "epoch": self.epoch + 1})
        self.levels, self.epoch = levels, self.epoch + 1
        for tell in self.on_change:
            tell()

    def _refusal_of(self, name: str, level: int, kind: int) -> str:
        if kind not in (_UPGRADE, *_DOWNGRADES):
            return "The controller does not support the given upgrade type."
        if level < 0:
            return "A feature version cannot be less than 0."
        if name not in SUPPORTED:
            return (
                f"Local controller {self.node_id} does not support this feature."
                if level
                else f"Feature {name} not found."
            )
        if level > SUPPORTED[name]:
            return f"Local controller {self.node_id} only supports versions 0-{SUPPORTED[name]}"
        if level < self.levels[name] and kind == _UPGRADE:
            return (
                "Can't downgrade the version of this feature without setting the upgrade type to either safe "
                "or unsafe downgrade."
            )
        if level > self.levels[name] and kind != _UPGRADE:
            return "Can't downgrade to a newer version."
        return ""


def _parse_levels(content: JsonObject) -> tuple[dict[str, int], int]:
    # a feature that the saved levels lack is younger than they are, and waits to be raised
    levels = {name: int(content["levels"].get(name, 0)) for name in SUPPORTED}
    if any(not 0 <= level <= SUPPORTED[name] for name, level in levels.items()):
        raise ValueError(f"levels {levels}: {SUPPORTED} are the highest that are known")
    return levels, int(content["epoch"])
