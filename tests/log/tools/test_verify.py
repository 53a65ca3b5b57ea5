"""A look at a whole data folder: what is well is not blamed, what is damaged is found and named.

Covers: log/tools/_read_only.py.
"""

from __future__ import annotations

import os
import random
import shutil
import struct
import tarfile
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from kohort.log import DataFolder, DataFolderError, LogConfig, PartitionLog
from kohort.log.tools.verify import VerifiedFolder, verify_folder
from kohort.protocol import build_batch
from tests.log.batches import batch, marker

DATA = Path(__file__).resolve().parents[2] / "data" / "kafka-data-folder" / "data.tar.gz"
NOW_MS = 1_800_000_000_000
FIRST = "t-0/00000000000000000000"
MIDDLE = "t-0/00000000000000000057"
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


Told = tuple[str, str, int, str, str]

TOO_SHORT = (
    "batch of 394 bytes cut short by 5 (at byte 0); 389 bytes to the end of the file are no whole batch"
)
NO_SNAPSHOT = (
    "the producers in it cannot be read: producer snapshot that does not match its checksum (at byte 0)"
)
LEFT_OUT = (
    "Consumers get CORRUPT_MESSAGE or a wrong checksum here. Records before and after it are served; in the "
    "offsets topic it is skipped. Restore the file from a copy; or stop the broker and cut the file there by "
    "hand, and lose the rest."
)
RESTORE = (
    "Restore the file from a copy; or stop the broker and cut the file there by hand, and lose the rest."
)
TORN = (
    "The end of a write that a stop interrupted: the next start cuts it off. No acknowledged record that had "
    "reached the disk is lost."
)
GROWING = "The folder is in use: this may be a write under way. Look again."
MADE_ANEW = "Remove the file while the broker is stopped: the next start rebuilds it from the log."
MISSING = "The next start rebuilds it from the log."
REPLAYED = "Remove the file while the broker is stopped: the log is read whole instead."
READ_WHOLE = "Restore it from a copy, or remove it: then the logs are read whole."
LOST = (
    "Records that were on the disk are gone: restore the partition from a copy, or continue without them; "
    "committed offsets may then be beyond the end."
)


def told(folder: Path) -> list[Told]:
    return [
        (finding.level, os.path.relpath(finding.file, folder), finding.position, finding.what, finding.advice)
        for finding in verify_folder(folder).all_findings()
    ]


def cut(name: str, count: int) -> Callable[[Path], object]:
    """Cut that many bytes off the end of a file."""
    return lambda folder: os.truncate(folder / name, (folder / name).stat().st_size - count)


def put(name: str, position: int, data: bytes) -> Callable[[Path], object]:
    return lambda folder: write(folder, name, position, data)


