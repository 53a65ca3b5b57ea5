"""``kohort log``: what it prints and how it ends, on Apache Kafka's own folder and on any bytes."""

from __future__ import annotations

import json
import random
import tarfile
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kohort.cli import main
from kohort.log import strays_of
from kohort.log._names import stray_folder
from kohort.protocol import SharePartitionKey, build_batch
from kohort.protocol.messages.read_share_group_state import StateBatch
from kohort.share_state import ShareSnapshot, ShareStateDeleted, ShareUpdate
from kohort.share_state.records import encode

DATA = Path(__file__).resolve().parent.parent / "data" / "kafka-data-folder"
CLICKS = "clicks-a-2/00000000000000000000"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kafka")
    with tarfile.open(DATA / "data.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder


Run = tuple[int, str, str]


def run(capsys: pytest.CaptureFixture[str], *words: object) -> Run:
    code = main(["log", *map(str, words)])
    said = capsys.readouterr()
    return code, said.out, said.err


def lines(printed: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in printed.splitlines()]


def test_verify_shows_every_partition_and_a_verdict(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "verify", folder)
    assert code == 0
    assert sum(line.rstrip().endswith(" ok") for line in out.splitlines()) == 21
    assert "21 partitions, nothing is damaged" in out


def test_verify_names_damage_and_ends_with_1(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    partition = tmp_path / "t-0"
    partition.mkdir()
    data = bytearray((folder / f"{CLICKS}.log").read_bytes())
    data[1_100] ^= 1
    (partition / f"{0:020d}.log").write_bytes(data)
    code, out, _ = run(capsys, "verify", tmp_path)
    assert code == 1
    assert "t-0/00000000000000000000.log, byte 1040" in out
    assert "whole batches follow from byte 1118" in out
    code, out, _ = run(capsys, "verify", tmp_path, "--json")
    told = json.loads(out)
    assert (code, told["damaged"]) == (1, True)
    assert ("damage", 1040) in [(finding["level"], finding["position"]) for finding in told["findings"]]
    assert told["partitions"][0]["damaged"]


@pytest.mark.parametrize(
    "words",
    [
        ["verify", "{tmp}"],
        ["verify", "{tmp}/none"],
        ["dump", "{tmp}/none.log"],
        ["dump", "{tmp}"],
        ["dump", "{tmp}/some.txt"],
    ],
)
def test_what_cannot_be_looked_at_is_one_line_and_2(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "some.txt").touch()
    code, out, errors = run(capsys, *(word.format(tmp=tmp_path) for word in words))
    assert (code, out, errors.count("\n")) == (2, "", 1)
    assert errors.startswith("kohort log: ")


def test_dump_shows_batches_and_markers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "dump", folder / f"{CLICKS}.log")
    assert code == 0
    shown = out.splitlines()
    assert shown[0].startswith("batch base_offset=0 last_offset=49 count=50 position=0 size=966 ")
    assert " codec=lz4 " in shown[0]
    assert [line.split() for line in shown if "marker=" in line] == [
        ["marker", "offset=51", "marker=commit", "coordinator_epoch=0"],
        ["marker", "offset=53", "marker=abort", "coordinator_epoch=0"],
    ]


def test_dump_shows_records_where_they_are_asked_for(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = run(capsys, "dump", "--records", "--json", folder / f"{CLICKS}.log")
    records = [line for line in lines(out) if line["kind"] == "record"]
    assert [record["offset"] for record in records] == [*range(51), 52]
    assert {"key", "value", "timestamp_ms"} <= set(records[0])


def test_dump_shows_every_other_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "log-start-offset-checkpoint").write_text("0\n1\nclicks-a 2 7\n")
    files = [
        folder / f"{CLICKS}.timeindex",
        folder / f"{CLICKS}.txnindex",
        folder / "clicks-a-2" / f"{54:020d}.snapshot",
        folder / "clicks-a-2" / "leader-epoch-checkpoint",
        folder / "log-start-offset-checkpoint",
    ]
    code, out, _ = run(capsys, "dump", "--json", *files)
    assert code == 0
    time, aborted, first, _, epoch, start = (
        {k: v for k, v in line.items() if k != "file"} for line in lines(out)
    )
    assert time == {"kind": "entry", "timestamp_ms": 1795202784808, "offset": 53}
    assert aborted == {
        "kind": "aborted",
        "producer_id": 1,
        "first_offset": 52,
        "last_offset": 53,
        "last_stable_offset": 54,
    }
    assert (first["kind"], first["producer_id"], first["last_offset"]) == ("producer", 0, 50)
    assert epoch == {"kind": "epoch", "epoch": 0, "start_offset": 0}
    assert start == {"kind": "checkpoint", "topic": "clicks-a", "partition": 2, "offset": 7}


def test_records_of_the_offsets_topic_are_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "dump", "--records", "--json", *sorted(folder.glob("__consumer_offsets-*/*.log")))
    records = [line for line in lines(out) if line["kind"] == "record"]
    kinds = {record["is"] for record in records}
    assert kinds > {"offset", "offset tombstone", "group", "group tombstone"}
    # what Apache Kafka wrote about groups of KIP-848
    assert all(kind.startswith(("offset", "group", "consumer group")) for kind in kinds)
    stable = [record for record in records if record["is"] == "group" and record["group"] == "stable-a"][-1]
    assert len(stable["members"]) == 3
    for member in stable["members"]:
        assert set(member["subscription"]) <= {"orders-a", "clicks-a"}
        assert all(name.rpartition("-")[0] in member["subscription"] for name in member["assignment"])
    _, out, _ = run(capsys, "dump", "--records", folder / "__consumer_offsets-0" / f"{0:020d}.log")
    assert "  record offset=0 " in out
    assert " is=offset group=bulk-a-001 topic=clicks-a partition=4 committed_offset=383063 " in out


