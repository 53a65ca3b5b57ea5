"""Log files share the descriptors that the process has for them."""

from __future__ import annotations

import errno
import gc
import logging
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kohort.log import LogConfig, NoDescriptorsError, PartitionLog, _descriptors
from kohort.log._files import OS_FILES, OsFile
from tests.log.batches import NOW_MS, TOPIC_ID, batch


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[_descriptors.OpenFiles]:
    """Eight descriptors for the process, four of them for log files. The test's own process has more."""
    files = _descriptors.OpenFiles()
    monkeypatch.setattr(_descriptors, "_is_for_others", lambda _number: False)
    monkeypatch.setattr("kohort.log._files.OPEN_FILES", files)
    monkeypatch.setattr(_descriptors, "process_limit", lambda: 8)
    yield files
    assert len(files) <= 4


@pytest.mark.parametrize(
    ("limits", "expected"),
    [((1_024, 4_096), 1_024), ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), _descriptors.UNLIMITED)],
)
def test_a_process_may_have_as_many_as_its_soft_limit_says(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], expected: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", {resource.RLIMIT_NOFILE: limits}.__getitem__)
    assert _descriptors.process_limit() == expected


def files_at(folder: Path, count: int) -> list[OsFile]:
    made = [OsFile(str(folder / f"{number}")) for number in range(count)]
    for number, file in enumerate(made):
        file.write(0, b"%d" % number)
    return made


def held(folder: Path) -> set[str]:
    """The files of a folder of which this process has a descriptor."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{number}")
        except FileNotFoundError:
            continue
        if os.path.dirname(target) == str(folder):
            found.add(os.path.basename(target))
    return found


def test_no_more_are_open_than_may_be_and_all_can_be_used(
    tmp_path: Path, shared: _descriptors.OpenFiles
) -> None:
    files = files_at(tmp_path, 20)
    assert (len(shared), len(held(tmp_path))) == (4, 4)
    for number, file in enumerate(files):
        assert file.read(0, 9) == b"%d" % number
        file.write(2, b"x")
        file.sync()
        assert file.size() == 3
    assert len(held(tmp_path)) == 4
    for file in files:
        file.close()
    assert (len(shared), held(tmp_path)) == (0, set())


def test_the_one_that_is_not_used_makes_room(tmp_path: Path, shared: _descriptors.OpenFiles) -> None:
    files = files_at(tmp_path, 4)
    files_at(tmp_path, 1)[0].close()
    busy = files[3]
    for _ in range(10):
        busy.read(0, 1)
        other = OsFile(str(tmp_path / "0"))
        other.read(0, 1)
        assert "3" in held(tmp_path)
    assert len(shared) == 4


def test_one_that_is_in_use_stays_open_until_it_is_done(
    tmp_path: Path, shared: _descriptors.OpenFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shared.limit == 4
    slow, entered, go_on = OsFile(str(tmp_path / "slow")), threading.Event(), threading.Event()
    slow.write(0, b"right")
    whole = os.pread
    seen: list[bytes] = []

    def waits(number: int, size: int, position: int) -> bytes:
        entered.set()
        assert go_on.wait(10)
        return whole(number, size, position)

    with monkeypatch.context() as patch:
        patch.setattr(os, "pread", waits)
        reader = threading.Thread(target=lambda: seen.append(slow.read(0, 5)))
        reader.start()
        assert entered.wait(10)
    others = files_at(tmp_path, 12)
    assert slow.descriptor is None, "it had to give its descriptor to another one"
    go_on.set()
    reader.join(10)
    assert seen == [b"right"]
    assert len(held(tmp_path)) == 4
    del others


def test_a_file_that_nobody_has_any_more_gives_its_descriptor_back(
    tmp_path: Path, shared: _descriptors.OpenFiles
) -> None:
    files = files_at(tmp_path, 3)
    assert (len(shared), held(tmp_path)) == (3, {"0", "1", "2"})
    del files[1]
    gc.collect()
    # logs of tests before, of which garbage is made here, may open a file at their end
    known = [ref() for ref in shared._holders]
    assert [
        each for each in known if not isinstance(each, OsFile) or each.path.startswith(str(tmp_path))
    ] == files
    assert held(tmp_path) == {"0", "2"}


def test_where_others_have_taken_the_rest_a_log_file_gives_its_own(
    tmp_path: Path, shared: _descriptors.OpenFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = files_at(tmp_path, 3)
    whole, refusals = os.open, [2]

    def full(path: str, flags: int, mode: int = 0o777) -> int:
        if refusals[0]:
            refusals[0] -= 1
            raise OSError(errno.EMFILE, "Too many open files", path)
        return whole(path, flags, mode)

    monkeypatch.setattr(os, "open", full)
    another = OsFile(str(tmp_path / "0"))
    assert another.read(0, 1) == b"0"
    assert len(shared) == 2
    assert [file.read(0, 1) for file in files] == [b"0", b"1", b"2"]


def test_where_none_is_left_it_says_how_many_there_are_and_the_log_goes_on_later(
    tmp_path: Path,
    shared: _descriptors.OpenFiles,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = PartitionLog.open(
        tmp_path / "orders-0", LogConfig(), now_ms=NOW_MS, clean=True, topic_id=TOPIC_ID, fs=OS_FILES
    )
    log.append(batch(2), now_ms=NOW_MS)
    while len(shared):
        shared._close_idle()

    def full(path: str, _flags: int, _mode: int = 0o777) -> int:
        raise OSError(errno.EMFILE, "Too many open files", path)

    with monkeypatch.context() as patch, caplog.at_level(logging.ERROR, "kohort.log"):
        patch.setattr(os, "open", full)
        for _ in range(3):
            with pytest.raises(NoDescriptorsError, match=r"may have 8: raise the limit \(ulimit -n"):
                log.append(batch(2), now_ms=NOW_MS)
    assert len(caplog.records) == 1
    assert log.append(batch(2), now_ms=NOW_MS).base_offset == 2
    log.close()


@pytest.mark.parametrize(("limit", "left"), [(60, 30), (120, 60), (128, 64), (256, 64), (1_024, 256)])
def test_connections_leave_a_quarter_and_64_at_least_but_half_at_most(limit: int, left: int) -> None:
    assert _descriptors.left_by_connections(limit) == left


SCRIPT = """
import os, resource, socket, sys
from kohort.log._descriptors import OpenFiles
from kohort.log import _files

resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
_files.OPEN_FILES = shared = OpenFiles()
files = [_files.OsFile(os.path.join(sys.argv[1], str(number))) for number in range(80)]
for file in files:
    file.write(0, b"x")
assert len(shared) == 64
link, connections = socket.socket(), []
while shared.make_room(link.fileno()):
    connections.append(socket.socket())
    assert connections[-1].fileno() < 64
# what others may take beside connections: log files give theirs up for it
for file in files:
    assert file.read(0, 1) == b"x"
    assert file.descriptor.number < 112
assert shared.make_room(link.fileno(), 0.5) and not shared.make_room(link.fileno())
kept = [os.dup(0) for _ in range(16)]
connections.pop()
assert shared.make_room(link.fileno())
print(len(connections))
"""


def test_idle_log_files_make_room_for_connections_and_these_leave_room_for_files(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 50


@pytest.mark.parametrize(("number", "reserved"), [(0, False), (191, False), (192, True), (255, True)])
def test_the_last_quarter_is_reserved(monkeypatch: pytest.MonkeyPatch, number: int, reserved: bool) -> None:
    monkeypatch.setattr(_descriptors, "process_limit", lambda: 256)
    assert _descriptors.is_reserved(number) is reserved
