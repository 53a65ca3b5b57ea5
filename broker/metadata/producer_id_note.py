"""How far producer ids were reserved, as the data folder of a cluster's broker notes it."""

from __future__ import annotations

import logging
from typing import Final

from ...log import DataFolder

log = logging.getLogger("kohort.broker")

#: The note's name in the data folder.
PRODUCER_ID_NOTE: Final = "kohort-producer-ids"


class ProducerIdNote:
    """The end of the last block of producer ids that this broker knew of, whoever reserved it. ZooKeeper may
    come back with an older one.
    """

    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder

    def __repr__(self) -> str:
        return f"ProducerIdNote({self._folder})"

    def read(self) -> int:
        """Return the end that is noted; 0 if there is no note. Raises OSError."""
        try:
            return int(self._folder.read_note(PRODUCER_ID_NOTE) or 0)
        except ValueError:
            return 0

    def write(self, end: int) -> None:
        """Note a new end. If that fails the next one is noted."""
        try:
            self._folder.write_note(PRODUCER_ID_NOTE, b"%d" % end)
        except OSError as error:
            log.warning("reserved producer ids cannot be noted in the data folder: %s", error)
