"""The disk that fails on command fails as it is told, and keeps what a disk keeps.

Covers: testing/_disk.py.
"""

from __future__ import annotations

import errno
import subprocess
import sys
from collections.abc import Callable

import pytest

from kohort.testing.faults import DiskOperation, FaultyFileSystem, SimulatedCrash

SEEDS = range(100)


def made(**options: int) -> FaultyFileSystem:
    """A disk with the folder /d and in it the durable file ``a`` of 8 bytes; pages have 4."""
    fs = FaultyFileSystem(page_bytes=4, **options)
    fs.make_dirs("/d")
    fs.sync_dir("/")
    fs.put("/d/a", b"AAAABBBB")
    return fs


def test_what_is_written_is_read_at_once() -> None:
    fs = made()
    file = fs.file("/d/a")
    file.write(6, b"xyz")
    assert (file.read(0, 100), file.size()) == (b"AAAABBxyz", 9)
    file.truncate(3)
    assert file.read(2, 5) == b"A"
    file.truncate(5)
    assert file.read(0, 9) == b"AAA\0\0"
    file.write(8, b"!")
    assert file.read(0, 9) == b"AAA\0\0\0\0\0!"
    file.close()


def test_names_are_those_of_an_operating_system() -> None:
    fs = made()
    fs.file("/d/b").truncate(0)
    fs.rename("/d/b", "/d/a")
    assert (fs.list("/d"), fs.content("/d/a")) == (["a"], b"")
    fs.make_dirs("/d/e/f")
    fs.file("/d/e/f/g").write(0, b"1")
    assert sorted(fs.list("/d")) == ["a", "e"]
    fs.rename("/d/e", "/d/h")
    assert fs.exists("/d/h/f/g")
    fs.remove_tree("/d/h")
    fs.remove("/d/a")
    fs.remove("/d/a")
    assert fs.paths() == []
    with pytest.raises(FileNotFoundError):
        fs.file("/d/a").read(0, 1)
    with pytest.raises(FileNotFoundError):
        fs.rename("/d/a", "/d/b")
    with pytest.raises(FileNotFoundError):
        fs.file("/none/a").write(0, b"")
    with pytest.raises(IsADirectoryError):
        fs.file("/d").read(0, 1)
    fs.put("/d/a", b"")
    with pytest.raises(NotADirectoryError):
        fs.list("/d/a")


def test_only_one_holds_a_lock_and_a_crash_gives_it_back() -> None:
    fs = made()
    lock = fs.lock("/d/.lock")
    assert lock is not None
    assert fs.lock("/d/.lock") is None
    assert fs.after_kill().lock("/d/.lock") is not None
    lock.release()
    assert fs.lock("/d/.lock") is not None


def test_after_a_crash_each_unsynced_page_is_there_or_not() -> None:
    fs = made()
    fs.file("/d/a").write(2, b"11112222")  # three pages of 4 bytes
    assert fs.after_kill().content("/d/a") == b"AA11112222"
    assert fs.only_synced().content("/d/a") == b"AAAABBBB"
    found = {fs.after_crash(seed).content("/d/a") for seed in SEEDS}
    assert {b"AAAABBBB", b"AA11112222", b"AA11BBBB", b"AAAA1122"} <= found
    assert any(content.endswith(b"\0\0") for content in found), "longer, but what was written is not there"
    for content in found:
        assert content[:2] == b"AA", "synced bytes that nothing was written over"


def test_a_page_may_be_torn() -> None:
    fs = made()
    fs.file("/d/a").write(4, b"1111")
    found = {fs.after_crash(seed).content("/d/a") for seed in SEEDS}
    assert found > {b"AAAA1BBB", b"AAAA11BB", b"AAAA111B", b"AAAA1111"}


def test_a_page_may_have_any_version_since_the_sync() -> None:
    fs = made()
    for byte in b"123":
        fs.file("/d/a").write(0, bytes([byte]) * 4)
    found = {fs.after_crash(seed).content("/d/a")[:4] for seed in SEEDS}
    assert {b"AAAA", b"1111", b"2222", b"3333"} <= found


def test_a_cut_that_was_not_synced_may_be_undone_by_a_crash() -> None:
    fs = made()
    fs.file("/d/a").truncate(2)
    assert {fs.after_crash(seed).content("/d/a") for seed in SEEDS} >= {b"AAAABBBB", b"AA"}


def test_what_is_synced_outlives_every_crash() -> None:
    fs = made()
    fs.file("/d/a").write(2, b"11112222")
    fs.file("/d/a").sync()
    assert {fs.after_crash(seed, flips=3).content("/d/a") for seed in SEEDS} == {b"AA11112222"}


def test_bits_flip_in_what_was_not_synced() -> None:
    fs = made()
    fs.file("/d/a").write(8, bytes(40))
    found = [fs.after_crash(seed, flips=1).content("/d/a") for seed in SEEDS]
    assert {content[:8] for content in found} == {b"AAAABBBB"}
    assert max(sum(byte.bit_count() for byte in content[8:]) for content in found) == 1


