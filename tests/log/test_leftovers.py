"""Leftovers of removals and compactions that a stop interrupted."""

from __future__ import annotations

import itertools
import os
import shutil
from pathlib import Path

import pytest

from kohort.log import OS_FILES, LogConfig
from kohort.log._files import OsFileSystem
from kohort.log._leftovers import tidy_folder
from tests.log.batches import NOW_MS, all_records, batch, offsets_of, open_log
from tests.log.faulty import FaultyFiles

CONFIG = LogConfig(segment_bytes=2 * len(batch()))


def three_segments(folder: Path) -> Path:
    """Offsets 0-1, 2-3 and 4-5, cleanly closed."""
    log = open_log(folder, CONFIG)
    for _ in range(6):
        log.append(batch(), now_ms=NOW_MS)
    log.close()
    return folder / "orders-0"


def swap_of(folder: Path, base: int, *positions: int) -> None:
    """What compaction would leave: some of the batches of the segments from ``base`` on, as ``.swap``."""
    data = b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))
    size = len(batch())
    kept = b"".join(data[size * n : size * (n + 1)] for n in positions)
    (folder / f"{base:020d}.log.swap").write_bytes(kept)
    for kind in ("index", "timeindex"):
        (folder / f"{base:020d}.{kind}.swap").write_bytes(b"")
    (folder / f"{base:020d}.txnindex.swap").write_bytes(b"")


def kept_offsets(folder: Path, *, clean: bool = True) -> list[int]:
    log = open_log(folder, CONFIG, clean=clean)
    found = [first for first, _ in offsets_of(all_records(log))]
    log._segments.close()
    return found


def test_deleted_cleaned_and_temporary_files_go(tmp_path: Path) -> None:
    folder = three_segments(tmp_path)
    leftovers = [
        "00000000000000000000.log.deleted",
        "00000000000000000002.log.cleaned",
        "00000000000000000002.index.cleaned",
        "00000000000000000006.snapshot.tmp",
        "00000000000000000009.index",  # of no log
    ]
    for name in leftovers:
        (folder / name).write_bytes(b"x")
    removed: list[str] = []
    names = tidy_folder(OS_FILES, str(folder), removed, [])
    assert sorted(Path(path).name for path in removed) == sorted(leftovers)
    assert not set(names) & set(leftovers)
    assert kept_offsets(tmp_path) == [0, 1, 2, 3, 4, 5]


def test_a_folder_in_order_is_listed_once(tmp_path: Path) -> None:
    folder = three_segments(tmp_path)
    listed: list[str] = []

    class Listing(OsFileSystem):
        def list(self, path: str) -> list[str]:
            listed.append(path)
            return super().list(path)

    assert sorted(tidy_folder(Listing(), str(folder), [], [])) == sorted(os.listdir(folder))
    assert listed == [str(folder)]


@pytest.mark.parametrize("clean", [True, False])
def test_a_finished_compaction_takes_the_place_of_its_sources(tmp_path: Path, clean: bool) -> None:
    folder = three_segments(tmp_path)
    swap_of(folder, 0, 1, 3)
    assert kept_offsets(tmp_path, clean=clean) == [1, 3, 4, 5]
    assert not list(folder.glob("*.swap"))
    assert not (folder / "00000000000000000002.log").exists()
    assert kept_offsets(tmp_path) == [1, 3, 4, 5]


def test_a_swap_that_keeps_the_first_segment_leaves_the_others(tmp_path: Path) -> None:
    folder = three_segments(tmp_path)
    swap_of(folder, 0, 1)
    assert kept_offsets(tmp_path) == [1, 2, 3, 4, 5]


def test_a_swap_whose_siblings_are_unfinished_is_dropped(tmp_path: Path) -> None:
    folder = three_segments(tmp_path)
    swap_of(folder, 0, 0)
    (folder / "00000000000000000000.log.cleaned").write_bytes(b"half")
    assert kept_offsets(tmp_path) == [0, 1, 2, 3, 4, 5]
    assert not list(folder.glob("*.swap"))


def test_index_files_left_to_be_renamed_get_their_names(tmp_path: Path) -> None:
    """Kafka renames the log first: after a stop in between, the others are still to be renamed."""
    folder = three_segments(tmp_path)
    os.rename(folder / "00000000000000000002.timeindex", folder / "00000000000000000002.timeindex.swap")
    assert kept_offsets(tmp_path) == [0, 1, 2, 3, 4, 5]
    assert not list(folder.glob("*.swap"))


def test_finishing_a_swap_can_be_interrupted_at_any_step(tmp_path: Path) -> None:
    source = tmp_path / "source"
    folder = three_segments(source)
    swap_of(folder, 0, 1, 3)
    for step in itertools.count(1):
        copy = tmp_path / f"copy-{step}"
        shutil.copytree(source, copy)
        fs = _StopsAt(step)
        try:
            tidy_folder(fs, str(copy / "orders-0"), [], [])
        except InterruptedError:
            assert kept_offsets(copy) == [1, 3, 4, 5]
            continue
        break
    assert step > 8


class _StopsAt(FaultyFiles):
    """Dies at the n-th removal or renaming."""

    def __init__(self, step: int) -> None:
        super().__init__()
        self._left = step

    def remove(self, path: str) -> None:
        self._step()
        super().remove(path)

    def rename(self, old: str, new: str) -> None:
        self._step()
        super().rename(old, new)

    def _step(self) -> None:
        self._left -= 1
        if not self._left:
            raise InterruptedError