def text(name: str, content: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(content)


def aborted(*entries: tuple[int, int, int, int, int]) -> Callable[[Path], object]:
    """A transaction index: version, producer, first offset, last offset, last stable offset of each entry."""
    data = b"".join(struct.pack(">hqqqq", *entry) for entry in entries)
    return lambda folder: (folder / f"{FIRST}.txnindex").write_bytes(data)


def mended(file: str, position: int, what: str) -> Told:
    return "mended", file, position, what, MADE_ANEW


#: Batches of 394 bytes with three offsets each; every third one is in the indexes.
DAMAGE: dict[str, tuple[Callable[[Path], object], list[Told]]] = {
    "a batch that is cut": (
        cut(f"{FIRST}.log", 5),
        [
            (
                "damage",
                f"{FIRST}.log",
                7_486,
                TOO_SHORT,
                LEFT_OUT,
            ),
            mended(f"{FIRST}.timeindex", -1, "an entry is for offset 59, the segment ends at 57"),
        ],
    ),
    "a torn tail": (
        cut(f"{LAST}.log", 5),
        [
            (
                "mended",
                f"{LAST}.log",
                5_910,
                TOO_SHORT,
                TORN,
            ),
            mended(f"{LAST}.timeindex", -1, "an entry is for offset 107, the segment ends at 105"),
            mended(f"{LAST}.index", 32, "an entry puts offset 107 at byte 5910: no batch begins there"),
            (
                "damage",
                "t-0",
                -1,
                "recovery-point-offset-checkpoint says 108, the log ends at 105",
                LOST,
            ),
        ],
    ),
    "offsets that two segments hold": (
        lambda f: (f / f"{MIDDLE}.log").write_bytes((f / f"{FIRST}.log").read_bytes()[-394:]),
        [
            (
                "damage",
                f"{MIDDLE}.log",
                0,
                "it begins at offset 57, the segment before it ends at 60",
                "Two segments hold the same offsets: restore the partition from a copy.",
            ),
            ("mended", f"{MIDDLE}.index", -1, "it is missing", MISSING),
            ("mended", f"{MIDDLE}.timeindex", -1, "it is missing", MISSING),
            (
                "damage",
                f"{MIDDLE}.log",
                0,
                "a batch begins at offset 57, the one before it ended at 60",
                RESTORE,
            ),
        ],
    ),
    "an entry of the offset index": (
        put(f"{FIRST}.index", 4, b"\0\0\0\7"),
        [mended(f"{FIRST}.index", 0, "an entry puts offset 11 at byte 7: no batch begins there")],
    ),
    "an entry of another batch": (
        put(f"{FIRST}.index", 20, struct.pack(">i", 3_152)),
        [mended(f"{FIRST}.index", 16, "an entry puts offset 29 at byte 3152: that batch ends at offset 26")],
    ),
    "an entry that ends in a byte that could be text": (
        lambda f: (f / f"{FIRST}.index").write_bytes(b"\0\0\0\x0b\0\0\0X"),
        [mended(f"{FIRST}.index", 0, "an entry puts offset 11 at byte 88: no batch begins there")],
    ),
    "the offset index out of order": (
        put(f"{FIRST}.index", 8, bytes(4)),
        [mended(f"{FIRST}.index", 8, "entry (0, 2364) does not rise from (11, 1182)")],
    ),
    "an entry twice": (
        put(f"{FIRST}.index", 16, struct.pack(">ii", 20, 2_364)),
        [mended(f"{FIRST}.index", 16, "entry (20, 2364) does not rise from (20, 2364)")],
    ),
    "positions out of order": (
        put(f"{FIRST}.index", 24, struct.pack(">ii", 38, 3_000)),
        [mended(f"{FIRST}.index", 24, "entry (38, 3000) does not rise from (29, 3546)")],
    ),
    "half an entry": (
        cut(f"{FIRST}.timeindex", 5),
        [mended(f"{FIRST}.timeindex", 72, "79 bytes are no whole number of entries of 12")],
    ),
    "some bytes behind the last entry": (
        put(f"{FIRST}.index", 48, b"\0\0\0\1\1"),
        [mended(f"{FIRST}.index", 48, "53 bytes are no whole number of entries of 8")],
    ),
    "times that are too old": (
        put(f"{LAST}.timeindex", 0, bytes(7) + b"\1"),
        [mended(f"{LAST}.timeindex", -1, f"an entry says 1 where a batch before it is of {NOW_MS + 22}")],
    ),
    "a time beyond the end": (
        put(f"{LAST}.timeindex", 60, struct.pack(">qi", NOW_MS + 99, 256)),
        [mended(f"{LAST}.timeindex", -1, "an entry is for offset 316, the segment ends at 108")],
    ),
    "an index that is missing": (
        lambda f: (f / f"{FIRST}.index").unlink(),
        [("mended", f"{FIRST}.index", -1, "it is missing", MISSING)],
    ),
    "a transaction index of nothing": (
        aborted((0, 9, 0, 0, 0), (0, 7, 0, 1, 0)),
        [mended(f"{FIRST}.txnindex", 0, "no abort marker of producer 9 at offset 0")],
    ),
    "a transaction index of another version": (
        aborted((3, 9, 0, 0, 0)),
        [mended(f"{FIRST}.txnindex", -1, "its entries are not those of aborted transactions")],
    ),
    "a snapshot": (
        put(f"t-0/{108:020d}.snapshot", 2, b"bad!"),
        [
            (
                "mended",
                f"t-0/{108:020d}.snapshot",
                -1,
                NO_SNAPSHOT,
                REPLAYED,
            )
        ],
    ),
    "the topic's id": (
        text("t-0/partition.metadata", "version: 0\n"),
        [
            (
                "damage",
                "t-0/partition.metadata",
                -1,
                "cannot be read: it has no topic_id of 22 characters",
                READ_WHOLE,
            )
        ],
    ),
    "no topic's id": (
        lambda f: (f / "t-0/partition.metadata").unlink(),
        [
            (
                "note",
                "t-0",
                -1,
                "partition.metadata is missing, which has the topic id",
                "A broker that knows the topic creates it again.",
            )
        ],
    ),
    "leader epochs": (
        text("t-0/leader-epoch-checkpoint", "0\n2\n3 0\n1 5\n"),
        [
            (
                "damage",
                "t-0/leader-epoch-checkpoint",
                -1,
                "cannot be read: the line '1 5' is not in rising order",
                READ_WHOLE,
            )
        ],
    ),
    "an epoch in words": (
        text("t-0/leader-epoch-checkpoint", "0\n1\none. two\n"),
        [
            (
                "damage",
                "t-0/leader-epoch-checkpoint",
                -1,
                "cannot be read: the line 'one. two' is not 'epoch offset'",
                READ_WHOLE,
            )
        ],
    ),
    "a checkpoint": (
        text("log-start-offset-checkpoint", "0\n9\n"),
        [
            (
                "damage",
                "log-start-offset-checkpoint",
                -1,
                "cannot be read: its second line does not say that 0 lines follow",
                READ_WHOLE,
            )
        ],
    ),
    "the cleaner's checkpoint": (
        text("cleaner-offset-checkpoint", "7\n"),
        [
            (
                "damage",
                "cleaner-offset-checkpoint",
                -1,
                "cannot be read: its version is '7', only 0 is known",
                READ_WHOLE,
            )
        ],
    ),
    "records that are gone": (
        text("replication-offset-checkpoint", "0\n1\nt 0 900\n"),
        [("damage", "t-0", -1, "replication-offset-checkpoint says 900, the log ends at 108", LOST)],
    ),
    "meta.properties": (
        text("meta.properties", "version=1\n"),
        [
            (
                "damage",
                "meta.properties",
                -1,
                "there is no cluster.id in it",
                "Put it back, or remove the file: the next start makes one with a new cluster id.",
            )
        ],
    ),
    "no meta.properties": (
        lambda f: (f / "meta.properties").unlink(),
        [
            (
                "note",
                "meta.properties",
                -1,
                "it is missing",
                "The next start makes one, with a new cluster id.",
            )
        ],
    ),
    "leftovers of compactions and removals": (
        lambda f: [
            (f / f"t-0/{number:020d}.log.{kind}").write_bytes(b"?")
            for number, kind in enumerate(("deleted", "cleaned", "swap"), 7)
        ],
        [
            ("note", f"t-0/{7:020d}.log.deleted", -1, "waits for its removal", "Nothing needs to be done."),
            (
                "note",
                f"t-0/{8:020d}.log.cleaned",
                -1,
                "compaction was writing it: the next start removes it",
                "Nothing needs to be done.",
            ),
            (
                "note",
                f"t-0/{9:020d}.log.swap",
                -1,
                "compaction has finished it: the next start puts it in the place of its sources",
                "Nothing needs to be done.",
            ),
        ],
    ),
    "a partition that is being deleted": (
        lambda f: (f / ("u-1." + "a" * 32 + "-delete")).mkdir(),
        [
            (
                "note",
                "u-1." + "a" * 32 + "-delete",
                -1,
                "a partition that is being deleted",
                "The next start removes it.",
            )
        ],
    ),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_damage_is_told_with_its_place_what_is_wrong_and_what_to_do(folder: Path, what: str) -> None:
    damage, expected = DAMAGE[what]
    damage(folder)
    assert told(folder) == expected


def test_the_position_is_that_of_the_batch(folder: Path) -> None:
    write(folder, f"{FIRST}.log", 3 * batch_bytes(folder) + 80, b"?")
    assert ("damage", f"{FIRST}.log", 3 * batch_bytes(folder)) in found(folder)


def test_preallocated_indexes_are_in_order(folder: Path) -> None:
    for suffix in ("index", "timeindex"):
        os.truncate(folder / f"{LAST}.{suffix}", 24 * 1_000)
    assert found(folder) == []


def test_a_time_index_may_say_of_one_offset_twice_that_time_went_on(folder: Path) -> None:
    write(folder, f"{LAST}.timeindex", 60, struct.pack(">qi", NOW_MS + 99, 47))
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


def test_damage_in_a_log_is_told_with_what_follows_and_what_it_means(folder: Path) -> None:
    write(folder, f"{FIRST}.log", 1_000, b"?")
    ((level, file, position, what, advice),) = told(folder)
    size = batch_bytes(folder)
    assert (level, file, position) == ("damage", f"{FIRST}.log", 1_000 // size * size)
    reason, _, follows = what.partition("; ")
    assert "checksum" in reason
    assert follows == f"whole batches follow from byte {(1_000 // size + 1) * size} on"
    assert advice == LEFT_OUT


def test_the_end_of_a_log_in_use_may_be_a_write_under_way(tmp_path: Path) -> None:
    data = DataFolder.open(tmp_path)
    log = data.open_log("t", 0, LogConfig(), now_ms=NOW_MS, topic_id=uuid.UUID(int=3))
    append(log, 1)
    path = tmp_path / "t-0" / f"{0:020d}.log"
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(bytes(10))
    what = "batch header cut short: 10 bytes (at byte 0); 10 bytes to the end of the file are no whole batch"
    assert told(tmp_path) == [("note", f"{FIRST}.log", size, what, GROWING)]
    log.close()
    data.close()


def test_an_abort_that_the_transaction_index_does_not_have_is_told_and_can_be_mended(tmp_path: Path) -> None:
    def opened() -> tuple[DataFolder, PartitionLog]:
        data = DataFolder.open(tmp_path)
        return data, data.open_log("t", 0, LogConfig(), now_ms=NOW_MS, topic_id=uuid.UUID(int=3))

    def close(data: DataFolder, log: PartitionLog) -> None:
        log.close()
        data.write_checkpoints([log])
        data.close()

    data, log = opened()
    for sequence, committed in enumerate([False, True, False]):
        log.append(batch(1, producer_id=1, sequence=sequence, transactional=True), now_ms=NOW_MS)
        log.append(marker(1, committed=committed), now_ms=NOW_MS, from_client=False)
    # who had written nothing aborts nothing
    log.append(marker(2, committed=False), now_ms=NOW_MS, from_client=False)
    close(data, log)
    index = tmp_path / f"{FIRST}.txnindex"
    assert told(tmp_path) == []

    whole = index.read_bytes()
    name = f"{FIRST}.txnindex"
    both = [f"no entry for what producer 1 aborted at offset {offset}" for offset in (1, 5)]
    index.write_bytes(whole[:34])
    assert [row[:4] for row in told(tmp_path)] == [("damage", name, -1, both[1])]
    index.unlink()
    assert [row[:4] for row in told(tmp_path)] == [("damage", name, -1, what) for what in both]

    assert all("printf x >> FILE" in row[4] for row in told(tmp_path))
    index.write_bytes(b"x")
    close(*opened())
    assert index.read_bytes() == whole
