"""Files that are only looked at: nothing changes them, and they stay as long as they were."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from kohort.log.tools._read_only import READ_ONLY


def test_a_file_stays_as_long_as_it_was_at_the_first_look(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    file = READ_ONLY.file(str(path))
    assert (file.size(), file.read(1, 9)) == (3, b"bc")
    path.write_bytes(b"abcdef")
    assert (file.size(), file.read(1, 9), file.read(5, 9)) == (3, b"bc", b"")
    file.close()


@pytest.mark.parametrize("there", [True, False], ids=["empty", "missing"])
def test_a_file_that_is_empty_or_missing_stays_so(tmp_path: Path, there: bool) -> None:
    path = tmp_path / "a"
    if there:
        path.write_bytes(b"")
    file = READ_ONLY.file(str(path))
    assert file.size() == 0
    path.write_bytes(b"abc")
    assert (file.size(), file.read(0, 9)) == (0, b"")
    file.close()


CHANGES: dict[str, Callable[[str], object]] = {
    "write": lambda path: READ_ONLY.file(path).write(0, b"x"),
    "truncate": lambda path: READ_ONLY.file(path).truncate(0),
    "sync": lambda path: READ_ONLY.file(path).sync(),
    "make_dirs": READ_ONLY.make_dirs,
    "rename": lambda path: READ_ONLY.rename(path, path + "2"),
    "remove": READ_ONLY.remove,
    "remove_tree": READ_ONLY.remove_tree,
    "sync_dir": READ_ONLY.sync_dir,
    "lock": READ_ONLY.lock,
}


@pytest.mark.parametrize("change", CHANGES)
def test_nothing_can_be_changed(tmp_path: Path, change: str) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    with pytest.raises(OSError, match="this is opened for reading only") as caught:
        CHANGES[change](str(path))
    assert (caught.value.errno, caught.value.filename) == (errno.EROFS, str(path))
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("a", b"abc")]
