"""The real file system behind the seam."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kohort.log._files import OS_FILES, read_whole, write_whole


def test_a_file_is_made_by_its_first_write_and_for_its_owner_alone(tmp_path: Path) -> None:
    file = OS_FILES.file(str(tmp_path / "a.log"))
    assert file.size() == 0
    with pytest.raises(FileNotFoundError):
        file.read(0, 1)
    assert not (tmp_path / "a.log").exists()
    file.write(0, b"abcdef")
    assert (tmp_path / "a.log").stat().st_mode & 0o777 == 0o600
    assert file.read(2, 3) == b"cde"
    assert file.read(4, 100) == b"ef"
    file.truncate(3)
    assert file.size() == 3
    file.sync()
    file.close()


def test_a_closed_file_opens_again(tmp_path: Path) -> None:
    file = OS_FILES.file(str(tmp_path / "a"))
    file.write(0, b"x")
    file.close()
    file.close()
    assert file.read(0, 1) == b"x"
    file.close()


def test_short_writes_of_the_system_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: whole(fd, bytes(data[:3]), at))
    file = OS_FILES.file(str(tmp_path / "a"))
    file.write(5, b"0123456789")
    assert (tmp_path / "a").read_bytes() == b"\0" * 5 + b"0123456789"
    file.close()


def test_a_write_that_makes_no_progress_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "pwrite", lambda *_: 0)
    file = OS_FILES.file(str(tmp_path / "a"))
    with pytest.raises(OSError, match="nothing could be written"):
        file.write(0, b"x")
    file.close()


def test_short_reads_of_the_system_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"0123456789")
    whole = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, size, at: whole(fd, min(size, 3), at))
    file = OS_FILES.file(str(tmp_path / "a"))
    assert file.read(1, 8) == b"12345678"
    assert file.read(6, 50) == b"6789"
    file.close()


def test_a_whole_file_is_replaced_or_left(tmp_path: Path) -> None:
    path = str(tmp_path / "checkpoint")
    assert read_whole(OS_FILES, path) is None
    write_whole(OS_FILES, path, b"old content")
    write_whole(OS_FILES, path, b"new")
    assert read_whole(OS_FILES, path) == b"new"
    assert os.listdir(tmp_path) == ["checkpoint"]


@pytest.mark.parametrize("number", [errno.EACCES, errno.EAGAIN])
def test_a_lock_that_somebody_else_has_is_not_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as patched:
        patched.setattr(fcntl, "lockf", failing(number))
        assert OS_FILES.lock(str(tmp_path / ".lock")) is None
    assert len(os.listdir("/proc/self/fd")) == before
    lock = OS_FILES.lock(str(tmp_path / ".lock"))
    assert lock is not None
    lock.release()


def test_a_file_system_without_locks_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(fcntl, "lockf", failing(errno.ENOLCK))
    with pytest.raises(OSError, match="refused") as caught:
        OS_FILES.lock(str(tmp_path / ".lock"))
    assert caught.value.errno == errno.ENOLCK
    assert len(os.listdir("/proc/self/fd")) == before


def failing(number: int) -> Callable[[int, int], None]:
    def lockf(_descriptor: int, operation: int) -> None:
        assert operation == fcntl.LOCK_EX | fcntl.LOCK_NB
        raise OSError(number, "refused")

    return lockf


def test_a_lock_keeps_out_this_process_and_others(tmp_path: Path) -> None:
    path = str(tmp_path / ".lock")
    lock = OS_FILES.lock(path)
    assert lock is not None
    assert OS_FILES.lock(path) is None
    probe = (
        "import fcntl, os, sys\n"
        "fd = os.open(sys.argv[1], os.O_RDWR)\n"
        "try: fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
        "except OSError: sys.exit(3)\n"
    )
    assert subprocess.run([sys.executable, "-c", probe, path], check=False).returncode == 3
    lock.release()
    assert subprocess.run([sys.executable, "-c", probe, path], check=False).returncode == 0
    again = OS_FILES.lock(path)
    assert again is not None
    again.release()
    again.release()


def test_of_a_folder_that_is_a_link_only_the_link_is_removed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "records").touch()
    link = tmp_path / "orders-0"
    link.symlink_to(tmp_path / "elsewhere")
    OS_FILES.remove_tree(str(link))
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["elsewhere", "records"]