@pytest.mark.parametrize("ordered", [True, False])
def test_names_that_were_not_synced_may_be_lost(ordered: bool) -> None:
    fs = made()
    fs.rename("/d/a", "/d/b")
    fs.file("/d/c").truncate(0)
    found = {tuple(sorted(fs.after_crash(seed, ordered=ordered).list("/d"))) for seed in SEEDS}
    assert found == {("a",), ("b",), ("b", "c")} | (set() if ordered else {("a", "c")})
    fs.sync_dir("/d")
    assert {tuple(sorted(fs.after_crash(seed).list("/d"))) for seed in SEEDS} == {("b", "c")}


def test_a_sync_that_failed_has_lost_its_data_and_the_next_one_does_not_tell() -> None:
    fs = made()
    file = fs.file("/d/a")
    file.write(0, b"1111")
    fs.fail_at(1, errno.EIO, kinds=("sync",))
    with pytest.raises(OSError, match="Input/output error"):
        file.sync()
    file.write(4, b"2222")
    file.sync()
    assert file.read(0, 8) == b"11112222"
    assert {fs.after_crash(seed).content("/d/a") for seed in SEEDS} == {b"AAAA2222"}
    file.write(0, b"3333")
    file.sync()
    assert fs.only_synced().content("/d/a") == b"33332222"


def test_an_operation_that_meets_a_fault_changes_nothing_but_a_write_leaves_half() -> None:
    fs = made()
    fs.fail_at(2, errno.EIO, sticky=True)
    fs.make_dirs("/d/e")
    calls: list[Callable[[], None]] = [
        lambda: fs.rename("/d/a", "/d/b"),
        lambda: fs.remove("/d/a"),
        lambda: fs.make_dirs("/d/f"),
        lambda: fs.remove_tree("/d/e"),
        lambda: fs.sync_dir("/d"),
        lambda: fs.file("/d/a").truncate(0),
        lambda: fs.file("/d/a").write(8, b"12"),
    ]
    for call in calls:
        with pytest.raises(OSError, match="Input/output error"):
            call()
    assert (sorted(fs.list("/d")), fs.content("/d/a")) == (["a", "e"], b"AAAABBBB1")
    assert [operation.kind for operation in fs.failed[:2]] == ["rename", "remove"]
    fs.heal()
    fs.file("/d/a").truncate(0)
    assert fs.operations[-1] == DiskOperation("cut", "/d/a")


def test_faults_count_the_kinds_and_paths_that_they_are_told() -> None:
    fs = made()
    fs.fail_at(1, errno.EIO, kinds=("read",), path="a")
    fs.file("/d/b").write(0, b"1")
    assert fs.file("/d/b").read(0, 1) == b"1"
    with pytest.raises(OSError, match="Input/output error"):
        fs.file("/d/a").read(0, 1)
    fs.fail_at(1, errno.ENOSPC)
    fs.file("/d/a").truncate(0)  # takes no space
    with pytest.raises(OSError, match="No space left"):
        fs.file("/d/a").truncate(1)


def test_a_disk_that_is_full_takes_what_fits_until_there_is_room_again() -> None:
    fs = made(capacity_bytes=12)
    file = fs.file("/d/a")
    file.write(0, b"11112222333")
    with pytest.raises(OSError, match="No space left"):
        file.write(10, b"345")
    assert fs.content("/d/a") == b"111122223334"
    file.truncate(4)
    file.write(4, b"22223333")
    assert fs.used_bytes == 12
    with pytest.raises(OSError, match="No space left"):
        file.write(12, b"4")
    fs.capacity_bytes = None
    file.write(12, b"4")


@pytest.mark.parametrize(("byte", "left"), [(None, b"AAAABBBB"), (0, b"AAAABBBB"), (3, b"AAAABBBB123")])
def test_the_machine_stops_in_the_middle_of_a_write(byte: int | None, left: bytes) -> None:
    fs = made()
    fs.crash_at(2, byte=byte)
    fs.sync_dir("/d")
    with pytest.raises(SimulatedCrash):
        fs.file("/d/a").write(8, b"12345")
    with pytest.raises(SimulatedCrash, match="after_crash"):
        fs.file("/d/a").size()
    assert fs.crashed
    assert fs.after_kill().content("/d/a") == left


def contents(fs: FaultyFileSystem) -> dict[str, bytes]:
    return {path: fs.content(path) for path in fs.paths()}


def test_a_seed_gives_the_same_disk_each_time() -> None:
    fs = made()
    for number in range(20):
        fs.file(f"/d/{number % 3}").write(number, bytes([number]) * number)
    for seed in SEEDS:
        first, again = (fs.after_crash(seed, flips=2) for _ in range(2))
        assert first.paths() == again.paths()
        assert [first.content(path) for path in first.paths()] == [
            again.content(path) for path in again.paths()
        ]


def test_a_flipped_bit_is_there_to_stay() -> None:
    fs = made()
    fs.flip("/d/a", 1, bit=1)
    assert fs.only_synced().content("/d/a") == b"ACAABBBB"


def test_the_import_is_cheap() -> None:
    heavy = "{'kohort.broker', 'pydantic'} & set(sys.modules)"
    program = f"import sys, kohort.testing.faults; sys.exit(bool({heavy}))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
