"""Apache Kafka's DumpLogSegments reads our files: the same groups and offsets, and nothing wrong in them."""

from __future__ import annotations

import json
import re
import subprocess
import uuid
from pathlib import Path
from typing import Any

import pytest

from kohort.log import DataFolder, LogConfig
from kohort.log.tools.dump import dump_file
from kohort.log.tools.verify import verify_folder
from kohort.offsets_topic.readable import readable
from kohort.protocol import build_batch
from kohort.testing import running_broker
from tests.broker.test_kafka_folder import MORE, SETTINGS, commit, unpacked
from tests.broker.wire import Wire
from tests.clients.java import java_command

pytestmark = pytest.mark.clients

TOOL = "org.apache.kafka.tools.DumpLogSegments"
NOW_MS = 1_800_000_000_000
TOPIC = "ours"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Apache Kafka's folder after 1,000 commits more, and a topic of ours with several segments."""
    folder = unpacked(tmp_path_factory.mktemp("dumped"))
    with (
        running_broker(data=folder, offsets_topic_segment_bytes=65_536, **SETTINGS) as broker,
        Wire(broker.bootstrap) as wire,
    ):
        for number in range(100):
            for group in MORE:
                assert commit(wire, group, number) == 0
    data = DataFolder.open(folder)
    config = LogConfig(segment_bytes=60_000)
    log = data.open_log(TOPIC, 0, config, now_ms=NOW_MS, topic_id=uuid.uuid4())
    for number in range(400):
        records = [(b"key %d" % number, bytes(100), ()) for _ in range(4)]
        batch = build_batch(records, timestamp_ms=NOW_MS + number)
        log.append(bytes(batch), now_ms=NOW_MS, from_client=False)
    log.close()
    data.close()
    return folder


def files(folder: Path, pattern: str) -> list[Path]:
    found = sorted(folder.glob(pattern))
    assert found
    return found


#: A segment begins where it begins, and compaction leaves offsets out.
GAPS = re.compile(r"^Non-consecutive offsets in .*\n(  -?\d+ is followed by \d+\n)+", re.MULTILINE)
#: So it says of a batch that compaction has emptied of records.
EMPTIED = re.compile(
    r"^Found timestamp mismatch in :.*/__consumer_offsets-.*\n.* log timestamp: -1\n", re.MULTILINE
)


def dump(paths: list[Path], *options: str) -> str:
    """What the tool says of the files; nothing that is wrong in them."""
    command = [*java_command(), TOOL, *options, "--files", ",".join(map(str, paths))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250, check=False)
    assert (done.returncode, EMPTIED.sub("", GAPS.sub("", done.stderr))) == (0, "")
    return done.stdout


def batches(said: str) -> list[str]:
    return [line for line in said.splitlines() if line.startswith("baseOffset: ")]


Stored = tuple[int, str, str | None, int | None, int | None]


def theirs(said: str) -> list[Stored]:
    """Offset of the record, group, topic, partition, committed offset or generation: None in tombstones."""
    found: list[Stored] = []
    for line in said.splitlines():
        match = re.match(r"\| offset: (\d+) .* key: (\{.*\}) payload: (.*)$", line)
        if match is None:
            continue
        key = json.loads(match[2])
        if key["type"] not in ("0", "1", "2"):
            continue
        value = json.loads(match[3])["data"] if match[3].startswith("{") else {}
        where = key["data"]
        number = value.get("offset", value.get("generation"))
        found.append((int(match[1]), where["group"], where.get("topic"), where.get("partition"), number))
    return found


def ours(paths: list[Path]) -> list[Stored]:
    found: list[Stored] = []
    for path in paths:
        for entry in dump_file(path, records=True):
            if entry.kind != "record":
                continue
            what, fields = readable(entry.fields["key"], entry.fields["value"])
            if what.startswith(("offset", "group")):
                number: Any = fields.get("committed_offset", fields.get("generation"))
                place = (fields.get("topic"), fields.get("partition"))
                found.append((entry.fields["offset"], fields["group"], *place, number))
    return found


def test_it_sees_the_same_groups_and_offsets(folder: Path) -> None:
    paths = files(folder, "__consumer_offsets-*/*.log")
    said = dump(paths, "--offsets-decoder", "--print-data-log")
    found = theirs(said)
    assert found == ours(paths)
    assert {group for _, group, *_ in found} >= {*MORE, "stable-a", "static-a", "connect-a"}
    assert "isvalid: false" not in said


def test_a_deep_iteration_finds_nothing_wrong(folder: Path) -> None:
    said = dump(files(folder, "*-*/*.log"), "--deep-iteration")
    assert len(batches(said)) == sum(partition.batches for partition in verify_folder(folder).partitions)
    assert all(" isvalid: true" in line for line in batches(said))
    assert "invalid bytes" not in said


@pytest.mark.parametrize("options", [["--index-sanity-check"], ["--verify-index-only"], []])
def test_indexes_are_in_order(folder: Path, options: list[str]) -> None:
    paths = [*files(folder, "*-*/*.index"), *files(folder, "*-*/*.timeindex")]
    said = dump(paths, *options)
    assert said.count("Dumping ") == len(paths)
    if options == ["--index-sanity-check"]:
        empty = sum(path.stat().st_size == 0 for path in paths)
        assert (
            said.count(" passed sanity check.") == len(paths) - empty == len(paths) - said.count(" is empty.")
        )


def test_producer_snapshots_are_read(folder: Path) -> None:
    said = dump(files(folder, "clicks-a-2/*.snapshot"))
    assert re.search(r"producerId: 1 producerEpoch: 0 .* lastOffset: 52", said)
