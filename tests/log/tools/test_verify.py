"""A look at a whole data folder: what is well is not blamed, what is damaged is found and named.

Covers: log/tools/_read_only.py.
"""

from __future__ import annotations

import os
import random
import shutil
import tarfile
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from kohort.log import DataFolder, DataFolderError, LogConfig
from kohort.log.tools.verify import VerifiedFolder, verify_folder
from kohort.protocol import build_batch

DATA = Path(__file__).resolve().parents[2] / "data" / "kafka-data-folder" / "data.tar.gz"
NOW_MS = 1_800_000_000_000
FIRST = "t-0/00000000000000000000"
LAST = "t-0/00000000000000000060"


def append(log: object, number: int) -> None:
    """Three records of 100 bytes."""
    records = [(b"k%d" % i, bytes(100), ()) for i in range(3)]
    data = build_batch(records, timestamp_ms=NOW_MS + number)
    log.append(bytes(data), now_ms=NOW_MS + number)  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of two segments with several index entries each, stopped cleanly."""
    folder = tmp_path_factory.mktemp("made") / "data"
    data = DataFolder.open(folder)
    config = LogConfig(segment_bytes=8_000, index_interval_bytes=1_000)
    log = data.open_log("t", 0, config, now_ms=NOW_MS, topic_id=uuid.UUID(int=3))
    for number in range(36):
        append(log, number)
    log.close()
    data.write_checkpoints([log])
    data.close()
    assert {path.name for path in (folder / "t-0").glob("*.log")} >= {f"{0:020d}.log", f"{60:020d}.log"}
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "data"))


def found(folder: Path) -> list[tuple[str, str, int]]:
    """Level, file and position of all that was found."""
    return [
        (finding.level, os.path.relpath(finding.file, folder), finding.position)
        for finding in verify_folder(folder).all_findings()
    ]


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def test_of_a_folder_in_order_everything_is_counted_and_nothing_changed(folder: Path) -> None:
    before = snapshot(folder)
    verified = verify_folder(folder)
    assert list(verified.all_findings()) == []
    assert (verified.in_use, verified.clean_stop) == (False, True)
    (partition,) = verified.partitions
    assert (partition.topic, partition.partition, partition.segments) == ("t", 0, 2)
    assert (partition.batches, partition.records) == (36, 108)
    assert (partition.start_offset, partition.end_offset) == (0, 108)
    assert snapshot(folder) == before


def test_apache_kafkas_folder_is_in_order(tmp_path: Path) -> None:
    with tarfile.open(DATA) as archive:
        archive.extractall(tmp_path, filter="data")
    verified = verify_folder(tmp_path)
    assert [finding for finding in verified.all_findings() if finding.level != "note"] == []
    assert len(verified.partitions) == 21
    assert max(partition.segments for partition in verified.partitions) == 2


def test_a_folder_in_use_is_looked_at_and_stays_locked(tmp_path: Path) -> None:
    data = DataFolder.open(tmp_path)
    log = data.open_log("t", 0, LogConfig(), now_ms=NOW_MS, topic_id=uuid.UUID(int=3))
    for number in range(50):
        append(log, number)
        assert not [f for f in verify_folder(tmp_path).all_findings() if f.level != "note"]
    assert verify_folder(tmp_path).in_use
    path = tmp_path / "t-0" / f"{0:020d}.log"
    with path.open("ab") as file:
        file.write(bytes(10))
    (finding,) = verify_folder(tmp_path).all_findings()
    assert (finding.level, finding.position) == ("note", path.stat().st_size - 10)


def write(folder: Path, name: str, position: int, data: bytes) -> None:
    with (folder / name).open("r+b") as file:
        file.seek(position)
        file.write(data)


def batch_bytes(folder: Path) -> int:
    return (folder / f"{FIRST}.log").stat().st_size // 20


DAMAGE: dict[str, tuple[Callable[[Path], object], str, str, str]] = {
    "a record": (lambda f: write(f, f"{FIRST}.log", 1_000, b"?"), "damage", f"{FIRST}.log", "batches follow"),
    "a batch that is cut": (
        lambda f: os.truncate(f / f"{FIRST}.log", (f / f"{FIRST}.log").stat().st_size - 5),
        "damage",
        f"{FIRST}.log",
        "no whole batch",
    ),
    "a torn tail": (
        lambda f: os.truncate(f / f"{LAST}.log", (f / f"{LAST}.log").stat().st_size - 5),
        "mended",
        f"{LAST}.log",
        "no whole batch",
    ),
    "an entry of the offset index": (
        lambda f: write(f, f"{FIRST}.index", 4, b"\x00\x00\x00\x07"),
        "mended",
        f"{FIRST}.index",
        "no batch begins there",
    ),
    "the offset index out of order": (
        lambda f: write(f, f"{FIRST}.index", 8, bytes(4)),
        "mended",
        f"{FIRST}.index",
        "does not rise",
    ),
    "half an entry": (
        lambda f: os.truncate(f / f"{FIRST}.timeindex", (f / f"{FIRST}.timeindex").stat().st_size - 5),
        "mended",
        f"{FIRST}.timeindex",
        "no whole number",
    ),
    "times that are too old": (
        lambda f: write(f, f"{LAST}.timeindex", 0, bytes(7) + b"\x01"),
        "mended",
        f"{LAST}.timeindex",
        "an entry says 1 ",
    ),
    "an index that is missing": (
        lambda f: (f / f"{FIRST}.index").unlink(),
        "mended",
        f"{FIRST}.index",
        "missing",
    ),
    "a transaction index of nothing": (
        lambda f: (f / f"{FIRST}.txnindex").write_bytes(b"\x00\x00" + bytes(7) + b"\x09" + bytes(24)),
        "mended",
        f"{FIRST}.txnindex",
        "no abort marker of producer 9",
    ),
    "a snapshot": (
        lambda f: write(f, f"t-0/{108:020d}.snapshot", 2, b"bad!"),
        "mended",
        f"t-0/{108:020d}.snapshot",
        "checksum",
    ),
    "the topic's id": (
        lambda f: (f / "t-0/partition.metadata").write_text("version: 0\n"),
        "damage",
        "t-0",
        "topic_id",
    ),
    "leader epochs": (
        lambda f: (f / "t-0/leader-epoch-checkpoint").write_text("0\n2\n3 0\n1 5\n"),
        "damage",
        "t-0/leader-epoch-checkpoint",
        "does not rise",
    ),
    "a checkpoint": (
        lambda f: (f / "log-start-offset-checkpoint").write_text("0\n9\n"),
        "damage",
        "log-start-offset-checkpoint",
        "follow",
    ),
    "records that are gone": (
        lambda f: (f / "replication-offset-checkpoint").write_text("0\n1\nt 0 900\n"),
        "damage",
        "t-0",
        "says 900, the log ends at 108",
    ),
    "meta.properties": (
        lambda f: (f / "meta.properties").write_text("version=1\n"),
        "damage",
        "meta.properties",
        "cluster.id",
    ),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_damage_is_found_and_named(folder: Path, what: str) -> None:
    damage, level, file, words = DAMAGE[what]
    damage(folder)
    findings = list(verify_folder(folder).all_findings())
    told = [f for f in findings if f.level == level and os.path.relpath(f.file, folder) == file]
    assert told, findings
    assert any(words in finding.what for finding in told), told
    assert all(finding.advice.endswith(".") for finding in findings)


def test_the_position_is_that_of_the_batch(folder: Path) -> None:
    write(folder, f"{FIRST}.log", 3 * batch_bytes(folder) + 80, b"?")
    assert ("damage", f"{FIRST}.log", 3 * batch_bytes(folder)) in found(folder)


def test_leftovers_of_a_stop_are_no_damage(folder: Path) -> None:
    for name in ("t-0/00000000000000000000.log.deleted", "t-0/00000000000000000007.log.cleaned"):
        (folder / name).write_bytes(b"?")
    (folder / ("u-1." + "a" * 32 + "-delete")).mkdir()
    assert [level for level, _, _ in found(folder)] == ["note"] * 3


def test_preallocated_indexes_are_in_order(folder: Path) -> None:
    for suffix in ("index", "timeindex"):
        os.truncate(folder / f"{LAST}.{suffix}", 24 * 1_000)
    assert found(folder) == []


def test_another_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataFolderError, match="no data folder"):
        verify_folder(tmp_path)
    with pytest.raises(FileNotFoundError):
        verify_folder(tmp_path / "none")


def test_no_bytes_make_it_fail(made: Path, tmp_path: Path) -> None:
    dice = random.Random(11)
    names = sorted(str(path.relative_to(made)) for path in made.rglob("*") if path.is_file())
    for number in range(60):
        folder = Path(shutil.copytree(made, tmp_path / str(number)))
        for name in dice.sample(names, 4):
            data = bytearray((folder / name).read_bytes())
            for _ in range(dice.randrange(4)):
                if data:
                    data[dice.randrange(len(data))] = dice.randrange(256)
            (folder / name).write_bytes(
                bytes(data[: dice.choice([len(data), dice.randrange(len(data) + 1)])])
            )
        assert isinstance(verify_folder(folder), VerifiedFolder)


LEFT_OUT = (
    "Readers get CORRUPT_MESSAGE here, or meet a wrong checksum; what is before and behind it is served, and "
    "of the offsets topic it is left out. "
)
TORN = (
    "The end of a write that a stop interrupted: the next start cuts it off; nothing that was acknowledged "
    "and is on the disk lies there."
)
GROWING = "The folder is in use: this may be a write under way. Look again."


def told(folder: Path) -> list[tuple[str, str, int, str, str]]:
    return [
        (finding.level, os.path.relpath(finding.file, folder), finding.position, finding.what, finding.advice)
        for finding in verify_folder(folder).all_findings()
    ]


def test_damage_in_a_log_is_told_with_what_follows_and_what_it_means(folder: Path) -> None:
    write(folder, f"{FIRST}.log", 1_000, b"?")
    ((level, file, position, what, advice),) = told(folder)
    size = batch_bytes(folder)
    assert (level, file, position) == ("damage", f"{FIRST}.log", 1_000 // size * size)
    reason, _, follows = what.partition("; ")
    assert "checksum" in reason
    assert follows == f"whole batches follow from byte {(1_000 // size + 1) * size} on"
    assert advice.startswith(LEFT_OUT)


@pytest.mark.parametrize(
    ("name", "level", "meaning"), [(FIRST, "damage", LEFT_OUT), (LAST, "mended", TORN)], ids=["first", "last"]
)
def test_a_log_that_is_cut_is_torn_at_its_end_and_damaged_before(
    folder: Path, name: str, level: str, meaning: str
) -> None:
    size, path = batch_bytes(folder), folder / f"{name}.log"
    os.truncate(path, path.stat().st_size - 5)
    found = [finding for finding in told(folder) if finding[1] == f"{name}.log"]
    ((_, _, position, what, advice),) = found
    assert (found[0][0], position) == (level, path.stat().st_size + 5 - size)
    assert what.endswith(f"; {size - 5} bytes to the end of the file are no whole batch")
    assert advice.startswith(meaning)


def test_the_end_of_a_log_in_use_may_be_a_write_under_way(tmp_path: Path) -> None:
    data = DataFolder.open(tmp_path)
    log = data.open_log("t", 0, LogConfig(), now_ms=NOW_MS, topic_id=uuid.UUID(int=3))
    append(log, 1)
    path = tmp_path / "t-0" / f"{0:020d}.log"
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(bytes(10))
    ((level, _, position, what, advice),) = told(tmp_path)
    assert (level, position, advice) == ("note", size, GROWING)
    assert what.endswith("; 10 bytes to the end of the file are no whole batch")
    log.close()
    data.close()


def test_a_small_file_that_cannot_be_read_is_told_with_advice(folder: Path) -> None:
    name = "recovery-point-offset-checkpoint"
    (folder / name).write_text("0\n9\nt 0 5\n")
    ((level, file, position, what, advice),) = told(folder)
    assert (level, file, position) == ("damage", name, -1)
    assert what
    assert not what.startswith(("/", " "))
    assert str(folder) not in what
    assert ". " not in what
    assert advice.endswith(".")
    assert not advice.endswith("..")
    assert advice[0].isupper()
    assert "XX" not in advice
