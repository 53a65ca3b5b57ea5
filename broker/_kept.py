"""The documents of a data folder in which a broker keeps what it was told while it served."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ._live_settings import LiveSettings
from ._settings import BrokerSettings
from ._state_file import StateFile


def live_settings(
    settings: BrokerSettings, folder: Path | str, *on_change: Callable[[], None]
) -> LiveSettings:
    """The settings that were changed; ``load`` lets them be in force."""
    file = StateFile.of(folder, "settings", without="settings are those of the start")
    return LiveSettings(settings, file, list(on_change))


def quotas_file(folder: Path | str) -> StateFile:
    """Client quotas, a QuotaTable."""
    return StateFile.of(folder, "client-quotas", without="clients have no quotas")