def test_records_of_share_partitions_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "__share_group_state-7"
    folder.mkdir()
    key = SharePartitionKey("orders", UUID(int=1), 0)
    written: list[ShareSnapshot | ShareUpdate | ShareStateDeleted] = [
        ShareSnapshot(key, 0, 1, 0, 5, 10, 10),
        ShareUpdate(key, 0, 0, 7, (StateBatch(7, 9, 2, 1),), 3),
        ShareStateDeleted(key),
    ]
    pairs = [(*encode(record), ()) for record in written]
    file = folder / f"{0:020d}.log"
    file.write_bytes(bytes(build_batch(pairs, timestamp_ms=1)))
    _, out, _ = run(capsys, "dump", "--records", "--json", file)
    kinds = [line["is"] for line in lines(out) if line["kind"] == "record"]
    assert kinds == ["share state", "share state update", "share state tombstone"]
    _, out, _ = run(capsys, "dump", "--records", file)
    assert "batches=[{first=7 last=9 state=acknowledged delivery_count=1}]" in out


def test_text_of_strangers_cannot_talk_to_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "meta.properties").write_text("key=\x1b[31mred\n")
    _, out, _ = run(capsys, "dump", tmp_path / "meta.properties")
    assert "\x1b" not in out
    assert "red" in out


@pytest.mark.parametrize(
    "name", ["x.log", "x.index", "x.timeindex", "x.txnindex", "x.snapshot", "a-checkpoint"]
)
def test_no_bytes_make_dump_fail(
    name: str, tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dice = random.Random(name)
    good = (folder / "__consumer_offsets-0" / f"{0:020d}.log").read_bytes()[:3_000]
    for _ in range(60):
        data = bytearray(dice.choice([good, dice.randbytes(dice.randrange(200)), bytes(90)]))
        for _ in range(dice.randrange(5)):
            if data:
                data[dice.randrange(len(data))] = dice.randrange(256)
        (tmp_path / name).write_bytes(data)
        for options in ([], ["--json"]):
            assert run(capsys, "dump", "--records", "--offsets", *options, tmp_path / name)[0] in (0, 1)


def stray(data: Path, topic: str, partition: int, unique: str) -> str:
    folder = data / f"{topic}-{partition}.{unique * 32}-stray"
    folder.mkdir()
    (folder / f"{0:020d}.log").write_bytes(b"12345")
    (folder / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAACg\n")
    return folder.name


def test_strays_are_listed_with_their_sizes_and_only_those_named_are_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "orders-0").mkdir()
    first, second = stray(tmp_path, "orders", 0, "a"), stray(tmp_path, "orders", 1, "b")
    code, out, _ = run(capsys, "strays", tmp_path, "--json")
    rows = json.loads(out)["strays"]
    assert code == 0
    assert [(row["topic"], row["partition"], row["folder"], row["removed"]) for row in rows] == [
        ("orders", 0, first, False),
        ("orders", 1, second, False),
    ]
    assert rows[0]["topic_id"] == "00000000-0000-0000-0000-00000000000a"
    assert rows[0]["bytes"] > 5
    code, out, _ = run(capsys, "strays", tmp_path, "--remove", first)
    assert (code, sum("removed" in line for line in out.splitlines())) == (0, 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["orders-0", second]
    assert run(capsys, "strays", tmp_path, "--remove", "all")[0] == 0
    assert run(capsys, "strays", tmp_path) == (0, "no strays\n", "")
    assert (tmp_path / "orders-0").exists()


def test_a_stray_that_is_a_link_is_removed_alone_whether_or_not_it_leads_somewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    kept = tmp_path / stray(tmp_path, "orders", 0, "a")
    (data / kept.name).symlink_to(kept)
    (data / kept.name.replace("-0.", "-1.")).symlink_to(tmp_path / "nowhere")
    code, out, _ = run(capsys, "strays", data, "--remove", "all")
    assert (code, sum("removed" in line for line in out.splitlines())) == (0, 2)
    assert (list(data.iterdir()), kept.exists()) == ([], True)


@pytest.mark.parametrize("wrong", ["orders-0", "../x", "orders-0.1-stray"])
def test_what_is_no_stray_is_not_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], wrong: str
) -> None:
    (tmp_path / "orders-0").mkdir()
    code, _, err = run(capsys, "strays", tmp_path, "--remove", wrong)
    assert (code, (tmp_path / "orders-0").exists()) == (2, True)
    assert "no strays: " in err


def test_a_stray_whose_topic_has_a_long_name_is_never_taken_for_another_partition(tmp_path: Path) -> None:
    name = stray_folder("a" * 247 + "-1234", "c" * 32)
    assert len(name) == 255
    (tmp_path / name).mkdir()
    (found,) = strays_of(str(tmp_path))
    assert (found.partition, found.folder) == (-1, name)
