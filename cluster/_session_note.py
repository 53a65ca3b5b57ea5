"""The note of a broker's session in its data folder.

The session of a killed process lasts until its timeout, and other brokers count the process as alive until
then. The next process that locks the folder, which proves that the former one is dead, ends the session.

============  ===============================================================
field         content
============  ===============================================================
``session``   ZooKeeper's number of the session
``password``  its password, in hex
``lock``      id of the machine's boot, device and inode of the folder's lock
============  ===============================================================
"""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Final

#: Names, in the data folder, of the note and of the folder's lock.
SESSION_NOTE: Final = "zookeeper-session"
_LOCK: Final = ".lock"
#: A file whose content differs after each boot of the machine.
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")

log = logging.getLogger("kohort.cluster")


class SessionNote:
    """The session of the process that has locked a data folder, in a file of it: session id and password.

    The note names the lock that it belongs to: a lock on a copy of the folder, on another machine, or after
    a reboot says nothing about the process that wrote the note.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / SESSION_NOTE
        self._lock = folder / _LOCK

    def __repr__(self) -> str:
        return f"SessionNote({self._path})"

    def read(self) -> tuple[int, bytes] | None:
        """The last session of the former process; None if it is not known."""
        try:
            found = json.loads(self._path.read_text())
            if found["lock"] == self._place_of_session():
                return int(found["session"]), bytes.fromhex(found["password"])
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return None

    def write(self, session: tuple[int, bytes]) -> None:
        """Write a session down. If that fails, the session ends by its timeout."""
        number, password = session
        try:
            value = {"session": number, "password": password.hex(), "lock": self._place_of_session()}
            # nobody else may read the password
            handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(handle, "w") as file:
                file.write(json.dumps(value))
        except OSError as error:
            log.debug("the session was not noted in the data folder: %s", error)

    def _place_of_session(self) -> list[object]:
        """Raises OSError if this machine has no id of its boot."""
        lock = self._lock.stat()
        return [_BOOT.read_text().strip(), lock.st_dev, lock.st_ino]
