"""A real disk that runs full on command.

The data folder is a small tmpfs and a file takes what is left of it; where mounting is not permitted the
kernel refuses the broker's process every write instead (RLIMIT_FSIZE, answered EFBIG).
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SIZE_MIB = 96
PIECE_BYTES = 65_536


class DataDisk:
    """``folder`` is on it; ``mounted`` if it is a file system of its own."""

    def __init__(self, folder: Path, size_mib: int = SIZE_MIB, *, mounted: bool) -> None:
        self.folder = folder
        self._size_mib = size_mib
        self.mounted = mounted
        self._ballast = folder / "ballast"

    @property
    def kind(self) -> str:
        return f"tmpfs of {self._size_mib} MiB" if self.mounted else "RLIMIT_FSIZE"

    def fill(self, process_id: int) -> None:
        """From now on the broker's process can write nothing, or only what still fits."""
        if not self.mounted:
            resource.prlimit(process_id, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
            return
        ballast = os.open(self._ballast, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        size = PIECE_BYTES
        while size:
            try:
                os.write(ballast, bytes(size))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                size //= 8
        os.close(ballast)

    def clear(self, process_id: int) -> None:
        """There is room again."""
        if self.mounted:
            self._ballast.unlink(missing_ok=True)
        else:
            unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
            resource.prlimit(process_id, resource.RLIMIT_FSIZE, unlimited)


@contextmanager
def data_disk(folder: Path, size_mib: int = SIZE_MIB) -> Iterator[DataDisk]:
    """A disk at this folder, which is made."""
    folder.mkdir(parents=True)
    mounted = _mount(folder, size_mib)
    try:
        yield DataDisk(folder, size_mib, mounted=mounted)
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


def _mount(folder: Path, size_mib: int) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", f"size={size_mib}m,mode=700", "tmpfs", str(folder)]
    with contextlib.suppress(FileNotFoundError):
        return os.geteuid() == 0 and subprocess.run(command, capture_output=True).returncode == 0
    return False
