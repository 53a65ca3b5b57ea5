"""The note of a broker's session in its data folder.

A session outlives a process that was killed by its timeout, and so does what the other brokers hold of the
process. The next process that has the folder, whose lock says that the former one is dead, ends the session.
"""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any, Final

#: Its name in the data folder, and that of the folder's lock.
SESSION_NOTE: Final = "zookeeper-session"
_LOCK: Final = ".lock"
#: Another one after each start of the machine.
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")

log = logging.getLogger("kohort.cluster")


class SessionNote:
    """A session in a file of a data folder that is locked by this process. A session is its number and its
    password.

    The note says which lock it is of: a copy of the folder, the same one on another machine, or after the
    machine has started again, proves nothing of the process that wrote it.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / SESSION_NOTE
        self._lock = folder / _LOCK

    def __repr__(self) -> str:
        return f"SessionNote({self._path})"

    def read(self) -> tuple[int, bytes] | None:
        """The session that the former process had last, None if that is not known."""
        try:
            found = json.loads(self._path.read_text())
            if found["lock"] == self._place():
                return int(found["session"]), bytes.fromhex(found["password"])
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return None

    def write(self, session: tuple[int, bytes]) -> None:
        """Keep a session; where that cannot be, it ends by its timeout."""
        number, password = session
        try:
            value = {"session": number, "password": password.hex(), "lock": self._place()}
            # the password is nobody else's
            handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(handle, "w") as file:
                file.write(json.dumps(value))
        except OSError as error:
            log.debug("the session was not noted in the data folder: %s", error)

    def _place(self) -> list[Any]:
        """Raises OSError where a start of the machine cannot be told from another."""
        lock = self._lock.stat()
        return [_BOOT.read_text().strip(), lock.st_dev, lock.st_ino]
